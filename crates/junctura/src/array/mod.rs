//! Arrays with a domain decomposition: producers offer their pieces in their layout, consumers read in another layout.
//!
//! ```text
//!   rank 0 ── offer_piece ──┐  a bundle, which lacks as many pieces as ranks have elements
//!   rank 1 ── offer_piece ──┼─►  piece of rank 0, 1, …, and the array's own object ──► visible at one point
//!   rank 2 ── offer_piece ──┘
//!                                demand_array ──► the array's own object: its layout ──► plan ──► the pieces it needs
//! ```
//!
//! The array's own object has the key that its producers gave, and describes the layout; consumers find it by its
//! attributes, as any other object. Pieces are objects of a separate schema ([`Schema::PIECE`](crate::Schema::PIECE)),
//! so only a query for that schema finds them. They are retained as long as the array's own object. If the pieces are
//! on another machine, that machine packs the requested elements (`packed.rs`).

mod claim;
mod demanded;
mod exchange;
mod expected;
mod head;
mod labels;
mod memory;
mod missing;
mod offering;
mod packed;
mod plans;
mod regrid;
mod whole;

pub(crate) use demanded::is_in_pieces;
pub use demanded::{ArrayPart, DemandedArray};
pub use exchange::Exchange;
pub(crate) use missing::{ARRAYS, LackingArray};
pub use offering::ArrayPiece;
pub(crate) use offering::OpenArrays;
#[cfg(feature = "async")]
pub(crate) use offering::{PieceOffer, PieceScope, is_second, unless_complete};
pub(crate) use plans::PlanCache;
pub use regrid::{RegridSource, RegridTarget, RegridTerms, read_weights, regrid_field};
pub use whole::WholeArray;
