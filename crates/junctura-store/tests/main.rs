//! Integration tests of stores, in every place that can hold one.
//!
//! Some tests start this program again as another process (see [`processes`]); no test observes how many descriptors or
//! threads this process has, so they can run beside the others.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking, and its helpers too")]

mod columns;
mod compare;
mod concurrent;
mod judge;
mod kept;
mod killed;
#[path = "../../../fuzz/src/limits.rs"]
mod limits;
mod names;
mod owners;
mod packing;
mod parquet;
mod places;
mod processes;
mod records;
#[cfg(feature = "s3")]
mod s3;
mod schemas;
mod store;
mod untrusted;
mod waiting;
