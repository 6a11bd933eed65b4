//! Schemas that change while objects lie in the store (lesson 29): nothing is moved, and all is found.

use std::sync::Arc;

use junctura_model::{Code, Schema};
use junctura_store::{Commits, Store, StoreLayout};
use tempfile::TempDir;

const RUNS: &str = "
name: runs
key: {dataset: [project], collocation: [], element: [run]}
attributes:
  project: {type: string}
  run: {type: integer}
  size: {type: integer}
";

fn schema(text: &str) -> Arc<Schema> {
    Arc::new(Schema::parse_yaml(text).unwrap())
}

fn with_owner() -> String {
    format!("{RUNS}  owner: {{type: string, values: [ada, emmy]}}\n")
}

fn world(commits: Commits) -> (TempDir, Store) {
    let folder = tempfile::tempdir().unwrap();
    let layout = StoreLayout {
        commits: Some(commits),
        ..StoreLayout::default()
    };
    let store = Store::create(folder.path(), &[schema(RUNS)], layout).unwrap();
    (folder, store)
}

/// One within the commit, or one in a file.
fn archive(store: &Store, run: u32, owner: Option<&str>, bytes: usize) {
    let mut writer = store.writer().unwrap();
    let run = run.to_string();
    let key = [("project", "p"), ("run", &*run), ("size", "1")];
    let attributes = key.into_iter().chain(owner.map(|owner| ("owner", owner)));
    writer.archive(attributes, &vec![7; bytes]).unwrap();
    writer.flush().unwrap();
}

fn runs(store: &Store, selector: &str) -> Vec<String> {
    let listing = store.snapshot().unwrap().list(selector).unwrap();
    let run = |object: junctura_store::StoredObject<'_>| {
        assert!(object.read().unwrap().iter().all(|&byte| byte == 7));
        object.value(object.schema().find("run").unwrap()).unwrap().to_owned()
    };
    let mut runs: Vec<String> = listing.iter().map(run).collect();
    runs.sort();
    runs
}

/// All files below a folder that are neither the log nor what was added.
fn files(folder: &std::path::Path) -> Vec<(String, Vec<u8>)> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(files(&path));
        } else {
            found.push((path.display().to_string(), std::fs::read(&path).unwrap()));
        }
    }
    found.sort();
    found
}

#[test]
fn lesson_29_a_schema_gains_an_attribute_and_nothing_is_moved() {
    for commits in [Commits::Appended, Commits::Exclusive] {
        let (folder, before) = world(commits);
        archive(&before, 1, None, 10);
        archive(&before, 2, None, 100_000);
        before.checkpoint().unwrap();
        archive(&before, 3, None, 10);
        let there = files(folder.path());

        let store = before.set_schema(&schema(&with_owner())).unwrap();
        let now = files(folder.path());
        assert!(there.iter().all(|file| now.contains(file)), "{commits:?}");
        assert_eq!(now.len(), there.len() + 1);
        archive(&store, 4, Some("ada"), 10);
        archive(&store, 1, Some("emmy"), 100_000);
        for store in [&store, &Store::open(folder.path()).unwrap()] {
            assert_eq!(runs(store, ""), ["1", "2", "3", "4"]);
            assert_eq!(runs(store, "owner=ada/emmy"), ["1", "4"]);
            assert_eq!(runs(store, "not exists(owner)"), ["2", "3"]);
        }
        // Their rows, in one file with those of before.
        Store::open(folder.path()).unwrap().checkpoint().unwrap();
        let store = Store::open(folder.path()).unwrap();
        assert_eq!(runs(&store, "owner=emmy"), ["1"]);
        assert_eq!(runs(&store, "size=1"), ["1", "2", "3", "4"]);
        assert_eq!(
            store
                .snapshot()
                .unwrap()
                .check("", None, |_, _| true)
                .unwrap()
                .damaged_count,
            0
        );
    }
}

#[test]
fn who_has_it_open_writes_on_and_is_told_when_it_cannot_read() {
    let (folder, before) = world(Commits::Appended);
    archive(&before, 1, None, 10);
    let never_looked = Store::open(folder.path()).unwrap();
    let store = before.set_schema(&schema(&with_owner())).unwrap();
    archive(&before, 2, None, 10);
    archive(&store, 3, None, 10);
    assert_eq!(runs(&before, ""), ["1", "2", "3"], "nothing of it is new to them");
    let snapshot = before.snapshot().unwrap();
    archive(&store, 4, Some("ada"), 10);
    let told = |store: &Store| assert_eq!(store.snapshot().unwrap_err().code(), Code::SchemaMismatch);
    told(&before);
    told(&never_looked);
    assert_eq!(before.checkpoint().unwrap_err().code(), Code::SchemaMismatch);
    assert_eq!(snapshot.list("").unwrap().len(), 3, "what was taken stays");
    archive(&before, 5, None, 10);
    store.checkpoint().unwrap();
    told(&before);
    told(&never_looked);
    assert_eq!(runs(&store, ""), ["1", "2", "3", "4", "5"]);
    assert_eq!(
        runs(&before.set_schema(&schema(&with_owner())).unwrap(), "owner=ada"),
        ["4"]
    );
}

#[test]
fn a_schema_comes_later() {
    let (folder, before) = world(Commits::Exclusive);
    archive(&before, 1, None, 10);
    let store = before.set_schema(&Schema::builtin("free").unwrap()).unwrap();
    let mut writer = store.writer().unwrap();
    let at = store.schemas().iter().position(|known| known.name() == "free");
    assert_eq!(at, Some(1));
    writer.archive_in("free", [("name", "a")], b"").unwrap();
    writer.flush().unwrap();
    assert_eq!(before.snapshot().unwrap_err().code(), Code::SchemaMismatch);
    for store in [&store, &Store::open(folder.path()).unwrap()] {
        assert_eq!(store.snapshot().unwrap().list("name=a").unwrap().len(), 1);
    }
    // Nothing of it is left, and it is counted all the same.
    store.wipe("name=a").unwrap();
    store.checkpoint().unwrap();
    assert_eq!(before.snapshot().unwrap_err().code(), Code::SchemaMismatch);
}

#[test]
fn what_does_not_fit_is_refused() {
    let (folder, store) = world(Commits::Appended);
    let refused = |text: &str, why: &str| {
        let error = store.set_schema(&schema(text)).unwrap_err();
        assert_eq!(error.code(), Code::SchemaMismatch, "{error}");
        assert!(error.to_string().contains(why), "{error}");
    };
    refused(&RUNS.replace("element: [run]", "element: [\"run?\"]"), "key");
    refused(
        &RUNS.replace("  size: {type: integer}\n", ""),
        "size is not where it was",
    );
    refused(
        &RUNS.replace("size: {type: integer}", "size: {type: string}"),
        "has been of type integer",
    );
    refused(
        &RUNS.replace("  size:", "  owner: {type: string}\n  size:"),
        "size is not where it was",
    );
    refused(
        &format!("{RUNS}  _file: {{type: string}}\n"),
        "column of the store's own",
    );
    assert!(!folder.path().join("schemas").exists());

    let open = RUNS.replace("name: runs", "name: open\nopen: true");
    let store = store.set_schema(&schema(&open)).unwrap();
    let declared = schema(&format!("{open}  colour: {{type: string}}\n"));
    assert_eq!(store.set_schema(&declared).unwrap_err().code(), Code::SchemaMismatch);
    // The same again changes nothing.
    store.set_schema(&schema(&open)).unwrap();
    assert_eq!(std::fs::read_dir(folder.path().join("schemas")).unwrap().count(), 1);
}

#[test]
fn definitions_that_objects_follow_are_kept_unless_they_are_redefined() {
    let (_folder, store) = world(Commits::Appended);
    let with = |size: &str| schema(&RUNS.replace("size: {type: integer}", &format!("size: {{type: integer{size}}}")));
    // Without an object nothing is contradicted.
    let store = store.set_schema(&with(", unit: K, range: [0, 99]")).unwrap();
    let store = store.set_schema(&with(", unit: m, range: [0, 9]")).unwrap();
    archive(&store, 1, None, 10);
    let refused = |size: &str, why: &str| {
        let error = store.set_schema(&with(size)).unwrap_err();
        assert_eq!(error.code(), Code::SchemaMismatch, "{error}");
        assert!(error.cause().contains(why), "{error}");
        assert_eq!(error.subject(), "schema runs");
    };
    refused(", unit: km, range: [0, 9]", "the unit of size was m, and would be km");
    refused(", range: [0, 9]", "the unit of size was m, and would be none");
    refused(
        ", unit: m, range: [1, 9]",
        "the range of size was 0 to 9, and would be 1 to 9",
    );
    refused(
        ", unit: m, range: [0, 9], values: [1]",
        "the set of values of size was unlimited, and would be 1",
    );
    refused(", unit: km", "`junctura schema set FILE --store URL --redefine`");
    // More is allowed: all objects still fit.
    let store = store.set_schema(&with(", unit: m, range: [0, 10]")).unwrap();
    let store = store.set_schema(&with(", unit: m")).unwrap();
    assert!(store.set_schema(&with(", unit: m, range: [0, 9]")).is_err());
    let store = store.redefine_schema(&with(", unit: km, range: [5, 9]")).unwrap();
    assert_eq!(runs(&store, ""), ["1"]);
    store.wipe("").unwrap();
    store.set_schema(&with(", unit: m")).unwrap();
}

#[test]
fn changes_at_once_come_one_after_the_other() {
    let (folder, store) = world(Commits::Appended);
    std::thread::scope(|scope| {
        for number in 0..8 {
            let store = &store;
            let text = RUNS.replace("name: runs", &format!("name: runs-{number}"));
            scope.spawn(move || store.set_schema(&schema(&text)).unwrap());
        }
    });
    assert_eq!(Store::open(folder.path()).unwrap().schemas().len(), 9);
}
