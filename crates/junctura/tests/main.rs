//! Integration tests of the facade.
//!
//! They run beside each other in one process. Tests that start or fork processes, or that look at everything this process has
//! open, are a program of their own, `processes`: a process that is being started holds, for a moment, all descriptors of its
//! parent, so that what a test here has closed would still be open.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking, and its helpers too")]

mod aio;
mod archiver;
mod arrays;
#[path = "common/asleep.rs"]
mod asleep;
mod behind;
mod between;
mod board;
mod bundle;
mod durable;
mod ended;
mod ended_elsewhere;
mod exchange;
mod follow;
mod fused;
mod group;
mod handover;
mod hostile;
mod memory;
mod mistakes;
mod pending;
mod pipeline;
mod stop;
mod streams;
mod tcp;
mod upstream;
mod wait;
