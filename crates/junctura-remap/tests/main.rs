//! Integration tests of remapping: weights, grids and time steps.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking, and its helpers too")]

mod binary;
mod carried;
mod course;
mod random;
mod small;
