//! Fields from the grid of one model to that of another, and from the times of one to those of the other.
//!
//! ```text
//!   Weights       a sparse matrix: for each point of the target its links, (source, weight), by source
//!     apply       any range of target points, each summed in the order of its links
//!     part        the rows of a range, and which stretches of the source they need
//!     conserved   what the source holds and what the target gets, as integrals
//!     encode      the bytes of a file; `decode` reads them
//!   CarriedPlan   what ranks of a source send to ranks of a target: sums, or the values that are summed there
//!   Course        which steps a field at a wanted time is made of: nearest, linear, mean, sum, after a lag
//! ```
//! A target point is one sum in one order, so that the bits of a field do not depend on the distribution of its points over
//! threads and ranks. A missing value (NaN, or one that the caller names) is never taken for a number, and a target point
//! without a source is left missing. The crate neither computes weights nor reads files. Everything is pure: a caller with
//! several threads gives each a range of target points.

mod binary;
mod carried;
mod conserve;
mod course;
mod links;
mod weights;

pub use binary::{HEADER_BYTES, MAGIC};
pub use carried::{ApplySide, CarriedPlan, CarriedTarget};
pub use conserve::{CompensatedSum, ConservedIntegrals};
pub use course::{CourseAnswer, StepUses, TimeCourse, TimeMethod};
pub use links::WeightLink;
pub use weights::{ApplyOptions, GridCells, NormalizeBy, Weights};

/// A grid has no more points.
pub const POINTS_MAX: u64 = 1 << 32;
/// A matrix has no more links.
pub const LINKS_MAX: usize = 1 << 31;
/// A shape has no more dimensions.
pub const DIMENSIONS_MAX: usize = 8;
/// A course remembers the times of no more steps.
pub const STEPS_MAX: usize = 1 << 20;
