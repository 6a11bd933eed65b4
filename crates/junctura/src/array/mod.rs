//! Arrays that lie over ranks: producers hand over their pieces in their layout, consumers get theirs in another.
//!
//! ```text
//!   rank 0 ── offer_piece ──┐  a bundle, which lacks as many pieces as ranks have elements
//!   rank 1 ── offer_piece ──┼─►  piece of rank 0, 1, …, and the array's own object ──► visible at one point
//!   rank 2 ── offer_piece ──┘
//!                                demand_array ──► the array's own object: its layout ──► plan ──► the pieces it needs
//! ```
//! The array's own object has the key that its producers gave, and says how it lies; consumers find it by meaning, as any other. Pieces are
//! objects of a schema of their own ([`Schema::PIECE`](crate::Schema::PIECE)) that nobody comes upon who does not ask for them; they stay as long as the array's own
//! object does. Where they lie on another machine, that packs what is wanted of them (`packed.rs`).

mod claim;
mod demanded;
mod exchange;
mod head;
mod labels;
mod memory;
mod missing;
mod offering;
mod packed;
mod plans;
mod whole;

pub(crate) use demanded::is_in_pieces;
pub use demanded::{ArrayPart, DemandedArray};
pub use exchange::Exchange;
pub use offering::ArrayPiece;
pub(crate) use offering::OpenArrays;
#[cfg(feature = "async")]
pub(crate) use offering::{PieceOffer, first_piece, is_second, unless_complete};
pub(crate) use plans::PlanCache;
pub use whole::WholeArray;
