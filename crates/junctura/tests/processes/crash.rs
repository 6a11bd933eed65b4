//! Clients are killed with SIGKILL at every stage of an object's life: what was acknowledged stays, what was not is whole or
//! nothing, and the server gets back all that the dead one had.
//!
//! A test plays the survivors; the victim is another process of this program, which runs [`victim`] alone, says on standard
//! output how far it is, and then waits to be killed. Nobody sleeps: the survivors wait for words and events.

use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, ChildStdout, Stdio};

use crate::{alone, itself, told};
use junctura::{
    Code, EventKind, FollowOptions, Item, OfferOptions, Pool, RequireOptions, Retention, Subscription, Target,
};
use junctura_link::{Gate, GateOptions, ServerIdentity};
use junctura_transport::{Carrier, Outbox, ServerAddress, UnixCarrier};
use junctura_wire::{Request, VERSION, body};

const LARGE: usize = 300_000;

/// A process that is about to die.
struct Victim {
    process: Child,
    words: BufReader<ChildStdout>,
}

impl Victim {
    fn start(pool: &Pool, part: &str) -> Self {
        Self::start_at(pool.url(), part)
    }

    fn start_at(url: &str, part: &str) -> Self {
        let ways = url.starts_with("tcp").then_some(("JUNCTURA_TRANSPORTS", "tcp"));
        let mut process = itself(victim, url, part)
            .envs(ways)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let words = BufReader::new(process.stdout.take().unwrap());
        Self { process, words }
    }

    /// Hears what comes until the victim says this word.
    fn hear(&mut self, word: &str) -> String {
        let mut line = String::new();
        loop {
            line.clear();
            assert!(
                self.words.read_line(&mut line).unwrap() > 0,
                "the victim died before it said {word}"
            );
            if let Some((_, rest)) = line.split_once(&format!("victim: {word}")) {
                return rest.trim().to_owned();
            }
        }
    }

    fn kill(mut self) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
    }
}

fn say(word: &str) {
    println!("victim: {word}");
    std::io::stdout().flush().unwrap();
}

/// Keeps what it is given until this process is killed.
fn die_with<T>(_kept: T) -> ! {
    wait_for_death()
}

fn wait_for_death() -> ! {
    let mut nothing = Vec::new();
    let _ = std::io::stdin().read_to_end(&mut nothing);
    panic!("it should have been killed")
}

/// The payload that belongs to a name.
fn payload(name: usize, bytes: usize) -> Vec<u8> {
    (0..bytes).map(|at| (at * 31 + name * 7) as u8).collect()
}

fn attributes(name: &str) -> [(&'static str, &str); 2] {
    [("space", "crash"), ("name", name)]
}

fn options() -> OfferOptions<'static> {
    OfferOptions {
        schema: Some("free"),
        ..OfferOptions::default()
    }
}

#[test]
#[ignore = "played by a process of its own"]
fn victim() {
    let Some((url, part)) = told() else { return };
    let pool = Pool::builder().url(&url).name("victim").open().unwrap();
    match part.as_str() {
        "offers" => {
            for name in 0..40 {
                let bytes = if name % 2 == 0 { 100 } else { LARGE };
                let version = pool
                    .offer_with(attributes(&name.to_string()), &payload(name, bytes), options())
                    .unwrap();
                say(&format!("offered {version}"));
            }
        }
        "allocates" => {
            let allocation = pool.allocate(LARGE).unwrap();
            say("allocated");
            die_with(allocation)
        }
        "fills" => {
            let mut allocation = pool.allocate(LARGE).unwrap();
            allocation[..LARGE / 2].fill(7);
            say("filled half");
            die_with(allocation)
        }
        "offers half" => offer_half(&url, false),
        "offers and dies unanswered" => offer_half(&url, true),
        part if part.starts_with("holds") => {
            let first = 4 * part["holds ".len()..].parse::<usize>().unwrap();
            let held: Vec<_> = (first..first + 4)
                .map(|name| pool.demand(key(name), None).unwrap())
                .collect();
            let mut follow = pool.follow("space=crash").unwrap();
            let mut received = Vec::new();
            while received
                .iter()
                .map(|object: &junctura::Object| object.payload().len())
                .sum::<usize>()
                < 2 * LARGE
            {
                received.extend(as_object(follow.next_item().unwrap().unwrap()));
            }
            let _requirement = pool.require("space=crash").unwrap();
            let _subscription = pool.subscribe("", &[EventKind::Offered]).unwrap();
            say("holds");
            die_with((held, received))
        }
        "waits" => {
            say("waits");
            let _ = pool.demand(Target::selector("name=never"), None);
        }
        part if part.starts_with("reads") => {
            let count = part["reads ".len()..].parse().unwrap();
            let mut follow = pool.follow_with("", through_kept()).unwrap();
            let objects = follow.iter_mut().filter_map(|item| as_object(item.unwrap()));
            let mut received: Vec<_> = objects.take(count).collect();
            drop(received.remove(0));
            pool.sync(None).unwrap();
            say("released one");
            die_with((follow, received))
        }
        part if part.starts_with("shares") => {
            let count = part["shares ".len()..].parse().unwrap();
            let mut follow = pool.follow_with("", joins("shared", 8)).unwrap();
            let objects = follow.iter_mut().filter_map(|item| as_object(item.unwrap()));
            let mut received: Vec<_> = objects.take(count).collect();
            drop(received.remove(0));
            pool.sync(None).unwrap();
            say("released one");
            die_with((follow, received))
        }
        "works" => {
            let share = pool.follow_with("", joins("workers", 1)).unwrap();
            let object = share.into_iter().find_map(|item| as_object(item.unwrap())).unwrap();
            let name = object.get("name").unwrap().to_owned();
            drop(object);
            pool.sync(None).unwrap();
            say(&format!("did {name}"));
            rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::KILL).unwrap();
        }
        other => panic!("no part {other}"),
    }
    wait_for_death();
}

/// Sends an offer's frame by hand: its first half, or all of it without waiting for the answer.
fn offer_half(url: &str, whole: bool) -> ! {
    let address: ServerAddress = url.parse().unwrap();
    let mut carrier = UnixCarrier::connect(&address).unwrap();
    let mut out = Outbox::new();
    let hello = body::Hello {
        version: VERSION,
        name: "victim by hand".into(),
        ..body::Hello::default()
    };
    out.push(|bytes| Request::Hello(hello).encode(1, bytes)).unwrap();
    let schema = junctura::Schema::builtin("free").unwrap();
    let mut names = junctura::Schema::BUILTIN_NAMES.iter();
    let number = names.position(|&name| name == "free").unwrap();
    let mut record = Vec::new();
    let given = [
        ("space", junctura::Given::Text("crash")),
        ("name", junctura::Given::Text("half")),
    ];
    schema.record(given, &mut record).unwrap();
    let inline = payload(99, 1000);
    let head = junctura_wire::fixed::OfferHead {
        schema: (number as u16).into(),
        flags: junctura_wire::fixed::INLINE.into(),
        record_length: (record.len() as u32).into(),
        length: (inline.len() as u64).into(),
        ..junctura_wire::fixed::OfferHead::default()
    };
    let mut frame = Vec::new();
    Request::Offer {
        head,
        record: &record,
        inline: &inline,
    }
    .encode(2, &mut frame);
    carrier.send(&mut out).unwrap();
    let part = if whole { &frame[..] } else { &frame[..frame.len() / 2] };
    rustix::io::write(carrier.as_fd(), part).unwrap();
    say("sent");
    die_with(carrier)
}

fn key(name: usize) -> Target<'static> {
    let text = format!("{{space=crash}}{{}}{{name={name}}}");
    Target::key_text(text).in_schema("free")
}

fn pool() -> (Pool, Subscription) {
    let pool = Pool::builder().name("survivor").open().unwrap();
    let departures = pool.subscribe("", &[EventKind::Left]).unwrap();
    (pool, departures)
}

/// Waits until the server knows that the clients of these names are gone, in whatever order.
fn await_departure(departures: &mut Subscription, names: &[&str]) {
    let mut names = names.to_vec();
    while !names.is_empty() {
        let event = departures.next_event().unwrap().unwrap();
        let client = event.client.unwrap();
        assert!(!event.reason.is_empty() && client.client > 0);
        names.retain(|&name| name != client.name);
    }
}

fn stat(pool: &Pool, at: &str) -> u64 {
    let text = pool.stat().unwrap();
    let (_, rest) = text
        .split_once(&format!("\"{at}\":"))
        .unwrap_or_else(|| panic!("no {at} in {text}"));
    rest.chars()
        .take_while(char::is_ascii_digit)
        .collect::<String>()
        .parse()
        .unwrap()
}

/// All that is left is what this process uses.
fn assert_nothing_left(pool: &Pool) {
    pool.withdraw_all(
        "",
        junctura::WithdrawOptions {
            force: true,
            ..junctura::WithdrawOptions::default()
        },
    )
    .unwrap();
    for figure in [
        "visible",
        "kept",
        "held",
        "used_bytes",
        "segments",
        "requirements",
        "withdrawals",
    ] {
        assert_eq!(stat(pool, figure), 0, "{figure}");
    }
    assert_eq!(stat(pool, "clients_connected"), 1);
    assert_eq!(stat(pool, "standing"), 1, "the survivor's own subscription");
}

fn descriptors() -> usize {
    std::fs::read_dir("/proc/self/fd").unwrap().count()
}

/// R1.7: once handed over, data is no longer the producer's concern.
#[test]
fn a_producer_killed_after_its_offers_returned_has_lost_nothing() {
    let _alone = alone();
    let (pool, mut departures) = pool();
    let early = pool.follow("space=crash").unwrap();
    let mut victim = Victim::start(&pool, "offers");
    let mut versions = Vec::new();
    for _ in 0..40 {
        versions.push(victim.hear("offered"));
    }
    victim.kill();
    await_departure(&mut departures, &["victim"]);
    let late = pool.follow("space=crash").unwrap();
    for follow in [early, late] {
        let objects: Vec<_> = follow
            .into_iter()
            .filter_map(|item| as_object(item.unwrap()))
            .take(40)
            .collect();
        let mut seen: Vec<usize> = objects
            .iter()
            .map(|object| object.get("name").unwrap().parse().unwrap())
            .collect();
        seen.sort_unstable();
        assert_eq!(seen, (0..40).collect::<Vec<_>>());
        for object in &objects {
            let name: usize = object.get("name").unwrap().parse().unwrap();
            assert_eq!(object.payload(), payload(name, object.len()));
            assert_eq!(object.version().to_string(), versions[name]);
        }
    }
    assert_nothing_left(&pool);
}

fn as_object(item: Item) -> Option<junctura::Object> {
    match item {
        Item::Object(object) => Some(object),
        Item::Live | Item::Gap(_) => None,
    }
}

#[test]
fn a_producer_killed_before_its_offer_leaves_nothing() {
    let _alone = alone();
    let (pool, mut departures) = pool();
    let before = descriptors();
    for (part, word) in [("allocates", "allocated"), ("fills", "filled half")] {
        for _ in 0..5 {
            let mut victim = Victim::start(&pool, part);
            victim.hear(word);
            assert!(stat(&pool, "used_bytes") > 0);
            victim.kill();
            await_departure(&mut departures, &["victim"]);
            assert_nothing_left(&pool);
        }
    }
    assert_eq!(
        descriptors(),
        before,
        "the server runs in this process: nothing is left open"
    );
}

#[test]
fn an_offer_is_whole_or_nothing() {
    let _alone = alone();
    let (pool, mut departures) = pool();
    let mut victim = Victim::start(&pool, "offers half");
    victim.hear("sent");
    victim.kill();
    await_departure(&mut departures, &["victim by hand", "victim"]);
    assert!(pool.list("space=crash").unwrap().is_empty());
    assert_nothing_left(&pool);

    let mut victim = Victim::start(&pool, "offers and dies unanswered");
    victim.hear("sent");
    victim.kill();
    await_departure(&mut departures, &["victim by hand", "victim"]);
    let half = Target::key_text("{space=crash}{}{name=half}").in_schema("free");
    assert_eq!(pool.demand(half, None).unwrap().payload(), payload(99, 1000));
    assert_nothing_left(&pool);
}

#[test]
fn a_consumer_killed_while_it_holds_gives_everything_back() {
    let _alone = alone();
    let (pool, mut departures) = pool();
    let before = descriptors();
    for round in 0..5 {
        let names = round * 4..round * 4 + 4;
        for name in names.clone() {
            let options = OfferOptions {
                retention: Some(Retention::Released(1)),
                ..options()
            };
            pool.offer_with(attributes(&name.to_string()), &payload(name, LARGE), options)
                .unwrap();
        }
        let mut victim = Victim::start(&pool, &format!("holds {round}"));
        victim.hear("holds");
        assert!(stat(&pool, "held") >= 6);
        assert_eq!(stat(&pool, "requirements"), 1);
        victim.kill();
        await_departure(&mut departures, &["victim"]);
        assert_eq!(stat(&pool, "held"), 0);
        assert_eq!(stat(&pool, "requirements"), 0);
        // It died without a release: nothing was consumed.
        for name in names.clone() {
            assert_eq!(pool.demand(key(name), None).unwrap().payload(), payload(name, LARGE));
        }
        let gone = |name: usize| pool.demand(key(name), None).map(drop).map_err(|error| error.code());
        assert!(names.clone().all(|name| gone(name) == Err(Code::Gone)));
    }
    pool.withdraw_all("", junctura::WithdrawOptions::default()).unwrap();
    // Over TCP the mirror's descriptors are this process's, too.
    if std::env::var_os("JUNCTURA_TEST_DETOUR").is_none() {
        let segments = stat(&pool, "segments") as usize;
        let open = descriptors() - before;
        assert!(
            (2 * segments..=3 * segments).contains(&open),
            "{open}: the server keeps two a leased segment, its producer one until all slots were used, and nothing else is open"
        );
    }
}

fn through_kept() -> FollowOptions {
    FollowOptions {
        requirement: Some("kept".to_owned()),
        ..FollowOptions::default()
    }
}

/// What was released stays done, what was not goes to the next reader, and the producer's retention waits meanwhile.
#[test]
fn what_a_killed_reader_held_of_a_named_requirement_goes_to_the_next() {
    let _alone = alone();
    let (pool, mut departures) = pool();
    let named = RequireOptions {
        name: Some("kept".to_owned()),
        ..RequireOptions::default()
    };
    drop(pool.require_with("space=crash", named).unwrap());
    for name in 0..4 {
        let options = OfferOptions {
            retention: Some(Retention::Released(1)),
            ..options()
        };
        pool.offer_with(attributes(&name.to_string()), &payload(name, LARGE), options)
            .unwrap();
    }
    for left in [4, 3, 2] {
        let mut victim = Victim::start(&pool, &format!("reads {left}"));
        victim.hear("released one");
        let second = pool.follow_with("", through_kept()).unwrap_err();
        assert!(
            second.code() == Code::Conflict && second.cause().contains("victim"),
            "{second}"
        );
        victim.kill();
        await_departure(&mut departures, &["victim"]);
        assert_eq!(stat(&pool, "owed"), left - 1);
        assert_eq!(stat(&pool, "in_flight"), 0);
        assert_eq!(stat(&pool, "visible"), left - 1);
    }
    let mut follow = pool.follow_with("", through_kept()).unwrap();
    let last = as_object(follow.next_item().unwrap().unwrap()).unwrap();
    assert_eq!(last.get("name"), Some("3"));
    assert_eq!(last.payload(), payload(3, LARGE));
    drop(last);
    assert_eq!(stat(&pool, "owed"), 0);
    drop(follow);
    assert_eq!(pool.retract("kept").unwrap(), 0);
    for figure in ["visible", "kept", "held", "requirements", "slots_occupied"] {
        assert_eq!(stat(&pool, figure), 0, "{figure}");
    }
}

fn joins(group: &str, size: u32) -> FollowOptions {
    FollowOptions {
        join: Some(group.to_owned()),
        ..window(size)
    }
}

fn window(window: u32) -> FollowOptions {
    FollowOptions {
        window: Some(window),
        ..FollowOptions::default()
    }
}

/// Of two members one is killed: what it had in hand goes to the other, marked; what it released is done; and a withdraw waits
/// for all of it.
#[test]
fn what_a_killed_member_held_goes_to_another_marked() {
    let _alone = alone();
    let (pool, mut departures) = pool();
    let shared = FollowOptions {
        group: Some("shared".into()),
        ..window(1)
    };
    let mut survivor = pool.follow_with("space=crash", shared).unwrap();
    for name in 0..6 {
        pool.offer_with(attributes(&name.to_string()), &payload(name, LARGE), options())
            .unwrap();
    }
    let mut next = || {
        let object = survivor.iter_mut().find_map(|item| as_object(item.unwrap()));
        object.map(|object| (object.get("name").unwrap().to_owned(), object.redelivered(), object))
    };
    let (first, is_again, held) = next().unwrap();
    assert_eq!((first.as_str(), is_again), ("0", false));
    let mut victim = Victim::start(&pool, "shares 4");
    victim.hear("released one");
    let withdrawal = {
        let (url, key) = (pool.url().to_owned(), key(2));
        std::thread::spawn(move || {
            let pool = Pool::connect(&url).unwrap();
            pool.withdraw(key, junctura::WithdrawOptions::default()).unwrap()
        })
    };
    assert_eq!(stat(&pool, "owed"), 5);
    victim.kill();
    await_departure(&mut departures, &["victim"]);
    drop(held);
    for name in ["2", "3", "4"] {
        let (came, is_again, object) = next().unwrap();
        assert_eq!((came.as_str(), is_again), (name, true));
        assert_eq!(object.payload(), payload(name.parse().unwrap(), LARGE));
    }
    let (last, is_again, _) = next().unwrap();
    assert_eq!(
        (last.as_str(), is_again),
        ("5", true),
        "it was on its way to the victim"
    );
    assert_eq!(withdrawal.join().unwrap(), 1);
    assert_eq!(stat(&pool, "owed"), 0);
    drop(survivor);
    pool.retract("shared").unwrap();
}

/// Each victim takes a piece of work, releases it, and dies as soon as it knows that the server has heard so; some come over a
/// network, and some of these by an upstream.
#[test]
fn what_was_released_before_a_sync_is_done() {
    let _alone = alone();
    let (pool, _departures) = pool();
    let any = "tcp://127.0.0.1:0".parse().unwrap();
    let gate = Gate::open(GateOptions::new(
        any,
        pool.url().parse().unwrap(),
        ServerIdentity::default(),
    ))
    .unwrap();
    let group = RequireOptions {
        name: Some("workers".to_owned()),
        group: true,
        ..RequireOptions::default()
    };
    drop(pool.require_with("space=crash", group).unwrap());
    for name in 0..20 {
        pool.offer_with(attributes(&format!("{name:02}")), b"work", options())
            .unwrap();
    }
    let far = gate.endpoint().to_string();
    let here = format!("unix:@crash-upstream-{}", std::process::id());
    let upstream = Pool::builder().url(far.as_str()).upstream(Some(&here)).unwrap();
    let urls = [pool.url().to_owned(), far, upstream.address().to_string()];
    for (name, url) in (0..20).zip(urls.iter().cycle()) {
        let mut victim = Victim::start_at(url, "works");
        assert_eq!(victim.hear("did"), format!("{name:02}"));
        victim.process.wait().unwrap();
    }
    assert_eq!(stat(&pool, "owed"), 0);
    pool.retract("workers").unwrap();
}

#[test]
fn a_client_killed_while_it_waits_waits_for_nothing() {
    let _alone = alone();
    let (pool, mut departures) = pool();
    let mut victim = Victim::start(&pool, "waits");
    victim.hear("waits");
    victim.kill();
    await_departure(&mut departures, &["victim"]);
    assert_nothing_left(&pool);
}
