//! Clients of one machine that share a link to a pool of another one.

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use junctura::{Code, EventKind, FollowOptions, Item, Pool, Transport, UpstreamProxy};
use junctura_link::{Gate, GateOptions, ServerIdentity};
use junctura_transport::{Carrier, Outbox, PollInterest, UnixCarrier, wait};
use junctura_wire::Request;

const LARGE: usize = 4 << 20;

/// Whether clients go to the upstream over TCP, too (see CONTRIBUTING.md).
fn is_over_tcp() -> bool {
    std::env::var("JUNCTURA_TEST_DETOUR").is_ok_and(|way| way == "tcp")
}

/// A pool, a gate to it, a wire whose bytes are counted, and an upstream of another "machine".
struct World {
    pool: Pool,
    wire: Wire,
    upstream: UpstreamProxy,
    _gate: Gate,
}

/// Passes on what comes, and counts what goes towards the clients.
struct Wire {
    address: SocketAddr,
    bytes: Arc<AtomicU64>,
    cut: Arc<std::sync::Mutex<Vec<TcpStream>>>,
}

impl Wire {
    fn to(gate: SocketAddr) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let wire = Self {
            address: listener.local_addr().unwrap(),
            bytes: Arc::default(),
            cut: Arc::default(),
        };
        let (bytes, cut) = (Arc::clone(&wire.bytes), Arc::clone(&wire.cut));
        std::thread::spawn(move || {
            while let Ok((near, _)) = listener.accept() {
                let far = TcpStream::connect(gate).unwrap();
                // A wire keeps nothing back.
                near.set_nodelay(true).unwrap();
                far.set_nodelay(true).unwrap();
                let ends = [near.try_clone().unwrap(), far.try_clone().unwrap()];
                cut.lock().unwrap().extend(ends);
                let (up, down) = (Arc::default(), Arc::clone(&bytes));
                pass(near.try_clone().unwrap(), far.try_clone().unwrap(), up);
                pass(far, near, down);
            }
        });
        wire
    }

    fn cut(&self) {
        for end in self.cut.lock().unwrap().drain(..) {
            let _ = end.shutdown(Shutdown::Both);
        }
    }
}

fn pass(mut from: TcpStream, mut to: TcpStream, count: Arc<AtomicU64>) {
    std::thread::spawn(move || {
        let mut piece = vec![0; 256 << 10];
        while let Ok(bytes @ 1..) = from.read(&mut piece) {
            count.fetch_add(bytes as u64, Ordering::Relaxed);
            if to.write_all(&piece[..bytes]).is_err() {
                break;
            }
        }
        let _ = to.shutdown(Shutdown::Write);
    });
}

fn world() -> World {
    let pool = Pool::builder().schema("free").open().unwrap();
    let any = "tcp://127.0.0.1:0".parse().unwrap();
    let options = GateOptions::new(any, pool.url().parse().unwrap(), ServerIdentity::default());
    let gate = Gate::open(options).unwrap();
    let wire = Wire::to(gate.endpoint().resolve().unwrap()[0]);
    let url = format!("tcp://{}", wire.address);
    let here = format!("unix:@upstream-{}-{}", std::process::id(), wire.address.port());
    let upstream = Pool::builder().url(url).upstream(Some(&here)).unwrap();
    World {
        pool,
        wire,
        upstream,
        _gate: gate,
    }
}

impl World {
    fn client(&self) -> Pool {
        Pool::connect(&self.upstream.address().to_string()).unwrap()
    }
}

fn payload(seed: usize, length: usize) -> Vec<u8> {
    (0..length).map(|at| (at * 7 + seed) as u8).collect()
}

fn offer(pool: &Pool, name: usize, length: usize) {
    let text = name.to_string();
    pool.offer([("name", text.as_str())], &payload(name, length)).unwrap();
}

fn next(follow: &mut junctura::Follow) -> junctura::Object {
    loop {
        match follow.next_item().unwrap() {
            Some(Item::Object(object)) => return object,
            Some(_) => {}
            None => panic!("the follow ended"),
        }
    }
}

#[test]
fn sixteen_consumers_cost_one_transfer() {
    let world = world();
    let clients: Vec<Pool> = (0..16).map(|_| world.client()).collect();
    let mut follows: Vec<_> = clients.iter().map(|client| client.follow("").unwrap()).collect();
    for name in 0..8 {
        offer(&world.pool, name, LARGE);
    }
    for follow in &mut follows {
        for name in 0..8 {
            let object = next(follow);
            assert!(object[..] == payload(name, LARGE)[..]);
        }
    }
    let transfers = world.wire.bytes.load(Ordering::Relaxed) as f64 / LARGE as f64;
    assert!(
        (8.0..8.5).contains(&transfers),
        "{transfers} payloads went over the wire"
    );
}

#[test]
fn what_one_of_them_offers_the_others_have() {
    let world = world();
    let (one, other) = (world.client(), world.client());
    for (name, length) in [0_usize, 1, 900, 5_000, 70_000, 804 << 10, LARGE]
        .into_iter()
        .enumerate()
    {
        offer(&one, name, length);
        for reader in [&one, &other, &world.pool] {
            let object = reader.demand(format!("name={name}").as_str(), None).unwrap();
            assert!(object[..] == payload(name, length)[..], "{length} bytes");
            let by_tcp = object.transport() == Transport::Tcp;
            assert!(matches!(object.transport(), Transport::Inline | Transport::Shared) || by_tcp && is_over_tcp());
        }
    }
    let came_back = world.wire.bytes.load(Ordering::Relaxed);
    assert!(
        came_back < 100 << 10,
        "{came_back} bytes came back to where they are from"
    );
}

#[test]
fn what_a_client_that_is_gone_has_offered_stays() {
    let world = world();
    let reader = world.client();
    let producer = world.client();
    offer(&producer, 1, LARGE);
    drop(producer);
    for _ in 0..2 {
        let object = reader.demand("name=1", None).unwrap();
        assert!(object[..] == payload(1, LARGE)[..]);
    }
    let after = world.client();
    offer(&world.pool, 2, LARGE);
    for reader in [&reader, &after] {
        for name in [1, 2] {
            let object = reader.demand(format!("name={name}").as_str(), None).unwrap();
            assert!(object[..] == payload(name, LARGE)[..]);
        }
    }
}

#[test]
fn who_comes_when_all_readers_have_gone_gets_everything() {
    let world = world();
    offer(&world.pool, 1, LARGE);
    for _ in 0..3 {
        let client = world.client();
        assert!(client.demand("name=1", None).unwrap()[..] == payload(1, LARGE)[..]);
    }
    // One that exists when the only reader leaves.
    let waiting = world.client();
    for name in 2..30 {
        offer(&world.pool, name, 100_000);
        let reader = world.client();
        let selector = format!("name={name}");
        assert!(reader.demand(selector.as_str(), None).unwrap()[..] == payload(name, 100_000)[..]);
        drop(reader);
        assert!(waiting.demand(selector.as_str(), None).unwrap()[..] == payload(name, 100_000)[..]);
    }
}

#[test]
fn who_does_not_read_holds_up_nobody_else() {
    let world = world();
    let (slow, quick) = (world.client(), world.client());
    // Far more than its rings and its room take, and none of it taken by the program.
    let events = slow.subscribe("", &[EventKind::Offered]).unwrap();
    let mut quick_follow = quick.follow("").unwrap();
    for name in 0..20_000 {
        offer(&world.pool, name, 200);
        let object = next(&mut quick_follow);
        assert!(object[..] == payload(name, 200)[..]);
    }
    drop(events);
}

#[test]
fn members_of_a_group_share_through_it_too() {
    let world = world();
    let members: Vec<Pool> = (0..4).map(|_| world.client()).collect();
    let options = FollowOptions {
        group: Some("g".into()),
        ..FollowOptions::default()
    };
    let mut follows: Vec<_> = members
        .iter()
        .map(|one| one.follow_with("", options.clone()).unwrap())
        .collect();
    for name in 0..40 {
        offer(&world.pool, name, 100_000);
    }
    let mut seen = std::collections::BTreeSet::new();
    while seen.len() < 40 {
        for follow in &mut follows {
            while let Some(Item::Object(object)) = follow.try_next().unwrap() {
                assert!(seen.insert(object.version()), "each goes to one");
            }
        }
    }
}

#[test]
fn a_wire_that_is_cut_ends_its_clients_and_the_next_one_dials_anew() {
    let world = world();
    let client = world.client();
    offer(&client, 1, LARGE);
    world.wire.cut();
    let error = client.demand("name=nobody", None).unwrap_err();
    assert_eq!(error.code(), Code::Disconnected, "{error}");
    let again = world.client();
    let object = again.demand("name=1", None).unwrap();
    assert!(object[..] == payload(1, LARGE)[..]);
}

#[test]
fn who_stops_it_ends_its_clients_alone() {
    let world = world();
    let client = world.client();
    offer(&client, 1, 10);
    let World { pool, upstream, .. } = world;
    let address = upstream.address().to_string();
    drop(upstream);
    assert_eq!(client.demand("name=2", None).unwrap_err().code(), Code::Disconnected);
    assert_eq!(Pool::connect(&address).unwrap_err().code(), Code::Unavailable);
    assert_eq!(&pool.demand("name=1", None).unwrap()[..], payload(1, 10));
}

#[test]
fn who_connects_first_and_speaks_last_is_let_in_too() {
    let world = world();
    let mut quiet = UnixCarrier::connect(world.upstream.address()).unwrap();
    let clients: Vec<Pool> = std::thread::scope(|scope| {
        let all: Vec<_> = (0..8).map(|_| scope.spawn(|| world.client())).collect();
        all.into_iter().map(|one| one.join().unwrap()).collect()
    });
    offer(&world.pool, 1, LARGE);
    for client in &clients {
        assert!(client.demand("name=1", None).unwrap()[..] == payload(1, LARGE)[..]);
    }
    // It does not even say who it is: whatever the answer is, there is one.
    let mut outbox = Outbox::new();
    outbox.push(|out| Request::Stat.encode(1, out)).unwrap();
    quiet.send(&mut outbox).unwrap();
    assert!(wait(quiet.as_fd(), PollInterest::READ).unwrap().readable);
}
