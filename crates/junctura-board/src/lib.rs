//! The board: the numbers of a pool server on a page of shared memory.
//!
//! ```text
//!  server --- BoardWriter ---> sealed memory <--- BoardReader --- any number of viewers
//!              one writer      docs/formats/board.md                each copies, and compares the generation
//! ```
//! Reading costs the server nothing, and the board stays readable while the server hangs, and after it has ended. The layout is
//! fixed ([`layout`]): the head, counters, histograms, then tables of clients, named requirements, datasets, components, and of
//! what components give each other (edges).
//!
//! The crate has no I/O, no clock and no thread; it reaches shared memory through the words of `junctura-memory`.

pub mod fold;
pub mod histogram;
pub mod layout;
pub mod names;
pub mod reader;
pub mod snapshot;
pub mod words;
pub mod writer;

#[cfg(all(test, not(address_sanitizer)))]
mod loom_tests;

pub use fold::{component_group, folded_name};
pub use histogram::HistogramCounts;
pub use layout::{BOARD_BYTES, BoardCounter, BoardHistogram, BoardState};
pub use names::NameTable;
pub use reader::BoardReader;
pub use snapshot::{
    BoardClient, BoardComponent, BoardDataset, BoardEdge, BoardHead, BoardHistogramSnapshot, BoardRequirement,
    BoardSnapshot,
};
pub use words::{ReadableWords, WritableWords};
pub use writer::{BoardEdit, BoardIdentity, BoardWriter};
