use junctura_model::selector::testing::{TestRandom, random_record, random_selector};
use junctura_model::{Schema, Selector};

use super::*;
use crate::data::packing::PayloadCodec;

pub(crate) fn schema() -> Arc<Schema> {
    Schema::builtin("mars").unwrap()
}

/// A table of random records, all in one file.
pub(crate) fn table(random: &mut TestRandom, rows: usize) -> (RowTable, Vec<Record>) {
    let schema = schema();
    let mut table = RowTable::default();
    let mut records = Vec::new();
    let mut offset = 5000;
    for row in 0..rows {
        let record = random_record(random, &schema);
        let length = random.below(3000) as u64;
        let place = ObjectLocation {
            file: table.file_number(&"data/1".into()),
            offset,
            length,
            checksum: random.number() as u32,
            packed: (row % 5 == 2).then(|| PackedObject {
                codec: if row % 2 == 0 {
                    PayloadCodec::Zstd
                } else {
                    PayloadCodec::Lz4
                },
                length: length + random.number() % 5000,
            }),
        };
        offset += length + random.below(2) as u64;
        let version = (row % 3 == 1).then_some(Version {
            incarnation: 7,
            sequence: row as u64,
        });
        table.push(record.as_ref(), place, version).unwrap();
        records.push(record);
    }
    (table, records)
}

pub(crate) fn rows_of(table: &RowTable) -> Vec<(Record, Arc<str>, ObjectLocation, Option<Version>)> {
    (0..table.len() as u32)
        .map(|row| {
            let place = ObjectLocation {
                file: 0,
                ..table.place(row)
            };
            (
                table.record(row),
                Arc::clone(table.file_of(row)),
                place,
                table.version(row),
            )
        })
        .collect()
}

#[test]
fn a_row_says_what_was_said() {
    let (table, records) = table(&mut TestRandom(1), 700);
    for (row, record) in records.iter().enumerate() {
        assert_eq!(&table.record(row as u32), record);
    }
}

#[test]
fn rows_read_back_behind_others() {
    let mut random = TestRandom(2);
    let name: Arc<str> = "".into();
    let mut all = RowTable::default();
    let mut expected = Vec::new();
    for (number, rows) in [1, 0, 300, 40].into_iter().enumerate() {
        let (table, _) = table(&mut random, rows);
        let mut bytes = Vec::new();
        table.encode(None, &mut bytes);
        all.decode(EncodedRows {
            rows: &bytes,
            schema: &schema(),
            file: &name,
            payloads_at: 0,
        })
        .unwrap();
        all.committed(number as u64 + 1);
        expected.extend(rows_of(&table));
    }
    assert_eq!(rows_of(&all), expected);
    assert_eq!(
        (all.commit(0), all.commit(1), all.commit(300), all.commit(301)),
        (1, 3, 3, 4)
    );
}

#[test]
fn payloads_within_a_commit_lie_where_it_lies() {
    let (table, records) = table(&mut TestRandom(3), 20);
    let mut bytes = Vec::new();
    table.encode(Some(5000), &mut bytes);
    let mut read = RowTable::default();
    read.decode(EncodedRows {
        rows: &bytes,
        schema: &schema(),
        file: &"log/0".into(),
        payloads_at: 1000,
    })
    .unwrap();
    for (row, record) in (0..).zip(&records) {
        assert_eq!(&read.record(row), record);
        assert_eq!(&**read.file_of(row), "log/0");
        assert_eq!(read.place(row).offset, table.place(row).offset - 5000 + 1000);
    }
}

#[test]
fn a_table_that_was_cleared_says_nothing_of_before() {
    let mut random = TestRandom(11);
    let (mut used, _) = table(&mut random, 50);
    used.clear();
    let (fresh, records) = table(&mut random, 5);
    for (row, record) in (0..).zip(&records) {
        used.file_number(fresh.file_of(row));
        used.push(record.as_ref(), fresh.place(row), fresh.version(row))
            .unwrap();
    }
    assert_eq!(rows_of(&used), rows_of(&fresh));
    let encoded = |table: &RowTable| {
        let mut bytes = Vec::new();
        table.encode(None, &mut bytes);
        bytes.len()
    };
    assert_eq!(encoded(&used), encoded(&fresh));
}

#[test]
fn bytes_that_nobody_wrote_are_refused() {
    let (table, _) = table(&mut TestRandom(4), 30);
    let mut bytes = Vec::new();
    table.encode(None, &mut bytes);
    let file: Arc<str> = "".into();
    let schema = schema();
    let decode = |rows: &[u8]| {
        RowTable::default().decode(EncodedRows {
            rows,
            schema: &schema,
            file: &file,
            payloads_at: 0,
        })
    };
    for end in 0..bytes.len() {
        assert!(decode(&bytes[..end]).is_err(), "{end}");
    }
    // Any content is harmless.
    let mut random = TestRandom(5);
    for _ in 0..1000 {
        let mut damaged = bytes.clone();
        for _ in 0..=random.below(3) {
            let at = random.below(damaged.len());
            damaged[at] = random.number() as u8;
        }
        let _ = decode(&damaged);
    }
}

#[test]
fn tables_join() {
    let mut random = TestRandom(6);
    let (mut one, mut all) = table(&mut random, 300);
    let (other, records) = table(&mut random, 400);
    one.committed(1);
    let mut second = other.clone();
    second.committed(2);
    one.append(&second).unwrap();
    all.extend(records);
    assert_eq!(one.len(), 700);
    for (row, record) in all.iter().enumerate() {
        assert_eq!(&one.record(row as u32), record);
    }
    assert_eq!((one.commit(299), one.commit(300)), (1, 2));
    assert_eq!(rows_of(&one)[300..], rows_of(&other));
}

#[test]
fn columns_answer_as_records_do() {
    let schema = schema();
    let mut random = TestRandom(8);
    let (table, records) = table(&mut random, 500);
    let record_keys: Vec<&[u8]> = records
        .iter()
        .map(|record| record.as_ref().key_bytes(schema.key_len()))
        .collect();
    for _ in 0..100 {
        let selector = Selector::parse(&random_selector(&mut random, &schema), &schema).unwrap();
        let rows = select(&table, &selector.question()).unwrap();
        let expected: Vec<u32> = (0..500)
            .filter(|&row| selector.matches(records[row as usize].as_ref()))
            .collect();
        assert_eq!(rows.iter().collect::<Vec<_>>(), expected, "{selector}");
        let keys = select_keys(&table, &selector.question(), schema.key_len()).unwrap();
        for row in expected {
            let key = &record_keys[row as usize];
            let mut same = (0..500).filter(|&other| record_keys[other as usize] == *key);
            assert!(same.all(|other| keys.contains(other)), "{selector}");
        }
    }
}

#[test]
fn keys_are_written() {
    let schema = schema();
    let (table, records) = table(&mut TestRandom(9), 2000);
    let texts = KeyTexts::new(&table, &schema);
    for (row, record) in (0..).zip(&records) {
        let (mut text, mut expected) = (String::new(), String::new());
        texts.write(row, &mut text);
        schema.key_of(record.as_ref(), &mut expected);
        assert_eq!(text, expected);
    }
}

/// Rows of a small cube in two tables, and far apart ones: seen as a cube, and by prints.
#[test]
fn the_last_row_of_each_key_is_left() {
    let schema = schema();
    let mut random = TestRandom(10);
    for (rows, is_dense) in [(3000, true), (40, false)] {
        let mut tables = [RowTable::default(), RowTable::default()];
        let mut newest = HashMap::new();
        for table in &mut tables {
            for row in 0..rows {
                let record = if is_dense {
                    small_record(&mut random)
                } else {
                    random_record(&mut random, &schema)
                };
                let file = table.file_number(&"data/1".into());
                let place = ObjectLocation {
                    file,
                    offset: 0,
                    length: 0,
                    checksum: 0,
                    packed: None,
                };
                table.push(record.as_ref(), place, None).unwrap();
                newest.insert(record.as_ref().key_bytes(schema.key_len()).to_vec(), row);
            }
        }
        let mut seen = SeenRows::new(&tables.iter(), &schema, 2 * rows as usize);
        let mut left = 0;
        for table in tables.iter().rev() {
            let mut new: Vec<u32> = (0..rows).collect();
            seen.leave_new(table, &mut new);
            assert!(new.is_sorted());
            for row in new {
                let record = table.record(row);
                let key = record.as_ref().key_bytes(schema.key_len());
                assert_eq!(newest.get(key), Some(&row));
                left += 1;
            }
        }
        assert_eq!(left, newest.len());
    }
}

fn small_record(random: &mut TestRandom) -> Record {
    let (step, number) = (random.below(20).to_string(), random.below(20).to_string());
    let mut given = vec![
        ("class", "od"),
        ("expver", "0001"),
        ("stream", "enfo"),
        ("date", "20261120"),
        ("time", "0000"),
        ("type", "pf"),
        ("levtype", "sfc"),
        ("step", &*step),
        ("param", "2t"),
    ];
    if random.once_in(2) {
        given.push(("number", &number));
    }
    let mut bytes = Vec::new();
    let given = given
        .into_iter()
        .map(|(name, value)| (name, junctura_model::Given::Text(value)));
    schema().record(given, &mut bytes).unwrap();
    Record::trusted(bytes)
}

#[test]
fn attributes_that_the_schema_has_not_are_refused() {
    let encoded = |id: AttrId, name: &str, text: &str| {
        let mut table = RowTable::default();
        let place = ObjectLocation {
            file: table.file_number(&"data/1".into()),
            offset: 0,
            length: 0,
            checksum: 0,
            packed: None,
        };
        let column = table.column_mut(id, name);
        column.push(0, text);
        table.push_place(place, None);
        let mut bytes = Vec::new();
        table.encode(None, &mut bytes);
        bytes
    };
    let decode = |schema: &Schema, rows: &[u8]| {
        RowTable::default().decode(EncodedRows {
            rows,
            schema,
            file: &"".into(),
            payloads_at: 0,
        })
    };
    let (closed, open) = (schema(), Schema::builtin("free").unwrap());
    let count = closed.attributes().len() as u8;
    assert!(decode(&closed, &encoded(AttrId(count - 1), "", "1")).is_ok());
    assert!(decode(&closed, &encoded(AttrId(count), "", "1")).is_err());
    assert!(decode(&closed, &encoded(AttrId::OPEN, "colour", "red")).is_err());
    assert!(decode(&open, &encoded(AttrId::OPEN, "colour", "red")).is_ok());
    assert!(decode(&open, &encoded(AttrId::OPEN, &"x".repeat(300), "red")).is_err());
    assert!(decode(&open, &encoded(AttrId::OPEN, "colour", &"x".repeat(70_000))).is_err());
}

#[test]
fn a_column_widens_as_its_values_grow_more() {
    let mut column = TextColumn::new(AttrId(0), "");
    for row in 0..70_000 {
        column.push(row, &row.to_string());
    }
    column.push(70_003, "5");
    assert_eq!(column.text(255).unwrap(), "255");
    assert_eq!(column.text(69_999).unwrap(), "69999");
    assert_eq!((column.text(70_001), column.text(70_003)), (None, Some("5")));
}

#[test]
fn names_that_few_rows_have_cost_what_those_rows_hold() {
    const ROWS: u32 = 200_000;
    let mut table = RowTable::default();
    for name in 0..1000 {
        let column = table.column_mut(AttrId::OPEN, &format!("n{name}"));
        for row in [name, name * 190, ROWS - 1 - name] {
            let number = column.value_number("v");
            column.set(row, number);
        }
    }
    let mut joined = RowTable::default();
    for name in 0..1000 {
        let column = joined.column_mut(AttrId::OPEN, &format!("n{name}"));
        column.append(ROWS * 2, table.column(AttrId::OPEN, &format!("n{name}")).unwrap());
    }
    for table in [&table, &joined] {
        let bytes: usize = table.columns().iter().map(TextColumn::number_bytes).sum();
        assert!(bytes < 1000 * 256, "{bytes}");
    }
}

#[test]
fn numbers_are_those_that_were_set_however_they_are_kept() {
    let mut random = TestRandom(41);
    for round in 0..60 {
        let (mut column, mut expected) = (TextColumn::new(AttrId::OPEN, "a"), Vec::new());
        let (values, gap) = ([3, 300, 70_000][round % 3], [1, 3, 100, 3000][round % 4]);
        let numbers: Vec<u32> = (0..values)
            .map(|value| column.value_number(&value.to_string()))
            .collect();
        for _ in 0..random.below(2000) {
            let behind = random.below(gap);
            // Some rows precede others.
            let back = if random.below(9) == 0 {
                random.below(expected.len() + 1)
            } else {
                0
            };
            let (row, number) = (expected.len() + behind - back, numbers[random.below(numbers.len())]);
            expected.resize(expected.len().max(row + 1), 0);
            expected[row] = number;
            column.set(row as u32, number);
            if random.below(50) == 0 {
                let more: Vec<u32> = (0..random.below(1000)).map(|at| u32::from(at % 97 == 0)).collect();
                // Rows behind the last one.
                column.extend(&more);
                expected.extend(&more);
            }
        }
        let rows = expected.len() as u32;
        let read: Vec<u32> = (0..rows + 9).map(|row| column.number(row)).collect();
        assert_eq!(read[..expected.len()], expected);
        assert!(read[expected.len()..].iter().all(|&number| number == 0));
        assert!(column.numbers_of(0..rows).eq(expected.iter().copied()));
        let middle = rows / 3..rows / 2;
        assert!(
            column
                .numbers_of(middle.clone())
                .eq(expected[middle.start as usize..middle.end as usize].iter().copied())
        );
        let some: Vec<u32> = (0..rows).filter(|row| row % 3 != 1).collect();
        let mut taken = TextColumn::new(AttrId::OPEN, "a");
        taken.take(&column, &some);
        for (at, &row) in (0..).zip(&some) {
            assert_eq!(taken.text(at), column.text(row));
        }
        let used: Vec<&str> = column.used_values(&RowSet::of(rows as usize, &some)).collect();
        let mut by_hand: Vec<u32> = some
            .iter()
            .map(|&row| expected[row as usize])
            .filter(|&number| number > 0)
            .collect();
        by_hand.sort_unstable();
        by_hand.dedup();
        assert_eq!(used.len(), by_hand.len());
    }
}
