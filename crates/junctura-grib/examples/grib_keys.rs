//! Prints one line of JSON for each message of the files named: place, mars keys, descriptive keys; or the error.
//!
//!     cargo run -p junctura-grib --example grib_keys -- FILE...

#![expect(clippy::disallowed_methods, reason = "a program for the shell reads files")]

use std::fmt::Write;
use std::io::{self, Write as _};

use junctura_grib::{KeyValue, Message, Messages};

fn main() -> io::Result<()> {
    let mut out = io::BufWriter::new(io::stdout().lock());
    for file in std::env::args().skip(1) {
        let bytes = std::fs::read(&file)?;
        for message in Messages::new(&bytes) {
            let line = message.and_then(|message| describe(&message)).unwrap_or_else(|error| {
                let mut line = format!("{{\"message\":{},\"start\":{},\"error\":", error.message, error.start);
                quote(&error.to_string(), &mut line);
                line + "}"
            });
            writeln!(out, "{line}")?;
        }
    }
    out.flush()
}

fn describe(message: &Message<'_>) -> Result<String, junctura_grib::GribError> {
    let keys = message.keys()?;
    let mut line = format!(
        "{{\"message\":{},\"start\":{},\"mars\":",
        message.number(),
        message.offset()
    );
    object(keys.mars(), &mut line);
    line += ",\"descriptive\":";
    object(keys.descriptive(), &mut line);
    line += ",\"additional\":";
    object(keys.additional(), &mut line);
    line += ",\"attributes\":";
    object(keys.attributes(), &mut line);
    Ok(line + "}")
}

fn object<'k>(keys: impl Iterator<Item = (&'static str, &'k KeyValue)>, line: &mut String) {
    line.push('{');
    for (at, (name, value)) in keys.enumerate() {
        let comma = if at > 0 { "," } else { "" };
        _ = write!(line, "{comma}\"{name}\":");
        match value {
            KeyValue::Integer(number) => _ = write!(line, "{number}"),
            KeyValue::Text(text) => quote(text.as_str(), line),
        }
    }
    line.push('}');
}

fn quote(text: &str, line: &mut String) {
    line.push('"');
    for c in text.chars() {
        match c {
            '"' | '\\' => line.extend(['\\', c]),
            c if c < ' ' => _ = write!(line, "\\u{:04x}", u32::from(c)),
            c => line.push(c),
        }
    }
    line.push('"');
}
