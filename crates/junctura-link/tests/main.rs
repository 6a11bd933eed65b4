//! Integration tests of links and gates.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking, and its helpers too")]

mod conformance;
mod hostile;
#[path = "../../../fuzz/src/limits.rs"]
mod limits;
mod secrets;
mod untrusted;
