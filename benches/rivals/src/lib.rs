//! Rivals under the load of our benchmark: two processes, objects with a stamp, attributes as a text beside each payload.
//!
//! Each program is started twice by `benches/handover.py`, as `consumer` and as `producer`, with the same arguments:
//! `ROLE BYTES WINDOW RATE TOUCH SLOTS CONTROL RENDEZVOUS`. It says `ready`, reads two times of the monotonic clock
//! between which to measure, and does its part; the consumer prints a line of JSON. The same in C is `limits/load.h`.

mod control;
mod load;
mod tally;

pub use load::{Objects, Plan, Role, attributes, now_ns};
pub use tally::Tally;
