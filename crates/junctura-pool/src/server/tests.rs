//! Clients that connect and do not introduce themselves, made by hand, before a server on a thread.

use junctura_model::{Code, Error};
use junctura_transport::{Carrier, Inbox, Interest, Outbox, Received, UnixCarrier, wait};
use junctura_wire::{Reply, Request, VERSION, body};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use super::{Embedded, Server, ServerOptions};
use crate::{Config, Limits};

/// A server for so many clients.
fn served(clients: usize) -> Embedded {
    let options = ServerOptions {
        config: Config {
            limits: Limits {
                clients,
                ..Limits::default()
            },
            ..Config::default()
        },
        ..ServerOptions::default()
    };
    Server::start_embedded(options).unwrap()
}

fn say_hello(client: &mut UnixCarrier) {
    let hello = body::Hello {
        version: VERSION,
        ring_bytes: Some(4096),
        ..body::Hello::default()
    };
    let mut out = Outbox::new();
    out.push(|bytes| Request::Hello(hello).encode(1, bytes)).unwrap();
    // A server that refuses a client at once has closed the connection.
    let _ = client.send(&mut out);
}

/// Whether the client is welcome; otherwise, why not.
fn hear(client: &mut UnixCarrier) -> Result<(), Error> {
    let mut inbox = Inbox::new();
    loop {
        while let Some((frame, _)) = inbox.next_frame().unwrap() {
            match Reply::decode(&frame).unwrap() {
                Reply::Welcome(_) => return Ok(()),
                Reply::Failed(failure) => return Err(failure.into()),
                _ => {}
            }
        }
        match client.receive(&mut inbox).unwrap() {
            Received::End => panic!("the server gives a reason before it closes"),
            Received::Nothing => drop(wait(client.as_fd(), Interest::READ).unwrap()),
            _ => {}
        }
    }
}

#[test]
fn a_client_that_is_silent_goes_for_one_that_introduces_itself() {
    let server = served(4);
    let connect = || UnixCarrier::connect(server.address()).unwrap();
    let mut silent: Vec<_> = (0..10).map(|_| connect()).collect();
    let mut honest: Vec<_> = (0..4)
        .map(|_| {
            let mut client = connect();
            say_hello(&mut client);
            hear(&mut client).unwrap();
            client
        })
        .collect();
    for client in &mut silent {
        let error = hear(client).unwrap_err();
        assert_eq!(error.code(), Code::LimitExceeded, "{error}");
        assert!(error.cause().contains("introduced itself"), "{error}");
    }
    // Those that are in stay, and one more hears that there are too many.
    let error = hear(&mut connect()).unwrap_err();
    assert_eq!((error.code(), error.subject()), (Code::LimitExceeded, "clients"));
    // One that leaves makes room.
    drop(honest.pop());
    loop {
        let mut client = connect();
        say_hello(&mut client);
        if hear(&mut client).is_ok() {
            break;
        }
    }
}

#[test]
fn without_descriptors_for_rings_a_client_is_told_so() {
    const VARIABLE: &str = "JUNCTURA_TEST_RINGS";
    if std::env::var_os(VARIABLE).is_none() {
        // In a process of its own, whose limit is its own.
        let done = std::process::Command::new(std::env::current_exe().unwrap())
            .args([
                "--exact",
                "server::tests::without_descriptors_for_rings_a_client_is_told_so",
            ])
            .env(VARIABLE, "1")
            .output()
            .unwrap();
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stdout));
        return;
    }
    let server = served(4);
    let mut late = UnixCarrier::connect(server.address()).unwrap();
    let mut first = UnixCarrier::connect(server.address()).unwrap();
    say_hello(&mut first);
    hear(&mut first).unwrap();
    let next = rustix::io::fcntl_dupfd_cloexec(late.as_fd(), 0).unwrap();
    let used = std::os::fd::AsRawFd::as_raw_fd(&next) as u64;
    drop(next);
    let limit = Rlimit {
        current: Some(used),
        ..getrlimit(Resource::Nofile)
    };
    setrlimit(Resource::Nofile, limit).unwrap();
    say_hello(&mut late);
    let error = hear(&mut late).unwrap_err();
    assert_eq!(error.code(), Code::LimitExceeded, "{error}");
    let cause = format!("the server cannot open more file descriptors (limit {used}); raise it with `ulimit -n`");
    assert!(error.cause().contains(&cause), "{error}");
}
