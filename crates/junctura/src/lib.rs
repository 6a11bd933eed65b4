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
//! The same program runs in a pool that others share when that is opened with [`Pool::connect`]: `"unix:NAME"` on one machine,
//! `"tcp://HOST:PORT"` over a network. `junctura serve` serves one, or [`PoolBuilder::start`] starts a server where none runs.
//!
//! # In five minutes
//! Attributes are described by a [schema](Schema): `free` takes whatever texts you like, `mars` knows the vocabulary of weather
//! centres, your own is a file. What you want is said by a *selector* over them: `param=t/u,step=0/to/24,levelist>=500`.
//! A consumer has three ways to get what matches:
//!
//! ```
//! use junctura::{FollowOptions, Item, Pool};
//!
//! # fn main() -> junctura::Result<()> {
//! let pool = Pool::builder().schema("free").open()?;
//!
//! // It says early what it will want: that stays until it was received and released, whoever is faster.
//! let archive = pool.require("space=fields")?;
//!
//! // A payload is best filled in the pool's memory: nothing is copied then, on either side.
//! let mut field = pool.allocate(100_000)?;
//! field.fill(7);
//! field.offer([("space", "fields"), ("name", "sevens")])?;
//!
//! // It gets one object, and waits for it if need be; or it follows all that match: what is there, then what comes.
//! let sevens = pool.demand("name=sevens", None)?;
//! for item in pool.follow("space=fields")? {
//!     let Item::Object(field) = item? else { continue };
//!     assert_eq!((field.get("name"), field.len()), (Some("sevens"), sevens.len()));
//!     break;
//! }
//! # archive.retract()?;
//! # Ok(())
//! # }
//! ```
//!
//! | to | take |
//! |---|---|
//! | share work among processes, so that each object is done once and nothing is lost with a worker | [`FollowOptions::group`], [`Pool::join`] |
//! | make many objects visible at one moment, or not at all | [`Pool::bundle`], [`Pool::open_bundle`] |
//! | offer many small objects | [`Pool::pipeline`] |
//! | hand over an array that lies over many ranks, and take it in another layout | [`Pool::offer_piece`], [`Pool::demand_array`], [`Exchange`] |
//! | compute only what somebody wants | [`Pool::wanted`], [`OfferOptions::if_wanted`] |
//! | say how long an object stays | [`Retention`], [`OfferOptions::retention`] |
//! | take something out again | [`Pool::withdraw`], [`Pool::withdraw_all`] |
//! | keep in a store what passes, all of it or one of so many | [`Archiver`] |
//! | go on where an earlier run was | [`Follow::cursor`], [`RequireOptions::name`] |
//! | wait for several things, in a thread or in a loop of your own | [`Pool::wait`], [`Pool::descriptor`] |
//! | know that what you said is in effect, before you say so elsewhere | [`Pool::sync`] |
//! | see what happens | [`Pool::subscribe`], [`Pool::stat`] |
//! | bring a field to the grid of another model, or to its times | the module [`remap`] |
//! | await all of this, on tokio or another runtime | `begin_…` of each verb, with the feature `tokio` or `async`: the module `aio` |
//!
//! Every [`Error`] says its [`Code`], what it is about and why, and [what to do](Code::advice). Whatever asks the server fails with
//! `Disconnected` when that has gone, and with `Closed` after [`Pool::close`]; not every page repeats it.
//!
//! # What to rely on
//! An object is whole or not there; nobody changes it after its offer; its memory stays readable for as long as the [`Object`]
//! lives, whatever becomes of the pool; it is released when it is dropped. Everything here may be used from any number of threads; nothing but
//! [`Archiver::start`] keeps a thread of its own: the thread that waits reads the connection and hands on to the others what is theirs.
//! There is no global state. After a fork a [`Pool`] connects anew in the child, and what the child inherited is left to the
//! parent.
//!
//! # Features
//! | feature | default | adds |
//! |---|---|---|
//! | `embedded` | yes | `Pool::embedded`, and starting a server where none runs: `PoolBuilder::start`, and its settings for the server |
//! | `net` | yes | pools at `tcp://` URLs, TLS and tokens, `PoolBuilder::upstream` and [`UpstreamProxy`] |
//! | `store` | yes | a store behind the pool (`PoolBuilder::store`) and the [`Archiver`] |
//! | `async` | no | each [`Pending`] as a future, and follows as streams, on any runtime: the module `aio` |
//! | `tokio` | no | the same, driven by tokio; includes `async` |
//!
//! With `default-features = false` the crate is a pure client of a pool that is served on the same machine, over a unix socket
//! and shared memory. It then compiles at most 50 third-party crates, and neither server, Parquet nor TLS. An operation that needs
//! a feature left out either does not exist or fails with [`Code::Unsupported`]; the error names the feature.

#![warn(clippy::missing_errors_doc)]
// Links on these pages lead to items of all features.
#![cfg_attr(
    not(all(feature = "embedded", feature = "net", feature = "store")),
    allow(rustdoc::broken_intra_doc_links)
)]

/// The blocks of the guide's page on Rust.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/guide/rust.md")]
mod guide {}

#[cfg(feature = "async")]
pub mod aio;
#[cfg(feature = "store")]
mod archiver;
mod array;
mod awaiting;
mod beside;
#[doc(hidden)]
pub mod binding;
mod builder;
mod connection;
mod iter;
mod object;
mod pending;
mod pool;
#[cfg(feature = "embedded")]
mod start;
mod store_fallback;
mod target;
mod verbs;
mod wait;

#[cfg(feature = "store")]
pub use archiver::{Archiver, ArchiverCounts, ArchiverEvent, ArchiverOptions, ArchiverThread};
pub use array::{ArrayPart, ArrayPiece, DemandedArray, Exchange, WholeArray};
pub use awaiting::{Awaited, WaitSource};
pub use builder::PoolBuilder;
pub use iter::BlockingIter;
pub use junctura_layout::{Element, Layout, Order, Plan, PlanSide};
#[cfg(feature = "net")]
pub use junctura_link::UpstreamProxy;
pub use junctura_model::version::{Cursor, Version};
pub use junctura_model::{
    Advice, Code, Consumers, Described, Durability, Error, Given, IntoGiven, Result, Retention, Schema,
};
pub use junctura_remap as remap;
pub use object::{Object, Transport};
pub use pending::Pending;
pub use pool::Pool;
pub use target::Target;
pub use verbs::allocation::Allocation;
pub use verbs::bundle::{Bundle, BundleOptions, Completed, Staged};
pub use verbs::bundles::{BundleEntry, BundleState};
pub use verbs::demand::{DemandOptions, DemandSource};
pub use verbs::follow::{Follow, FollowOptions, Gap, GapItem, Group, Item};
pub use verbs::list::{Entry, ListOptions, Pages};
pub use verbs::offer::OfferOptions;
pub use verbs::pipeline::{Ack, Pipeline};
pub use verbs::require::{ArchivedLocation, OnFull, RequireOptions, Requirement, Versions};
pub use verbs::subscribe::{BundleNotice, EventKind, Peer, PoolEvent, Subscription};
pub use verbs::withdraw::WithdrawOptions;
pub use wait::{PoolDescriptor, Timer};
