//! Shared parts of programs on a terminal: output, progress, visible text, Ctrl-C, sizes and durations.

pub mod interrupt;
#[macro_use]
pub mod output;
pub mod program;
pub mod progress;
pub mod size;
pub mod visible;
