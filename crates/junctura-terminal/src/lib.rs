//! What programs on a terminal share: output, progress, text that is safe to show, Ctrl-C, sizes and times as people write them.

pub mod interrupt;
#[macro_use]
pub mod output;
pub mod program;
pub mod progress;
pub mod size;
pub mod visible;
