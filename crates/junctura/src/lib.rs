//! Hand scientific data over by meaning: the client library, and the only crate that users name.
//!
//! A [`Pool`] is the shared space in which producers and consumers meet. A producer **offers** an object (attributes and a
//! payload) and goes on computing; everyone who said what they want **gets it by meaning**, early or late, through memory
//! that both map.
//!
//! ```
//! use junctura::Pool;
//!
//! # fn main() -> junctura::Result<()> {
//! let pool = Pool::builder().schema("free").open()?; // private to this process and its children
//! pool.offer([("space", "demo"), ("name", "hello")], b"a payload")?;
//!
//! let object = pool.demand("name=hello", None)?;
//! assert_eq!(&object[..], b"a payload");
//! # Ok(())
//! # }
//! ```
//!
//! The same program runs on a pool that other processes share when the pool is opened with [`Pool::connect`]
//! (`"unix:NAME"`). Everything here may be used from any number of threads; no function keeps a thread of its own: the
//! thread that waits reads the connection and hands on to the others what is theirs. There is no global state.
//!
//! What it promises: an object is whole or not there; nobody changes it after its offer; its memory stays readable for as
//! long as the [`Object`] lives, whatever becomes of the pool. What it refuses: every error says its [`Code`], what it is
//! about, and why. After a fork a [`Pool`] connects anew in the child, and what the child inherited is left to the parent.

mod allocation;
mod awaiting;
mod builder;
mod bundle;
mod bundles;
mod connection;
mod demand;
mod described;
mod dispatch;
mod follow;
mod given;
mod handshake;
mod list;
mod mail;
mod object;
mod offer;
mod pipeline;
mod pool;
mod require;
mod segments;
mod start;
mod state;
mod stop;
mod stream;
mod subscribe;
mod target;
mod wait;
mod wanted;
mod withdraw;

pub use allocation::{Allocation, KeepMapped};
pub use awaiting::{Awaited, Awaiting};
pub use builder::PoolBuilder;
pub use bundle::{Bundle, BundleOptions, Completed, Staged};
pub use bundles::{BundleEntry, BundleState};
pub use demand::PendingDemand;
pub use described::Described;
pub use follow::{Follow, FollowOptions, Gap, GapItem, Group, Item};
pub use given::IntoGiven;
pub use junctura_model::version::{Cursor, Version};
pub use junctura_model::{Advice, Code, Consumers, Error, Given, Result, Retention, Schema};
pub use list::{Entry, ListOptions, Pages};
pub use object::{Object, Transport};
pub use offer::OfferOptions;
pub use pipeline::{Ack, Pipeline};
pub use pool::Pool;
pub use require::{OnFull, RequireOptions, Requirement, Versions};
pub use subscribe::{BundleName, EventKind, Peer, PoolEvent, Subscription};
pub use target::Target;
pub use wait::{PoolDescriptor, Timer};
pub use withdraw::WithdrawOptions;
