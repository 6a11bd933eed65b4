//! Work on a store as a whole: space is reclaimed, objects are removed or moved, files are verified.
//!
//! `remove` and `relocate` append records to the log; `compact` deletes files that no snapshot can need any more. `ownership`
//! prevents that a store deletes files of another one.

pub(crate) mod auto_checkpoint;
pub(crate) mod compact;
pub(crate) mod defragment;
pub(crate) mod make_checkpoint;
pub(crate) mod ownership;
pub(crate) mod relocate;
pub(crate) mod remove;
pub(crate) mod tier;
pub(crate) mod verify;
