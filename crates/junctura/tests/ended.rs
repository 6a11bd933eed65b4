//! What becomes of those who wait when the connection ends.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::channel;
use std::sync::{Arc, OnceLock};
use std::thread;
use std::time::Duration;

use junctura::{Code, Pool, Result};
use junctura_pool::server::{Server, ServerOptions};

#[test]
fn everybody_who_waits_learns_that_the_server_is_gone() {
    let server = Server::start_embedded(ServerOptions::default()).unwrap();
    let pool = Pool::connect(&server.address().to_string()).unwrap();
    let (sender, receiver) = channel();
    let waiting: Vec<_> = (0..4)
        .map(|i| {
            let (pool, sender) = (pool.clone(), sender.clone());
            thread::spawn(move || -> Result<()> {
                let follow = pool.follow("")?;
                sender.send(()).unwrap();
                if i % 2 == 0 {
                    pool.demand("param=t", None).map(drop)
                } else {
                    follow.into_iter().find_map(Result::err).map_or(Ok(()), Err)
                }
            })
        })
        .collect();
    for _ in 0..4 {
        receiver.recv().unwrap();
    }
    drop(server);
    for thread in waiting {
        assert_eq!(thread.join().unwrap().unwrap_err().code(), Code::Closed);
    }
    assert_eq!(pool.list("").unwrap_err().code(), Code::Closed);
    assert_eq!(pool.allocate(100_000).unwrap_err().code(), Code::Closed);
}

#[test]
fn who_asks_without_waiting_learns_it_too() {
    let server = Server::start_embedded(ServerOptions::default()).unwrap();
    let pool = Pool::connect(&server.address().to_string()).unwrap();
    let mut follow = pool.follow("").unwrap();
    let mut events = pool.subscribe("", &[]).unwrap();
    // Each reports it once.
    let mut bounded = pool.follow("").unwrap();
    let mut bounded_events = pool.subscribe("", &[]).unwrap();
    drop(server);
    let asked = [
        until_it_fails(|| bounded.next_within(Duration::ZERO).map(drop)),
        until_it_fails(|| bounded_events.next_within(Duration::ZERO).map(drop)),
        until_it_fails(|| follow.try_next().map(drop)),
        until_it_fails(|| events.try_next().map(drop)),
    ];
    assert_eq!(asked, [Code::Closed; 4]);
}

/// What is asked for is not there, or something comes that was said before.
fn until_it_fails(mut ask: impl FnMut() -> Result<()>) -> Code {
    loop {
        match ask() {
            Err(error) if error.code() != Code::Timeout => return error.code(),
            _ => std::hint::spin_loop(),
        }
    }
}

#[test]
fn closing_wakes_those_who_wait() {
    let pool = Pool::embedded().unwrap();
    let (sender, receiver) = channel();
    let other = pool.clone();
    let waiting = thread::spawn(move || {
        let follow = other.follow("").unwrap();
        sender.send(()).unwrap();
        follow.into_iter().find_map(Result::err).map(|error| error.code())
    });
    receiver.recv().unwrap();
    pool.close();
    assert_eq!(waiting.join().unwrap(), Some(Code::Closed));
}

#[test]
fn nobody_there_is_unavailable() {
    assert_eq!(
        Pool::connect("unix:@junctura-test-nobody").unwrap_err().code(),
        Code::Unavailable
    );
    assert_eq!(
        Pool::connect("http://host:1").unwrap_err().code(),
        Code::InvalidArgument
    );
    let start = Pool::builder().url("unix:@junctura-test-nobody").start(true).open();
    assert_eq!(start.unwrap_err().code(), Code::Unsupported);
}

#[test]
fn an_interrupt_hook_ends_a_wait() {
    let pool = Pool::builder()
        .on_interrupt(|| Err(junctura::Error::new(Code::Interrupted, "test", "enough")))
        .open()
        .unwrap();
    assert_eq!(pool.demand("param=t", None).unwrap_err().code(), Code::Interrupted);
    assert_eq!(pool.list("").unwrap().len(), 0);
}

#[test]
fn an_interrupt_hook_may_use_the_pool_that_the_thread_waits_on() {
    let server = Server::start_embedded(ServerOptions::default()).unwrap();
    let shared = Arc::new(OnceLock::<Pool>::new());
    let (of_hook, asked) = (Arc::clone(&shared), AtomicBool::new(false));
    let hook = move || {
        if let Some(pool) = of_hook.get()
            && !asked.swap(true, Ordering::SeqCst)
        {
            pool.offer([("name", "hooked")], b"")?;
            assert_eq!(pool.list("")?.len(), 1);
        }
        Ok(())
    };
    let url = server.address().to_string();
    let pool = Pool::builder()
        .url(&url)
        .schema("free")
        .on_interrupt(hook)
        .open()
        .unwrap();
    shared.set(pool.clone()).unwrap();
    assert_eq!(pool.demand("name=hooked", None).unwrap().len(), 0);
}
