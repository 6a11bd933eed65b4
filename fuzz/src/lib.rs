//! Fuzz targets: all readers of bytes from outside, under limits of memory and work.
//!
//! `tests/fixed_inputs.rs` runs them with the inputs of `corpus` and changed ones of these, the same in each run; `libfuzzer` looks
//! for new ones (`fuzz/run.sh`).

mod limits;
mod targets;

use std::sync::{Arc, LazyLock};

use junctura_model::Schema;

pub use limits::Limits;

/// A target: it panics where its input shows a fault.
pub type Target = fn(&[u8]);

/// All targets, by name.
pub const TARGETS: [(&str, Target); 16] = [
    ("claims", targets::claims::run),
    ("grib_header", targets::grib_header::run),
    ("layout", targets::layout::run),
    ("link", targets::link::run),
    ("record", targets::record::run),
    ("ring", targets::ring::run),
    ("schema", targets::schema::run),
    ("schema_fdb", targets::schema_fdb::run),
    ("selector", targets::selector::run),
    ("store_checkpoint", targets::store::checkpoint::run),
    ("store_log", targets::store::log::run),
    ("store_object", targets::store::object::run),
    ("store_place", targets::store::place::run),
    ("store_root", targets::store::root::run),
    ("weights", targets::weights::run),
    ("wire", targets::wire::run),
];

/// Short names, since the fuzzer has to guess them.
const YAML: &str = r#"
name: fuzz
key:
  dataset: [s, d, t]
  collocation: [p, "b?"]
  element: ["i?", "l?", "w?", "z?"]
attributes:
  s: {type: string, default: "x", aliases: [str]}
  d: {type: date, default: "20261120"}
  t: {type: time, default: "0"}
  p: {type: step, default: "0"}
  b: {type: bool}
  i: {type: integer, range: [-5, 9999]}
  l: {type: decimal, aliases: [level]}
  w: {type: timestamp}
  z: {type: duration}
  f: {type: float}
  v: {type: string, values: [an, fc]}
  g: {type: list of string}
  n: {type: list of decimal}
"#;

/// A schema with an attribute of every type.
pub static SCHEMA: LazyLock<Arc<Schema>> =
    LazyLock::new(|| Arc::new(Schema::parse_yaml(YAML).expect("our own schema")));

/// Does something with these bytes, within limits. The shared schema is made before.
pub fn within(limits: Limits, bytes: &[u8], work: impl FnOnce()) {
    LazyLock::force(&SCHEMA);
    limits.hold(bytes.len(), work);
}

/// The text at the beginning of these bytes.
fn text_of(bytes: &[u8]) -> &str {
    match str::from_utf8(bytes) {
        Ok(text) => text,
        Err(error) => str::from_utf8(&bytes[..error.valid_up_to()]).expect("it is text up to there"),
    }
}
