//! A run of a seed: its plan, its end, and how a failing one is shortened.

pub(crate) mod history;
pub mod plan;
pub mod rng;
pub(crate) mod shrink;
pub(crate) mod teardown;
pub mod unblocking;
pub mod universe;
