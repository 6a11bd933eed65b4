//! Offers, demands, lists and withdrawals, in either order, through an embedded pool.

use std::sync::mpsc::channel;
use std::thread;
use std::time::Duration;

use junctura::{Code, DemandOptions, EventKind, ListOptions, OfferOptions, Pool, Retention, Target, WithdrawOptions};

fn pool() -> Pool {
    Pool::builder()
        .schema("free")
        .schema("mars")
        .schema("record")
        .name("test")
        .open()
        .unwrap()
}

fn named(name: &str) -> [(&str, &str); 1] {
    [("name", name)]
}

const NOW: Option<Duration> = Some(Duration::ZERO);

#[test]
fn what_is_offered_is_found_by_key_and_by_meaning() {
    let pool = pool();
    let version = pool.offer([("name", "a"), ("colour", "green")], b"payload").unwrap();
    for target in [
        Target::key(named("a")),
        Target::from("colour=green"),
        Target::from("{space=default}{}{name=a}"),
    ] {
        let object = pool.demand(target, NOW).unwrap();
        assert_eq!(object.key(), "{space=default}{}{name=a}");
        assert_eq!(object.version(), version);
        assert_eq!(&object[..], b"payload");
        assert_eq!(object.get("colour"), Some("green"));
        assert_eq!(object.get("shape"), None);
        let attributes: Vec<_> = object.attributes().collect();
        assert_eq!(attributes, [("space", "default"), ("name", "a"), ("colour", "green")]);
        assert_eq!(object.cursor(), None);
        object.release().unwrap();
    }
    let entries = pool.list("").unwrap();
    assert_eq!(entries.len(), 1);
    assert_eq!(
        (entries[0].key(), entries[0].version(), entries[0].bytes()),
        ("{space=default}{}{name=a}", version, 7)
    );
}

#[test]
fn a_demand_waits_for_its_object() {
    let pool = pool();
    let (sender, receiver) = channel();
    let waiting = {
        let pool = pool.clone();
        thread::spawn(move || {
            sender.send(()).unwrap();
            pool.demand(Target::key(named("late")), None)
                .map(|object| object.to_vec())
        })
    };
    receiver.recv().unwrap();
    pool.offer(named("other"), b"no").unwrap();
    pool.offer(named("late"), b"yes").unwrap();
    assert_eq!(waiting.join().unwrap().unwrap(), b"yes");
}

#[test]
fn what_is_not_there_is_not_found_or_times_out() {
    let pool = pool();
    assert_eq!(
        pool.demand(Target::key(named("x")), NOW).unwrap_err().code(),
        Code::NotFound
    );
    assert_eq!(
        pool.demand("name=x", Some(Duration::from_millis(1)))
            .unwrap_err()
            .code(),
        Code::Timeout
    );
    assert_eq!(
        pool.withdraw(Target::key(named("x")), WithdrawOptions::default())
            .unwrap_err()
            .code(),
        Code::NotFound
    );
    assert_eq!(pool.withdraw_all("name=x", WithdrawOptions::default()).unwrap(), 0);
}

#[test]
fn what_was_withdrawn_is_gone_and_says_why() {
    let pool = pool();
    pool.offer(named("a"), b"1").unwrap();
    let held = pool.demand("name=a", NOW).unwrap();
    assert_eq!(
        pool.withdraw(Target::key(named("a")), WithdrawOptions::default())
            .unwrap(),
        1
    );
    let error = pool.demand(Target::key(named("a")), None).unwrap_err();
    assert_eq!(error.code(), Code::Gone);
    assert!(error.to_string().contains("withdrawn"), "{error}");
    assert_eq!(&held[..], b"1");
    assert_eq!(pool.offer(named("a"), b"2").unwrap_err().code(), Code::AlreadyExists);
}

#[test]
fn bad_input_is_refused_by_name_and_leaves_no_trace() {
    let pool = pool();
    let mars = OfferOptions {
        schema: Some("mars"),
        ..OfferOptions::default()
    };
    let error = pool.offer_with([("levelist", "abc")], b"", mars.clone()).unwrap_err();
    assert_eq!((error.code(), error.subject()), (Code::TypeMismatch, "levelist"));
    assert_eq!(
        pool.offer_with([("colour", "green")], b"", mars).unwrap_err().code(),
        Code::SchemaMismatch
    );
    let unknown = OfferOptions {
        schema: Some("none"),
        ..OfferOptions::default()
    };
    assert_eq!(
        pool.offer_with(named("a"), b"", unknown).unwrap_err().code(),
        Code::NotFound
    );
    let nobody = OfferOptions {
        retention: Some(Retention::Released(0)),
        ..OfferOptions::default()
    };
    assert_eq!(
        pool.offer_with(named("a"), b"", nobody).unwrap_err().code(),
        Code::InvalidArgument
    );
    let error = pool.list("name==").unwrap_err();
    assert_eq!((error.code(), error.position()), (Code::InvalidSelector, Some(5)));
    assert_eq!(pool.follow("(").unwrap_err().code(), Code::InvalidSelector);
    assert_eq!(
        pool.demand("nothing=knows,this~", None).unwrap_err().code(),
        Code::InvalidSelector
    );
    assert_eq!(pool.list("").unwrap().len(), 0);
}

#[test]
fn an_object_goes_when_its_time_is_over() {
    let pool = pool();
    let mut events = pool.subscribe("", &[EventKind::Expired]).unwrap();
    let offer = |name, time| {
        let options = OfferOptions {
            retention: Some(Retention::For(time)),
            ..OfferOptions::default()
        };
        pool.offer_with(named(name), b"", options)
    };
    offer("late", Duration::from_hours(24)).unwrap();
    let requirement = pool.require("name=owed").unwrap();
    offer("owed", Duration::from_nanos(1)).unwrap();
    offer("soon", Duration::from_millis(1)).unwrap();
    let gone = |event: junctura::PoolEvent| event.object.unwrap().0.get("name").unwrap().to_owned();
    assert_eq!(gone(events.next_event().unwrap().unwrap()), "soon");
    drop(
        requirement
            .demand(
                "name=owed",
                DemandOptions {
                    timeout: NOW,
                    ..DemandOptions::default()
                },
            )
            .unwrap(),
    );
    assert_eq!(gone(events.next_event().unwrap().unwrap()), "owed");
    assert_eq!(
        pool.demand(Target::key(named("soon")), NOW).unwrap_err().code(),
        Code::Gone
    );
    assert_eq!(pool.list("").unwrap().len(), 1);
    for wrong in [Duration::ZERO, Duration::from_hours(24 * 50)] {
        assert_eq!(offer("x", wrong).unwrap_err().code(), Code::InvalidArgument);
    }
}

#[test]
fn an_object_that_its_consumers_have_released_goes() {
    let pool = pool();
    let once = OfferOptions {
        retention: Some(Retention::Released(1)),
        ..OfferOptions::default()
    };
    let mut events = pool.subscribe("", &[EventKind::Offered, EventKind::Expired]).unwrap();
    pool.offer_with(named("a"), b"1", once).unwrap();
    assert_eq!(events.next_event().unwrap().unwrap().kind, EventKind::Offered);
    pool.demand("name=a", None).unwrap().release().unwrap();
    let event = events.next_event().unwrap().unwrap();
    assert_eq!(event.kind, EventKind::Expired);
    assert_eq!(event.object.unwrap().0.key(), "{space=default}{}{name=a}");
    assert_eq!(
        pool.demand(Target::key(named("a")), None).unwrap_err().code(),
        Code::Gone
    );
}

#[test]
fn events_name_those_who_come_and_go() {
    let pool = pool();
    let mut events = pool.subscribe("", &[EventKind::Joined, EventKind::Left]).unwrap();
    let guest = Pool::builder().url(pool.url()).name("guest").open().unwrap();
    let joined = events.next_event().unwrap().unwrap();
    assert_eq!(joined.kind, EventKind::Joined);
    let peer = joined.client.unwrap();
    assert_eq!((peer.name.as_str(), peer.pid), ("guest", std::process::id()));
    assert_eq!(peer.client, guest.client().unwrap());
    drop(guest);
    let left = events.next_event().unwrap().unwrap();
    assert_eq!((left.kind, left.client.unwrap()), (EventKind::Left, peer));
    events.stop().unwrap();
}

#[test]
fn lists_come_in_pages_and_in_order() {
    let pool = pool();
    let names: Vec<String> = (0..5000).map(|i| format!("n{i:04}")).collect();
    let objects = names
        .iter()
        .map(|name| ([("name", name.as_str()), ("dtype", parity(name))], b"x"));
    assert_eq!(pool.offer_many(objects).unwrap().len(), 5000);
    let listed: Vec<String> = pool
        .list("dtype=even")
        .unwrap()
        .iter()
        .map(|entry| entry.get("name").unwrap().to_owned())
        .collect();
    let expected: Vec<&str> = names
        .iter()
        .map(String::as_str)
        .filter(|name| parity(name) == "even")
        .collect();
    assert_eq!(listed, expected);

    let mut pages = pool.list_with("", ListOptions::default()).unwrap();
    let first = pages.next_page().unwrap().unwrap();
    assert!(!first.is_empty() && first.len() < 5000);
    drop(pages);
    let by_dtype = ListOptions {
        order_by: Some("dtype"),
        ..ListOptions::default()
    };
    assert_eq!(
        pool.list_with("", by_dtype)
            .unwrap()
            .into_iter()
            .map(|page| page.unwrap().len())
            .sum::<usize>(),
        5000
    );
    assert_eq!(
        pool.withdraw_all("dtype=odd", WithdrawOptions::default()).unwrap(),
        2500
    );
    assert_eq!(pool.list("").unwrap().len(), 2500);
}

fn parity(name: &str) -> &'static str {
    if name.as_bytes()[4].is_multiple_of(2) {
        "even"
    } else {
        "odd"
    }
}

#[test]
fn a_pool_describes_itself() {
    let pool = pool();
    assert_eq!(pool.schema(None).unwrap().name(), "free");
    assert_eq!(pool.schema(Some("mars")).unwrap().name(), "mars");
    assert_eq!(pool.schemas().unwrap().len(), 3);
    assert!(pool.url().starts_with("unix:@"));
    assert!(pool.incarnation().unwrap() > 0);
    assert!(pool.stat().unwrap().starts_with('{'));
}

#[test]
fn the_first_schema_that_a_client_names_is_its_default() {
    let pool = pool();
    let other = Pool::builder().url(pool.url()).schema("record").open().unwrap();
    other.offer([("producer", "p"), ("sequence", "1")], b"1").unwrap();
    assert_eq!(pool.demand("producer=p", NOW).unwrap().schema().name(), "record");
    let key = Target::key([("producer", "p"), ("sequence", "1")]).in_schema("record");
    assert_eq!(
        pool.demand(key, NOW).unwrap().key(),
        "{collection=default}{producer=p}{sequence=1}"
    );
}

#[test]
fn schemas_that_differ_are_told_apart_at_the_door() {
    let pool = pool();
    let other = "name: free\nopen: true\nkey: {dataset: [space], collocation: [], element: [name]}\n\
                 attributes: {space: {type: integer}, name: {type: string}}\n";
    let error = Pool::builder().url(pool.url()).schema_yaml(other).open().unwrap_err();
    assert_eq!(error.code(), Code::SchemaMismatch);
    assert!(error.to_string().contains("space"), "{error}");
}
