//! Seeded simulation of a pool: many clients, delays, full memory and crashes, in one thread and without a clock.
//!
//! A run follows from its seed. It builds a real [`junctura_pool::core::Core`], lets simulated clients talk to it in the real
//! wire format over lines that delay and lose, and judges everything that the core does:
//!
//! - [`model`] derives, from the design, the result of each event, and compares it with the core's;
//! - [`reader`] and the clients check their guarantees from their side: each version once, in order, none missing, bytes as
//!   they were offered, memory theirs as long as they hold it;
//! - [`shares`] checks the same for groups: each version with one member at a time, and completed once;
//! - some clients connect from other machines, over the real ends of a link and a network that cuts, delays and divides
//!   ([`road`]): received data must equal sent data;
//! - a second core gets the same inputs and must give the same orders, byte for byte (`twin`);
//! - at the end everyone leaves, and nothing may be left: no memory, no interest, no delivery, no timer.
//!
//! [`run`] makes one run and [`failure`] shrinks a failing one. `tests/fixed_seeds.rs` makes ten thousand runs; the program
//! `junctura-sim` makes any number of runs and prints how to repeat a failing one. [`races`] leaves nothing to chance:
//! there the requests of a few clients are written down, and are sent in every order.

mod act;
pub mod ask;
mod bundle;
pub mod client;
mod ending;
mod history;
mod linked;
pub mod model;
pub mod plan;
pub mod races;
pub mod reader;
mod receive;
pub mod recorder;
pub mod rng;
pub mod road;
pub mod said;
pub mod shares;
mod shrink;
mod twin;
pub mod universe;
pub mod world;

pub use history::write as write_history;
pub use shrink::{Failure, Steps, failure, run};

/// The incarnation of every simulated server.
pub const INCARNATION: u64 = 1;
