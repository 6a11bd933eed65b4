//! The pool: visible objects, the interests that match them, their holders, and their retention.
//!
//! [`core`] decides. It is one state machine: its inputs are messages of clients and the passing of time, its outputs
//! are replies and orders about memory ([`Effects`]). It has no clock, no sockets, no descriptors and no threads, so
//! that a simulation can run thousands of clients, crashes and delays through the code that serves real clients.
//! [`server`] is the thread around it: it reads sockets and the clock, makes segments, and carries out the orders of
//! the core.

pub mod config;
pub mod core;
mod effects;
pub mod server;

pub use config::{PoolConfig, PoolLimits, SpillConfig};
pub use effects::{BrokenRequirement, Effects, SpillFrom, SpillJob};
