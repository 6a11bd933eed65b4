//! Lists: the visible objects that match (and staged ones, on request), sorted, page by page. A list shows the pool as
//! it was when the list began.

use crate::core::objects::order::{IncrementalSort, ResolvedOrder};

/// An unfinished list.
pub(in crate::core) struct OpenListing {
    pub(in crate::core) sorting: ResolvedOrder,
    pub(in crate::core) rest: IncrementalSort,
    /// The bytes that count toward its client's limit.
    pub(in crate::core) bytes: usize,
}
