//! Readers of bytes from outside, each with its limits.

pub(crate) mod claims;
pub(crate) mod grib_header;
pub(crate) mod layout;
pub(crate) mod link;
pub(crate) mod record;
pub(crate) mod ring;
pub(crate) mod schema;
pub(crate) mod schema_fdb;
pub(crate) mod selector;
pub(crate) mod store;
pub(crate) mod weights;
pub(crate) mod wire;
