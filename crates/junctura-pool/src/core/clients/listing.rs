//! Lists: the visible objects that match (and those staged in bundles, if they are asked for), sorted, page by page. A list
//! shows the pool as it was when the list began.

use crate::core::objects::order::{Incremental, Sorting};

/// A list that is not over.
pub(in crate::core) struct Listing {
    pub(in crate::core) sorting: Sorting,
    pub(in crate::core) rest: Incremental,
    /// What it weighs on its client.
    pub(in crate::core) bytes: usize,
}
