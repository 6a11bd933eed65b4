//! Integration tests of copying: random layouts, checked against their definition.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking, and its helpers too")]

mod common;
mod random;
