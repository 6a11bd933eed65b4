//! How much a store has, and what two of them do not have in common.

use junctura_model::{Code, Schema};
use junctura_store::{
    Commits, ComparedObjects, DifferenceKind, Listing, ObjectAmount, Store, StoreLayout, StoreWriter,
};

fn store(commits: Commits) -> Store {
    let layout = StoreLayout {
        commits: Some(commits),
        ..StoreLayout::default()
    };
    let schemas = ["free", "record"].map(|name| Schema::builtin(name).unwrap());
    Store::create_url("memory:", &schemas, &layout).unwrap()
}

/// `space=a,name=b`, and so on.
fn archive(writer: &mut StoreWriter, attributes: &str, payload: &[u8]) {
    let pairs = attributes.split(',').map(|pair| pair.split_once('=').unwrap());
    writer.archive(pairs, payload).unwrap();
}

fn list(store: &Store, selector: &str) -> Listing {
    store.snapshot().unwrap().list(selector).unwrap()
}

/// What differs, a line each.
fn compared(first: &Listing, second: &Listing, left_out: &[&str]) -> (ComparedObjects, Vec<String>) {
    let mut lines = Vec::new();
    let compared = first.compare(second, left_out, |difference| {
        let what = match &difference.what {
            DifferenceKind::OnlyFirst(_) => "<".to_owned(),
            DifferenceKind::OnlySecond(_) => ">".to_owned(),
            DifferenceKind::Attributes(all) => format!("{all:?}"),
            DifferenceKind::Bytes(first, second) => format!("{} {}", first.bytes(), second.bytes()),
        };
        lines.push(format!("{} {what}", difference.key.rsplit_once('{').unwrap().1));
        Ok(())
    });
    (compared.unwrap(), lines)
}

#[test]
fn a_store_is_the_same_as_itself_and_as_its_copy() {
    let (one, other) = (store(Commits::Appended), store(Commits::Exclusive));
    assert!(compared(&list(&one, ""), &list(&other, ""), &[]).0.is_same());
    for names in [["a", "b"], ["b", "a"]] {
        // In another order, in other commits, and with other versions before.
        let store = if names[0] == "a" { &one } else { &other };
        let mut writer = store.writer().unwrap();
        archive(&mut writer, "name=b", names[0].as_bytes());
        for name in names {
            archive(&mut writer, &format!("name={name},colour=red"), name.as_bytes());
            writer.flush().unwrap();
        }
    }
    let (found, lines) = compared(&list(&one, ""), &list(&other, ""), &[]);
    assert_eq!((found.both, lines.len()), (2, 0));
    assert!(found.is_same() && compared(&list(&one, ""), &list(&one, ""), &[]).0.is_same());
}

#[test]
fn each_difference_is_told() {
    let (one, other) = (store(Commits::Appended), store(Commits::Appended));
    let (mut first, mut second) = (one.writer().unwrap(), other.writer().unwrap());
    archive(&mut first, "name=a,colour=red,size=1", b"same");
    archive(&mut second, "name=a,colour=blue,shade=dark,size=1", b"same");
    archive(&mut first, "name=b", b"bytes");
    archive(&mut second, "name=b", b"other bytes");
    archive(&mut first, "name=c", b"");
    archive(&mut second, "name=d", b"");
    // The same key of another schema is another key.
    let record = [("collection", "default"), ("producer", "p"), ("sequence", "1")];
    second.archive_in("record", record, b"").unwrap();
    first.flush().unwrap();
    second.flush().unwrap();
    let (found, lines) = compared(&list(&one, ""), &list(&other, ""), &[]);
    let expected = ComparedObjects {
        both: 2,
        only_first: 1,
        only_second: 2,
        attributes: 1,
        bytes: 1,
    };
    assert_eq!(found, expected);
    let expected = [
        r#"name=a} [("colour", Some("red"), Some("blue")), ("shade", None, Some("dark"))]"#,
        "name=b} 5 11",
        "name=c} <",
        "name=d} >",
        "sequence=1} >",
    ];
    assert_eq!(lines, expected);
    let (found, lines) = compared(&list(&one, "name=a"), &list(&other, "name=a"), &["colour"]);
    assert_eq!((found.attributes, lines.len()), (1, 1), "{lines:?}");
}

#[test]
fn what_tells_two_experiments_apart_can_be_left_out() {
    let store = store(Commits::Appended);
    let mut writer = store.writer().unwrap();
    for space in ["one", "two"] {
        for name in ["a", "b"] {
            archive(&mut writer, &format!("space={space},name={name}"), name.as_bytes());
        }
    }
    writer.flush().unwrap();
    let [one, two] = ["space=one", "space=two"].map(|selector| list(&store, selector));
    assert_eq!(compared(&one, &two, &[]).0.only_first, 2);
    let (found, _) = compared(&one, &two, &["space"]);
    assert_eq!((found.both, found.is_same()), (2, true));
    let refused = |listing: &Listing, left_out: &[&str]| {
        let error = one.compare(listing, left_out, |_| Ok(())).unwrap_err();
        assert_eq!(error.code(), Code::InvalidArgument, "{error}");
        error.to_string()
    };
    assert!(refused(&list(&store, ""), &["space"]).contains("several objects have this key without space"));
    assert!(refused(&two, &["nothing"]).contains("nothing"));
}

#[test]
fn stats_count_objects_and_files() {
    for commits in [Commits::Appended, Commits::Exclusive] {
        let store = store(commits);
        let stats = || store.snapshot().unwrap().stats().unwrap();
        assert_eq!((stats().newest(), stats().masked(), stats().data), Default::default());
        let mut writer = store.writer().unwrap();
        for round in 0..3 {
            archive(&mut writer, "name=a", b"small");
            archive(&mut writer, &format!("space=s{round},name=b"), &vec![0; 70_000]);
            writer.flush().unwrap();
        }
        let amount = |count, bytes| ObjectAmount { count, bytes };
        let before = stats();
        assert_eq!((before.newest(), before.masked()), (amount(4, 210_005), amount(2, 10)));
        assert_eq!((before.schemas[0].datasets, before.schemas[1].datasets), (4, 0));
        assert_eq!((before.data, before.used_bytes), (amount(4, 210_015), 210_015));
        let files = if commits == Commits::Appended { 1 } else { 3 };
        assert!(before.commits.count == files && before.commits.bytes > 200);
        assert_eq!(
            (before.commit, before.checkpoint, before.segments),
            (3, 0, amount(0, 0))
        );
        store.purge("").unwrap();
        store.wipe("space=s0").unwrap();
        store.checkpoint().unwrap();
        let after = stats();
        assert_eq!((after.newest(), after.masked()), (amount(3, 140_005), amount(0, 0)));
        assert_eq!((after.data, after.used_bytes), (amount(4, 210_015), 140_005));
        assert_eq!((after.checkpoint, after.segments.count), (5, 1));
        // Somebody may still read it.
        assert_eq!(after.unneeded, amount(0, 0));
    }
}
