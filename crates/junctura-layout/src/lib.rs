//! Layouts of arrays over ranks and in memory, and the transfers when one layout becomes another.
//!
//! ```text
//!   Layout    shape, owner of each element (Axis per dimension, or Slabs), and place in its memory
//!   Plan      for one rank of one layout: elements shared with the ranks of another, as a product of lists, one per dimension
//! ```
//! The cost of a plan is the size of its lists: it visits the rank's own blocks of one period only, for any number of
//! ranks. All functions are pure: each rank gets the same result, so that no part of a plan is sent.

mod axis;
mod draw;
mod element;
mod layout;
mod plan;
mod runs;
mod slab;
mod slabs;
mod text;
mod yaml;

pub use axis::Axis;
pub use draw::draw;
pub use element::{ByteOrder, Element, ElementKind};
pub use layout::{Distribution, Layout, Local, Order, Storage};
pub use plan::{Plan, PlanPart, PlanPartner, PlanSide};
pub use runs::{IndexRun, SharedRuns};
pub use slab::Slab;
pub use slabs::RankSlabs;

/// The maximum number of dimensions of an array.
pub const DIMENSIONS_MAX: usize = 8;
/// The maximum number of ranks of a layout.
pub const RANKS_MAX: u64 = 1 << 32;
/// The maximum number of elements of an array, in any layout: offsets in bytes fit in 63 bits for elements of up to 16
/// bytes.
pub const ELEMENTS_MAX: u64 = 1 << 58;
/// The maximum number of slabs of a layout.
pub const SLABS_MAX: usize = 1 << 20;
/// The maximum number of runs of one dimension in a plan.
pub const RUNS_MAX: usize = 1 << 24;
