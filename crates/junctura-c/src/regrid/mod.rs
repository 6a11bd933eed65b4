//! Regridding: weights from a file, applied to a field, or in an exchange between ranks of two grids.

mod sides;
mod weights;

pub use sides::*;
pub use weights::*;
