//! A pool with a store behind it: what has left the pool is found all the same, once, and in its place.

mod tasks;

use std::os::fd::AsFd;
use std::thread;
use std::time::Duration;

use junctura::{
    Code, Consumers, Cursor, DemandOptions, DemandSource, Entry, Follow, FollowOptions, Given, Item, ListOptions,
    Object, OfferOptions, Pool, RequireOptions, Retention, Schema, Target, Transport, Version, WithdrawOptions,
};
use junctura_store::{Store, StoreLayout};
use junctura_transport::PollInterest;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use tempfile::TempDir;

/// Newer versions supersede older ones.
const SCHEMA: &str = "
name: named
same_key: supersede
key: {dataset: [space], collocation: [], element: [name]}
attributes:
  space: {type: string, default: default}
  name: {type: string}
  unit: {type: string}
";
const TIMEOUT: Option<Duration> = Some(Duration::from_secs(20));

/// A pool that a thread of this process serves, and a store that it knows nothing of.
struct Junction {
    served: Pool,
    store: Store,
    path: String,
    _folder: TempDir,
}

impl Junction {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("store").display().to_string();
        let served = Pool::builder().schema_yaml(SCHEMA).open().unwrap();
        let store = Store::create_url(&path, &served.schemas().unwrap(), &StoreLayout::default()).unwrap();
        Self {
            served,
            store,
            path,
            _folder: folder,
        }
    }

    /// Another client, which has the store behind it.
    fn reader(&self) -> Pool {
        Pool::builder()
            .url(self.served.url())
            .store(self.path.as_str())
            .open()
            .unwrap()
    }

    /// Starts another life of the server, over the same store.
    fn begin_anew(&mut self) {
        self.served = Pool::builder().schema_yaml(SCHEMA).open().unwrap();
    }

    fn offer(&self, names: &str) {
        for name in names.chars() {
            let name = name.to_string();
            self.served
                .offer([("name", name.as_str())], payload_of(&name).as_bytes())
                .unwrap();
        }
    }

    fn archive(&self, names: &str) {
        for name in names.chars() {
            let object = self
                .served
                .demand(Target::key([("name", name.to_string().as_str())]), TIMEOUT);
            archive(&self.store, &[object.unwrap()]);
        }
    }

    fn withdraw(&self, names: &str) {
        for name in names.chars() {
            self.served
                .withdraw(
                    Target::key([("name", name.to_string().as_str())]),
                    WithdrawOptions::default(),
                )
                .unwrap();
        }
    }

    /// Offers objects that are in the store afterwards, and no more in the pool.
    fn offer_archive_withdraw(&self, names: &str) {
        self.offer(names);
        self.archive(names);
        self.withdraw(names);
    }
}

fn payload_of(name: &str) -> String {
    format!("payload of {name}")
}

fn archive(store: &Store, objects: &[Object]) {
    let mut writer = store.writer().unwrap();
    for object in objects {
        let attributes = object.attributes().map(|(name, value)| (name, Given::Text(value)));
        let schema = object.schema().name();
        writer
            .archive_version(schema, attributes, object.payload(), object.version())
            .unwrap();
    }
    writer.flush().unwrap();
}

/// What a follow gives until it has ended: names, `|` where it is live, `?` where something is missing.
fn all_of(follow: &mut Follow) -> String {
    let mut said = String::new();
    while let Some(item) = follow.next_item().unwrap() {
        tell(&item, &mut said);
    }
    said
}

fn tell(item: &Item, said: &mut String) {
    match item {
        Item::Object(object) => {
            let name = object.get("name").unwrap();
            assert_eq!(object.payload(), payload_of(name).as_bytes());
            said.push_str(name);
        }
        Item::Live => said.push('|'),
        Item::Gap(_) => said.push('?'),
    }
}

fn some_of(follow: &mut Follow, count: usize) -> String {
    let mut said = String::new();
    for _ in 0..count {
        tell(
            &follow.next_within(Duration::from_secs(20)).unwrap().unwrap(),
            &mut said,
        );
    }
    said
}

fn until_live(cursor: Option<String>) -> FollowOptions {
    FollowOptions {
        until_live: true,
        cursor,
        ..FollowOptions::default()
    }
}

fn cursor_of(follow: &Follow) -> Option<String> {
    follow.cursor().map(|cursor: Cursor| cursor.to_string())
}

#[test]
fn a_demand_finds_what_has_left_the_pool() {
    let junction = Junction::new();
    junction.offer_archive_withdraw("a");
    let reader = junction.reader();
    for target in [
        Target::key([("name", "a")]),
        Target::selector("name=a"),
        Target::key_text("{space=default}{}{name=a}"),
    ] {
        for timeout in [Some(Duration::ZERO), TIMEOUT, None] {
            let object = reader.demand(target.clone(), timeout).unwrap();
            assert_eq!(object.payload(), b"payload of a");
            assert_eq!((object.transport(), object.producer()), (Transport::Store, 0));
            assert_eq!(object.version().incarnation, junction.served.incarnation().unwrap());
            assert!(object.cursor().is_none() && !object.in_snapshot());
            object.release().unwrap();
        }
    }
    // Without a store it is lost.
    let error = junction
        .served
        .demand(Target::key([("name", "a")]), TIMEOUT)
        .unwrap_err();
    assert_eq!(error.code(), Code::Gone);
}

#[test]
fn a_demand_takes_from_the_pool_what_the_pool_has() {
    let junction = Junction::new();
    junction.offer("a");
    junction.archive("a");
    let object = junction.reader().demand("name=a", TIMEOUT).unwrap();
    assert_eq!(object.transport(), Transport::Inline);
}

#[test]
fn a_demand_waits_for_what_neither_has() {
    let junction = Junction::new();
    let reader = junction.reader();
    let zero = Some(Duration::ZERO);
    let error = reader.demand(Target::key([("name", "a")]), zero).unwrap_err();
    assert_eq!(error.code(), Code::NotFound);
    let error = reader.demand("name=a", Some(Duration::from_millis(1))).unwrap_err();
    assert_eq!(error.code(), Code::Timeout);
    thread::scope(|scope| {
        let waits = scope.spawn(|| reader.demand("name=a", TIMEOUT).unwrap().payload().to_vec());
        junction.offer("a");
        assert_eq!(waits.join().unwrap(), b"payload of a");
    });
}

#[test]
fn of_several_in_the_store_a_demand_gets_the_newest() {
    let junction = Junction::new();
    junction.offer_archive_withdraw("ab");
    let mut writer = junction.store.writer().unwrap();
    writer.archive([("name", "a")], b"by hand").unwrap();
    writer.flush().unwrap();
    let object = junction.reader().demand("", TIMEOUT).unwrap();
    assert_eq!((object.get("name"), object.payload()), (Some("a"), &b"by hand"[..]));
    let nobodys = Version {
        incarnation: 0,
        sequence: 0,
    };
    assert_eq!(object.version(), nobodys);
}

#[test]
fn a_list_has_both_in_one_order_and_each_key_once() {
    let junction = Junction::new();
    junction.offer_archive_withdraw("aceg");
    junction.offer("bdf");
    junction.archive("df");
    junction.offer("g"); // its second version
    let reader = junction.reader();
    let listed: Vec<(String, bool)> = reader
        .list("")
        .unwrap()
        .iter()
        .map(|entry| (entry.get("name").unwrap().to_owned(), entry.is_archived()))
        .collect();
    let expected = [
        ("a", true),
        ("b", false),
        ("c", true),
        ("d", false),
        ("e", true),
        ("f", false),
        ("g", false),
    ];
    assert_eq!(listed, expected.map(|(name, archived)| (name.to_owned(), archived)));
    assert_eq!(reader.list("name=a/b").unwrap().len(), 2);
    assert!(reader.list("name=nobody").unwrap().is_empty());
    let bytes: Vec<u64> = reader
        .list("name=c")
        .unwrap()
        .iter()
        .map(junctura::Entry::bytes)
        .collect();
    assert_eq!(bytes, [payload_of("c").len() as u64]);

    let refused = ListOptions {
        order_by: Some("unit"),
        ..ListOptions::default()
    };
    // Versions of one object may differ in it.
    assert_eq!(reader.list_with("", refused).unwrap_err().code(), Code::Unsupported);
}

#[test]
fn a_long_list_is_merged_page_by_page() {
    let junction = Junction::new();
    let mut writer = junction.store.writer().unwrap();
    for number in 0..3000 {
        let name = format!("{number:05}");
        if number % 3 == 0 {
            writer.archive([("name", name.as_str())], b"").unwrap();
        } else {
            junction.served.offer([("name", name.as_str())], b"").unwrap();
        }
    }
    writer.flush().unwrap();
    let names: Vec<String> = junction
        .reader()
        .list("")
        .unwrap()
        .iter()
        .map(|entry| entry.get("name").unwrap().to_owned())
        .collect();
    assert_eq!(
        names,
        (0..3000).map(|number| format!("{number:05}")).collect::<Vec<_>>()
    );
}

#[test]
fn a_follow_begins_in_the_store_and_goes_on_live() {
    let junction = Junction::new();
    junction.offer_archive_withdraw("ace");
    junction.offer("bd");
    junction.archive("d");
    let reader = junction.reader();
    let mut follow = reader.follow("").unwrap();
    junction.offer("f");
    assert_eq!(some_of(&mut follow, 7), "abcde|f");
    junction.offer_archive_withdraw("g");
    junction.offer("h");
    assert_eq!(some_of(&mut follow, 2), "gh");
    assert!(follow.try_next().unwrap().is_none());
    // The store alone, the pool alone, and neither.
    let only = |selector: &str| all_of(&mut reader.follow_with(selector, until_live(None)).unwrap());
    assert_eq!(
        (only("name=a/c"), only("name=b"), only("name=x")),
        ("ac|".into(), "b|".into(), "|".into())
    );
}

#[test]
fn what_goes_before_it_was_given_comes_from_the_store_and_what_is_nowhere_is_a_gap() {
    let junction = Junction::new();
    let options = FollowOptions {
        window: Some(1),
        ..FollowOptions::default()
    };
    junction.offer("a");
    let reader = junction.reader();
    let mut follow = reader.follow_with("", options).unwrap();
    let held = follow.next_item().unwrap().unwrap(); // the window is full
    junction.offer_archive_withdraw("bc");
    junction.offer("d");
    junction.withdraw("d");
    junction.offer("e");
    drop(held);
    assert_eq!(some_of(&mut follow, 5), "|bc?e");
}

#[test]
fn among_what_was_there_a_gap_is_filled_in_its_place() {
    let junction = Junction::new();
    let options = FollowOptions {
        window: Some(1),
        ..FollowOptions::default()
    };
    junction.offer("abcd");
    let reader = junction.reader();
    let mut follow = reader.follow_with("", options).unwrap();
    let held = follow.next_item().unwrap().unwrap();
    junction.archive("bc");
    junction.withdraw("bc");
    drop(held);
    assert_eq!(some_of(&mut follow, 4), "bcd|");
}

#[test]
fn a_cursor_goes_on_after_what_has_left_the_pool_since() {
    let junction = Junction::new();
    let reader = junction.reader();
    let mut follow = reader.follow("").unwrap();
    junction.offer("za");
    assert_eq!(some_of(&mut follow, 3), "|za");
    let cursor = cursor_of(&follow);
    drop(follow);
    junction.offer_archive_withdraw("yb");
    junction.offer("x");
    junction.offer_archive_withdraw("c");
    junction.offer("d");
    // In the order in which they became visible.
    let mut resumed = reader.follow_with("", until_live(cursor.clone())).unwrap();
    assert_eq!(all_of(&mut resumed), "|ybxcd");
    // Not only until it is live: the last of them from the store.
    junction.archive("d");
    junction.withdraw("d");
    let options = FollowOptions {
        cursor,
        ..FollowOptions::default()
    };
    let mut resumed = reader.follow_with("", options).unwrap();
    assert_eq!(some_of(&mut resumed, 6), "|ybxcd");
    junction.offer("e");
    assert_eq!(some_of(&mut resumed, 1), "e");
}

/// The pool says nothing more to who holds all that it may, and is not quiet for that.
#[test]
fn what_the_pool_keeps_back_is_not_overtaken_by_the_store() {
    let junction = Junction::new();
    let reader = junction.reader();
    let mut follow = reader.follow("").unwrap();
    junction.offer("a");
    assert_eq!(some_of(&mut follow, 2), "|a");
    let options = FollowOptions {
        cursor: cursor_of(&follow),
        window: Some(1),
        ..FollowOptions::default()
    };
    drop(follow);
    junction.offer("bc");
    junction.offer_archive_withdraw("d");
    let mut resumed = reader.follow_with("", options).unwrap();
    assert_eq!(some_of(&mut resumed, 1), "|");
    let held = resumed.next_item().unwrap(); // b, and the window is full
    assert!(resumed.try_next().unwrap().is_none());
    thread::scope(|scope| {
        scope.spawn(|| drop(held));
        assert_eq!(some_of(&mut resumed, 1), "c");
    });
    // Nothing comes but what the store has.
    let held = junction.served.demand("name=c", TIMEOUT).unwrap();
    assert_eq!(some_of(&mut resumed, 1), "d");
    drop(held);
}

/// A reader that waits with all in hand that it may hold goes on in the store as soon as it has released some.
#[test]
fn a_release_lets_the_store_go_on() {
    let junction = Junction::new();
    let reader = junction.reader();
    let mut follow = reader.follow("").unwrap();
    junction.offer("a");
    assert_eq!(some_of(&mut follow, 2), "|a");
    let options = FollowOptions {
        cursor: cursor_of(&follow),
        window: Some(1),
        ..FollowOptions::default()
    };
    drop(follow);
    junction.offer("b");
    junction.offer_archive_withdraw("cd");
    let mut resumed = reader.follow_with("", options).unwrap();
    assert_eq!(some_of(&mut resumed, 1), "|");
    let held = resumed.next_item().unwrap();
    assert!(resumed.try_next().unwrap().is_none());
    thread::scope(|scope| {
        scope.spawn(|| drop(held));
        assert_eq!(some_of(&mut resumed, 2), "cd");
    });
}

#[test]
fn a_cursor_among_what_was_there_goes_on_there() {
    let junction = Junction::new();
    junction.offer_archive_withdraw("ace");
    junction.offer("bd");
    let reader = junction.reader();
    for already in 0..5 {
        let mut follow = reader.follow("").unwrap();
        let first = some_of(&mut follow, already);
        let cursor = cursor_of(&follow);
        drop(follow);
        let rest = all_of(&mut reader.follow_with("", until_live(cursor)).unwrap());
        assert_eq!(first + &rest, "abcde|");
    }
}

#[test]
fn a_cursor_of_an_earlier_server_goes_on_in_the_store() {
    let mut junction = Junction::new();
    junction.offer("ab");
    junction.archive("ab");
    let cursors: Vec<_> = {
        let reader = junction.reader();
        let mut follow = reader.follow("").unwrap();
        let first = some_of(&mut follow, 1);
        let among = cursor_of(&follow);
        assert_eq!(first + &some_of(&mut follow, 2), "ab|");
        junction.offer("c");
        junction.archive("c");
        assert_eq!(some_of(&mut follow, 1), "c");
        vec![among, cursor_of(&follow)]
    };
    junction.offer("d");
    junction.archive("d");
    junction.begin_anew();
    junction.offer("e");
    let reader = junction.reader();
    let said: Vec<String> = cursors
        .iter()
        .map(|cursor| all_of(&mut reader.follow_with("", until_live(cursor.clone())).unwrap()))
        .collect();
    assert_eq!(said, ["bcde|", "de|"]);
    // A server without a store does not have it.
    let error = junction
        .served
        .follow_with("", until_live(cursors[1].clone()))
        .unwrap_err();
    assert_eq!(error.code(), Code::Expired);
}

#[test]
fn an_order_by_an_attribute_of_the_key_is_kept() {
    let junction = Junction::new();
    let mut writer = junction.store.writer().unwrap();
    for (space, name) in [("2", "a"), ("1", "c")] {
        let payload = payload_of(name);
        writer
            .archive([("space", space), ("name", name)], payload.as_bytes())
            .unwrap();
        let name = if name == "a" { "b" } else { "d" };
        let attributes = [("space", space), ("name", name)];
        junction.served.offer(attributes, payload_of(name).as_bytes()).unwrap();
    }
    writer.flush().unwrap();
    let by = |order_by: &str| FollowOptions {
        order_by: Some(order_by.to_owned()),
        ..until_live(None)
    };
    let reader = junction.reader();
    assert_eq!(all_of(&mut reader.follow_with("", by("name")).unwrap()), "abcd|");
    assert_eq!(all_of(&mut reader.follow_with("", by("space")).unwrap()), "cdab|");
}

#[test]
fn a_store_that_means_something_else_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store").display().to_string();
    let other = "{name: named, key: {dataset: [run], collocation: [], element: [name]}, \
                  attributes: {run: {type: string}, name: {type: string}}}";
    let schema = Schema::parse_yaml(other).unwrap();
    Store::create_url(&path, &[schema.into()], &StoreLayout::default()).unwrap();
    let opened = Pool::builder().schema_yaml(SCHEMA).store(path.as_str()).open();
    assert_eq!(opened.unwrap_err().code(), Code::SchemaMismatch);
    let opened = Pool::builder().schema_yaml(SCHEMA).store("/nowhere/at/all").open();
    assert_eq!(opened.unwrap_err().code(), Code::NotFound);
}

#[test]
fn a_request_that_does_not_wait_looks_into_the_store_when_it_is_asked() {
    let junction = Junction::new();
    junction.offer_archive_withdraw("a");
    junction.offer("b");
    let reader = junction.reader();
    let mut demand = reader.begin_demand("name=a", DemandOptions::default()).unwrap();
    assert_eq!(&until(|| demand.try_take())[..], payload_of("a").as_bytes());
    let mut list = reader.begin_list("", ListOptions::default()).unwrap();
    let archived: Vec<bool> = until(|| list.try_take())
        .entries()
        .unwrap()
        .iter()
        .map(Entry::is_archived)
        .collect();
    assert_eq!(archived, [true, false]);

    // What neither has is waited for in the pool; the wait began before the look into the store.
    let mut late = reader.begin_demand("name=c", DemandOptions::default()).unwrap();
    assert!(late.wait_within(Duration::from_millis(1)).unwrap().is_none());
    junction.offer("c");
    assert_eq!(&late.wait().unwrap()[..], payload_of("c").as_bytes());

    let only = |source| DemandOptions {
        timeout: Some(Duration::ZERO),
        source,
        ..DemandOptions::default()
    };
    let stored = reader.demand_with("name=a", only(DemandSource::Store)).unwrap();
    assert_eq!(stored.transport(), Transport::Store);
    for (name, source) in [("name=a", DemandSource::Pool), ("name=b", DemandSource::Store)] {
        let missing = reader.demand_with(name, only(source)).unwrap_err();
        assert_eq!(missing.code(), Code::NotFound);
    }
}

#[test]
fn an_offer_that_does_not_wait_is_refused_where_the_store_has_its_key() {
    let served = Pool::builder().schema("free").open().unwrap();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("archive").display().to_string();
    let store = Store::create_url(&path, &served.schemas().unwrap(), &StoreLayout::default()).unwrap();
    let mut writer = store.writer().unwrap();
    writer.archive([("name", "a")], b"payload").unwrap();
    writer.flush().unwrap();
    let producer = Pool::builder().url(served.url()).store(path).open().unwrap();
    // Whether the payload needs memory or not.
    for bytes in [10, 1 << 18] {
        let refused = producer.begin_offer([("name", "a")], &vec![0; bytes], OfferOptions::default());
        assert_eq!(refused.unwrap().wait().unwrap_err().code(), Code::AlreadyExists);
        let memory = producer.allocate(bytes).unwrap();
        let refused = memory.begin_offer([("name", "a")], OfferOptions::default());
        assert_eq!(refused.unwrap().wait().unwrap_err().code(), Code::AlreadyExists);
        let name = format!("b {bytes}");
        let offered = producer.begin_offer([("name", name.as_str())], &vec![0; bytes], OfferOptions::default());
        assert!(offered.unwrap().wait().is_ok());
    }
}

/// What `take` gives, once it gives something.
fn until<T>(mut take: impl FnMut() -> junctura::Result<Option<T>>) -> T {
    loop {
        if let Some(taken) = take().unwrap() {
            return taken;
        }
    }
}

/// Objects stay until they are archived, and no longer; whoever follows, whenever it comes, gets each of them once.
#[test]
fn followers_miss_nothing_while_objects_are_archived_and_leave() {
    const OBJECTS: usize = 2000;
    let junction = Junction::new();
    let named = RequireOptions {
        name: Some("archive".to_owned()),
        ..RequireOptions::default()
    };
    let requirement = junction.served.require_with("", named).unwrap();
    thread::scope(|scope| {
        scope.spawn(|| {
            let mut held = Vec::new();
            let mut follow = requirement.follow().unwrap();
            for count in 1..=OBJECTS {
                loop {
                    if let Some(Item::Object(object)) = follow.next_item().unwrap() {
                        held.push(object);
                        break;
                    }
                }
                if count % 7 == 0 || count == OBJECTS {
                    archive(&junction.store, &held);
                    held.clear();
                }
            }
        });
        let followers: Vec<_> = (0..4)
            .map(|number| {
                let junction = &junction;
                scope.spawn(move || {
                    let reader = junction.reader();
                    // One begins before there is anything, others on the way.
                    let begin = format!("{:05}", number * OBJECTS / 4);
                    if number > 0 {
                        drop(reader.demand(Target::key([("name", begin.as_str())]), TIMEOUT).unwrap());
                    }
                    let options = FollowOptions {
                        window: Some(1 << number),
                        ..FollowOptions::default()
                    };
                    let mut follow = reader.follow_with("", options).unwrap();
                    let (mut there, mut live) = (Vec::new(), Vec::new());
                    while there.len() + live.len() < OBJECTS {
                        match follow.next_within(Duration::from_secs(20)).unwrap().unwrap() {
                            Item::Object(object) if object.in_snapshot() => {
                                assert!(!follow.is_live());
                                there.push(object.get("name").unwrap().to_owned());
                            }
                            Item::Object(object) => live.push(object.get("name").unwrap().to_owned()),
                            Item::Live => {}
                            Item::Gap(gap) => panic!("{gap:?}"),
                        }
                    }
                    there.extend(live);
                    there
                })
            })
            .collect();
        let options = OfferOptions {
            retention: Some(Retention::ReleasedBy(Consumers::new(["archive"]).unwrap())),
            ..OfferOptions::default()
        };
        let all: Vec<String> = (0..OBJECTS).map(|number| format!("{number:05}")).collect();
        for name in &all {
            junction
                .served
                .offer_with([("name", name.as_str())], b"", options.clone())
                .unwrap();
        }
        for follower in followers {
            assert_eq!(follower.join().unwrap(), all);
        }
    });
}

#[test]
fn a_descriptor_is_not_readable_once_all_was_asked() {
    let junction = Junction::new();
    junction.offer_archive_withdraw("a");
    let reader = junction.reader();
    let mut follow = reader.follow("").unwrap();
    let descriptor = reader.descriptor().unwrap();
    let is_readable = || {
        let mut descriptors = [PollFd::new(&descriptor, PollFlags::IN)];
        poll(&mut descriptors, Some(&Timespec::default())).unwrap() == 1
    };
    let mut said = String::new();
    for (offered, expected) in [("", "a|"), ("b", "a|b"), ("c", "a|bc")] {
        junction.offer(offered);
        while said != expected {
            junctura_transport::wait(descriptor.as_fd(), PollInterest::READ).unwrap();
            while let Some(item) = follow.try_next().unwrap() {
                tell(&item, &mut said);
            }
        }
        // What made it readable was read: it takes one round of questions at most.
        for _ in 0..2 {
            assert!(follow.try_next().unwrap().is_none());
        }
        assert!(!is_readable());
    }
}
