//! What must last: objects kept under the same keys, and found by the same selectors, as in a pool.
//!
//! `archive` hands an object over; `flush` returns when everything handed over before it is on disk and visible, all of it at
//! once. Any number of writers need no server and no lock that a death could leave behind; readers never wait for them, and
//! work on a snapshot. Bytes come back as they went in, or an error says that they did not.
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

/// The checksum of an object's bytes, [`StoredObject::checksum`]: CRC-32C, the one that pools use.
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

/// Whether `crc-fast` is the faster library: it is with AVX-512. Without, `crc32c` is faster by a third. `JUNCTURA_ISA`, a variable for
/// tests, can forbid AVX-512.
fn has_wide_products() -> bool {
    static HAS: OnceLock<bool> = OnceLock::new();
    *HAS.get_or_init(|| {
        let limit = std::env::var("JUNCTURA_ISA").ok();
        let set = InstructionSet::of_this_machine().at_most(limit.as_deref());
        let is_wide = set == InstructionSet::Avx512 && InstructionSet::multiplies_wide();
        is_wide || cfg!(not(target_arch = "x86_64"))
    })
}

/// Whether tests run all of their fixed seeds, as the gate does: `JUNCTURA_SEEDS=all`.
#[cfg(test)]
fn all_seeds() -> bool {
    std::env::var_os("JUNCTURA_SEEDS").is_some_and(|seeds| seeds == "all")
}

/// A number that nobody else has.
fn random() -> Result<[u8; 16]> {
    let mut bytes = [0; 16];
    rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::empty())
        .map_err(|errno| Error::new(Code::Io, "random numbers", errno.to_string()))?;
    Ok(bytes)
}

/// Whether a text is what [`hex`] makes of so many bytes.
fn is_hex(text: &str, bytes: usize) -> bool {
    text.len() == 2 * bytes && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

fn hex(bytes: &[u8]) -> String {
    let digit = |nibble: u8| char::from(b"0123456789abcdef"[usize::from(nibble & 15)]);
    bytes.iter().flat_map(|byte| [digit(byte >> 4), digit(*byte)]).collect()
}
