//! Arrays whose pieces lie on another machine: what is wanted of them travels, and nothing else.

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use junctura::{ArrayPart, ArrayPiece, Code, Element, Layout, Pool, PoolBuilder};
use junctura_link::{DialOptions, Endpoint, Gate, GateOptions, LoopbackUsers, RelayThread, ServerIdentity};
use junctura_transport::{Carrier, Inbox, Outbox, PollInterest, ReceiveResult, UnixCarrier, wait};
use junctura_wire::fixed::LAST;
use junctura_wire::{Reply, Request, VERSION, body};

/// A pool, a gate to it, and a wire whose bytes are counted.
struct World {
    near: Pool,
    wire: SocketAddr,
    bytes: Arc<AtomicU64>,
    _gate: Gate,
}

impl World {
    fn new() -> Self {
        Self::of(Pool::builder())
    }

    fn of(builder: PoolBuilder) -> Self {
        let near = builder.schema("free").open().unwrap();
        let any = "tcp://127.0.0.1:0".parse().unwrap();
        let options = GateOptions::new(any, near.url().parse().unwrap(), ServerIdentity::default());
        let gate = Gate::open(options).unwrap();
        let bytes = Arc::default();
        let wire = wire(gate.endpoint().resolve().unwrap()[0], &bytes);
        Self {
            near,
            wire,
            bytes,
            _gate: gate,
        }
    }

    fn far(&self) -> Pool {
        self.far_by(1)
    }

    fn far_by(&self, streams: usize) -> Pool {
        let pool = Pool::builder().url(format!("tcp://{}", self.wire)).transports("tcp");
        pool.streams(streams).open().unwrap()
    }

    /// What went over the wire, both ways, while something was done.
    fn counted<T>(&self, what: impl FnOnce() -> T) -> (u64, T) {
        let before = self.bytes.load(Ordering::SeqCst);
        let done = what();
        (self.bytes.load(Ordering::SeqCst) - before, done)
    }
}

/// Passes on what comes, and counts it.
fn wire(gate: SocketAddr, bytes: &Arc<AtomicU64>) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let bytes = Arc::clone(bytes);
    thread::spawn(move || {
        while let Ok((near, _)) = listener.accept() {
            let far = TcpStream::connect(gate).unwrap();
            near.set_nodelay(true).unwrap();
            far.set_nodelay(true).unwrap();
            pass(near.try_clone().unwrap(), far.try_clone().unwrap(), &bytes);
            pass(far, near, &bytes);
        }
    });
    address
}

fn pass(mut from: TcpStream, mut to: TcpStream, count: &Arc<AtomicU64>) {
    let count = Arc::clone(count);
    thread::spawn(move || {
        let mut piece = vec![0; 256 << 10];
        while let Ok(bytes @ 1..) = from.read(&mut piece) {
            count.fetch_add(bytes as u64, Ordering::SeqCst);
            if to.write_all(&piece[..bytes]).is_err() {
                break;
            }
        }
        let _ = to.shutdown(Shutdown::Write);
    });
}

fn layout(text: &str) -> Arc<Layout> {
    Arc::new(text.parse().unwrap())
}

fn element(name: &str) -> Element {
    name.parse().unwrap()
}

/// Every index of an array, with its number in C order.
fn each_index(shape: &[u64], mut tell: impl FnMut(&[u64], u32)) {
    for number in 0..shape.iter().product() {
        let mut rest = number;
        let mut index = vec![0; shape.len()];
        for (at, extent) in index.iter_mut().zip(shape).rev() {
            (*at, rest) = (rest % extent, rest / extent);
        }
        tell(&index, number as u32);
    }
}

/// Every rank's memory of an array whose elements are their own numbers; gaps are zeros.
fn numbers(layout: &Layout) -> Vec<Vec<u32>> {
    let room = |rank| vec![0_u32; layout.room(rank) as usize];
    let mut memories: Vec<Vec<u32>> = (0..layout.ranks()).map(room).collect();
    each_index(layout.shape(), |index, number| {
        if let Some((rank, at)) = layout.locate(index) {
            memories[rank as usize][at as usize] = number;
        }
    });
    memories
}

fn little(numbers: &[u32]) -> Vec<u8> {
    numbers.iter().flat_map(|number| number.to_le_bytes()).collect()
}

fn doubles(numbers: &[u32]) -> Vec<u8> {
    numbers
        .iter()
        .flat_map(|&number| f64::from(number).to_le_bytes())
        .collect()
}

/// Offers all pieces of an array.
fn offer(pool: &Pool, name: &str, from: &Arc<Layout>, kind: &str, bytes: impl Fn(&[u32]) -> Vec<u8>) {
    for (rank, mine) in numbers(from).iter().enumerate() {
        let piece = ArrayPiece::new(from, element(kind), rank as u64);
        pool.offer_piece(&piece, [("name", name)], &bytes(mine)).unwrap();
    }
}

const LAYOUTS: [&str; 7] = [
    "shape=30x41 grid=2x3 block=4x5",
    "shape=30x41 grid=3x1 order=F",
    "shape=30x41 grid=2x2 block=7x3 ranks=F storage=packed",
    "shape=30x41 grid=5x40 block=9x2",
    "shape=30x41",
    "shape=30x41 slabs=0:30x0:20;;0:10x20:41,10:30x20:41",
    "shape=30x41 grid=2x2 cuts=0,1,30x* strides=50x1",
];

#[test]
fn every_layout_becomes_every_other_over_a_link() {
    let world = World::new();
    let far = world.far();
    for (number, from) in LAYOUTS.iter().enumerate() {
        let name = number.to_string();
        // Who is far may have offered the pieces himself.
        let producer = if number % 2 == 0 { &world.near } else { &far };
        offer(producer, &name, &layout(from), "u4", little);
        let array = far.demand_array(&format!("name={name}"), None).unwrap();
        for to in LAYOUTS.map(layout) {
            for (rank, expected) in numbers(&to).iter().enumerate() {
                let taken = array.take(&ArrayPart::of(&to, rank as u64)).unwrap();
                assert!(taken == little(expected), "{from} -> {to}, rank {rank}");
            }
        }
    }
}

#[test]
fn a_part_travels_as_what_it_becomes() {
    let world = World::new();
    let from = layout("shape=200x3000 grid=2x2 block=30x40");
    offer(&world.near, "t", &from, "<f8", doubles);
    let far = world.far();
    let array = far.demand_array("name=t", None).unwrap();
    let to = layout("shape=50x700 grid=1x2");
    for rank in 0..2 {
        let part = ArrayPart {
            origin: &[130, 2100],
            element: Some(element(">f4")),
            ..ArrayPart::of(&to, rank)
        };
        let mut expected = Vec::new();
        each_index(&[200, 3000], |index, number| {
            let [row, column] = [index[0].wrapping_sub(130), index[1].wrapping_sub(2100)];
            if row < 50 && column < 700 && column / 350 == rank {
                expected.extend_from_slice(&(number as f32).to_be_bytes());
            }
        });
        let (bytes, taken) = world.counted(|| array.take(&part).unwrap());
        assert_eq!(taken, expected);
        assert!(
            bytes < expected.len() as u64 + 2000,
            "{bytes} bytes for {}",
            expected.len()
        );
    }
}

#[test]
fn what_is_wanted_travels_and_not_a_hundredth_more() {
    // Of each piece each rank wants a quarter, in runs of 56 and 296 bytes, and one of them.
    let from = layout("shape=700x700 grid=2x2 block=64x64");
    let to = layout("shape=700x700 grid=2x2 block=37x7 order=F");
    let (has, wanted) = (numbers(&from), numbers(&to));
    for (streams, checked) in [(1, false), (3, false), (1, true)] {
        let world = World::of(Pool::builder().checked(checked));
        for (rank, mine) in has.iter().enumerate() {
            let piece = ArrayPiece::new(&from, element("f8"), rank as u64);
            world.near.offer_piece(&piece, [("name", "t")], &doubles(mine)).unwrap();
        }
        let far = world.far_by(streams);
        let array = far.demand_array("name=t", None).unwrap();
        let mut mine = vec![0; array.bytes(&ArrayPart::of(&to, 1))];
        let (bytes, ()) = world.counted(|| array.take_into(&ArrayPart::of(&to, 1), &mut mine, 2).unwrap());
        assert!(mine == doubles(&wanted[1]));
        let needed = mine.len() as u64;
        assert!(
            bytes >= needed && bytes < needed + needed / 1000,
            "{bytes} bytes for {needed}"
        );
        // All of a piece goes as a payload does, once.
        let whole = layout("shape=700x700 grid=2x2 block=64x64");
        array.take(&ArrayPart::of(&whole, 3)).unwrap();
        let (bytes, taken) = world.counted(|| array.take(&ArrayPart::of(&whole, 3)).unwrap());
        assert!(taken == doubles(&has[3]) && bytes < 10_000, "{bytes} bytes");
    }
}

#[test]
fn many_small_cubes_travel_in_few_large_messages() {
    // 2,048 cubes of each of two ranks; whoever wants a part has runs of 32 bytes and less of them.
    let from = layout("shape=64x64x64 grid=1x1x2 block=4x4x4 storage=packed");
    let world = World::new();
    offer(&world.near, "t", &from, "f8", doubles);
    let far = world.far();
    let array = far.demand_array("name=t", None).unwrap();
    let all = layout("shape=64x64x64");
    let inner = layout("shape=61x62x63");
    let origin = [1, 2, 0];
    let of_inner = ArrayPart {
        origin: &origin,
        ..ArrayPart::of(&inner, 0)
    };
    let as_floats = ArrayPart {
        element: Some(element("f4")),
        ..ArrayPart::of(&all, 0)
    };
    for (part, begin, extents) in [
        (ArrayPart::of(&all, 0), [0; 3], [64; 3]),
        (as_floats, [0; 3], [64; 3]),
        (of_inner, origin, [61, 62, 63]),
    ] {
        let mut expected = Vec::new();
        each_index(&[64; 3], |index, number| {
            if (0..3).all(|at| (begin[at]..begin[at] + extents[at]).contains(&index[at])) {
                match part.element {
                    None => expected.extend_from_slice(&f64::from(number).to_le_bytes()),
                    Some(_) => expected.extend_from_slice(&(number as f32).to_le_bytes()),
                }
            }
        });
        let (bytes, taken) = world.counted(|| array.take(&part).unwrap());
        assert!(taken == expected, "{part:?}");
        let needed = expected.len() as u64;
        assert!(
            bytes >= needed && bytes < needed + needed / 500,
            "{bytes} bytes for {needed} of {part:?}"
        );
    }

    // The messages of the part, one by one.
    let (mut raw, _) = Raw::join(&world);
    let key = world.near.list("exists(piece_of),rank=0").unwrap();
    let selectors = [0, 1].map(|rank| format!("piece_of=\"{}\",rank={rank}", key[0].get("piece_of").unwrap()));
    let pieces = selectors.iter().zip(0..).map(|(selector, rank)| body::PieceName {
        rank,
        target: body::TargetBody::selector(selector),
    });
    raw.say(
        10,
        &Request::Pack(body::PackBody {
            from: from.to_string().into(),
            to: inner.to_string().into(),
            origin: origin.to_vec(),
            rank: 0,
            element: "f8".into(),
            travels: "f8".into(),
            pieces: pieces.collect(),
        }),
    );
    let mut frames = Vec::new();
    raw.hear(|request, reply| match reply {
        Reply::Packed { head, bytes } if request == 10 => {
            frames.push(bytes.len());
            (head.flags.get() & LAST != 0).then_some(())
        }
        _ => None,
    });
    assert_eq!(frames.iter().sum::<usize>(), 61 * 62 * 63 * 8);
    assert!(frames.len() <= 8, "{} messages of 4,096 cubes", frames.len());
}

#[test]
fn several_at_once_get_what_is_theirs() {
    let world = World::new();
    let from = layout("shape=300x400 grid=3x5 block=7x9");
    let to = layout("shape=300x400 grid=4x2 block=11x13 order=F");
    offer(&world.near, "t", &from, "u4", little);
    let far = world.far();
    let array = far.demand_array("name=t", None).unwrap();
    thread::scope(|scope| {
        for (rank, expected) in numbers(&to).into_iter().enumerate() {
            let (array, to) = (&array, &to);
            scope.spawn(move || {
                for _ in 0..5 {
                    assert!(array.take(&ArrayPart::of(to, rank as u64)).unwrap() == little(&expected));
                }
            });
        }
    });
    // More pieces than are asked for together.
    let from = layout("shape=300x400 grid=300x2");
    offer(&world.near, "u", &from, "u4", little);
    let array = far.demand_array("name=u", None).unwrap();
    let to = layout("shape=300x400 grid=1x3");
    for (rank, expected) in numbers(&to).iter().enumerate() {
        assert!(array.take(&ArrayPart::of(&to, rank as u64)).unwrap() == little(expected));
    }
}

#[test]
fn the_clients_of_an_upstream_get_what_is_wanted_too() {
    let world = World::new();
    let from = layout("shape=600x800 grid=2x2 block=5x9");
    let to = layout("shape=600x800 grid=4x4 block=11x13");
    offer(&world.near, "t", &from, "u4", little);
    let here = format!("unix:@between-{}-{}", std::process::id(), world.wire.port());
    let url = format!("tcp://{}", world.wire);
    let upstream = Pool::builder().url(url).upstream(Some(&here)).unwrap();
    let far = Pool::connect(&upstream.address().to_string()).unwrap();
    let array = far.demand_array("name=t", None).unwrap();
    for (rank, expected) in numbers(&to).iter().enumerate() {
        let (bytes, taken) = world.counted(|| array.take(&ArrayPart::of(&to, rank as u64)).unwrap());
        assert!(taken == little(expected));
        assert!(bytes < taken.len() as u64 + 3000, "{bytes} bytes for {}", taken.len());
    }
}

#[test]
fn what_was_spilled_is_packed_from_its_file() {
    let folder = tempfile::tempdir().unwrap();
    let world = World::of(Pool::builder().budget_bytes(8 << 20).spill(folder.path(), None));
    let from = layout("shape=1000x1000 grid=2x2 block=10x10");
    let to = layout("shape=1000x1000 grid=2x2 block=7x9");
    offer(&world.near, "t", &from, "u4", little);
    for other in 0..5 {
        world
            .near
            .offer([("name", format!("{other}").as_str())], &vec![1; 3 << 20])
            .unwrap();
    }
    let array = world.far().demand_array("name=t", None).unwrap();
    for (rank, expected) in numbers(&to).iter().enumerate() {
        let (bytes, taken) = world.counted(|| array.take(&ArrayPart::of(&to, rank as u64)).unwrap());
        assert!(taken == little(expected));
        assert!(bytes < taken.len() as u64 + 3000, "{bytes} bytes for {}", taken.len());
    }
}

#[test]
fn a_piece_that_has_gone_is_told_and_leaves_nothing_behind() {
    let world = World::new();
    let from = layout("shape=300x400 grid=2x3 block=7x9");
    let to = layout("shape=300x400 grid=2x2 block=11x13");
    offer(&world.near, "t", &from, "u4", little);
    let far = world.far();
    let array = far.demand_array("name=t", None).unwrap();
    let gone = world
        .near
        .withdraw_all("exists(piece_of),rank=2", junctura::WithdrawOptions::default());
    assert_eq!(gone.unwrap(), 1);
    let error = array.take(&ArrayPart::of(&to, 2)).unwrap_err();
    assert_eq!((error.code(), error.subject()), (Code::Expired, array.object().key()));
    // The others are there, and nobody holds them.
    let other = layout("shape=100x130 grid=1x2 block=11x13");
    array.take(&ArrayPart::of(&other, 0)).unwrap_err();
    let corner = layout("shape=5x5 grid=2x2 block=1x1");
    let taken = array.take(&ArrayPart::of(&corner, 3)).unwrap();
    assert_eq!(taken, little(&[401, 403, 1201, 1203]));
    drop(array);
    far.sync(None).unwrap();
    holds_nothing(&world);
}

/// Whether nobody has an object of the pool's.
fn holds_nothing(world: &World) {
    let stat = world.near.stat().unwrap();
    assert!(stat.contains("\"held\":0") && !stat.contains("\"held\":1"), "{stat}");
}

/// A client made by hand, at the end of a link.
struct Raw {
    carrier: UnixCarrier,
    inbox: Inbox,
    _link: RelayThread,
}

impl Raw {
    fn join(world: &World) -> (Self, bool) {
        let endpoint: Endpoint = format!("tcp://{}", world.wire).parse().unwrap();
        let dial = DialOptions {
            endpoint: &endpoint,
            token: None,
            tls: None,
            users: LoopbackUsers::Own,
            mirror_bytes: 1 << 20,
            streams: 1,
        };
        let (carrier, link) = dial.dial(|| Ok(())).unwrap().start().unwrap();
        let mut raw = Self {
            carrier,
            inbox: Inbox::new(),
            _link: link,
        };
        raw.say(
            1,
            &Request::Hello(body::Hello {
                version: VERSION,
                ..body::Hello::default()
            }),
        );
        let packs = raw.hear(|_, reply| match reply {
            Reply::Welcome(welcome) => Some(welcome.packs),
            _ => None,
        });
        (raw, packs)
    }

    fn say(&mut self, number: u64, request: &Request<'_>) {
        let mut out = Outbox::new();
        out.push(|bytes| request.encode(number, bytes)).unwrap();
        self.carrier.send(&mut out).unwrap();
    }

    fn hear<T>(&mut self, mut what: impl FnMut(u64, Reply<'_>) -> Option<T>) -> T {
        loop {
            while let Some((frame, _)) = self.inbox.next_frame().unwrap() {
                if let Some(heard) = what(frame.request, Reply::decode(&frame).unwrap()) {
                    return heard;
                }
            }
            if self.carrier.receive(&mut self.inbox).unwrap() == ReceiveResult::Nothing {
                wait(self.carrier.as_fd(), PollInterest::READ).unwrap();
            }
        }
    }

    /// Everything was given back by the time that the server has heard of it.
    fn holds_nothing(&mut self, world: &World) {
        self.say(5000, &Request::Sync);
        self.hear(|request, reply| (request == 5000 && matches!(reply, Reply::Done(_))).then_some(()));
        holds_nothing(world);
    }

    /// All that is answered: bytes, or what is wrong.
    fn answer(&mut self, number: u64) -> Result<usize, Code> {
        let mut bytes = 0;
        self.hear(|request, reply| match reply {
            Reply::Packed { head, bytes: part } if request == number => {
                bytes += part.len();
                (head.flags.get() & LAST != 0).then_some(Ok(bytes))
            }
            Reply::Failed(failure) if request == number => Some(Err(Code::from_number(failure.code).unwrap())),
            _ => None,
        })
    }
}

/// Makes a good request wrong.
type Change<'c> = &'c dyn Fn(&mut body::PackBody<'_>);

#[test]
fn what_cannot_be_packed_is_refused_to_who_asks_for_it() {
    let world = World::new();
    let from = layout("shape=30x40 grid=2x1");
    offer(&world.near, "t", &from, "u4", little);
    let piece_of = world.near.list("exists(piece_of),rank=0").unwrap();
    let selector = format!("piece_of=\"{}\",rank=0", piece_of[0].get("piece_of").unwrap());
    let (mut raw, packs) = Raw::join(&world);
    assert!(packs);
    let good = || body::PackBody {
        from: "shape=30x40 grid=2x1".into(),
        to: "shape=30x40 grid=1x2".into(),
        origin: vec![0, 0],
        rank: 1,
        element: "u4".into(),
        travels: "u4".into(),
        pieces: vec![body::PieceName {
            rank: 0,
            target: body::TargetBody::selector(&selector),
        }],
    };
    let mut number = 10;
    let mut told = |pack: body::PackBody<'_>| {
        number += 1;
        raw.say(number, &Request::Pack(pack));
        raw.answer(number)
    };
    assert_eq!(told(good()), Ok(15 * 20 * 4));
    let none = body::PackBody {
        pieces: Vec::new(),
        ..good()
    };
    assert_eq!(told(none), Ok(0));
    let wrong = |change: Change<'_>| {
        let mut pack = good();
        change(&mut pack);
        pack.from = pack.from.into_owned().into();
        pack.to = pack.to.into_owned().into();
        pack
    };
    let invalid = Err(Code::InvalidArgument);
    let cases: [(Change<'_>, _); 12] = [
        (&|pack| pack.from = "shape=30x40 grid=3x1".into(), invalid),
        (&|pack| pack.from = "shape=30y40".into(), invalid),
        (&|pack| pack.to = "".into(), invalid),
        (&|pack| pack.to = "shape=30x41".into(), invalid),
        (&|pack| pack.to = "shape=30".into(), invalid),
        (&|pack| pack.origin = vec![1, 0], invalid),
        (&|pack| pack.origin = vec![u64::MAX, 0], invalid),
        (&|pack| pack.rank = 2, invalid),
        (&|pack| pack.pieces[0].rank = 2, invalid),
        (&|pack| pack.element = "f8".into(), invalid),
        (&|pack| pack.travels = "f4".into(), Err(Code::Unsupported)),
        (
            &|pack| pack.pieces[0].target = body::TargetBody::selector("name=none"),
            Err(Code::NotFound),
        ),
    ];
    for (at, (change, expected)) in cases.iter().enumerate() {
        let pack = wrong(change);
        assert_eq!(told(pack), *expected, "case {at}");
        assert_eq!(told(good()), Ok(15 * 20 * 4), "after case {at}");
    }
    // Nothing is held: what is withdrawn goes at once.
    world
        .near
        .withdraw_all("name=t", junctura::WithdrawOptions::default())
        .unwrap();
    assert!(world.near.list("exists(piece_of)").unwrap().is_empty());
    // Who shares the pool's memory reads there.
    assert!(!world.near.route().unwrap().is_empty());
}

#[test]
fn who_stops_hears_no_more() {
    let world = World::new();
    let from = layout("shape=1000x2000 grid=2x1");
    offer(&world.near, "t", &from, "u4", little);
    let (mut raw, _) = Raw::join(&world);
    let pack = || {
        Request::Pack(body::PackBody {
            from: "shape=1000x2000 grid=2x1".into(),
            to: "shape=1000x2000 grid=1x2".into(),
            origin: vec![0, 0],
            element: "u4".into(),
            travels: "u4".into(),
            pieces: (0..2)
                .map(|rank| body::PieceName {
                    rank,
                    target: body::TargetBody::selector(if rank == 0 {
                        "exists(piece_of),rank=0"
                    } else {
                        "exists(piece_of),rank=1"
                    }),
                })
                .collect(),
            ..body::PackBody::default()
        })
    };
    // More than a gate keeps, and all but one of them are given up, those that are being answered among them.
    for number in 100..200 {
        raw.say(number, &pack());
    }
    for number in 100..199 {
        raw.say(1000 + number, &Request::Stop(number));
    }
    raw.say(2000, &Request::Stop(199));
    raw.say(200, &pack());
    let mut refused = 0;
    let mut stopped = 0;
    let mut bytes = 0;
    raw.hear(|request, reply| match reply {
        Reply::Failed(failure) => {
            assert_eq!(
                Code::from_number(failure.code),
                Some(if request < 1000 {
                    Code::LimitExceeded
                } else {
                    Code::NotFound
                })
            );
            refused += u32::from(request < 1000);
            None
        }
        Reply::Done(_) => {
            stopped += 1;
            None
        }
        Reply::Packed { head, bytes: part } if request == 200 => {
            bytes += part.len();
            (head.flags.get() & LAST != 0).then_some(())
        }
        _ => None,
    });
    assert_eq!((bytes, refused > 0, stopped > 0), (1000 * 1000 * 4, true, true));
    raw.holds_nothing(&world);
}
