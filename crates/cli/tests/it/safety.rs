//! Attacks that a user could meet, each with a test named after it.

mod planted_python;
