//! Remaps fields from the grid of one model to that of another, and from the times of one to those of the other.
//!
//! ```text
//!   Weights       a sparse matrix: for each point of the target its links, (source, weight), by source
//!     apply       any range of target points, each summed in the order of its links
//!     part        the rows of a range, and the source ranges that they need
//!     conserved   the integrals of the source and of the target
//!     encode      the bytes of a file; `decode` reads them
//!   CarriedPlan   the values that source ranks send to target ranks: sums, or the values that are summed there
//!   Course        the steps that make a field at a requested time: nearest, linear, mean, sum, after a lag
//! ```
//! A target point is one sum in one order, so that the bits of a field do not depend on the distribution of its points
//! over threads and ranks. A missing value (NaN, or one that the caller names) is never used as a number, and a target
//! point without a source is missing. The crate neither computes weights nor reads files. All functions are pure: a
//! caller with several threads gives each a range of target points.

mod binary;
mod carried;
mod conserve;
mod course;
mod links;
mod sums;
mod weights;

pub use binary::{HEADER_BYTES, MAGIC};
pub use carried::{ApplySide, CarriedPlan, CarriedTarget};
pub use conserve::{CompensatedSum, ConservedIntegrals};
pub use course::{CourseAnswer, StepUses, TimeCourse, TimeMethod};
pub use links::WeightLink;
pub use weights::{ApplyOptions, GridCells, NormalizeBy, Weights};

/// The maximum number of points of a grid.
pub const POINTS_MAX: u64 = 1 << 32;
/// The maximum number of links of a matrix.
pub const LINKS_MAX: usize = 1 << 31;
/// The maximum number of dimensions of a shape.
pub const DIMENSIONS_MAX: usize = 8;
/// The maximum number of steps of a course.
pub const STEPS_MAX: usize = 1 << 20;
