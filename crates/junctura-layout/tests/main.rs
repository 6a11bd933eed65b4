//! Integration tests of layouts and plans, checked against their definition element by element.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking, and its helpers too")]

mod common;
mod random;
mod texts;
mod vectors;
