//! Copies the elements of an array that one rank wants from the memories of the ranks that have them, by a
//! [`Plan`](junctura_layout::Plan).
//!
//! ```text
//!   Gather   plan of Side::To     pieces of all peers, whole   ->  one's own memory           on one machine: one read, one write
//!   Pack     plan of Side::From   one's own piece              ->  a message for one peer     between machines: what that peer
//!   Unpack   plan of Side::To     the message of one peer      ->  one's own memory           wants, and nothing else, travels
//! ```
//! Each is made once from a plan and can run many times. A message is a dense array of what both share, whose quickest dimension is the
//! taker's: both ends know that from their plans, so that no index travels. It can be made and taken bit by bit. Elements may change on the way: their byte order, and `f64` into
//! `f32` and back.
//!
//! ```
//! # use std::sync::Arc;
//! # use junctura_copy::Gather;
//! # use junctura_layout::{ElementKind, Layout, Plan, PlanSide};
//! # fn main() -> junctura_model::Result<()> {
//! let halves: Arc<Layout> = Arc::new("shape=4 grid=2".parse()?);
//! let whole: Arc<Layout> = Arc::new("shape=4".parse()?);
//! let plan = Plan::whole(&halves, &whole, PlanSide::To, 0)?;
//! let gather = Gather::new(&plan, ElementKind::U8.into(), ElementKind::U8.into())?;
//! assert_eq!(gather.peers(), [0, 1]);
//! let mut into = [0; 4];
//! gather.run(&[&[1, 2], &[3, 4]], &mut into, 1)?;
//! assert_eq!(into, [1, 2, 3, 4]);
//! # Ok(())
//! # }
//! ```
//!
//! Promised: nothing is written but what is wanted, and nothing read but what is wanted: gaps of a memory (strides, the padding of packed
//! blocks) stay as they are.

#![allow(
    unsafe_code,
    reason = "copies between memories by offsets that a plan gave and `Product::check` has compared with their room; every block explains why it holds"
)]
#![cfg_attr(
    not(target_arch = "x86_64"),
    allow(dead_code, reason = "only one processor has ways of its own so far")
)]

mod elements;
mod gather;
mod kept;
#[cfg(target_arch = "x86_64")]
mod lines;
mod message;
mod part;
mod portable;
mod product;
mod rows;
#[cfg(target_arch = "x86_64")]
mod tiles;
mod work;

pub use gather::Gather;
pub use kept::{PlanFingerprint, PlanStore};
pub use message::{Pack, Unpack};
