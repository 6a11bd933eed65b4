//! A server that does not read: whatever has a deadline ends by it, and nothing else blocks.

use std::io::{BufRead, BufReader, Read, Write};
use std::os::fd::AsFd;
use std::process::Stdio;
use std::time::Duration;

use junctura::{Code, DemandOptions, Item, OfferOptions, Pending, Pool, Result, Version};
use junctura_pool::server::{Server, ServerOptions};
use junctura_transport::PollInterest;
use rustix::process::{Pid, Signal, kill_process};

use crate::{alone, itself, told};

const MOMENT: Duration = Duration::from_millis(1);

fn code<T>(outcome: Result<T>) -> Code {
    outcome.err().unwrap().code()
}

#[test]
#[ignore = "played by a process of its own"]
fn server() {
    if told().is_none() {
        return;
    }
    let server = Server::start_embedded(ServerOptions::default()).unwrap();
    println!("address: {}", server.address());
    std::io::stdout().flush().unwrap();
    let _ = std::io::stdin().read_to_end(&mut Vec::new());
}

/// A process that is stopped until this is dropped.
struct Stopped(Pid);

impl Stopped {
    fn new(process: Pid) -> Self {
        kill_process(process, Signal::STOP).unwrap();
        let threads = format!("/proc/{}/task", process.as_raw_nonzero());
        let runs = |thread: std::fs::DirEntry| {
            let text = std::fs::read_to_string(thread.path().join("stat")).unwrap_or_default();
            text.rsplit_once(") ").is_some_and(|(_, rest)| !rest.starts_with('T'))
        };
        while std::fs::read_dir(&threads).unwrap().any(|thread| runs(thread.unwrap())) {
            std::hint::spin_loop();
        }
        Self(process)
    }
}

impl Drop for Stopped {
    fn drop(&mut self) {
        let _ = kill_process(self.0, Signal::CONT);
    }
}

/// Runs this ignored test in a process of its own, with a server in another one.
fn with_server<T: Fn()>(client: T, rings: &str) {
    let mut server = itself(server, "", "")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut words = BufReader::new(server.stdout.take().unwrap()).lines();
    let url = words.find_map(|line| Some(line.unwrap().split_once("address: ")?.1.to_owned()));
    let client = itself(client, &url.unwrap(), &server.id().to_string())
        .env("JUNCTURA_RINGS", rings)
        // A gate of the client's own would read for the server, as long as it has room.
        .env_remove("JUNCTURA_TEST_DETOUR")
        .status();
    // The end of its standard input ends the server.
    drop(server.stdin.take());
    server.wait().unwrap();
    assert!(client.unwrap().success(), "rings: {rings}");
}

#[test]
#[ignore = "played by a process of its own"]
fn client() {
    let Some((url, server)) = told() else { return };
    let server = Pid::from_raw(server.parse().unwrap()).unwrap();
    let pool = Pool::builder().url(&url).schema("free").open().unwrap();
    let mut follow = pool.follow("name=x").unwrap();
    assert!(matches!(follow.next_item().unwrap(), Some(Item::Live)));
    let mut events = pool.subscribe("name=x", &[]).unwrap();
    let bundle = pool.bundle().unwrap();
    let visible = bundle.begin_wait();

    let stopped = Stopped::new(server);
    let mut offers = fill(&pool);
    let offer = offers.last_mut().unwrap();
    assert!(offer.try_take().unwrap().is_none());
    assert!(offer.wait_within(MOMENT).unwrap().is_none());
    assert!(pool.begin_flush().unwrap().wait_within(MOMENT).unwrap().is_none());
    assert!(pool.begin_close().is_ok(), "dropped, it does not begin");
    assert_eq!(code(pool.sync(Some(MOMENT))), Code::Timeout);
    assert!(follow.try_next().unwrap().is_none());
    assert_eq!(code(follow.next_within(MOMENT)), Code::Timeout);
    assert!(events.try_next().unwrap().is_none());
    assert_eq!(code(events.next_within(MOMENT)), Code::Timeout);
    assert!(bundle.completed().unwrap().is_none());
    assert_eq!(code(bundle.wait(Some(MOMENT))), Code::Timeout);
    assert_eq!(code(pool.wait(&[&follow, &visible], Some(MOMENT))), Code::Timeout);

    // A loop of the program's own is not told of room in the socket; a thread sends what is left.
    let descriptor = pool.descriptor().unwrap();
    let mut late = pool.begin_demand("name=late", DemandOptions::default()).unwrap();
    assert!(late.try_take().unwrap().is_none());
    offers.push(offer_one(&pool, "late"));
    drop(stopped);
    while late.try_take().unwrap().is_none() {
        junctura_transport::wait(descriptor.as_fd(), PollInterest::READ).unwrap();
    }
    for offer in offers {
        offer.wait().unwrap();
    }
    bundle.seal().unwrap();
    assert_eq!(visible.wait().unwrap().objects(), 0);
}

fn offer_one(pool: &Pool, name: &str) -> Pending<Version> {
    pool.begin_offer([("name", name)], &[7; 1000], OfferOptions::default())
        .unwrap()
}

/// Offers until there is no room for what is to go.
fn fill(pool: &Pool) -> Vec<Pending<Version>> {
    let mut offers = Vec::new();
    while offers.is_empty() || pool.begin_flush().unwrap().try_take().unwrap().is_some() {
        offers.push(offer_one(pool, &offers.len().to_string()));
    }
    offers
}

#[test]
fn nothing_outlasts_its_deadline_where_the_server_does_not_read() {
    let _alone = alone();
    for rings in ["on", "off"] {
        with_server(client, rings);
    }
}
