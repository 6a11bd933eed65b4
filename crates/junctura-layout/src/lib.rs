//! Layouts of arrays over ranks and in memory, and the transfers when one layout becomes another.
//!
//! ```text
//!   Layout    shape, and who has which elements (Axis per dimension, or Slabs), and where they lie in each rank's memory
//!   Plan      for one rank of one layout: what it shares with the ranks of another, as a product of lists, one per dimension
//! ```
//! A plan costs what it lists: it looks at one's own blocks only, of one period only, whatever the number of ranks is. Everything
//! here is pure: the same answer on each rank, so that nothing about a plan has to travel.

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

/// An array has no more dimensions.
pub const DIMENSIONS_MAX: usize = 8;
/// A layout has no more ranks.
pub const RANKS_MAX: u64 = 1 << 32;
/// An array has no more elements, whatever its layout: offsets in bytes fit in 63 bits for elements of up to 16 bytes.
pub const ELEMENTS_MAX: u64 = 1 << 58;
/// The most slabs of a layout.
pub const SLABS_MAX: usize = 1 << 20;
/// A plan lists no more runs of one dimension.
pub const RUNS_MAX: usize = 1 << 24;
