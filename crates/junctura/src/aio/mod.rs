//! Support for async runtimes: the [`Driver`] that reads for tasks. Everything else is part of [`Pool`](crate::Pool).
//!
//! Each verb has a non-blocking form: `pool.begin_demand(…)?` sends the request and returns a
//! [`Pending`](crate::Pending), which a task awaits. Follows, subscriptions and pages are
//! [streams](futures_core::Stream). A wait occupies no thread: each pool has one *driver*, which sleeps on the pool's
//! descriptor, reads for all tasks together, and wakes the tasks that are ready.
//!
//! ```
//! use junctura::{FollowOptions, Item, OfferOptions, Pool};
//! use futures_util::StreamExt as _;
//!
//! #[tokio::main(flavor = "current_thread")]
//! async fn main() -> junctura::Result<()> {
//!     let pool = Pool::builder().schema("free").begin_open()?.await?;
//!     let mut steps = pool.begin_follow("space=steps", FollowOptions::default())?.await?;
//!
//!     let producer = pool.clone();
//!     tokio::spawn(async move {
//!         let one = [("space", "steps"), ("name", "1")];
//!         producer.begin_offer(one, b"one", OfferOptions::default())?.await
//!     });
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
//! | feature | the driver |
//! |---|---|
//! | `tokio` | is a task of the runtime in which a task waits first |
//! | `async` | is created with [`Pool::driver`](crate::Pool::driver), for any other runtime, and takes two lines to run there; or a loop of the program watches [`Pool::descriptor`](crate::Pool::descriptor) |
//!
//! A verb that borrows its arguments has an `async fn` as its async form: offers into a [`Pipeline`](crate::Pipeline),
//! [`Pool::begin_offer_piece`](crate::Pool::begin_offer_piece),
//! [`Pool::begin_offer_many`](crate::Pool::begin_offer_many).
//!
//! **Cancellation.** Dropping a future cancels its request and leaks nothing on either side. A delivery that the task
//! has not taken counts as not received: a group or requirement redelivers it. Dropping a stream of objects ends it
//! without waiting. A cancelled offer is carried out as a whole or not at all. For a time limit, use the runtime's own:
//! `tokio::time::timeout(limit, pool.begin_sync()?)`.
//!
//! **Threads** run work that has no descriptor to wait for, or takes long: opening and closing a pool, objects that
//! were spilled to disk or whose large payload has a checksum, all reads from a store behind the pool, taking parts of
//! arrays, and sending when a socket is full. The task itself copies payloads: fill large payloads in place
//! ([`Pool::begin_allocate`](crate::Pool::begin_allocate)).
//!
//! Use the runtime to wait for several things at once (`select!`, `join!`). Tasks of several runtimes may use one pool,
//! together with threads that wait on it.

mod array;
mod driver;
mod opening;
mod streams;
mod tasks;
mod writing;

pub use driver::Driver;
pub(crate) use streams::FollowTask;
