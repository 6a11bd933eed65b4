//! Integration tests of segments and of the accounts of their slots.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking, and its helpers too")]

mod accounts;
mod sealed;
mod writes;
