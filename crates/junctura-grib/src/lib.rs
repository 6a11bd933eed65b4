//! GRIB message boundaries, header keys, and where the values are; without decoding them.
//!
//! A producer's file must become objects with attributes before anything can match them, thousands a second and on
//! machines that have no C library. So this crate does three things. [`Messages`] splits bytes into GRIB1 and GRIB2
//! messages, checking lengths, sections and the end mark. [`Message::keys`] reads from one message's header what
//! ecCodes calls its `mars` namespace (class, stream, date, step, levelist, param, ...) and a few descriptive keys.
//! [`Message::simple_packed`] finds the values in the commonest packing, and [`Message::head_of_simple`] replaces
//! them.
//!
//! The meaning of a header is data, not code: the tables under `tables/` are derived from ecCodes' definitions by
//! `tools/make_tables.py`, and a small interpreter reads them. `docs/formats/grib.md` describes which field is read from
//! where and lists each known difference from ecCodes.
//!
//! Promised: no bytes make it panic or loop; every read is inside the message; an error names message and byte.
//! Refused: decoding values, writing headers, editions other than 1 and 2, guessing at a damaged header.
//!
//! ```
//! # fn main() -> Result<(), junctura_grib::GribError> {
//! let file: &[u8] = b"";
//! for message in junctura_grib::Messages::new(file) {
//!     let keys = message?.keys()?;
//!     for (name, value) in keys.attributes() {
//!         println!("{name}={value}");
//!     }
//! }
//! # Ok(())
//! # }
//! ```

mod error;
mod fields;
mod header;
mod keys;
mod messages;
mod octets;
mod sections;
mod tables;
mod value;
mod values;

pub use error::{GribError, MessageFault};
pub use fields::MessageFields;
pub use keys::MessageKeys;
pub use messages::{Message, Messages, SPLIT_MAX};
pub use value::{KeyText, KeyValue};
pub use values::packed::PackedValues;
pub use values::simple::{SimpleOutline, SimplePacked};

/// Version of ecCodes whose definitions the tables were derived from.
pub const ECCODES_VERSION: &str = "2.50.0";
