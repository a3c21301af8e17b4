//! Tests of the method on a simulated bench.
