//! What fuzz targets share: a schema with an attribute of every type.

mod memory;

use std::sync::{Arc, LazyLock};

use junctura_model::Schema;

/// Bytes that a run may take whatever it is given, and for each byte that it is given.
const MOST_FOR_ALL: usize = 8 << 20;
const MOST_FOR_EACH: usize = 512;

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

/// Does something with these bytes, which may take a multiple of their number of memory, and no more.
pub fn within_bounds(bytes: &[u8], work: impl FnOnce()) {
    let most = MOST_FOR_ALL + MOST_FOR_EACH * bytes.len();
    let taken = memory::peak(work);
    assert!(
        taken <= most,
        "{} bytes made it take {taken}, more than {most}",
        bytes.len()
    );
}
