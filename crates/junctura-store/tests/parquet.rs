//! The catalogue as others read it: the files of a checkpoint, by pyarrow, without our code.

use std::path::Path;
use std::process::Command;

use junctura_model::{Given, Schema};
use junctura_store::{RetentionAges, Store};

/// Reads the newest checkpoint's files and prints a line for each row.
const READ: &str = r#"
import json, pathlib, sys
import pyarrow.parquet as parquet
root = pathlib.Path(sys.argv[1])
checkpoint = json.loads(max((root / "checkpoints").glob("*.json")).read_text())
for file in checkpoint["files"]:
    for row in parquet.read_table(root / file).to_pylist():
        with open(root / row["_file"], "rb") as data:
            data.seek(row["_offset"])
            payload = data.read(row["_length"]).decode()
        attributes = {name: str(value) for name, value in row.items() if value is not None and name[0] != "_"}
        print(row["_commit"], attributes["date"], attributes["levelist"].rstrip("0").rstrip("."), attributes["step"],
              attributes["param"], attributes.get("number"), payload)
"#;

fn python() -> Option<String> {
    // `make` says which one has pyarrow.
    std::env::var("PYO3_PYTHON").ok()
}

fn archive_all(path: &Path) -> Vec<String> {
    let store = Store::create(path, &[Schema::builtin("mars").unwrap()], RetentionAges::default()).unwrap();
    let mut writer = store.writer().unwrap();
    let mut expected = Vec::new();
    for commit in 1..=40_u32 {
        for (level, step) in [("500", "6"), ("0.5", "0-24"), ("1000", "90m")] {
            let number = commit.to_string();
            let mut given = vec![
                ("class", "od"),
                ("expver", "0001"),
                ("stream", "enfo"),
                ("date", "20261120"),
                ("time", "0000"),
                ("type", "pf"),
                ("levtype", "pl"),
                ("levelist", level),
                ("step", step),
                ("param", "t"),
            ];
            if commit % 2 == 0 {
                given.push(("number", &number));
            }
            let payload = format!("{commit} at {level} ").repeat(if commit.is_multiple_of(7) { 9000 } else { 1 });
            let attributes = given.iter().map(|&(name, value)| (name, Given::Text(value)));
            writer.archive(attributes, payload.as_bytes()).unwrap();
            let member = if commit % 2 == 0 { &*number } else { "None" };
            expected.push(format!("{commit} 2026-11-20 {level} {step} t {member} {payload}"));
        }
        writer.flush().unwrap();
        if commit.is_multiple_of(15) || commit == 40 {
            store.checkpoint().unwrap();
        }
    }
    expected
}

#[test]
fn anybody_reads_everything_up_to_a_checkpoint() {
    let Some(python) = python() else {
        println!("left out: PYO3_PYTHON names no Python that has pyarrow");
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let expected = archive_all(folder.path());
    let output = Command::new(python)
        .args(["-c", READ])
        .arg(folder.path())
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let read = String::from_utf8(output.stdout).unwrap();
    let lines: Vec<&str> = read.lines().map(str::trim_end).collect();
    let expected: Vec<&str> = expected.iter().map(|line| line.trim_end()).collect();
    assert_eq!(lines.len(), expected.len());
    for (line, expected) in lines.iter().zip(expected) {
        assert!(*line == expected, "{line:.80} is not {expected:.80}");
    }
}
