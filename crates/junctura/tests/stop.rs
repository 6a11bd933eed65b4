//! Servers that end in good order: what was promised is received, and everybody else is told.

use std::thread;
use std::time::Duration;

use junctura::{Code, DemandOptions, Item, Pool, Result};
use junctura_pool::PoolConfig;
use junctura_pool::server::{EmbeddedServer, Server, ServerOptions};

fn serve(budget_bytes: u64) -> EmbeddedServer {
    let config = PoolConfig {
        budget_bytes,
        ..PoolConfig::default()
    };
    Server::start_embedded(ServerOptions {
        config,
        ..ServerOptions::default()
    })
    .unwrap()
}

fn connect(server: &EmbeddedServer) -> Pool {
    let url = server.address().to_string();
    Pool::builder().url(url).schema("free").open().unwrap()
}

fn visit(server: &EmbeddedServer) -> Pool {
    let url = server.address().to_string();
    Pool::builder().url(url).visitor(true).open().unwrap()
}

fn code<T>(outcome: Result<T>) -> Code {
    outcome.err().unwrap().code()
}

/// Returns when the server drains: then it tells whoever waits for what will not come.
fn wait_for_the_drain(pool: &Pool) {
    let error = pool.demand("name=never", None).unwrap_err();
    assert_eq!(error.code(), Code::Closed);
    assert!(error.cause().starts_with("draining"), "{error}");
}

#[test]
fn what_was_promised_is_received_before_the_end() {
    let server = serve(64 << 20);
    let (producer, consumer) = (connect(&server), connect(&server));
    let requirement = consumer.require("").unwrap();
    let large = vec![7; 100_000];
    for name in ["a", "b", "c"] {
        producer.offer([("name", name)], &large).unwrap();
    }
    let stopping = thread::spawn(move || producer.stop(None));
    wait_for_the_drain(&consumer);
    assert_eq!(code(consumer.offer([("name", "d")], b"")), Code::Closed);
    assert_eq!(code(consumer.allocate(50_000_000)), Code::Closed);
    assert_eq!(code(consumer.require("")), Code::Closed);
    assert_eq!(consumer.list("").unwrap().len(), 3);
    let mut held: Vec<_> = ["name=a", "name=b", "name=c"]
        .map(|name| requirement.demand(name, DemandOptions::default()).unwrap())
        .into();
    let last = held.pop().unwrap();
    drop(held);
    assert_eq!(consumer.list("").unwrap().len(), 3);
    assert_eq!(&last[..], large);
    drop(last);
    stopping.join().unwrap().unwrap();
    assert_eq!(code(consumer.list("")), Code::Closed);
}

#[test]
fn who_is_new_is_turned_away_and_who_visits_can_hasten_the_end() {
    let server = serve(64 << 20);
    let (producer, consumer) = (connect(&server), connect(&server));
    let _requirement = consumer.require("").unwrap();
    producer.offer([("name", "a")], b"never received").unwrap();
    let stopping = thread::spawn(move || producer.stop(None));
    wait_for_the_drain(&consumer);
    let error = Pool::connect(&server.address().to_string()).unwrap_err();
    assert_eq!(error.code(), Code::Unavailable);
    assert!(error.cause().starts_with("draining"), "{error}");
    let visitor = visit(&server);
    assert!(
        visitor
            .stat()
            .unwrap()
            .contains("\"draining\":{\"owed\":1,\"undelivered\":0}")
    );
    let left = visitor.stop(Some(Duration::ZERO)).unwrap_err();
    assert_eq!(left.code(), Code::Timeout);
    assert!(left.cause().contains("left: 1, "), "{left}");
    assert_eq!(code(stopping.join().unwrap()), Code::Timeout);
}

#[test]
fn a_time_ends_what_would_go_on() {
    let server = serve(64 << 20);
    let pool = connect(&server);
    let _requirement = pool.require("").unwrap();
    pool.offer([("name", "a")], b"never received").unwrap();
    assert_eq!(code(pool.stop(Some(Duration::from_millis(5)))), Code::Timeout);
}

#[test]
fn who_waits_for_memory_is_told() {
    let server = serve(1 << 20);
    let (full, waits) = (connect(&server), connect(&server));
    let _requirement = full.require("").unwrap();
    full.offer([("name", "a")], &vec![1; 900_000]).unwrap();
    let offering = thread::spawn(move || waits.offer([("name", "b")], &vec![2; 900_000]));
    assert_eq!(code(full.stop(Some(Duration::from_millis(50)))), Code::Timeout);
    // It was refused at once, or came too late for a server that had ended.
    assert!(matches!(
        code(offering.join().unwrap()),
        Code::Closed | Code::Disconnected
    ));
}

#[test]
fn whoever_has_stopped_a_server_can_start_the_next_one() {
    let address = format!("unix:@junctura-test-stop-{}", std::process::id());
    for _ in 0..20 {
        let server = Server::bind(&address.parse().unwrap(), ServerOptions::default()).unwrap();
        let running = thread::spawn(move || server.run());
        Pool::connect(&address).unwrap().stop(None).unwrap();
        running.join().unwrap().unwrap();
        assert_eq!(code(Pool::connect(&address)), Code::Unavailable);
    }
}

#[test]
fn a_stopper_can_drain_and_can_end_at_once() {
    for urgent in [false, true] {
        let address = format!("unix:@junctura-test-stopper-{}", std::process::id());
        let options = ServerOptions {
            drain_timeout: Duration::from_hours(1),
            ..ServerOptions::default()
        };
        let server = Server::bind(&address.parse().unwrap(), options).unwrap();
        let stopper = server.stopper();
        let running = thread::spawn(move || server.run());
        let pool = Pool::builder().url(&address).schema("free").open().unwrap();
        let requirement = pool.require("").unwrap();
        pool.offer([("name", "a")], b"owed").unwrap();
        stopper.drain();
        wait_for_the_drain(&pool);
        if urgent {
            stopper.stop();
        } else {
            drop(requirement.demand("name=a", DemandOptions::default()).unwrap());
            pool.flush().unwrap();
        }
        running.join().unwrap().unwrap();
    }
}

#[test]
fn every_client_gets_closed_when_the_server_ends_in_order() {
    let server = serve(64 << 20);
    let clients = [connect(&server), connect(&server)];
    let mut follow = clients[0].follow("").unwrap();
    let mut events = clients[1].subscribe("", &[]).unwrap();
    let requirement = clients[1].require("name=a").unwrap();
    assert!(matches!(follow.next_item(), Ok(Some(Item::Live))));
    drop(server);
    assert_eq!(code(follow.next_item()), Code::Closed);
    assert_eq!(code(events.next_event()), Code::Closed);
    assert_eq!(
        code(requirement.demand("name=a", DemandOptions::default())),
        Code::Closed
    );
    for client in clients {
        let error = client.offer([("name", "late")], b"").unwrap_err();
        assert_eq!(error.code(), Code::Closed);
        assert!(error.cause().contains("ended in order"), "{error}");
    }
}
