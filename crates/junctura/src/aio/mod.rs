//! What a runtime of tasks needs: the [`Driver`] that reads for them. All else is the [`Pool`](crate::Pool) itself.
//!
//! Each verb has a form that does not wait: `pool.begin_demand(…)?` sends the request and returns a [`Pending`](crate::Pending), which
//! a task awaits. Follows, subscriptions and pages are [streams](futures_core::Stream). No thread is behind a wait: each pool has
//! one *driver*, which sleeps on the pool's descriptor, reads what has come for all tasks together, and wakes those that it
//! concerns.
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
//! | `async` | comes from [`Pool::driver`](crate::Pool::driver), for any other runtime, with the two lines that it takes to run it there; or a loop of the program watches [`Pool::descriptor`](crate::Pool::descriptor) |
//!
//! Where a verb lends what it works on, its form for tasks is an `async fn`: a [`Pipeline`](crate::Pipeline) that is filled,
//! [`Pool::begin_offer_piece`](crate::Pool::begin_offer_piece), [`Pool::begin_offer_many`](crate::Pool::begin_offer_many).
//!
//! **Cancellation.** A future that is dropped gives its request up, and leaves nothing behind on either side. What had come for
//! it and was not yet in the task's hands has not been received: a group or requirement is owed it again. A stream of objects that is
//! dropped ends without being waited for. A cancelled offer is carried out whole or not at all. So a time limit on
//! anything here is the runtime's own, around it: `tokio::time::timeout(limit, pool.begin_sync()?)`.
//!
//! **What is done by a thread** is what has no descriptor to wait for, or takes long: opening and closing a pool, objects that were
//! spilled to a disk or whose large payload has a checksum, whatever is read from a store behind the pool, taking parts of arrays, and
//! sending when a socket is full. The copy of a payload is the
//! task's own: what is large is best filled in place ([`Pool::begin_allocate`](crate::Pool::begin_allocate)).
//!
//! What waits for several things at once is the runtime's affair, too (`select!`, `join!`). Tasks of several runtimes may
//! use one pool, beside threads that wait on it.

mod array;
mod driver;
mod opening;
mod streams;
mod tasks;
mod writing;

pub use driver::Driver;
pub(crate) use streams::FollowTask;
