//! Integration tests of schemas, records, keys and selectors, and of their indexes.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking, and its helpers too")]

mod interests;
#[path = "../../../fuzz/src/limits.rs"]
mod limits;
mod objects;
mod properties;
mod selectors;
mod vectors;
