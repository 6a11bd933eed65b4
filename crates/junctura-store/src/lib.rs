//! A durable object store: objects have the same keys, and are found by the same selectors, as in a pool.
//!
//! `archive` adds an object; `flush` returns when all objects added before are on disk and visible, atomically. Any
//! number of writers work without a server and without a lock that a crash could leave behind; readers never wait for
//! writers, and use snapshot isolation. Payloads are returned unchanged, or an error reports that they are corrupt.
//!
//! ```text
//!   archive ──► data files, appended ─┐
//!   flush   ──────────────────────────┴─► one record of the commit log: rows, and small payloads ──► visible
//!   list, axes, retrieve ◄── tables in memory ◄── the commit log
//! ```

mod catalogue;
mod create;
mod data;
#[cfg(feature = "fuzzing")]
pub mod fuzzing;
mod log;
mod maintenance;
mod query;
mod root;
mod storage;
mod store;
#[cfg(test)]
mod tests;
mod url;
mod version;
mod writer;

use std::sync::OnceLock;

use crc_fast::CrcAlgorithm;
use junctura_model::{Code, Error, InstructionSet, Result};

pub use data::buffer::ReadBuffer;
pub use data::mapped::MappedPayload;
pub use data::packing::{Compression, PackingRule, PayloadCodec};
pub use log::Commits;
pub use maintenance::compact::Compacted;
pub use maintenance::make_checkpoint::Checkpointed;
pub use maintenance::relocate::Moved;
pub use maintenance::remove::Removed;
pub use maintenance::tier::Tier;
pub use maintenance::verify::{Checked, DAMAGES_MAX};
pub use query::axes::AttributeAxis;
pub use query::compare::{ComparedObjects, DifferenceKind, ObjectDifference};
pub use query::follow::StoreFollower;
pub use query::listing::{Listing, StoredLocation, StoredObject};
pub use query::retrieve::RetrieveResult;
pub use query::snapshot::Snapshot;
pub use query::stats::{ObjectAmount, SchemaStats, StoreStats, TierStats};
pub use root::{RetentionAges, StoreLayout};
pub use store::Store;
pub use writer::{Flushed, StoreWriter};

/// Returns the checksum of an object's bytes, [`StoredObject::checksum`]: CRC-32C, as pools use.
///
/// ```
/// assert_eq!(junctura_store::checksum(b"123456789"), 0xe306_9283);
/// ```
#[must_use]
pub fn checksum(bytes: &[u8]) -> u32 {
    if has_wide_products() {
        crc_fast::checksum(CrcAlgorithm::Crc32Iscsi, bytes) as u32
    } else {
        crc32c::crc32c(bytes)
    }
}

/// Returns whether `crc-fast` is the faster library, which is the case with AVX-512. Without AVX-512, `crc32c` is
/// faster by a third. `JUNCTURA_ISA`, a variable for tests, can disable AVX-512.
fn has_wide_products() -> bool {
    static HAS: OnceLock<bool> = OnceLock::new();
    *HAS.get_or_init(|| {
        let limit = std::env::var("JUNCTURA_ISA").ok();
        let set = InstructionSet::of_this_machine().at_most(limit.as_deref());
        let is_wide = set == InstructionSet::Avx512 && InstructionSet::multiplies_wide();
        is_wide || cfg!(not(target_arch = "x86_64"))
    })
}

/// Returns whether tests run all of their fixed seeds, as the gate does: `JUNCTURA_SEEDS=all`.
#[cfg(test)]
fn all_seeds() -> bool {
    std::env::var_os("JUNCTURA_SEEDS").is_some_and(|seeds| seeds == "all")
}

/// Returns a unique random number.
fn random() -> Result<[u8; 16]> {
    let mut bytes = [0; 16];
    rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::empty())
        .map_err(|errno| Error::new(Code::Io, "random numbers", errno.to_string()))?;
    Ok(bytes)
}

/// Returns whether a text is the output of [`hex`] for so many bytes.
fn is_hex(text: &str, bytes: usize) -> bool {
    text.len() == 2 * bytes && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

fn hex(bytes: &[u8]) -> String {
    let digit = |nibble: u8| char::from(b"0123456789abcdef"[usize::from(nibble & 15)]);
    bytes.iter().flat_map(|byte| [digit(byte >> 4), digit(*byte)]).collect()
}
