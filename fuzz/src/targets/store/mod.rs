//! The files of a store.

pub(crate) mod checkpoint;
pub(crate) mod log;
pub(crate) mod object;
pub(crate) mod place;
pub(crate) mod root;
