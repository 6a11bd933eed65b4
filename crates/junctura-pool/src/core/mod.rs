//! The state machine of a pool: events in, effects out.
//!
//! ```text
//!            offer          last release or end of time of a retention, or withdraw, or a newer version
//!  (nothing) ------> visible ------------------------------------------------------> gone (a tombstone)
//!                       |  delivered to followers, demands, requirements                |  forgotten by age or count
//!                       '-- payload stays while anyone holds it or is owed it           '--> (nothing)
//! ```
//! An object (`objects/object.rs`) is in one of three states: visible, superseded, gone. Its payload is given back when it is not
//! visible, nobody holds it and no requirement is owed it; the object itself goes when no reader has yet to be told of it
//! either. A tombstone remembers it for a time.
//!
//! Three types own the state, each the one below it, and calls go down only: [`Core`] takes events and carries out what follows from them
//! (`engine`), `ObjectExchange` lets objects come, gives them to those who want them, and lets them go (`exchange.rs`), `ClientRequests` has what
//! clients have asked for (`clients/requests.rs`). The tables are in the folders that are named after them, and the functions that change several of
//! them in folders `flow` beside these.
//!
//! Time comes in with each event, in nanoseconds of a clock that only rises; [`Core::deadline`] says when the core wants to
//! be called again. Nothing here waits: who has to wait is remembered, and answered when its turn comes.

mod bundles;
mod clients;
mod containers;
mod deferred;
mod durability;
mod engine;
mod exchange;
mod interests;
mod memory;
mod objects;
mod reasons;
#[cfg(test)]
mod tests;

pub use clients::client::ClientPeer;
pub use clients::stat::PoolStat;
pub use deferred::{DepartingObject, UnfinishedChange, UnfinishedWork};
pub use engine::Core;
pub use engine::timers::Nanoseconds;
pub use interests::interest::PreparedSelector;
