//! The state machine of a pool: events in, effects out.
//!
//! ```text
//!            offer          last release or end of a retention time, or withdraw, or a newer version
//!  (nothing) ------> visible ------------------------------------------------------> gone (a tombstone)
//!                       |  delivered to followers, demands, requirements                |  forgotten by age or count
//!                       '-- payload stays while a client holds or is owed it            '--> (nothing)
//! ```
//! An object (`objects/object.rs`) is in one of three states: visible, superseded, gone. Its payload is freed when it
//! is not visible, no client holds it and no requirement is owed it; the object itself is removed when, in addition, no
//! reader has yet to be notified. A tombstone remembers it for a time.
//!
//! Three types own the state, each the one below it, and calls go down only: [`Core`] takes events and carries out
//! their consequences (`engine`), `ObjectExchange` accepts objects, delivers them to interests, and removes them
//! (`exchange.rs`), `ClientRequests` has the requests of clients (`clients/requests.rs`). The tables are in the folders
//! that are named after them, and the functions that change several tables in folders `flow` beside these.
//!
//! Each event has its time, in nanoseconds of a monotonic clock; [`Core::deadline`] returns when the core must be
//! called again. Nothing here blocks: a request that waits is stored, and answered in its turn.

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
pub(crate) use engine::farewell::tell_undelivered;
pub use engine::timers::Nanoseconds;
pub use interests::flow::tell::{latest_news, pending_news};
pub use interests::interest::PreparedSelector;
pub use interests::untold::PendingNews;
pub use reasons::PoolReasons;
