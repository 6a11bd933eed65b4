//! Tests of the board: its bytes, folding of names, histograms, and copies of a board that is being written.

#![allow(clippy::unwrap_used, reason = "tests")]

mod folding;
mod golden;
mod histogram;
mod names;
mod torn;
