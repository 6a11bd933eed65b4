//! The pool, awaited: for programs that run on tokio, or on whatever runtime they like.
//!
//! The same verbs as those of [`crate::Pool`]; whatever waits there is awaited here, and follows and subscriptions are
//! [streams](futures_core::Stream). What a verb here does is to await the [`Pending`](crate::Pending) of the pool's own
//! `begin_…`, which any task may do itself. No thread is behind a wait: each pool has one *driver*, which sleeps on the pool's
//! descriptor, reads what has come for all tasks together, and wakes those that it concerns.
//!
//! ```
//! use junctura::{Item, Pool, aio};
//! use tokio_stream::StreamExt as _;
//!
//! #[tokio::main(flavor = "current_thread")]
//! async fn main() -> junctura::Result<()> {
//!     let pool = aio::Pool::open(Pool::builder().schema("free")).await?;
//!     let mut steps = pool.follow("space=steps").await?;
//!
//!     let producer = pool.clone();
//!     tokio::spawn(async move { producer.offer([("space", "steps"), ("name", "1")], b"one").await });
//!
//!     while let Some(item) = steps.next().await {
//!         let Item::Object(object) = item? else { continue };
//!         assert_eq!(&object[..], b"one");
//!         break;
//!     }
//!     Ok(())
//! }
//! ```
//!
//! | feature | gives |
//! |---|---|
//! | `tokio` | [`Pool::open`] and [`Pool::of`]: the driver is a task of the runtime that they are called in |
//! | `async` | [`Pool::driven`]: a [`Driver`] for any other runtime, with the two lines that it takes to run it there |
//!
//! **Cancellation.** A future that is dropped gives its question up, and leaves nothing behind on either side. What had come for
//! it and was not yet in the task's hands has not been received: a group or requirement is owed it again. A stream of objects that is
//! dropped ends without being waited for. A cancelled offer is carried out whole or not at all. So a time limit on
//! anything here is the runtime's own, around it: `tokio::time::timeout(limit, pool.sync())`.
//!
//! **What is done by a thread** is what has no descriptor to wait for, or takes long: opening and closing a pool, objects that were
//! spilled to a disk or whose large payload has a checksum, whatever is read from a store behind the pool, taking parts of arrays, and
//! sending when a socket is full. The copy of a payload is the
//! task's own: what is large is best filled in place ([`Pool::allocate`]).
//!
//! What waits for several things at once is the runtime's affair, too (`select!`, `join!`). Tasks of several runtimes may
//! use one pool, beside threads that wait on the [`crate::Pool`] within ([`Pool::blocking`]).

mod array;
mod beside;
mod driver;
mod interest;
mod pool;
mod reading;
mod tasks;
mod writing;

pub use array::DemandedArray;
pub(crate) use beside::Beside;
pub use driver::Driver;
pub use pool::Pool;
pub use reading::{Follow, Pages, Requirement, Subscription};
pub use writing::{Allocation, Bundle, Pipeline};
