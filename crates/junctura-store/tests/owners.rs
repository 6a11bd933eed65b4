//! Places where other things lie, or another store's: nobody's files are taken for one's own, and so none are removed.
//!
//! Of what was asked for it shows D: what a store has flushed stays, whatever else lies there.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use junctura_model::{Code, Result, Schema};
use junctura_store::{Commits, RetentionAges, Store, StoreLayout};
use tempfile::TempDir;

/// So large that it does not lie within a commit.
const LARGE: usize = 1 << 20;

fn free() -> Arc<Schema> {
    Schema::builtin("free").unwrap()
}

/// One whose data lie elsewhere, and in which nothing is kept for long.
fn create(root: &Path, data: &Path) -> Result<Store> {
    let layout = StoreLayout {
        data: Some(data.display().to_string()),
        ..brief().into()
    };
    Store::create(root, &[free()], layout)
}

fn brief() -> RetentionAges {
    RetentionAges {
        snapshot_max: Duration::from_mins(1),
        unflushed_max: Duration::from_mins(1),
    }
}

fn archive(store: &Store, name: &str, bytes: usize) -> Result<()> {
    let mut writer = store.writer()?;
    writer.archive([("name", name)], &vec![1; bytes])?;
    writer.flush().map(|_| ())
}

fn read(store: &Store, name: &str) -> Result<usize> {
    let listing = store.snapshot()?.list(&format!("name={name}"))?;
    listing.get(0).unwrap().read().map(|bytes| bytes.len())
}

fn code<T>(result: Result<T>) -> Code {
    result.map(|_| ()).unwrap_err().code()
}

#[test]
fn a_place_has_the_data_of_one_store() {
    let folder = TempDir::new().unwrap();
    let (first, second, data) = (
        folder.path().join("a"),
        folder.path().join("b"),
        folder.path().join("data"),
    );
    create(&first, &data).unwrap();
    let refused = create(&second, &data).unwrap_err();
    assert_eq!(refused.code(), Code::AlreadyExists);
    assert!(refused.to_string().contains(&first.display().to_string()), "{refused}");
    // Nor is it where a store is, or the other way round.
    assert_eq!(code(create(&second, &first)), Code::AlreadyExists);
    assert_eq!(
        code(Store::create(&data, &[free()], RetentionAges::default())),
        Code::AlreadyExists
    );
    // Nothing is left of what was refused.
    create(&second, &folder.path().join("other")).unwrap();
    Store::open(&second).unwrap();
}

#[test]
fn what_is_not_the_stores_stays() {
    let folder = TempDir::new().unwrap();
    let (root, data) = (folder.path().join("store"), folder.path().join("place"));
    let theirs = data.join("data/mine/file.nc");
    fs::create_dir_all(theirs.parent().unwrap()).unwrap();
    fs::write(&theirs, b"theirs").unwrap();
    assert_eq!(code(create(&root, &data)), Code::AlreadyExists);
    assert_eq!(code(Store::create(&data, &[free()], brief())), Code::AlreadyExists);
    fs::remove_dir_all(data.join("data")).unwrap();
    let store = create(&root, &data).unwrap();
    archive(&store, "ours", LARGE).unwrap();
    fs::create_dir_all(theirs.parent().unwrap()).unwrap();
    let besides = [
        theirs,
        data.join("data/readme"),
        root.join("segments/.nfs0001"),
        root.join("checkpoints/.nfs1"),
    ];
    store.compact().unwrap();
    for file in &besides {
        fs::write(file, b"theirs").unwrap();
        // As if it were there for long.
        let long_ago = std::time::SystemTime::now() - Duration::from_hours(1);
        fs::File::open(file).unwrap().set_modified(long_ago).unwrap();
    }
    assert_eq!(store.compact().unwrap().removed, Vec::<String>::new());
    assert!(besides.iter().all(|file| file.exists()));
}

#[test]
fn what_nobody_names_is_found() {
    let folder = TempDir::new().unwrap();
    let store = Store::create(folder.path(), &[free()], RetentionAges::default()).unwrap();
    archive(&store, "x", 10).unwrap();
    store.compact().unwrap();
    let id = "0123456789abcdef";
    let left = [
        format!("data/{id}/{id}-0"),
        format!("checkpoints/.{id}{id}"),
        format!("segments/{id}{id}.parquet"),
    ];
    for file in &left {
        fs::create_dir_all(folder.path().join(file).parent().unwrap()).unwrap();
        fs::write(folder.path().join(file), b"left").unwrap();
    }
    let checked = store.snapshot().unwrap().check("", None, |_, _| true).unwrap();
    assert_eq!((checked.damaged_count, &*checked.unnamed), (0, &left[..]));
}

#[test]
fn data_that_are_not_mounted_are_not_gone() {
    let folder = TempDir::new().unwrap();
    let (root, data) = (folder.path().join("store"), folder.path().join("data"));
    let store = create(&root, &data).unwrap();
    archive(&store, "large", LARGE).unwrap();
    archive(&store, "small", 10).unwrap();
    let away = folder.path().join("away");
    fs::rename(&data, &away).unwrap();
    fs::create_dir(&data).unwrap();
    let store = Store::open(&root).unwrap();
    assert_eq!(code(read(&store, "large")), Code::Unavailable);
    assert_eq!(code(archive(&store, "other", LARGE)), Code::Unavailable);
    assert!(fs::read_dir(&data).unwrap().next().is_none());
    // All else is served.
    assert_eq!(read(&store, "small").unwrap(), 10);
    archive(&store, "other", 10).unwrap();
    fs::remove_dir(&data).unwrap();
    fs::rename(&away, &data).unwrap();
    assert_eq!(read(&store, "large").unwrap(), LARGE);
    archive(&store, "more", LARGE).unwrap();
}

#[test]
fn a_place_from_before_it_said_whose_it_is_is_read() {
    let folder = TempDir::new().unwrap();
    let (root, data) = (folder.path().join("store"), folder.path().join("data"));
    archive(&create(&root, &data).unwrap(), "large", LARGE).unwrap();
    fs::remove_dir_all(data.join("tiers")).unwrap();
    assert_eq!(read(&Store::open(&root).unwrap(), "large").unwrap(), LARGE);
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let (from, to) = (entry.as_ref().unwrap().path(), to.join(entry.unwrap().file_name()));
        if from.is_symlink() {
            std::os::unix::fs::symlink(fs::read_link(from).unwrap(), to).unwrap();
        } else if from.is_dir() {
            copy(&from, &to);
        } else {
            fs::copy(from, to).unwrap();
        }
    }
}

/// As if all of it were there for long.
fn age(folder: &Path) {
    let long_ago = std::time::SystemTime::now() - Duration::from_hours(1);
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() && !path.is_symlink() {
            age(&path);
        } else if path.is_file() && path.parent().unwrap() != folder.join("tiers") {
            fs::File::open(&path).unwrap().set_modified(long_ago).unwrap();
        }
    }
}

/// One with data elsewhere, and one with a tier, in which `one` lies elsewhere; and the place of that.
fn apart(folder: &Path) -> [(std::path::PathBuf, std::path::PathBuf); 2] {
    let (with_data, data) = (folder.join("S"), folder.join("D"));
    archive(&create(&with_data, &data).unwrap(), "one", LARGE).unwrap();
    let (with_tier, tier) = (folder.join("T"), folder.join("cold"));
    let store = Store::create(&with_tier, &[free()], brief()).unwrap();
    store.add_tier("cold", tier.to_str().unwrap()).unwrap();
    archive(&store, "one", LARGE).unwrap();
    store.move_to("name=one", "cold", |_, _| true).unwrap();
    [(with_data, data), (with_tier, tier)]
}

fn put_elsewhere(store: &Store, name: &str) -> Result<()> {
    archive(store, name, LARGE)?;
    if store.tiers()?.is_empty() {
        return Ok(());
    }
    store.move_to(&format!("name={name}"), "cold", |_, _| true).map(|_| ())
}

#[test]
fn a_copy_reads_and_neither_makes_nor_removes_what_lies_elsewhere() {
    let folder = TempDir::new().unwrap();
    for (original, place) in apart(folder.path()) {
        let copied = original.with_extension("copy");
        copy(&original, &copied);
        put_elsewhere(&Store::open(&original).unwrap(), "two").unwrap();
        age(&place);
        let store = Store::open(&copied).unwrap();
        assert_eq!(read(&store, "one").unwrap(), LARGE);
        let refused = store.compact().unwrap_err();
        assert_eq!(refused.code(), Code::Conflict);
        assert!(refused.to_string().contains(original.to_str().unwrap()), "{refused}");
        assert!(refused.to_string().contains("tier --adopt"), "{refused}");
        store.wipe("name=one").unwrap();
        assert_eq!(code(store.compact()), Code::Conflict);
        assert_eq!(code(put_elsewhere(&store, "other")), Code::Conflict);
        let store = Store::open(&original).unwrap();
        assert_eq!(
            (read(&store, "one").unwrap(), read(&store, "two").unwrap()),
            (LARGE, LARGE)
        );
        store.compact().unwrap();

        // Whoever states that the copy is the store has it instead.
        let store = Store::open(&copied).unwrap();
        store.adopt().unwrap();
        store.compact().unwrap();
        put_elsewhere(&store, "other").unwrap();
        let original = Store::open(&original).unwrap();
        assert_eq!(code(original.compact()), Code::Conflict);
        assert_eq!(code(put_elsewhere(&original, "third")), Code::Conflict);
        original.adopt().unwrap();
        original.compact().unwrap();
    }
}

#[test]
#[ignore = "needs a server: tests/run.py store-s3"]
fn s3_data_are_those_of_the_copy_that_adopts_them() {
    let folder = TempDir::new().unwrap();
    let url = std::env::var("JUNCTURA_TEST_S3").expect("JUNCTURA_TEST_S3");
    let (root, copied) = (folder.path().join("S"), folder.path().join("copy"));
    let store = create(&root, Path::new(&url.replace("{}", "adopted"))).unwrap();
    archive(&store, "one", LARGE).unwrap();
    copy(&root, &copied);
    let copied = Store::open(&copied).unwrap();
    for (one, other) in [(&store, &copied), (&copied, &store), (&store, &copied)] {
        one.adopt().unwrap();
        one.compact().unwrap();
        assert_eq!(code(other.compact()), Code::Conflict);
        assert_eq!(code(archive(other, "other", LARGE)), Code::Conflict);
        assert_eq!(read(other, "one").unwrap(), LARGE);
    }
}

#[test]
fn a_store_that_moves_is_the_one_that_it_was() {
    let folder = TempDir::new().unwrap();
    for (root, _) in apart(folder.path()) {
        let moved = root.with_extension("moved");
        fs::rename(&root, &moved).unwrap();
        let store = Store::open(&moved).unwrap();
        put_elsewhere(&store, "two").unwrap();
        store.compact().unwrap();
        // By another path, too.
        let link = root.with_extension("link");
        std::os::unix::fs::symlink(&moved, &link).unwrap();
        Store::open(&link).unwrap().compact().unwrap();
        // What was copied, and is gone where it was, has to be stated: the original may be on another machine.
        let restored = root.with_extension("restored");
        copy(&moved, &restored);
        fs::remove_dir_all(&moved).unwrap();
        let store = Store::open(&restored).unwrap();
        assert_eq!(code(store.compact()), Code::Conflict);
        store.adopt().unwrap();
        store.compact().unwrap();
        put_elsewhere(&store, "three").unwrap();
    }
}

#[test]
fn a_copy_of_a_store_that_has_all_in_its_folder_is_free() {
    let folder = TempDir::new().unwrap();
    let (root, copied) = (folder.path().join("A"), folder.path().join("B"));
    let store = Store::create(&root, &[free()], brief()).unwrap();
    archive(&store, "one", LARGE).unwrap();
    copy(&root, &copied);
    let copied = Store::open(&copied).unwrap();
    archive(&copied, "two", LARGE).unwrap();
    copied.wipe("name=one").unwrap();
    copied.compact().unwrap();
    assert_eq!(read(&store, "one").unwrap(), LARGE);
}

#[test]
fn marks_from_before_they_were_of_one_catalogue_go_by_its_place() {
    let folder = TempDir::new().unwrap();
    for (original, place) in apart(folder.path()) {
        for entry in fs::read_dir(place.join("tiers")).unwrap() {
            let path = entry.unwrap().path();
            if path.is_file() {
                let text = fs::read_to_string(&path).unwrap();
                let (before, rest) = text.split_once(",\n  \"file\"").unwrap();
                fs::write(&path, format!("{before}{}", &rest[rest.find('\n').unwrap()..])).unwrap();
            }
        }
        let copied = original.with_extension("copy");
        copy(&original, &copied);
        put_elsewhere(&Store::open(&original).unwrap(), "two").unwrap();
        Store::open(&original).unwrap().compact().unwrap();
        assert_eq!(code(Store::open(&copied).unwrap().compact()), Code::Conflict);
    }
}

#[test]
fn nothing_behind_a_link_is_removed_that_no_mark_says_is_the_stores() {
    let folder = TempDir::new().unwrap();
    let root = |name: &str| folder.path().join(name);
    let link = |to: &Path, from: &Path| std::os::unix::fs::symlink(to, from).unwrap();
    let store = Store::create(&root("A"), &[free()], brief()).unwrap();
    archive(&store, "one", LARGE).unwrap();
    store.checkpoint().unwrap();
    age(&root("A"));
    let dataset = fs::read_dir(root("A/data")).unwrap().next().unwrap().unwrap().path();
    let links = [
        ("B", "data", root("A/data")),
        ("C", "data/0123456789abcdef", dataset),
        ("D", "segments", root("A/segments")),
    ];
    for (name, at, to) in links {
        let other = Store::create(&root(name), &[free()], brief()).unwrap();
        let at = root(name).join(at);
        fs::create_dir_all(at.parent().unwrap()).unwrap();
        _ = fs::remove_dir(&at);
        link(&to, &at);
        assert_eq!(code(other.compact()), Code::Conflict, "{name}");
        // Nor does it help to state it.
        assert_eq!(code(other.adopt()), Code::Conflict, "{name}");
        assert_eq!(code(other.compact()), Code::Conflict, "{name}");
        assert_eq!(read(&store, "one").unwrap(), LARGE);
        let checked = store.snapshot().unwrap().check("", None, |_, _| true).unwrap();
        assert_eq!(checked.damaged_count, 0);
    }

    // On a disk of one's own it is free, once that is stated; and not for another store that has a link there, or a copy.
    let disk = root("disk");
    for name in ["E", "F"] {
        let store = Store::create(&root(name), &[free()], brief()).unwrap();
        fs::create_dir_all(&disk).unwrap();
        link(&disk, &root(name).join("data"));
        archive(&store, name, LARGE).unwrap();
        assert_eq!(read(&store, name).unwrap(), LARGE);
        assert_eq!(code(store.compact()), Code::Conflict);
    }
    let store = Store::open(&root("E")).unwrap();
    store.adopt().unwrap();
    store.compact().unwrap();
    assert_eq!(read(&store, "E").unwrap(), LARGE);
    assert_eq!(code(Store::open(&root("F")).unwrap().adopt()), Code::AlreadyExists);
    copy(&root("E"), &root("G"));
    let copied = Store::open(&root("G")).unwrap();
    assert_eq!(
        (code(copied.compact()), read(&copied, "E").unwrap()),
        (Code::Conflict, LARGE)
    );
}

/// All files of a folder with their content; links are not followed.
fn content(folder: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() && !path.is_symlink() {
            files.extend(content(&path));
        } else if path.is_file() {
            files.push((path.clone(), fs::read(&path).unwrap()));
        }
    }
    files.sort();
    files
}

#[test]
fn nothing_is_written_by_a_link_into_another_store() {
    let folder = TempDir::new().unwrap();
    let root = |name: &str| folder.path().join(name);
    let other = Store::create(&root("A"), &[free()], brief()).unwrap();
    archive(&other, "one", LARGE).unwrap();
    archive(&other, "two", 1).unwrap();
    other.checkpoint().unwrap();
    let before = content(&root("A"));
    let dataset = data_folder(&root("A"));
    let log = "log/00000000000000000001";
    let links = [
        ("log", root("A/log")),
        ("data", root("A/data")),
        ("segments", root("A/segments")),
        ("checkpoints", root("A/checkpoints")),
        ("tiers", root("A")),
        (log, root("A").join(log)),
        (dataset.as_str(), root("A").join(&dataset)),
    ];
    for (number, (at, to)) in links.into_iter().enumerate() {
        let own = root(&format!("B{number}"));
        let store = Store::create(&own, &[free()], brief()).unwrap();
        if at != log {
            // With commits of its own, a log that is another one's is damaged.
            archive(&store, "mine", LARGE).unwrap();
        }
        let at = own.join(at);
        _ = fs::remove_dir_all(&at);
        _ = fs::remove_file(&at);
        std::os::unix::fs::symlink(&to, &at).unwrap();
        let store = Store::open(&own).unwrap();
        let mut refused = vec![archive(&store, "mine", LARGE).unwrap_err()];
        // A dataset's folder is looked at when a file is made there: commits are the store's own.
        if !at.starts_with(own.join("data/")) || at.ends_with("data") {
            refused.push(archive(&store, "mine", 1).unwrap_err());
        }
        // With checkpoints of another one, a store cannot be read.
        if store.snapshot().is_ok() && refused.len() > 1 {
            refused.push(store.wipe("").unwrap_err());
        }
        for error in refused {
            assert_eq!(error.code(), Code::Conflict, "{} {error}", at.display());
            let named = [
                at.display().to_string(),
                root("A").canonicalize().unwrap().display().to_string(),
            ];
            assert!(named.iter().all(|name| error.to_string().contains(name)), "{error}");
            assert!(error.to_string().contains("remove that link or mount"), "{error}");
        }
        assert_eq!(content(&root("A")), before, "{}", at.display());
        // What it has is read as before, and written to when the link is gone.
        fs::remove_file(&at).unwrap();
    }
    let own = Store::open(&root("B6")).unwrap();
    archive(&own, "mine", LARGE).unwrap();
    assert_eq!(read(&own, "mine").unwrap(), LARGE);
}

/// The folder of the only dataset.
fn data_folder(root: &Path) -> String {
    let dataset = fs::read_dir(root.join("data")).unwrap().next().unwrap().unwrap();
    format!("data/{}", dataset.file_name().display())
}

#[test]
fn a_link_to_what_another_store_or_a_copy_has_adopted_is_not_written_by() {
    let folder = TempDir::new().unwrap();
    let root = |name: &str| folder.path().join(name);
    let link = |name: &str| {
        fs::remove_dir_all(root(name).join("segments")).unwrap_or_default();
        std::os::unix::fs::symlink(root("disk"), root(name).join("segments")).unwrap();
        Store::open(&root(name)).unwrap()
    };
    fs::create_dir(root("disk")).unwrap();
    for name in ["A", "B"] {
        Store::create(&root(name), &[free()], brief()).unwrap();
    }
    // Before anybody has stated whose it is, anybody may.
    let (own, other) = (link("A"), link("B"));
    archive(&own, "one", 1).unwrap();
    archive(&other, "one", 1).unwrap();
    own.adopt().unwrap();
    copy(&root("A"), &root("copy"));
    archive(&Store::open(&root("A")).unwrap(), "two", 1).unwrap();
    for name in ["B", "copy"] {
        let store = Store::open(&root(name)).unwrap();
        assert_eq!(code(store.wipe("")), Code::Conflict, "{name}");
        assert_eq!(code(store.checkpoint()), Code::Conflict, "{name}");
        assert_eq!(read(&store, "one").unwrap(), 1);
    }
}

#[test]
fn numbered_files_on_one_disk_are_those_of_the_store_that_writes_there_first() {
    for (at, commits) in [
        ("log", Commits::Appended),
        ("commits", Commits::Exclusive),
        ("checkpoints", Commits::Appended),
        ("schemas", Commits::Appended),
    ] {
        let folder = TempDir::new().unwrap();
        let root = |name: &str| folder.path().join(name);
        fs::create_dir(root("disk")).unwrap();
        let make = |name: &str| {
            let layout = StoreLayout {
                commits: Some(commits),
                ..brief().into()
            };
            let store = Store::create(&root(name), &[free()], layout).unwrap();
            let folder = root(name).join(at);
            if folder.is_dir() {
                if name == "A" {
                    copy(&folder, &root("disk"));
                }
                fs::remove_dir_all(&folder).unwrap();
            }
            std::os::unix::fs::symlink(root("disk"), folder).unwrap();
            drop(store);
            Store::open(&root(name)).unwrap()
        };
        let own = make("A");
        archive(&own, "one", 1).unwrap();
        own.checkpoint().unwrap();
        let before = content(&root("disk"));
        let other = make("B");
        let refused = archive(&other, "two", 1).unwrap_err();
        assert!(
            refused.code() == Code::Conflict && refused.to_string().contains("/A"),
            "{at}: {refused}"
        );
        assert_eq!(code(other.adopt()), Code::AlreadyExists, "{at}");
        copy(&root("A"), &root("copy"));
        assert_eq!(
            code(archive(&Store::open(&root("copy")).unwrap(), "two", 1)),
            Code::Conflict,
            "{at}"
        );
        assert_eq!(content(&root("disk")), before, "{at}");

        // Each writer of the store may write, and none removes what it has not stated to be its own.
        archive(&Store::open(&root("A")).unwrap(), "two", 1).unwrap();
        assert_eq!(code(own.compact()), Code::Conflict, "{at}");
        own.adopt().unwrap();
        own.compact().unwrap();
        assert_eq!(read(&own, "two").unwrap(), 1);
    }
}

#[test]
fn a_store_within_the_folder_of_another_one_has_links_within_its_own() {
    let folder = TempDir::new().unwrap();
    let (outer, inner) = (folder.path().join("A"), folder.path().join("A/inner"));
    Store::create(&outer, &[free()], brief()).unwrap();
    let store = Store::create(&inner, &[free()], brief()).unwrap();
    fs::create_dir(inner.join("bulk")).unwrap();
    fs::remove_dir_all(inner.join("data")).unwrap_or_default();
    std::os::unix::fs::symlink("bulk", inner.join("data")).unwrap();
    archive(&store, "one", LARGE).unwrap();
    store.adopt().unwrap();
    store.compact().unwrap();
}

/// The texts of marks, by their path.
fn marks(places: &[&Path]) -> Vec<String> {
    let mark = |place: &Path| {
        let marks = fs::read_dir(place.join("tiers"))
            .unwrap()
            .map(|entry| entry.unwrap().path());
        marks
            .filter(|path| path.is_file())
            .map(|path| fs::read_to_string(path).unwrap())
            .collect::<String>()
    };
    places.iter().map(|place| mark(place)).collect()
}

#[test]
fn a_place_that_is_not_mounted_is_not_adopted_and_nothing_else_is() {
    let folder = TempDir::new().unwrap();
    let path = |name: &str| folder.path().join(name);
    let (root, data, tier, copied) = (path("S"), path("D"), path("cold"), path("copy"));
    let store = create(&root, &data).unwrap();
    store.add_tier("cold", tier.to_str().unwrap()).unwrap();
    archive(&store, "one", LARGE).unwrap();
    copy(&root, &copied);
    for (away, there) in [(&data, &tier), (&tier, &data)] {
        fs::rename(away, path("away")).unwrap();
        fs::create_dir(away).unwrap();
        let before = marks(&[there]);
        let refused = Store::open(&copied).unwrap().adopt().unwrap_err();
        assert_eq!(refused.code(), Code::Unavailable);
        assert!(refused.to_string().contains(away.to_str().unwrap()), "{refused}");
        assert!(refused.to_string().contains("is it mounted?"), "{refused}");
        assert!(fs::read_dir(away).unwrap().next().is_none());
        assert_eq!(marks(&[there]), before);
        fs::remove_dir(away).unwrap();
        fs::rename(path("away"), away).unwrap();
    }
    Store::open(&copied).unwrap().adopt().unwrap();
}

#[test]
fn a_link_that_cannot_be_adopted_keeps_all_else_from_it() {
    let folder = TempDir::new().unwrap();
    let path = |name: &str| folder.path().join(name);
    let (root, data) = (path("S"), path("D"));
    archive(&create(&root, &data).unwrap(), "one", LARGE).unwrap();
    Store::create(&path("other"), &[free()], brief()).unwrap();
    for (name, to, expected) in [
        ("into another store", path("other/log"), Code::Conflict),
        ("to nothing", path("away"), Code::Unavailable),
    ] {
        let copied = path(name);
        copy(&root, &copied);
        _ = fs::remove_dir_all(copied.join("segments"));
        std::os::unix::fs::symlink(to, copied.join("segments")).unwrap();
        let before = marks(&[&data]);
        assert_eq!(code(Store::open(&copied).unwrap().adopt()), expected, "{name}");
        assert_eq!(marks(&[&data]), before, "{name}");
    }
}

#[test]
fn a_writer_names_no_files_in_a_place_that_a_copy_has_adopted_since() {
    let folder = TempDir::new().unwrap();
    for (original, _) in apart(folder.path()) {
        let copied = original.with_extension("copy");
        copy(&original, &copied);
        let store = Store::open(&original).unwrap();
        put_elsewhere(&store, "two").unwrap();
        let mut writer = store.writer().unwrap();
        writer.archive([("name", "three")], &vec![1; LARGE]).unwrap();
        Store::open(&copied).unwrap().adopt().unwrap();
        if store.tiers().unwrap().is_empty() {
            assert_eq!(code(writer.flush()), Code::Conflict);
            // What was archived is kept for when it is the store's again.
            store.adopt().unwrap();
            writer.flush().unwrap();
        } else {
            writer.flush().unwrap();
            let moved = store.move_to("name=three", "cold", |_, _| true);
            assert_eq!(code(moved), Code::Conflict);
        }
        assert_eq!(read(&store, "three").unwrap(), LARGE);
    }
}

#[test]
fn a_file_above_a_link_makes_no_store_of_its_folder() {
    let folder = TempDir::new().unwrap();
    let (root, disk) = (folder.path().join("S"), folder.path().join("disk"));
    fs::create_dir(&disk).unwrap();
    fs::write(folder.path().join("store.json"), b"{\"items\": []}").unwrap();
    let store = Store::create(&root, &[free()], brief()).unwrap();
    _ = fs::remove_dir_all(root.join("data"));
    std::os::unix::fs::symlink(&disk, root.join("data")).unwrap();
    archive(&store, "one", LARGE).unwrap();
    store.adopt().unwrap();
    store.compact().unwrap();
}

#[test]
fn a_store_that_cannot_be_read_is_still_a_store_above_a_link() {
    for content in [&b"{"[..], b"{\"format\": \"junctura-store\", \"version\": 9}"] {
        let folder = TempDir::new().unwrap();
        let (root, other) = (folder.path().join("S"), folder.path().join("other"));
        fs::create_dir_all(other.join("data")).unwrap();
        fs::write(other.join("store.json"), content).unwrap();
        let store = Store::create(&root, &[free()], brief()).unwrap();
        _ = fs::remove_dir_all(root.join("data"));
        std::os::unix::fs::symlink(other.join("data"), root.join("data")).unwrap();
        assert_eq!(store.adopt().unwrap_err().code(), Code::Conflict);
    }
}

/// As `cp --link` does: the files are the same ones.
fn link_all(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let (from, to) = (entry.as_ref().unwrap().path(), to.join(entry.unwrap().file_name()));
        if from.is_dir() {
            link_all(&from, &to);
        } else {
            fs::hard_link(from, to).unwrap();
        }
    }
}

#[test]
fn a_copy_of_hard_links_is_not_the_store_that_moved() {
    let folder = TempDir::new().unwrap();
    for (root, place) in apart(folder.path()) {
        let (copied, moved) = (root.with_extension("copy"), root.with_extension("moved"));
        link_all(&root, &copied);
        fs::rename(&root, &moved).unwrap();
        assert_eq!(code(Store::open(&copied).unwrap().compact()), Code::Conflict);
        Store::open(&moved).unwrap().compact().unwrap();
        // Marks of before are valid as they are.
        for entry in fs::read_dir(place.join("tiers")).unwrap() {
            let path = entry.unwrap().path();
            if path.is_file() {
                let text = fs::read_to_string(&path).unwrap();
                let at = text.find('@').unwrap();
                let end = at + text[at..].find('"').unwrap();
                fs::write(&path, [&text[..at], &text[end..]].concat()).unwrap();
            }
        }
        Store::open(&moved).unwrap().compact().unwrap();
    }
}
