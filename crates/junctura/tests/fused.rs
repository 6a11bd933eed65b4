//! One rule for all streams: an error of the stream comes once, and after it nothing.

use std::time::Duration;

use futures_util::StreamExt as _;
use junctura::{FollowOptions, ListOptions, Pool, Result};
use junctura_pool::server::{EmbeddedServer, Server, ServerOptions};
use junctura_store::{Store, StoreLayout};
use tempfile::TempDir;

use crate::aio::runtime::block_on;
use crate::aio::tasks::one_thread;

const LONG: Duration = Duration::from_mins(10);
/// How often a stream that has ended is asked.
const AFTERWARDS: usize = 3;

/// What a stream gives from when the server has ended: `next` ends with its server and returns whether it has an item, or none.
fn gives_one_error_and_then_nothing(name: &str, mut next: impl FnMut() -> Result<bool>) {
    let error = loop {
        match next() {
            Ok(true) => {}
            Ok(false) => panic!("{name}: it has ended without an error"),
            Err(error) => break error,
        }
    };
    for _ in 0..AFTERWARDS {
        assert_eq!(next(), Ok(false), "{name}, after {error}");
    }
}

/// A pool whose server ends when the second part is dropped.
fn pool(store: Option<&TempDir>) -> (Pool, EmbeddedServer) {
    let server = Server::start_embedded(ServerOptions::default()).unwrap();
    let mut builder = Pool::builder().url(server.address().to_string()).schema("free");
    if let Some(store) = store {
        builder = builder.store(store.path().join("store").display().to_string());
    }
    let pool = builder.open().unwrap();
    for number in 0..2000 {
        pool.offer([("name", number.to_string().as_str())], b"").unwrap();
    }
    (pool, server)
}

/// No store behind the pool, and an empty one.
fn stores() -> [Option<TempDir>; 2] {
    let folder = tempfile::tempdir().unwrap();
    let store = folder.path().join("store");
    let schemas = Pool::embedded().unwrap().schemas().unwrap();
    Store::create_url(&store.display().to_string(), &schemas, &StoreLayout::default()).unwrap();
    [None, Some(folder)]
}

#[test]
fn a_stream_that_blocks() {
    for store in stores() {
        let (pool, server) = pool(store.as_ref());
        let mut follow = pool.follow("").unwrap();
        let mut bounded = pool.follow("").unwrap();
        let mut events = pool.subscribe("", &[]).unwrap();
        let mut bounded_events = pool.subscribe("", &[]).unwrap();
        let mut pages = pool.list_with("", ListOptions::default()).unwrap();
        let mut iterated = pool.follow("").unwrap().into_iter();
        drop(server);
        gives_one_error_and_then_nothing("follow", || follow.next_item().map(|item| item.is_some()));
        gives_one_error_and_then_nothing("follow within", || bounded.next_within(LONG).map(|item| item.is_some()));
        gives_one_error_and_then_nothing("events", || events.next_event().map(|event| event.is_some()));
        gives_one_error_and_then_nothing("events within", || {
            bounded_events.next_within(LONG).map(|event| event.is_some())
        });
        gives_one_error_and_then_nothing("pages", || pages.next_page().map(|page| page.is_some()));
        gives_one_error_and_then_nothing("iterator", || iterated.next().transpose().map(|item| item.is_some()));
        assert!(follow.is_over() && bounded.is_over() && events.is_over() && pages.is_over());
    }
}

#[test]
fn a_stream_that_is_asked_without_waiting() {
    for store in stores() {
        let (pool, server) = pool(store.as_ref());
        let mut follow = pool.follow("").unwrap();
        let mut events = pool.subscribe("", &[]).unwrap();
        let mut requirement = pool.require("name=never").unwrap();
        drop(server);
        gives_one_error_and_then_nothing("follow", || match follow.try_next()? {
            None => Ok(!follow.is_over()),
            Some(_) => Ok(true),
        });
        gives_one_error_and_then_nothing("events", || match events.try_next()? {
            None => Ok(!events.is_over()),
            Some(_) => Ok(true),
        });
        let mut has_failed = false;
        gives_one_error_and_then_nothing("gaps", || match requirement.try_gap() {
            Ok(gap) => Ok(gap.is_some() || !has_failed),
            Err(error) => {
                has_failed = true;
                Err(error)
            }
        });
    }
}

#[test]
fn a_stream_of_tasks() {
    for store in stores() {
        let (pool, server) = pool(store.as_ref());
        let runtime = one_thread();
        let (mut follow, mut events, mut pages) = runtime.block_on(async {
            (
                pool.begin_follow("", FollowOptions::default()).unwrap().await.unwrap(),
                pool.begin_subscribe("", &[]).unwrap().await.unwrap(),
                pool.begin_list("", ListOptions::default()).unwrap().await.unwrap(),
            )
        });
        drop(server);
        gives_one_error_and_then_nothing("follow", || {
            runtime.block_on(follow.next()).transpose().map(|item| item.is_some())
        });
        gives_one_error_and_then_nothing("events", || {
            runtime.block_on(events.next()).transpose().map(|event| event.is_some())
        });
        gives_one_error_and_then_nothing("pages", || {
            runtime.block_on(pages.next()).transpose().map(|page| page.is_some())
        });
    }
}

#[test]
fn a_stream_of_tasks_that_nothing_reads_for() {
    let (pool, _server) = pool(None);
    let mut follow = pool.follow("name=never").unwrap();
    drop(pool.driver().unwrap());
    gives_one_error_and_then_nothing("follow", || {
        block_on(follow.next())
            .transpose()
            .map(|item: Option<junctura::Item>| item.is_some())
    });
}
