//! Formulas for single stations, with more results than the solution of a network has.
//!
//! - [`mg1()`]: one server, any distribution of service times.
//! - [`mmmk()`]: several servers and a waiting room that fills up.
//! - [`mmpp_m1()`]: arrivals in bursts ([`Mmpp2`]) at one server.
//!
//! For several servers without a limit, see [`crate::erlang`]; priorities are solved by [`mod@crate::solve`].

pub mod mg1;
pub mod mmmk;
pub mod mmpp;

pub use mg1::{Mg1, mg1};
pub use mmmk::{Mmmk, mmmk};
pub use mmpp::{Mmpp2, MmppM1, mmpp_m1};
