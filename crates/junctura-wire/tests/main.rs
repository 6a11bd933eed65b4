//! Integration tests of the wire format: golden bytes, and random frames.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking, and its helpers too")]

mod common;
mod golden;
#[path = "../../../fuzz/src/limits.rs"]
mod limits;
mod properties;
mod reasons;
mod rights;
