//! The values of fields: decoding, encoding, and the computations of products, value by value.
//!
//! ```text
//!   SimplePacking   integers of some bits  <->  values (WMO regulation 92.9.4)
//!   ensemble        members  ->  mean, spread, extremes, percentiles, probabilities
//!   SparseRows      values and weights  ->  values on another grid
//!   bilinear        values  ->  values of pixels
//!   shade           values of pixels  ->  colors
//!   isolines        values of pixels  ->  pixels that lines of equal value cover
//!   blend           ink on pixels
//! ```
//! Everything is pure and works on slices that the caller has. A missing value is NaN.

mod ensemble;
mod ink;
mod isolines;
mod packing;
mod sampling;
mod sparse;

pub use ensemble::{EnsembleStatistic, ensemble};
pub use ink::{Colour, LineInk, blend};
pub use isolines::{ContourLine, LineStroke, isolines};
pub use packing::{SimplePacking, ValueExtent, ValuesMut, bitmap_of};
pub use sampling::{ColorBar, PixelCorners, PixelPalette, bilinear, dim, shade};
pub use sparse::SparseRows;
