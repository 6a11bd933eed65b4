//! Integration tests of copying: random layouts, checked against their definition.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking, and its helpers too")]
#![allow(unsafe_code, reason = "memory between pages that may not be touched")]

mod common;
mod grids;
mod random;
