//! A run as histories: the actions and answers of each client, a file each, one JSON object a line.
//!
//! They are made for independent judges, without this project's code. Producers write `offering`, `offered` and `refused`;
//! readers write `following`, `got`, `gap` and `live`; an observer names removed objects. A client that crashed has no last
//! line. A witness, which no client could replace, has seen everything: also answers that a crashed producer never
//! received.

use std::fmt::Write as _;
use std::fs;
use std::io;
use std::path::Path;

use crate::INCARNATION;
use crate::model::Fate;
use crate::world::World;

/// Writes the histories of a run that has ended.
///
/// # Errors
/// The directory cannot be written.
pub fn write(world: &World, directory: &Path) -> io::Result<()> {
    fs::create_dir_all(directory)?;
    let file = |name: &str, role: &str, rows: &str, through: Option<u64>| {
        let mut text =
            format!("{{\"op\":\"start\",\"role\":\"{role}\",\"name\":\"{name}\",\"pid\":1,\"group\":null}}\n{rows}");
        if let Some(through) = through {
            let _ = writeln!(text, "{{\"op\":\"end\",\"through\":\"{INCARNATION}.{through}\"}}");
        }
        fs::write(directory.join(format!("{name}.jsonl")), text)
    };
    for (name, rows) in &world.histories {
        file(name, "producer", rows, None)?;
    }
    for (number, chain) in world.chains.iter().enumerate() {
        if chain.wish.is_none() && !chain.named && !chain.only_new && !chain.until_live && chain.query.is_about_keys() {
            file(&format!("reader{number}"), "consumer", &chain.rows, chain.through)?;
        }
    }
    file("witness", "consumer", &witness(world), Some(world.model.sequence))?;
    let gone = world.model.gone.iter().map(|&sequence| {
        let id = &world.model.key_of(sequence).text;
        let why = if matches!(world.model.fate(sequence), Fate::Expired | Fate::Archived) {
            "expired"
        } else {
            "withdrawn"
        };
        format!("{{\"op\":\"gone\",\"id\":{id:?},\"version\":\"{INCARNATION}.{sequence}\",\"why\":\"{why}\"}}\n")
    });
    file(
        "observer",
        "observer",
        &gone.collect::<String>(),
        Some(world.model.sequence),
    )
}

fn witness(world: &World) -> String {
    let mut rows = format!(
        "{{\"op\":\"following\",\"wants\":\"all\",\"versions\":\"all\",\"seq\":\"{INCARNATION}.0\",\"cursor\":null}}\n"
    );
    rows.push_str("{\"op\":\"live\"}\n");
    for object in &world.model.objects {
        let (id, sequence, payload) = (
            &world.model.key_of(object.sequence).text,
            object.sequence,
            object.offer.payload,
        );
        let _ = writeln!(
            rows,
            r#"{{"op":"got","t":0,"id":{id:?},"version":"{INCARNATION}.{sequence}","sum":"{payload}","redelivered":false}}"#
        );
    }
    rows
}
