//! Links of several streams: what is large goes over all of them, and arrives whole or not at all.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use junctura::{Code, FollowOptions, Item, Pool, PoolBuilder, Transport};
use junctura_link::{Endpoint, Gate, GateOptions, ServerIdentity, ServerTls};
use rcgen::{CertificateParams, IsCa, Issuer, KeyPair};

const STREAMS: usize = 3;
const PART: usize = 512 << 10;
/// Around what goes in parts, and around where parts begin.
const LENGTHS: [usize; 9] = [
    0,
    2 * PART - 1,
    2 * PART,
    2 * PART + 1,
    3 * PART - 1,
    3 * PART,
    5 * PART + 7,
    15 << 20,
    (16 << 20) + 1,
];

/// A pool and a gate to it, in the clear or within TLS.
struct World {
    pool: Pool,
    gate: Gate,
    secrets: Option<tempfile::TempDir>,
}

fn certify(folder: &Path) {
    let write = |name: &str, text: String| std::fs::write(folder.join(name), text).unwrap();
    let mut authority = CertificateParams::default();
    authority.is_ca = IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
    let key = KeyPair::generate().unwrap();
    write("ca.pem", authority.self_signed(&key).unwrap().pem());
    let issuer = Issuer::new(authority, key);
    let server = KeyPair::generate().unwrap();
    let certificate = CertificateParams::new(["127.0.0.1".to_owned()]).unwrap();
    write("server.pem", certificate.signed_by(&server, &issuer).unwrap().pem());
    write("server.key", server.serialize_pem());
}

impl World {
    fn new(builder: PoolBuilder, is_secret: bool) -> Self {
        let pool = builder.schema("free").open().unwrap();
        let secrets = is_secret.then(|| tempfile::tempdir().unwrap());
        let tls = secrets.as_ref().map(|folder| {
            certify(folder.path());
            ServerTls::read(&folder.path().join("server.pem"), &folder.path().join("server.key")).unwrap()
        });
        let any = "tcp://127.0.0.1:0".parse().unwrap();
        let options = GateOptions::new(any, pool.url().parse().unwrap(), ServerIdentity::default());
        let gate = Gate::open(GateOptions { tls, ..options }).unwrap();
        Self { pool, gate, secrets }
    }

    fn plain() -> Self {
        Self::new(Pool::builder(), false)
    }

    fn way_to(&self, endpoint: &Endpoint) -> PoolBuilder {
        let builder = Pool::builder()
            .url(endpoint.to_string())
            .transports("tcp")
            .streams(STREAMS);
        match &self.secrets {
            None => builder,
            Some(folder) => builder.ca_file(folder.path().join("ca.pem")),
        }
    }

    fn remote(&self) -> Pool {
        self.way_to(self.gate.endpoint()).open().unwrap()
    }
}

/// No two places of it that lie parts apart look the same.
fn payload(seed: usize, length: usize) -> Vec<u8> {
    let piece: Vec<u8> = (0..4099).map(|at| (at / 256 * 13 + at * 7 + seed) as u8).collect();
    let mut bytes = piece.repeat(length.div_ceil(piece.len()));
    bytes.truncate(length);
    bytes
}

fn offer(pool: &Pool, name: usize, length: usize) -> junctura::Result<()> {
    let text = name.to_string();
    pool.offer([("name", text.as_str())], &payload(name, length)).map(drop)
}

fn is_there(pool: &Pool, name: usize, length: usize) -> junctura::Object {
    let object = pool.demand(format!("name={name}").as_str(), None).unwrap();
    assert!(
        object[..] == payload(name, length)[..],
        "object {name} of {length} bytes"
    );
    object
}

#[test]
fn payloads_of_every_length_go_both_ways() {
    for is_secret in [false, true] {
        let world = World::new(Pool::builder(), is_secret);
        let (near, far) = (&world.pool, &world.remote());
        let route = far.route().unwrap();
        let expected = if is_secret {
            "tcp, TLS, 3 streams"
        } else {
            "tcp, 3 streams"
        };
        assert_eq!(route, expected);
        for (number, length) in LENGTHS.into_iter().enumerate() {
            for (way, (from, to)) in [(near, far), (far, near), (far, far)].into_iter().enumerate() {
                let name = number * 10 + way;
                offer(from, name, length).unwrap();
                let object = is_there(to, name, length);
                if std::ptr::eq(to, far) && length > 0 {
                    assert_eq!(object.transport(), Transport::Tcp);
                }
            }
        }
    }
}

#[test]
fn many_at_once_come_in_their_order() {
    const OBJECTS: usize = 60;
    let world = World::plain();
    let (up, down) = (world.remote(), world.remote());
    let lengths = |name: usize| LENGTHS[name % 7] + name;
    let mut follow = down
        .follow_with(
            "",
            FollowOptions {
                window: Some(5),
                ..FollowOptions::default()
            },
        )
        .unwrap();
    let offering = std::thread::spawn(move || {
        let mut pipeline = up.pipeline(8).unwrap();
        for name in 0..OBJECTS {
            let text = name.to_string();
            pipeline
                .offer([("name", text.as_str())], &payload(name, lengths(name)))
                .unwrap();
        }
        pipeline.flush().unwrap();
    });
    for name in 0..OBJECTS {
        let object = loop {
            match follow.next_item().unwrap() {
                Some(Item::Object(object)) => break object,
                Some(Item::Gap(_)) | None => panic!("nothing is missing"),
                Some(_) => {}
            }
        };
        assert_eq!(object.get("name").unwrap(), name.to_string());
        assert!(object[..] == payload(name, lengths(name))[..], "object {name}");
    }
    offering.join().unwrap();
}

#[test]
fn what_lies_in_a_file_goes_in_parts_too() {
    const LENGTH: usize = 5 * PART + 3;
    let folder = tempfile::tempdir().unwrap();
    let builder = Pool::builder()
        .budget_bytes(16 << 20)
        .spill(folder.path(), Some(256 << 20));
    let world = World::new(builder, false);
    for name in 0..20 {
        offer(&world.pool, name, LENGTH).unwrap();
    }
    let far = world.remote();
    for name in 0..20 {
        is_there(&far, name, LENGTH);
    }
}

#[test]
fn what_a_mirror_forgets_comes_again() {
    const LENGTH: usize = 3 * PART + 1;
    let world = World::plain();
    for name in 0..12 {
        offer(&world.pool, name, LENGTH).unwrap();
    }
    let small = world.way_to(world.gate.endpoint()).mirror_bytes(2 * LENGTH as u64);
    let far = small.open().unwrap();
    let held = is_there(&far, 5, LENGTH);
    for _ in 0..3 {
        for name in 0..12 {
            is_there(&far, name, LENGTH);
        }
    }
    assert!(held[..] == payload(5, LENGTH)[..]);
}

#[test]
fn what_is_given_back_beyond_the_limit_is_forgotten_without_a_next_payload() {
    const LENGTH: usize = 2 * PART + 1;
    const OBJECTS: usize = 4;
    let world = World::plain();
    for name in 0..OBJECTS {
        offer(&world.pool, name, LENGTH).unwrap();
    }
    let wire = Wire::to(&world.gate, None);
    let far = world.way_to(&wire.endpoint).mirror_bytes(0).open().unwrap();
    for round in 1..=3 {
        // All are held when the last one comes, so that nothing can be forgotten then.
        let held: Vec<_> = (0..OBJECTS).map(|name| is_there(&far, name, LENGTH)).collect();
        let down: u64 = (0..STREAMS).map(|stream| wire.carried(stream, 1)).sum();
        assert!(
            down >= (round * OBJECTS * LENGTH) as u64,
            "round {round}: {down} bytes came"
        );
        drop(held);
    }
}

#[test]
fn what_was_offered_before_the_pool_was_closed_has_arrived() {
    let world = World::plain();
    for round in 0..8 {
        let far = world.remote();
        let mut pipeline = far.pipeline(64).unwrap();
        for number in 0..6 {
            let name = (round * 6 + number).to_string();
            pipeline
                .offer([("name", name.as_str())], &payload(number, 4 * PART + number))
                .unwrap();
        }
        pipeline.flush().unwrap();
        far.close();
        drop(far);
        for number in 0..6 {
            let name = format!("name={}", round * 6 + number);
            let object = world.pool.demand(name.as_str(), None).unwrap();
            assert!(object[..] == payload(number, 4 * PART + number)[..], "{name}");
        }
        world
            .pool
            .withdraw_all("", junctura::WithdrawOptions::default())
            .unwrap();
    }
}

/// Passes on what comes, counts it by connection, in their order, and cuts one when told.
struct Wire {
    endpoint: Endpoint,
    /// Up, and down.
    bytes: Arc<[[AtomicU64; 2]; STREAMS]>,
}

/// Which connection is cut, in which direction, behind how many bytes.
type Cut = (usize, usize, u64);

impl Wire {
    fn to(gate: &Gate, cut: Option<Cut>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let endpoint = listener.local_addr().unwrap().into();
        let port = gate.endpoint().port();
        let bytes: Arc<[[AtomicU64; 2]; STREAMS]> = Arc::default();
        let counts = Arc::clone(&bytes);
        std::thread::spawn(move || {
            for number in 0..STREAMS {
                let (near, _) = listener.accept().unwrap();
                let far = TcpStream::connect(("127.0.0.1", port)).unwrap();
                for (way, (from, to)) in [(&near, &far), (&far, &near)].into_iter().enumerate() {
                    from.set_nodelay(true).unwrap();
                    let ends = (from.try_clone().unwrap(), to.try_clone().unwrap());
                    let most = cut
                        .filter(|(which, direction, _)| (*which, *direction) == (number, way))
                        .map(|(.., bytes)| bytes);
                    let counts = Arc::clone(&counts);
                    std::thread::spawn(move || pass(ends, &counts[number][way], most));
                }
            }
        });
        Self { endpoint, bytes }
    }

    fn carried(&self, stream: usize, way: usize) -> u64 {
        self.bytes[stream][way].load(Ordering::Relaxed)
    }
}

fn pass((mut from, mut to): (TcpStream, TcpStream), count: &AtomicU64, most: Option<u64>) {
    let mut piece = vec![0; 64 << 10];
    while let Ok(bytes @ 1..) = from.read(&mut piece) {
        let before = count.fetch_add(bytes as u64, Ordering::Relaxed);
        if most.is_some_and(|most| before + bytes as u64 > most) {
            let _ = from.shutdown(Shutdown::Both);
            let _ = to.shutdown(Shutdown::Both);
            return;
        }
        if to.write_all(&piece[..bytes]).is_err() {
            break;
        }
    }
    let _ = to.shutdown(Shutdown::Write);
}

#[test]
fn all_streams_carry_something() {
    const LENGTH: usize = 8 << 20;
    let world = World::plain();
    let wire = Wire::to(&world.gate, None);
    let far = world.way_to(&wire.endpoint).open().unwrap();
    let have_carried = |way| (0..STREAMS).all(|stream| wire.carried(stream, way) > LENGTH as u64);
    let mut name = 0;
    // As many as it takes: which stream takes how much is the system's to decide.
    while !(have_carried(0) && have_carried(1)) {
        for (from, to) in [(&world.pool, &far), (&far, &world.pool)] {
            offer(from, name, LENGTH).unwrap();
            is_there(to, name, LENGTH);
            name += 1;
        }
        world
            .pool
            .withdraw_all("", junctura::WithdrawOptions::default())
            .unwrap();
    }
}

#[test]
fn a_stream_that_is_cut_leaves_nothing_partial() {
    const LENGTH: usize = 8 << 20;
    let world = World::new(Pool::builder().budget_bytes(256 << 20), false);
    // Up: an offer whose payload does not come whole never was.
    let mut offered = 100;
    for cut in [1000, PART as u64 / 2, 3 * PART as u64] {
        let wire = Wire::to(&world.gate, Some((2, 0, cut)));
        let far = world.way_to(&wire.endpoint).open().unwrap();
        let error = loop {
            offered += 1;
            if let Err(error) = offer(&far, offered, LENGTH) {
                break error;
            }
            if offered.is_multiple_of(16) {
                world
                    .pool
                    .withdraw_all("", junctura::WithdrawOptions::default())
                    .unwrap();
            }
        };
        assert_eq!(error.code(), Code::Disconnected, "{error}");
        assert_eq!(far.list("").unwrap_err().code(), Code::Disconnected);
        for object in world.pool.list("").unwrap() {
            let name: usize = object.get("name").unwrap().parse().unwrap();
            is_there(&world.pool, name, LENGTH);
        }
        world
            .pool
            .withdraw_all("", junctura::WithdrawOptions::default())
            .unwrap();
    }
    // Down: who was to get it learns that the link is gone, and finds it whole over another one.
    for name in 0..8 {
        offer(&world.pool, name, LENGTH).unwrap();
    }
    let wire = Wire::to(&world.gate, Some((1, 1, PART as u64)));
    let far = world.way_to(&wire.endpoint).mirror_bytes(0).open().unwrap();
    let error = loop {
        let received: junctura::Result<Vec<_>> = (0..8)
            .map(|name| far.demand(format!("name={name}").as_str(), None))
            .collect();
        match received {
            Ok(objects) => assert!(
                (0..)
                    .zip(objects)
                    .all(|(name, object)| object[..] == payload(name, LENGTH)[..])
            ),
            Err(error) => break error,
        }
    };
    assert_eq!(error.code(), Code::Disconnected, "{error}");
    let far = world.remote();
    for name in 0..8 {
        is_there(&far, name, LENGTH);
    }
}

#[test]
fn those_who_share_a_link_get_what_came_once() {
    const LENGTH: usize = 6 * PART + 11;
    const OBJECTS: usize = 10;
    let world = World::plain();
    let wire = Wire::to(&world.gate, None);
    let here = format!("unix:@streams-{}-{}", std::process::id(), wire.endpoint.port());
    let upstream = world.way_to(&wire.endpoint).upstream(Some(&here)).unwrap();
    let clients: Vec<_> = (0..3)
        .map(|_| Pool::connect(&upstream.address().to_string()).unwrap())
        .collect();
    std::thread::scope(|scope| {
        for (number, client) in clients.iter().enumerate() {
            scope.spawn(move || {
                offer(client, 100 + number, LENGTH).unwrap();
                for name in 0..OBJECTS {
                    is_there(client, name, LENGTH);
                }
            });
        }
        for name in 0..OBJECTS {
            offer(&world.pool, name, LENGTH).unwrap();
        }
    });
    for number in 0..3 {
        is_there(&world.pool, 100 + number, LENGTH);
        is_there(&clients[(number + 1) % 3], 100 + number, LENGTH);
    }
    let down: u64 = (0..STREAMS).map(|stream| wire.carried(stream, 1)).sum();
    assert!(down < ((OBJECTS + 4) * LENGTH) as u64, "{down} bytes came");
    // One that goes takes nothing of the others' along.
    let mut clients = clients.into_iter();
    drop(clients.next());
    for client in clients {
        is_there(&client, 3, LENGTH);
        is_there(&client, 102, LENGTH);
    }
}

#[test]
fn a_link_has_from_one_to_eight() {
    let world = World::plain();
    for streams in [0, 9, 1000] {
        let way = world.way_to(world.gate.endpoint()).streams(streams);
        assert_eq!(way.open().unwrap_err().code(), Code::InvalidArgument, "{streams}");
    }
    for streams in [1, 2, 8] {
        let far = world.way_to(world.gate.endpoint()).streams(streams).open().unwrap();
        offer(&far, streams, 9 * PART).unwrap();
        is_there(&world.pool, streams, 9 * PART);
    }
}
