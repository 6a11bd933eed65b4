//! Integration tests of layouts and plans, checked against their definition element by element.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking, and its helpers too")]

mod common;
#[path = "../../../fuzz/src/limits.rs"]
mod limits;
mod random;
mod texts;
mod untrusted;
mod vectors;
