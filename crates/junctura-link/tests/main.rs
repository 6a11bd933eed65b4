//! Integration tests of links and gates.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking, and its helpers too")]

mod conformance;
mod hostile;
mod secrets;
