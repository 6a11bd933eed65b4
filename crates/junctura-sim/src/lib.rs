//! Seeded simulation of a pool: many clients, delays, full memory and crashes, in one thread and without a clock.
//!
//! A run is determined by its seed. It builds a real [`junctura_pool::core::Core`], lets simulated clients exchange
//! messages with it in the real wire format over lines that delay and lose, and judges every effect of the core:
//!
//! - [`model`] derives the due effects of each event from the design, and compares them with the actual ones;
//! - [`reader`](clients::reader) and the clients check the promises to each client: each version once, in order, none
//!   missing, bytes as they were offered, memory unchanged as long as they hold it;
//! - [`group_checks`](clients::group_checks) checks the same for members that share: each version is delivered to one
//!   member at a time, and completed once;
//! - some clients connect from other machines, over the real ends of a link and a network that cuts, delays and divides
//!   ([`network`](clients::network)): received messages must equal sent ones;
//! - a second core gets the same input and must have the same effects, byte for byte (`world::twin`);
//! - at the end all clients leave, and nothing may be left: no memory, no interest, no delivery, no timer.
//!
//! [`run()`] makes one run and [`failure`] shrinks a failing one. `tests/fixed_seeds.rs` runs two thousand of them; the
//! program `junctura-sim` runs any number and prints how to repeat a failing one. [`races`] uses no randomness: there
//! the requests of a few clients are given, and run in every order.

pub mod clients;
pub mod model;
pub mod races;
pub mod run;
pub mod world;

pub use run::history::write as write_history;
pub use run::shrink::{Failure, Steps, failure, run};

/// The incarnation of every simulated server.
pub const INCARNATION: u64 = 1;
