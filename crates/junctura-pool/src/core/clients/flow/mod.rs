//! What clients do, and how they come and go.

pub(in crate::core) mod connection;
pub(in crate::core) mod deliver;
pub(in crate::core) mod report;
pub(in crate::core) mod sync;
