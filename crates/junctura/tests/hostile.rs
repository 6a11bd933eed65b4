//! A client that breaks the rules loses its own connection; everybody else goes on.
//!
//! The hostile clients are made by hand, since ours cannot be made to do this.

use std::fs::File;
use std::io::Write;
use std::os::fd::OwnedFd;
use std::time::Duration;

use junctura::{EventKind, Pool, Target, WithdrawOptions};
use junctura_pool::PoolConfig;
use junctura_pool::server::{Server, ServerOptions};
use junctura_transport::{
    Carrier, ConnectionRings, HostileWriter, Inbox, LocalCarrier, Outbox, PollInterest, ReceiveResult, ServerAddress,
    UnixCarrier, wait,
};
use junctura_wire::{Reply, Request, VERSION, body};

/// Where words lie in the memory of rings (`docs/formats/wire.md`).
const WRITTEN_TO_SERVER: usize = 0;
const READ_BY_CLIENT: usize = 256 + 128;

/// A client made by hand.
struct Hostile {
    carrier: LocalCarrier,
    inbox: Inbox,
    scribbler: HostileWriter,
    server_bell: File,
}

impl Hostile {
    fn join(url: &str) -> Self {
        let mut socket = UnixCarrier::connect(&url.parse::<ServerAddress>().unwrap()).unwrap();
        let hello = body::Hello {
            version: VERSION,
            name: "hostile".into(),
            ring_bytes: Some(4096),
            ..body::Hello::default()
        };
        let mut out = Outbox::new();
        out.push(|bytes| Request::Hello(hello).encode(1, bytes)).unwrap();
        socket.send(&mut out).unwrap();
        let mut inbox = Inbox::new();
        let mut parts: Vec<OwnedFd> = Vec::new();
        while parts.len() < 3 {
            wait(socket.as_fd(), PollInterest::READ).unwrap();
            socket.receive(&mut inbox).unwrap();
            while let Some((frame, descriptor)) = inbox.next_frame().unwrap() {
                if let Reply::Rings(_) = Reply::decode(&frame).unwrap() {
                    parts.push(descriptor.unwrap());
                }
            }
        }
        let server_bell = parts[1].try_clone().unwrap().into();
        let rings = ConnectionRings::join(4096, parts.try_into().unwrap()).unwrap();
        let scribbler = rings.scribbler();
        let mut carrier = LocalCarrier::new(socket);
        carrier.switch(rings, 0);
        Self {
            carrier,
            inbox,
            scribbler,
            server_bell,
        }
    }

    /// Wakes the server, whatever the flags in its memory say.
    fn ring(&mut self) {
        self.server_bell.write_all(&1_u64.to_ne_bytes()).unwrap();
    }

    /// Wants everything, and does not read it.
    fn follow(&mut self) {
        self.say(&Request::Follow(body::FollowRequest {
            window: 10_000,
            ..body::FollowRequest::default()
        }));
    }

    fn say(&mut self, request: &Request<'_>) {
        let mut out = Outbox::new();
        out.push(|bytes| request.encode(7, bytes)).unwrap();
        self.carrier.send(&mut out).unwrap();
    }

    /// Hears whatever comes until the server has ended the connection.
    fn hears_the_end(mut self) {
        loop {
            match self.carrier.receive(&mut self.inbox) {
                Ok(ReceiveResult::End) => return,
                Ok(ReceiveResult::Nothing) => drop(wait(self.carrier.as_fd(), PollInterest::READ).unwrap()),
                Ok(_) => while let Ok(Some(_)) = self.inbox.next_frame() {},
                // Its own rings are scribbled over; the socket still says how it ends.
                Err(_) => {
                    let mut socket = self.carrier.socket().clone();
                    while socket.receive(&mut Inbox::new()).unwrap() != ReceiveResult::End {
                        wait(socket.as_fd(), PollInterest::READ).unwrap();
                    }
                    return;
                }
            }
        }
    }
}

fn pool() -> Pool {
    Pool::builder().schema("free").open().unwrap()
}

/// Offers so many objects of so many bytes.
fn offer(pool: &Pool, count: usize, bytes: usize) {
    let payload = vec![1_u8; bytes];
    for number in 0..count {
        pool.offer([("name", format!("{number}").as_str())], &payload).unwrap();
    }
}

/// Others hand over as if nothing had happened.
fn works(pool: &Pool, name: &str) {
    let payload = vec![7_u8; 100_000];
    pool.offer([("name", name)], &payload).unwrap();
    let object = pool.demand(format!("name={name}").as_str(), None).unwrap();
    assert_eq!(&object[..], &payload[..]);
}

#[test]
fn a_position_that_cannot_be_ends_the_client_that_says_it() {
    let pool = pool();
    let mut hostile = Hostile::join(pool.url());
    hostile.say(&Request::Stat);
    hostile.scribbler.scribble(WRITTEN_TO_SERVER, &u64::MAX.to_ne_bytes());
    hostile.ring();
    hostile.hears_the_end();
    works(&pool, "written");

    let mut hostile = Hostile::join(pool.url());
    hostile.follow();
    hostile.scribbler.scribble(READ_BY_CLIENT, &(1_u64 << 40).to_ne_bytes());
    offer(&pool, 30, 500);
    hostile.hears_the_end();
    works(&pool, "read");
}

#[test]
fn a_client_that_asks_much_at_once_is_answered_in_turns() {
    const REQUESTS: u64 = 500;
    let server = Server::start_embedded(ServerOptions {
        turn: Duration::ZERO,
        ..ServerOptions::default()
    })
    .unwrap();
    let url = server.address().to_string();
    let pool = Pool::builder().url(&url).schema("free").open().unwrap();
    let mut departures = pool.subscribe("", &[EventKind::Left]).unwrap();
    let mut out = Outbox::new();
    let hello = body::Hello {
        version: VERSION,
        ..body::Hello::default()
    };
    out.push(|bytes| Request::Hello(hello).encode(1, bytes)).unwrap();
    for number in 0..REQUESTS {
        let require = body::RequireRequest {
            name: Some(format!("r{number}").into()),
            ..body::RequireRequest::default()
        };
        out.push(|bytes| Request::Require(require).encode(2 + number, bytes))
            .unwrap();
    }
    let mut socket = UnixCarrier::connect(&url.parse::<ServerAddress>().unwrap()).unwrap();
    while !out.is_empty() {
        socket.send(&mut out).unwrap();
    }
    drop(socket);
    departures.next_event().unwrap().unwrap();
    for number in 0..REQUESTS {
        pool.retract(&format!("r{number}")).unwrap();
    }
    works(&pool, "turns");
}

#[test]
fn a_request_about_very_many_objects_is_answered_in_turns() {
    const OBJECTS: usize = 2000;
    let server = Server::start_embedded(ServerOptions {
        turn: Duration::ZERO,
        config: PoolConfig {
            looked_at_once: 10,
            ..PoolConfig::default()
        },
        ..ServerOptions::default()
    })
    .unwrap();
    let url = server.address().to_string();
    let open = || Pool::builder().url(&url).schema("free").open().unwrap();
    let pool = open();
    offer(&pool, OBJECTS, 1);
    std::thread::scope(|scope| {
        let lists = [(); 3].map(|()| {
            scope.spawn(|| {
                let pool = open();
                let entries = pool.list("name~\"^[0-9]+$\"").unwrap();
                let names: Vec<_> = entries.iter().filter_map(|entry| entry.get("name")).collect();
                assert!(names.is_sorted() && names.len() == OBJECTS);
                assert_eq!(pool.demand("name~\"^[0-9]\"", Some(Duration::ZERO)).unwrap().len(), 1);
                assert_eq!(
                    pool.follow("name~\"^1...$\"").unwrap().into_iter().take(1000).count(),
                    1000
                );
            })
        });
        // Their bytes are more than one, and no list has them.
        for number in 0.. {
            let object = format!("x{number}");
            pool.offer([("name", object.as_str())], b"").unwrap();
            pool.withdraw(Target::key([("name", object.as_str())]), WithdrawOptions::default())
                .unwrap();
            if lists.iter().all(std::thread::ScopedJoinHandle::is_finished) {
                break;
            }
        }
        for list in lists {
            list.join().unwrap();
        }
    });
    works(&pool, "many");
}

#[test]
fn garbage_in_the_ring_ends_the_client() {
    let pool = pool();
    let mut hostile = Hostile::join(pool.url());
    let mut out = Outbox::new();
    out.push_unchecked(&[0xee; 300], None);
    hostile.carrier.send(&mut out).unwrap();
    hostile.hears_the_end();
    works(&pool, "garbage");
}

#[test]
fn memory_full_of_rubbish_ends_the_client() {
    let pool = pool();
    for seed in 0..20_u64 {
        let mut hostile = Hostile::join(pool.url());
        let rubbish: Vec<u8> = (0..3 * 4096_u64)
            .map(|at| (at.wrapping_add(seed).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as u8)
            .collect();
        hostile.say(&Request::Stat);
        hostile.scribbler.scribble(0, &rubbish);
        hostile.ring();
        hostile.hears_the_end();
    }
    works(&pool, "rubbish");
}

#[test]
fn who_does_not_read_is_not_waited_for() {
    let pool = pool();
    let mut deaf = Hostile::join(pool.url());
    deaf.follow();
    // More than the server queues for a client before it listens to it no more.
    offer(&pool, 3000, 4000);
    works(&pool, "deaf");
    let mut departures = pool.subscribe("", &[EventKind::Left]).unwrap();
    drop(deaf);
    let left = departures.next_event().unwrap().unwrap();
    assert_eq!(left.client.unwrap().name, "hostile");
    works(&pool, "gone");
}
