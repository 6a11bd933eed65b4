//! Pools over TCP: the same handles, another URL.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

use junctura::{Code, FollowOptions, Item, OfferOptions, Pool, Retention, Transport};
use junctura_link::{Endpoint, Gate, GateOptions, ServerIdentity};

/// Whether all pools are reached over TCP here (see CONTRIBUTING.md).
fn is_over_tcp() -> bool {
    std::env::var("JUNCTURA_TEST_DETOUR").is_ok_and(|way| way == "tcp")
}

/// A pool of this process, and a gate to it.
fn served(identity: impl FnOnce(&Pool) -> ServerIdentity) -> (Pool, Gate) {
    let pool = Pool::builder().schema("free").open().unwrap();
    let any = "tcp://127.0.0.1:0".parse().unwrap();
    let gate = Gate::open(GateOptions::new(any, pool.url().parse().unwrap(), identity(&pool))).unwrap();
    (pool, gate)
}

fn gated() -> (Pool, Gate) {
    served(|_| ServerIdentity::default())
}

fn itself(pool: &Pool) -> ServerIdentity {
    ServerIdentity {
        pid: std::process::id(),
        incarnation: pool.incarnation().unwrap(),
    }
}

fn remote(endpoint: &Endpoint) -> Pool {
    let url = endpoint.to_string();
    Pool::builder().url(url).transports("tcp").open().unwrap()
}

fn payload(seed: usize, length: usize) -> Vec<u8> {
    (0..length).map(|at| (at * 7 + seed) as u8).collect()
}

fn offer(pool: &Pool, name: usize, length: usize) {
    let name_text = name.to_string();
    pool.offer([("name", name_text.as_str())], &payload(name, length))
        .unwrap();
}

#[test]
fn a_board_stays_on_the_servers_machine() {
    let (_pool, gate) = gated();
    let far = remote(gate.endpoint());
    let refused = far.board().unwrap_err();
    assert_eq!(refused.code(), Code::Unsupported, "{refused}");
    assert!(refused.cause().contains("`stat`"), "{refused}");
    assert!(far.stat().unwrap().contains("\"totals\""), "the connection goes on");
    far.note("step=1").unwrap();
    far.sync(None).unwrap();
    assert!(far.stat().unwrap().contains("\"note\":\"step=1\""));
}

#[test]
fn objects_of_every_size_go_both_ways() {
    let (near, gate) = gated();
    let far = remote(gate.endpoint());
    let sizes = [0_usize, 1, 900, 5_000, 70_000, 804 << 10, 15 << 20];
    for (number, length) in sizes.into_iter().enumerate() {
        for (way, (from, to)) in [(&near, &far), (&far, &near), (&far, &far)].into_iter().enumerate() {
            let name = number * 10 + way;
            offer(from, name, length);
            let object = to.demand(format!("name={name}").as_str(), None).unwrap();
            assert!(object[..] == payload(name, length)[..], "{length} bytes, way {way}");
            let is_large = length > 4096;
            match object.transport() {
                Transport::Inline => assert!(!is_large),
                Transport::Tcp => assert!(is_large && (is_over_tcp() || std::ptr::eq(to, &raw const far))),
                Transport::Shared => assert!(is_large && std::ptr::eq(to, &raw const near)),
                Transport::File | Transport::Store => panic!("nothing was spilled, or archived"),
            }
        }
    }
}

#[test]
fn whoever_is_on_the_same_machine_shares_memory() {
    if std::env::var_os("JUNCTURA_TEST_DETOUR").is_some() {
        return;
    }
    let (near, gate) = served(itself);
    let url = gate.endpoint().to_string();
    let same = Pool::connect(&url).unwrap();
    assert!(same.route().unwrap().starts_with("shm: "), "{}", same.route().unwrap());
    offer(&near, 1, 100_000);
    assert_eq!(same.demand("name=1", None).unwrap().transport(), Transport::Shared);
    assert_eq!(remote(gate.endpoint()).route().unwrap(), "tcp");
    let only = Pool::builder().url(url).transports("shm").open().unwrap();
    assert_eq!(only.stat().unwrap().matches("shm").count(), 3, "this process's three");
}

#[test]
fn another_server_with_the_same_address_is_not_mistaken_for_it() {
    let (_near, gate) = served(|pool| ServerIdentity {
        incarnation: 1,
        ..itself(pool)
    });
    let url = gate.endpoint().to_string();
    let pool = Pool::connect(&url).unwrap();
    let route = pool.route().unwrap();
    assert!(route.starts_with("tcp") && route.contains("another server"), "{route}");
    let error = Pool::builder().url(url).transports("shm").open().unwrap_err();
    assert_eq!(error.code(), Code::Unavailable);
}

#[test]
fn a_mirror_that_is_too_small_forgets_and_is_told_again() {
    const LENGTH: usize = 300_000;
    let (near, gate) = gated();
    let far = Pool::builder()
        .url(gate.endpoint().to_string())
        .transports("tcp")
        .mirror_bytes(3 * LENGTH as u64)
        .open()
        .unwrap();
    for name in 0..20 {
        offer(&near, name, LENGTH);
    }
    let held = far.demand("name=7", None).unwrap();
    for round in 0..3 {
        for name in 0..20 {
            let object = far.demand(format!("name={name}").as_str(), None).unwrap();
            assert!(object[..] == payload(name, LENGTH)[..], "round {round}, object {name}");
        }
    }
    assert!(held[..] == payload(7, LENGTH)[..], "what is held is not forgotten");
    drop(held);
    // Slots are used again for others.
    near.withdraw_all("", junctura::WithdrawOptions::default()).unwrap();
    for name in 100..120 {
        offer(&near, name, LENGTH);
        let object = far.demand(format!("name={name}").as_str(), None).unwrap();
        assert!(object[..] == payload(name, LENGTH)[..], "object {name}");
    }
}

#[test]
fn a_gate_that_closes_tells_its_clients() {
    let (_near, gate) = gated();
    let far = remote(gate.endpoint());
    drop(gate);
    let error = far.demand("name=never", None).unwrap_err();
    assert_eq!(error.code(), Code::Disconnected, "{error}");
}

#[test]
fn a_client_that_is_not_let_in_leaves_nothing_behind() {
    let (near, gate) = gated();
    let other = "name: free\nkey: {dataset: [space], collocation: [], element: [name]}\n\
                 attributes: {space: {type: integer}, name: {type: string}}\n";
    for _ in 0..3 {
        let url = gate.endpoint().to_string();
        let refused = Pool::builder().url(url).transports("tcp").schema_yaml(other).open();
        assert_eq!(refused.unwrap_err().code(), Code::SchemaMismatch);
    }
    offer(&near, 1, 100);
    assert_eq!(remote(gate.endpoint()).list("").unwrap().len(), 1);
}

#[test]
fn nobody_there_is_unavailable() {
    let unused = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let url = Endpoint::from(unused).to_string();
    let error = Pool::connect(&url).unwrap_err();
    assert_eq!(error.code(), Code::Unavailable);
    assert!(error.to_string().contains(&url), "{error}");
    let ways = Pool::builder().url(url).transports("carrier pigeon").open();
    assert_eq!(ways.unwrap_err().code(), Code::InvalidArgument);
    let nowhere = Pool::connect("tcp://nowhere.invalid:7").unwrap_err();
    assert_eq!(nowhere.code(), Code::Unavailable);
}

/// Carries bytes between a client and a gate, and can be cut.
struct Wire {
    endpoint: Endpoint,
    ends: Arc<Mutex<Vec<TcpStream>>>,
}

impl Wire {
    fn to(gate: &Gate) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let endpoint = listener.local_addr().unwrap().into();
        let port = gate.endpoint().port();
        let ends: Arc<Mutex<Vec<TcpStream>>> = Arc::default();
        let kept = Arc::clone(&ends);
        std::thread::spawn(move || {
            while let Ok((client, _)) = listener.accept() {
                let gate = TcpStream::connect(("127.0.0.1", port)).unwrap();
                kept.lock()
                    .unwrap()
                    .extend([client.try_clone().unwrap(), gate.try_clone().unwrap()]);
                for (from, to) in [(&client, &gate), (&gate, &client)] {
                    let (mut from, mut to) = (from.try_clone().unwrap(), to.try_clone().unwrap());
                    std::thread::spawn(move || {
                        let mut piece = [0; 10_000];
                        while let Ok(bytes @ 1..) = from.read(&mut piece) {
                            if to.write_all(&piece[..bytes]).is_err() {
                                break;
                            }
                        }
                    });
                }
            }
        });
        Self { endpoint, ends }
    }

    fn cut(&self) {
        for socket in self.ends.lock().unwrap().drain(..) {
            let _ = socket.shutdown(Shutdown::Both);
        }
    }
}

#[test]
fn a_follow_goes_on_over_another_link_from_its_cursor() {
    const LENGTH: usize = 200_000;
    let (near, gate) = gated();
    for name in 0..30 {
        offer(&near, name, LENGTH);
    }
    let (mut seen, mut cursor) = (Vec::new(), None);
    for part in 0..3 {
        let wire = Wire::to(&gate);
        let far = remote(&wire.endpoint);
        let options = FollowOptions {
            cursor: cursor.take(),
            ..FollowOptions::default()
        };
        let mut follow = far.follow_with("", options).unwrap();
        for _ in 0..7 {
            let Item::Object(object) = follow.next_item().unwrap().unwrap() else {
                panic!("there is more");
            };
            let name: usize = object.get("name").unwrap().parse().unwrap();
            assert!(object[..] == payload(name, LENGTH)[..]);
            seen.push(name);
        }
        cursor = follow.cursor().map(|cursor| cursor.to_string());
        wire.cut();
        let ended = follow.into_iter().find_map(Result::err).unwrap();
        assert_eq!(ended.code(), Code::Disconnected, "part {part}: {ended}");
    }
    seen.sort_unstable();
    seen.dedup();
    assert_eq!(seen.len(), 21, "none is given twice");
}

#[test]
fn what_a_client_held_when_its_link_was_cut_goes_to_another() {
    let (near, gate) = gated();
    let options = OfferOptions {
        retention: Some(Retention::Released(1)),
        ..OfferOptions::default()
    };
    near.offer_with([("name", "once")], &payload(1, 50_000), options)
        .unwrap();
    let wire = Wire::to(&gate);
    let far = remote(&wire.endpoint);
    let held = far.demand("name=once", None).unwrap();
    wire.cut();
    assert_eq!(far.demand("name=never", None).unwrap_err().code(), Code::Disconnected);
    assert!(held[..] == payload(1, 50_000)[..], "what is held stays readable");
    assert!(near.demand("name=once", None).unwrap()[..] == payload(1, 50_000)[..]);
}

#[test]
fn what_was_offered_before_the_pool_was_closed_has_arrived() {
    let (near, gate) = gated();
    for round in 0..20 {
        let far = remote(gate.endpoint());
        let mut pipeline = far.pipeline(64).unwrap();
        for number in 0..10 {
            let name = (round * 10 + number).to_string();
            pipeline
                .offer([("name", name.as_str())], &payload(number, 150_000))
                .unwrap();
        }
        pipeline.flush().unwrap();
        far.close();
        drop(far);
        assert_eq!(near.list("").unwrap().len(), (round + 1) * 10);
    }
}
