//! Exchanges scientific data by attributes: the client library of Junctura, and the only crate that users name.
//!
//! A [`Pool`] is the shared space in which producers and consumers exchange objects. A producer **offers** an object
//! (attributes and a payload) and continues to compute. Consumers **select objects by their attributes**, before or
//! after the offer, and read the payload from memory that both processes map.
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
//! The same program uses a shared pool when it opens the pool with [`Pool::connect`]: `"unix:NAME"` on one machine,
//! `"tcp://HOST:PORT"` over a network. `junctura pool serve` runs a server; [`PoolBuilder::start`] starts a server if none
//! is running.
//!
//! # In five minutes
//! A [schema](Schema) describes attributes: `free` accepts arbitrary texts, `mars` defines the vocabulary of weather
//! centers, and a file defines your own. A *selector* chooses objects by their attributes:
//! `param=t/u,step=0/to/24,levelist>=500`. A consumer has three ways to get matching objects:
//!
//! ```
//! use junctura::{FollowOptions, Item, Pool};
//!
//! # fn main() -> junctura::Result<()> {
//! let pool = Pool::builder().schema("free").open()?;
//!
//! // A requirement retains matching objects until they were received through it and released.
//! let archive = pool.require("space=fields")?;
//!
//! // A payload that is filled in the pool's memory is never copied, on either side.
//! let mut field = pool.allocate(100_000)?;
//! field.fill(7);
//! field.offer([("space", "fields"), ("name", "sevens")])?;
//!
//! // A demand waits for one object; a follow returns all matching objects: first a snapshot, then new ones.
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
//! | to | use |
//! |---|---|
//! | share work among processes: each object is completed once, and the objects of a failed worker are redelivered | [`FollowOptions::group`], [`FollowOptions::join`] |
//! | make many objects visible atomically | [`Pool::bundle`], [`Pool::open_bundle`] |
//! | offer many small objects | [`Pool::pipeline`] |
//! | offer an array that is distributed over many ranks, and read it in another layout | [`Pool::offer_piece`], [`Pool::demand_array`], [`Exchange`] |
//! | compute only objects that a consumer wants | [`Pool::wanted`], [`OfferOptions::if_wanted`] |
//! | set how long the pool retains an object | [`Retention`], [`OfferOptions::retention`] |
//! | withdraw objects | [`Pool::withdraw`], [`Pool::withdraw_all`] |
//! | archive all objects, or a sample, in a store | [`Archiver`] |
//! | continue where an earlier run stopped | [`Follow::cursor`], [`RequireOptions::name`] |
//! | wait for several events, in a thread or in your own event loop | [`Pool::wait`], [`Pool::descriptor`] |
//! | ensure that all earlier requests are in effect | [`Pool::sync`] |
//! | monitor a pool | [`Pool::subscribe`], [`Pool::stat`] |
//! | find out why a request waits, why an object stays, and what fills memory | [`PoolReasons::waits`], [`PoolReasons::explain`], [`PoolReasons::keepers`] |
//! | regrid a field to the grid of another model, or interpolate it to other times | the module [`remap`] |
//! | use `async`, on tokio or another runtime | `begin_…` of each verb, with the feature `tokio` or `async`: the module `aio` |
//!
//! Every [`Error`] has a [`Code`], a subject, a reason and [advice](Code::advice). Every request to the server fails
//! with `Disconnected` if the connection is lost, and with `Closed` after [`Pool::close`]; not every page repeats these
//! two codes.
//!
//! # Guarantees
//! - **Objects.** An object is visible as a whole or not at all, and is immutable after its offer. Its memory stays
//!   readable for as long as the [`Object`] exists, even after the pool is closed. Dropping the [`Object`] releases it.
//! - **Threads.** All types are thread-safe. The thread that waits reads the connection and passes messages to the
//!   other threads. On the machine of the server, a client has no background thread, except for [`Archiver::start`]
//!   and for single operations that block where the caller must not block. A `tcp://` connection has one thread for
//!   each stream. An embedded server has its own threads.
//! - **State.** There is no global state. After a fork, a [`Pool`] reconnects in the child; handles that the child
//!   inherited belong to the parent.
//!
//! # Features
//! | feature | default | adds |
//! |---|---|---|
//! | `embedded` | yes | `Pool::embedded`; starting a server if none is running: `PoolBuilder::start`, and its settings for the server |
//! | `net` | yes | pools at `tcp://` URLs, TLS and tokens, `PoolBuilder::upstream` and [`UpstreamProxy`] |
//! | `store` | yes | a store behind the pool (`PoolBuilder::store`) and the [`Archiver`] |
//! | `async` | no | each [`Pending`] as a future, and follows as streams, on any runtime: the module `aio` |
//! | `tokio` | no | the same, driven by tokio; includes `async` |
//!
//! With `default-features = false` the crate is only a client of a pool that a server on the same machine provides,
//! over a Unix socket and shared memory. It then compiles at most 50 third-party crates, without server, Parquet and
//! TLS. An operation that needs a disabled feature either does not exist or fails with [`Code::Unsupported`]; the error
//! names the feature.

#![warn(clippy::missing_errors_doc)]
// Links in this documentation refer to items of all features.
#![cfg_attr(
    not(all(feature = "embedded", feature = "net", feature = "store")),
    allow(rustdoc::broken_intra_doc_links)
)]

/// The code blocks of the Rust page of the guide.
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
mod explain;
mod iter;
mod object;
mod pending;
mod pool;
mod pool_board;
#[cfg(feature = "embedded")]
mod start;
mod store_fallback;
mod target;
mod verbs;
mod wait;

#[cfg(feature = "store")]
pub use archiver::{Archiver, ArchiverCounts, ArchiverEvent, ArchiverOptions, ArchiverThread};
pub use array::{
    ArrayPart, ArrayPiece, DemandedArray, Exchange, RegridSource, RegridTarget, RegridTerms, WholeArray, read_weights,
    regrid_field,
};
pub use awaiting::{Awaited, WaitSource};
pub use builder::PoolBuilder;
pub use explain::{PoolReasons, reasons};
pub use iter::BlockingIter;
pub use junctura_board as board;
pub use junctura_board::{BoardCounter, BoardState};
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
pub use pool::{PayloadRules, Pool};
pub use pool_board::PoolBoard;
pub use target::Target;
pub use verbs::allocation::Allocation;
pub use verbs::bundle::{Bundle, BundleOptions, Completed, Staged};
pub use verbs::bundles::{BundleEntry, BundleState};
pub use verbs::demand::{DemandOptions, DemandSource};
pub use verbs::follow::{Follow, FollowOptions, Gap, GapItem, Group, Item};
pub use verbs::list::tally::{Tally, TallyGroup, TallyOptions};
pub use verbs::list::{Entry, ListOptions, Pages};
pub use verbs::offer::OfferOptions;
pub use verbs::pipeline::{Ack, Pipeline};
pub use verbs::require::{ArchivedLocation, OnFull, RequireOptions, Requirement, Versions};
pub use verbs::subscribe::{BundleNotice, EventKind, Peer, PoolEvent, Subscription};
pub use verbs::wanted::WantedOptions;
pub use verbs::withdraw::WithdrawOptions;
pub use wait::{PoolDescriptor, Timer};
