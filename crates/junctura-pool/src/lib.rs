//! The pool: what is visible, who wants it, who holds it, and when it goes.
//!
//! [`core`] decides. It is one state machine: a client's message or the passing of time goes in, answers and orders about
//! memory come out ([`Effects`]). It has no clock, no sockets, no descriptors and no threads, so that a simulation can run
//! thousands of clients, crashes and delays through the very code that serves real ones. [`server`] is the thread around
//! it: it reads sockets, asks the clock, makes segments, and carries out what the core says.

pub mod config;
pub mod core;
mod effects;
pub mod server;

pub use config::{PoolConfig, PoolLimits, SpillConfig};
pub use effects::{BrokenRequirement, Effects, SpillFrom, SpillJob};
