//! A retrieval that waits: it is answered when the last of what was asked for is there.

use std::thread;
use std::time::Duration;

use junctura_model::{Code, Error, Schema};
use junctura_store::{Commits, Store, StoreFollower, StoreLayout};

fn archive(store: &Store, name: &str) {
    let mut writer = store.writer().unwrap();
    writer.archive([("name", name)], name.as_bytes()).unwrap();
    writer.flush().unwrap();
}

fn waits_until_all_are_there(url: &str, commits: Commits) {
    let layout = StoreLayout {
        commits: Some(commits),
        ..StoreLayout::default()
    };
    let store = Store::create_url(url, &[Schema::builtin("free").unwrap()], &layout).unwrap();
    archive(&store, "a");
    thread::scope(|scope| {
        let reader = Store::open_url(url).unwrap();
        let waits = scope.spawn(move || {
            let found = reader.retrieve_within("name=a/b/c", None, || Ok(())).unwrap();
            found.complete("name=a/b/c").unwrap().len()
        });
        archive(&store, "c");
        archive(&store, "other");
        archive(&store, "b");
        assert_eq!(waits.join().unwrap(), 3);
    });
}

#[test]
fn in_every_place_and_order() {
    let folder = tempfile::tempdir().unwrap();
    for (name, commits) in [("appended", Commits::Appended), ("exclusive", Commits::Exclusive)] {
        waits_until_all_are_there(&folder.path().join(name).display().to_string(), commits);
        waits_until_all_are_there(&format!("memory:waiting-{name}"), commits);
    }
}

#[test]
fn when_the_time_is_over_what_is_missing_is_named() {
    let store = Store::create_url("memory:", &[Schema::builtin("free").unwrap()], &StoreLayout::default()).unwrap();
    archive(&store, "a");
    for time in [Duration::ZERO, Duration::from_millis(5)] {
        let found = store.retrieve_within("name=a/b", Some(time), || Ok(())).unwrap();
        assert_eq!(
            (found.listing.len(), &*found.missing),
            (1, &["{name=b}".to_owned()][..])
        );
        let error = found.complete_in_time("name=a/b").unwrap_err();
        assert_eq!(
            (error.code(), error.cause()),
            (
                Code::Timeout,
                "missing: {name=b}; a partial retrieval (`--partial`, or `partial=True` in Python) returns the others"
            )
        );
    }
    // What is complete is given without a wait.
    let found = store.retrieve_within("name=a", Some(Duration::ZERO), || Ok(()));
    assert!(found.unwrap().is_complete());
}

#[test]
fn who_is_told_to_stop_stops() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store").display().to_string();
    let store = Store::create_url(&path, &[Schema::builtin("free").unwrap()], &StoreLayout::default()).unwrap();
    let mut looks = 0;
    let stopped = store.retrieve_within("name=a", None, || {
        looks += 1;
        archive(&store, "b"); // it wakes at once
        match looks {
            3 => Err(Error::new(Code::Interrupted, "test", "enough")),
            _ => Ok(()),
        }
    });
    assert_eq!(stopped.unwrap_err().code(), Code::Interrupted);
    let refused = store.retrieve_within("name=", None, || Ok(()));
    assert_eq!(refused.unwrap_err().code(), Code::InvalidSelector);
}

/// What a follow gives without waiting: names and commits.
fn given(follow: &mut StoreFollower) -> Vec<(String, u64)> {
    let mut all = Vec::new();
    while let Some(listing) = follow.next_within(Some(Duration::ZERO), || Ok(())).unwrap() {
        all.extend(listing.iter().map(|object| (object.key(), object.commit())));
    }
    all
}

fn expected(names: &[(&str, u64)]) -> Vec<(String, u64)> {
    let key = |name: &str| format!("{{space=default}}{{}}{{name={name}}}");
    names.iter().map(|(name, commit)| (key(name), *commit)).collect()
}

#[test]
fn a_follow_gives_each_version_once() {
    let store = Store::create_url("memory:", &[Schema::builtin("free").unwrap()], &StoreLayout::default()).unwrap();
    for name in ["a", "b", "a"] {
        archive(&store, name);
    }
    let (mut all, mut some, mut since) = (
        store.follow("", None),
        store.follow("name=b", None),
        store.follow("", Some(1)),
    );
    assert_eq!(given(&mut all), expected(&[("b", 2), ("a", 3)]));
    assert_eq!(given(&mut some), expected(&[("b", 2)]));
    assert_eq!(given(&mut since), expected(&[("b", 2), ("a", 3)]));
    assert!(given(&mut all).is_empty() && all.commit() == 3);
    // What is in a file of the catalogue is looked at by commit, too.
    store.checkpoint().unwrap();
    for name in ["b", "b", "a"] {
        archive(&store, name);
    }
    let new = [("b", 4), ("b", 5), ("a", 6)];
    assert_eq!(given(&mut all), expected(&new));
    assert_eq!(given(&mut some), expected(&new[..2]));
    assert_eq!(given(&mut since), expected(&new));
    store.checkpoint().unwrap();
    let opened = store.snapshot().unwrap();
    assert_eq!(opened.list_after("", 5).unwrap().len(), 1);
    assert_eq!(opened.list_after("name=b", 0).unwrap().len(), 3);
    assert!(opened.list_after("", 6).unwrap().is_empty());
    let refused = store.follow("name=", None).next_within(None, || Ok(()));
    assert_eq!(refused.unwrap_err().code(), Code::InvalidSelector);
}

#[test]
fn a_follow_waits_for_what_others_commit() {
    let folder = tempfile::tempdir().unwrap();
    for (name, commits) in [("appended", Commits::Appended), ("exclusive", Commits::Exclusive)] {
        let path = folder.path().join(name).display().to_string();
        let layout = StoreLayout {
            commits: Some(commits),
            ..StoreLayout::default()
        };
        let store = Store::create_url(&path, &[Schema::builtin("free").unwrap()], &layout).unwrap();
        thread::scope(|scope| {
            let reader = Store::open_url(&path).unwrap();
            let follows = scope.spawn(move || {
                let (mut follow, mut found) = (reader.follow("name=a/b", Some(0)), Vec::new());
                while found.len() < 20 {
                    let listing = follow.next_within(None, || Ok(())).unwrap().unwrap();
                    found.extend(listing.iter().map(|object| object.commit()));
                }
                found
            });
            for number in 0..30 {
                archive(&store, ["a", "b", "other"][number % 3]);
            }
            let found = follows.join().unwrap();
            assert!(found.is_sorted_by(|one, other| one < other), "{found:?}");
        });
    }
}
