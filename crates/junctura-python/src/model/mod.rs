//! Classes of values that need no pool: schemas, selectors, versions and descriptions of objects.

pub(crate) mod described;
pub(crate) mod pickling;
pub(crate) mod schema;
pub(crate) mod selector;
pub(crate) mod version;
