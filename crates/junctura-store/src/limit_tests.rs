//! What a writer refuses because nobody would read it: the store is as it was, and goes on.

use std::sync::Arc;
use std::time::Duration;

use junctura_model::{Code, Schema};

use crate::catalogue::Emptied;
use crate::checkpoint::{self, Checkpoint, Rest};
use crate::commit::PARTS_MAX;
use crate::commits::Position;
use crate::disk::{Disk, MemoryDisk};
use crate::root::Layout;
use crate::store::Store;

fn store(schema: &Schema) -> Store {
    Store::create_url("memory:", &[Arc::new(schema.clone())], &Layout::default()).unwrap()
}

#[test]
fn a_flush_has_objects_of_so_many_datasets() {
    let text = "name: runs\nkey: {dataset: [run], collocation: [], element: []}\nattributes:\n  run: {type: integer}\n";
    let store = store(&Schema::parse_yaml(text).unwrap());
    let mut writer = store.writer().unwrap();
    writer.set_upkeep(false);
    let archive = |writer: &mut crate::Writer, run: usize| writer.archive([("run", &*run.to_string())], b"x");
    for run in 0..PARTS_MAX {
        archive(&mut writer, run).unwrap();
    }
    let refused = archive(&mut writer, PARTS_MAX).unwrap_err();
    assert_eq!(refused.code(), Code::LimitExceeded, "{refused}");
    assert_eq!(writer.flush().unwrap().objects, PARTS_MAX as u64);
    archive(&mut writer, PARTS_MAX).unwrap();
    writer.flush().unwrap();
    let listed = store.apart().snapshot().unwrap().list("").unwrap();
    assert_eq!(listed.len(), PARTS_MAX + 1);
}

#[test]
fn a_flush_that_is_too_large_is_forgotten_and_the_writer_goes_on() {
    let store = store(&Schema::builtin("free").unwrap());
    let mut writer = store.writer().unwrap();
    // Numbers of a column take a byte for each row that comes before and after the only one that has it.
    let names: Vec<String> = (0..60).map(|name| format!("n{name}")).collect();
    let value = "v".repeat(900);
    for number in 0..5_000 {
        let unlike = format!("{number}{value}");
        let attributes = names.iter().map(|name| (&**name, &*unlike));
        writer.archive(attributes.chain([("name", "a")]), b"").unwrap();
    }
    let refused = writer.flush().unwrap_err();
    assert_eq!(refused.code(), Code::TooLarge, "{refused}");
    assert_eq!(writer.pending(), 0);
    writer.archive([("name", "b")], b"b").unwrap();
    assert_eq!(writer.flush().unwrap().objects, 1);
    assert_eq!(store.snapshot().unwrap().list("").unwrap().len(), 1);
}

#[test]
fn a_checkpoint_that_nobody_would_read_is_not_made() {
    let disk = MemoryDisk::default();
    let name = |number: u32| Arc::from(format!("data/{number:016x}/{number:016x}-{number}"));
    let emptied: Emptied = (0..1_200_000)
        .map(|number| (name(number), Duration::from_secs(1)))
        .collect();
    let (position, log) = (Position::default(), "log/00000000000000000001".to_owned());
    let checkpoint = Checkpoint::new(position, log, 1, Vec::new(), Rest::new(&[0], emptied));
    let refused = checkpoint.publish(&disk).unwrap_err();
    assert_eq!(refused.code(), Code::LimitExceeded, "{refused}");
    assert!(disk.list(checkpoint::FOLDER).unwrap().is_empty());
}
