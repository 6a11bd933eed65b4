//! The commands about schemas and layouts, which need no pool.

pub(crate) mod layout;
pub(crate) mod schema;
pub(crate) mod schema_files;
