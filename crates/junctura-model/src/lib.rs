//! The data model: attributes, schemas, keys, selectors, versions, errors, and the indexes over them.
//!
//! All code here is pure: no clock, files, threads or sockets. A function returns the same result on the server, in
//! every client and in every language. Invalid external input causes an error with a reason, never a panic.

pub mod command;
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
pub use record::{CheckedRecord, Record, RecordChecker, RecordRef, list_items};
pub use schema::{AttrId, Attribute, Consumers, Durability, Retention, SameKey, Schema, SchemaFingerprint};
pub use selector::{Selector, SelectorSet};
pub use slip::nearest;
pub use value::{Given, Kind, Type};
pub use version::{Cursor, Phase, Version};
