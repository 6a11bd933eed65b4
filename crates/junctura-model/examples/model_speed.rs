//! What a record costs: nanoseconds for each step that an offer takes through the model.
//!
//! `cargo run --release -p junctura-model --example model_speed`

#![allow(clippy::disallowed_methods, reason = "it measures; the crate itself stays pure")]

use std::hint::black_box;
use std::time::Instant;

use junctura_model::{Given, RecordRef, Schema};

const ROUNDS: u32 = 30;
const CALLS: u32 = 20_000;

/// The fastest of several rounds: what the machine's other work adds is not ours.
fn measure(what: &str, mut call: impl FnMut()) {
    let mut best_ns = f64::INFINITY;
    for _ in 0..ROUNDS {
        let begun = Instant::now();
        for _ in 0..CALLS {
            call();
        }
        best_ns = best_ns.min(begun.elapsed().as_nanos() as f64 / f64::from(CALLS));
    }
    println!("{what:<44} {best_ns:8.1} ns");
}

fn main() -> junctura_model::Result<()> {
    let Some(schema) = Schema::builtin("mars") else {
        println!("the mars schema is broken");
        return Ok(());
    };
    let field = [
        ("class", Given::Text("od")),
        ("expver", Given::Text("0001")),
        ("stream", Given::Text("enfo")),
        ("date", Given::Text("20261120")),
        ("time", Given::Text("0000")),
        ("type", Given::Text("pf")),
        ("levtype", Given::Text("pl")),
        ("step", Given::Integer(6)),
        ("number", Given::Integer(12)),
        ("levelist", Given::Integer(500)),
        ("param", Given::Text("t")),
    ];
    let mut shuffled = field;
    shuffled.reverse();
    let (mut bytes, mut text) = (Vec::new(), String::new());

    schema.record(field, &mut bytes)?;
    schema.key_of(RecordRef::trusted(&bytes), &mut text);
    println!("{text}\n{} bytes of record, {} bytes of key", bytes.len(), text.len());

    let mut out = Vec::new();
    measure("record, 11 attributes in schema order", || {
        let _ = black_box(schema.record(black_box(field), &mut out));
    });
    measure("record, 11 attributes in the opposite order", || {
        let _ = black_box(schema.record(black_box(shuffled), &mut out));
    });
    measure("find, 11 names", || {
        for (name, _) in field {
            black_box(schema.find(black_box(name)));
        }
    });
    measure("check", || {
        let _ = black_box(schema.check(black_box(&bytes)));
    });
    let record = RecordRef::trusted(&bytes);
    measure("key_of", || {
        text.clear();
        schema.key_of(black_box(record), &mut text);
        black_box(&text);
    });
    measure("key_hash", || {
        black_box(schema.key_hash(black_box(&text)));
    });
    let param = schema.find("param");
    measure("get, the last of the key", || {
        black_box(param.and_then(|id| black_box(record).get(id)));
    });
    measure("parse_key", || {
        let _ = black_box(schema.parse_key(black_box(&text)));
    });
    Ok(())
}
