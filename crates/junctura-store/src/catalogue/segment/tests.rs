#![allow(clippy::unwrap_used, reason = "tests")]

use std::sync::Arc;

use junctura_model::selector::testing::{TestRandom, random_selector};
use junctura_model::{Code, Schema, Selector, Type};

use super::write::{GROUP_ROWS, encode_in_groups};
use super::*;
use crate::catalogue::row_overlay::{OverlayFilter, RowOverlay};
use crate::catalogue::table::tests::{rows_of, schema, table};
use crate::catalogue::table::{ObjectLocation, RowTable};
use crate::storage::{MemoryDisk, StorageDisk, StorageFile, write_all};

#[test]
fn rows_read_back_from_a_file() {
    for (rows, group_rows) in [(0, GROUP_ROWS), (1, GROUP_ROWS), (3000, GROUP_ROWS), (10_000, 3000)] {
        are_read_back(rows, group_rows);
    }
}

#[test]
#[ignore = "half a minute"]
fn soak_rows_of_more_than_a_group() {
    are_read_back(GROUP_ROWS + 10, GROUP_ROWS);
}

fn are_read_back(rows: usize, group_rows: usize) {
    let (mut table, _) = table(&mut TestRandom(1), rows);
    table.committed(7);
    let (file, _) = encode_in_groups(&table, &schema(), group_rows).unwrap();
    let read = decode(file, &schema()).unwrap();
    assert!(rows_of(&read) == rows_of(&table));
    assert!((0..rows as u32).all(|row| read.commit(row) == 7));
}

#[test]
fn values_of_all_types_read_back() {
    let mut text = "name: all\nkey:\n  dataset: [string]\nopen: true\nattributes:\n".to_owned();
    text.extend(Type::ALL.map(|kind| format!("  {kind}: {{type: {kind}}}\n  l{kind}: {{type: list of {kind}}}\n")));
    let schema = Arc::new(Schema::parse_yaml(&text).unwrap());
    let mut random = TestRandom(2);
    let mut table = RowTable::default();
    let place = ObjectLocation {
        file: table.file_number(&"data/1".into()),
        offset: 0,
        length: 0,
        checksum: 0,
        packed: None,
    };
    for _ in 0..500 {
        let record = junctura_model::selector::testing::random_record(&mut random, &schema);
        table.push(record.as_ref(), place, None).unwrap();
    }
    let read = decode(encode(&table, &schema).unwrap().0, &schema).unwrap();
    assert!(rows_of(&read) == rows_of(&table));
}

#[test]
fn a_file_that_goes_while_it_is_opened_is_not_damaged() {
    let (table, _) = table(&mut TestRandom(3), 20);
    let (bytes, checks) = encode(&table, &schema()).unwrap();
    let disk = MemoryDisk::default();
    write_all(&*disk.create("segment").unwrap(), &bytes, 0).unwrap();
    let file = disk.open("segment").unwrap();
    disk.remove("segment").unwrap();
    // A reader that opens the newest checkpoint again finds another one.
    let opened = SegmentFile::open("segment", file, bytes.len() as u64, &checks, &schema());
    assert_eq!(opened.err().map(|error| error.code()), Some(Code::NotFound));
}

#[test]
fn a_damaged_file_is_refused() {
    let (table, _) = table(&mut TestRandom(3), 200);
    let (file, _) = encode(&table, &schema()).unwrap();
    let mut random = TestRandom(4);
    for end in (0..file.len()).step_by(97) {
        assert!(decode(file[..end].to_vec(), &schema()).is_err());
    }
    for _ in 0..300 {
        let mut damaged = file.clone();
        let at = random.below(damaged.len());
        damaged[at] ^= 1 << random.below(8);
        // Any content is harmless.
        let _ = std::panic::catch_unwind(|| decode(damaged, &schema())).expect("no panic");
    }
}

/// A file of these bytes, as a store has it.
fn file(bytes: &[u8]) -> Arc<dyn StorageFile> {
    let disk = MemoryDisk::default();
    let file = disk.create("segment").unwrap();
    write_all(&*file, bytes, 0).unwrap();
    file
}

/// The pieces of a table that was written in groups of so many rows.
fn pieces(table: &RowTable, group_rows: usize) -> Vec<RowOverlay> {
    let (bytes, checks) = encode_in_groups(table, &schema(), group_rows).unwrap();
    let segment = SegmentFile::open("segment", file(&bytes), bytes.len() as u64, &checks, &schema()).unwrap();
    segment.groups().map(RowOverlay::from).collect()
}

#[test]
fn what_lies_in_a_file_answers_as_what_is_in_memory() {
    let mut random = TestRandom(5);
    let schema = schema();
    let (mut few, mut many) = (0, 0);
    for round in 0..30 {
        let (mut table, _) = table(&mut random, 600);
        table.committed(3);
        table.numbered(40);
        let pieces = pieces(&table, 250);
        assert_eq!(pieces.iter().map(RowOverlay::len).collect::<Vec<_>>(), [250, 250, 100]);
        let memory = RowOverlay::from(table);
        let by = if round % 2 == 0 {
            OverlayFilter::All
        } else {
            OverlayFilter::Key(schema.key_len())
        };
        // The first may read few rows, the second all; from then on they are in memory.
        for _ in 0..3 {
            let text = random_selector(&mut random, &schema);
            let Ok(selector) = Selector::parse(&text, &schema) else {
                continue;
            };
            let question = selector.question();
            let (table, rows) = memory.find(&question, by).unwrap();
            let expected: Vec<_> = rows
                .iter()
                .map(|&row| {
                    (
                        table.record(row),
                        table.number(row),
                        table.commit(row),
                        table.version(row),
                    )
                })
                .collect();
            let mut found = Vec::new();
            for piece in &pieces {
                let (table, rows) = piece.find(&question, by).unwrap();
                match table.len() {
                    0 => {}
                    length if length == piece.len() => many += 1,
                    _ => few += 1,
                }
                found.extend(rows.iter().map(|&row| {
                    (
                        table.record(row),
                        table.number(row),
                        table.commit(row),
                        table.version(row),
                    )
                }));
            }
            assert!(found == expected, "{text}");
        }
    }
    assert!(few > 5 && many > 50, "{few}, {many}");
}

#[test]
fn a_damaged_part_is_named_by_who_needs_it() {
    let (table, _) = table(&mut TestRandom(6), 300);
    let (bytes, checks) = encode_in_groups(&table, &schema(), 100).unwrap();
    let (schema, mut random, mut refused) = (schema(), TestRandom(7), 0);
    for _ in 0..300 {
        let mut damaged = bytes.clone();
        let at = random.below(damaged.len());
        damaged[at] ^= 1 << random.below(8);
        let opened = SegmentFile::open("segment", file(&damaged), bytes.len() as u64, &checks, &schema);
        let read = opened.and_then(|segment| segment.groups().map(|group| group.table()).collect::<Result<Vec<_>>>());
        if let Err(error) = read {
            assert_eq!((error.code(), error.subject()), (Code::Corrupt, "segment"));
            refused += 1;
        }
    }
    // The remaining bytes are the pages' statistics, between the rows and the footer, which are never read.
    assert!(refused > 150, "{refused}");
}

#[test]
fn a_group_knows_which_rows_it_may_have() {
    let (mut table, _) = table(&mut TestRandom(8), 200);
    table.numbered(1000);
    let (bytes, checks) = encode_in_groups(&table, &schema(), 100).unwrap();
    let segment = SegmentFile::open("segment", file(&bytes), bytes.len() as u64, &checks, &schema()).unwrap();
    let may_have = |run: std::ops::Range<u64>| {
        segment
            .groups()
            .map(|group| group.may_have(std::slice::from_ref(&run)))
            .collect::<Vec<_>>()
    };
    assert_eq!(may_have(0..1000), [false, false]);
    assert_eq!(may_have(0..1001), [true, false]);
    assert_eq!(may_have(1099..1101), [true, true]);
    assert_eq!(may_have(1199..5000), [false, true]);
    assert_eq!(may_have(1200..5000), [false, false]);
}
