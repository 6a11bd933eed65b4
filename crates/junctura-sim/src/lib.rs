//! Seeded simulation of a pool: many clients, delays, full memory and crashes, in one thread and without a clock.
//!
//! A run follows from its seed. It builds a real [`junctura_pool::core::Core`], lets simulated clients talk to it in the real
//! wire format over lines that delay and lose, and judges everything that the core does:
//!
//! - [`model`] says, from the design, what has to come of each event, and compares it with what came;
//! - [`reader`](clients::reader) and the clients check what they were promised from where they stand: each version once, in order, none
//!   missing, bytes as they were offered, memory theirs as long as they hold it;
//! - [`group_checks`](clients::group_checks) checks the same for members that share: each version is delivered to one member at a time, and completed once;
//! - some clients come from other machines, over the real ends of a link and a network that cuts, delays and divides
//!   ([`network`](clients::network)): what arrives must be what was said;
//! - a second core is told the same and must order the same, byte for byte (`world::twin`);
//! - at the end everyone leaves, and nothing may be left: no memory, no interest, no delivery, no timer.
//!
//! [`run()`] makes one run and [`failure`] shrinks a failing one. `tests/fixed_seeds.rs` runs ten thousand of them; the program
//! `junctura-sim` runs as many as one likes and says how to repeat a failing one. [`races`] leaves nothing to chance: there the
//! requests of a few clients are written down, and come in every order.

pub mod clients;
pub mod model;
pub mod races;
pub mod run;
pub mod world;

pub use run::history::write as write_history;
pub use run::shrink::{Failure, Steps, failure, run};

/// The incarnation of every simulated server.
pub const INCARNATION: u64 = 1;
