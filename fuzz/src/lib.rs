//! What fuzz targets share: a schema with an attribute of every type, and limits of memory and work.

mod limits;

use std::sync::{Arc, LazyLock};

use junctura_model::Schema;

pub use limits::Limits;

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

/// Does something with these bytes, within limits. What all runs share is made before.
pub fn within(limits: Limits, bytes: &[u8], work: impl FnOnce()) {
    LazyLock::force(&SCHEMA);
    limits.hold(bytes.len(), work);
}
