//! Files of a store that something has changed: what a reader takes follows from the bytes that there are, whatever they claim.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use junctura_model::{Result, Schema};
use junctura_store::{Compression, Store, StoreLayout};
use proptest::prelude::*;
use proptest::sample::Index;

use crate::limits::Limits;

/// A store, its rows and columns, the buffers of Parquet, and a buffer for each object that is checked.
const LIMITS: Limits = Limits {
    held_bytes: 256 << 10,
    held_bytes_each: 64,
    steps: 200_000,
    steps_each: 4,
};

/// The files of a store with a checkpoint, commits after it, and packed objects.
static FILES: LazyLock<Vec<(PathBuf, Vec<u8>)>> = LazyLock::new(|| {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    let layout = StoreLayout {
        compression: vec![Compression::Zstd { level: 1 }.into()],
        ..StoreLayout::default()
    };
    let url = root.to_str().unwrap();
    let store = Store::create_url(url, &[Schema::builtin("free").unwrap()], &layout).unwrap();
    for commit in 0..4 {
        let mut writer = store.writer().unwrap();
        for object in 0..10 {
            let name = format!("{commit}-{object}");
            let payload = vec![object; 300 * usize::from(object)];
            writer
                .archive([("name", &*name), ("level", "500"), ("step", "6")], &payload)
                .unwrap();
        }
        writer.flush().unwrap();
        if commit == 1 {
            store.wipe("name=0-3").unwrap();
            store.checkpoint().unwrap();
        }
    }
    files(root, root)
});

fn files(root: &Path, folder: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(files(root, &path));
        } else {
            found.push((path.strip_prefix(root).unwrap().to_owned(), fs::read(&path).unwrap()));
        }
    }
    found.sort();
    found
}

/// A change: where, and what stands there then.
fn change() -> impl Strategy<Value = (Index, Vec<u8>)> {
    let bytes = prop_oneof![
        any::<u8>().prop_map(|byte| vec![byte]),
        prop::collection::vec(any::<u8>(), 1..9),
        Just(vec![0xff; 8]),
        Just(vec![0; 4]),
        (0..10_u64).prop_map(|digits| b"9"[..].repeat(digits as usize + 1)),
    ];
    (any::<Index>(), bytes)
}

fn write(root: &Path, changed: usize, bytes: &[u8]) {
    for (number, (path, whole)) in FILES.iter().enumerate() {
        let path = root.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, if number == changed { bytes } else { whole }).unwrap();
    }
}

/// Reads all that the store shows.
fn look(root: &Path) -> Result<()> {
    let store = Store::open(root)?;
    let snapshot = store.snapshot()?;
    for listing in [snapshot.list_all(""), snapshot.list(""), snapshot.masked("")] {
        let listing = listing?;
        listing.for_each_key(|_, object| drop((object.describe(), object.version(), object.read())));
        let _ = listing.to_arrow();
    }
    snapshot.axes("")?;
    snapshot.check("", None, |_, _| true).map(drop)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn changed_files_cost_what_they_are_long(
        which in any::<Index>(),
        changes in prop::collection::vec(change(), 1..6),
        cut in prop::option::weighted(0.2, any::<Index>()),
    ) {
        let which = which.index(FILES.len());
        let mut bytes = FILES[which].1.clone();
        for (at, with) in changes {
            let at = at.index(bytes.len() + 1);
            let end = bytes.len().min(at + with.len());
            bytes.splice(at..end, with);
        }
        if let Some(cut) = cut {
            bytes.truncate(cut.index(bytes.len()));
        }
        let folder = tempfile::tempdir().unwrap();
        write(folder.path(), which, &bytes);
        let length = FILES.iter().map(|(_, bytes)| bytes.len()).sum();
        let _ = LIMITS.hold(length, || look(folder.path()));
    }
}
