//! What objects mean: attributes, schemas, keys, selectors, versions, errors, and the indexes over them.
//!
//! Everything here is pure: no clock, no files, no threads, no sockets. A function gives the same answer on the server, in
//! every client and in every language, and what comes from outside is refused with a reason, never with a panic.

mod described;
pub mod error;
mod given;
#[cfg(feature = "index")]
pub mod index;
mod isa;
pub mod key;
pub mod limits;
pub mod mars;
pub mod record;
pub mod requirements;
pub mod schema;
pub mod selector;
pub mod size;
mod slip;
pub mod text;
pub mod value;
pub mod version;
pub mod yaml;

pub use described::Described;
pub use error::{Advice, Code, Error, Result};
pub use given::{IntoGiven, with_given};
pub use isa::InstructionSet;
pub use key::KeyHash;
pub use record::{Record, RecordRef, list_items};
pub use schema::{AttrId, Attribute, Consumers, Durability, Retention, SameKey, Schema, SchemaFingerprint};
pub use selector::{Selector, SelectorSet};
pub use slip::nearest;
pub use value::{Given, Kind, Type};
pub use version::{Cursor, Phase, Version};
