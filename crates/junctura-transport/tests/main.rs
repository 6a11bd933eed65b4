//! Integration tests of sockets, rings and listeners.
//!
//! Tests that start processes are a program of their own, `listener_process.rs`.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking, and its helpers too")]

mod conformance;
mod hostile;
#[path = "../../../fuzz/src/limits.rs"]
mod limits;
mod listener;
mod untrusted;
