//! Links do what every carrier must: driven step by step, and by their threads over loopback, alone or as a channel of one that is
//! shared, in the clear and within TLS.

use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Mutex};

use crate::secrets::Secrets;
use junctura_link::record::PART_BYTES;
use junctura_link::stepped::SteppedEnd;
use junctura_link::{
    DialOptions, Gate, GateOptions, LoopbackUsers, RelayThread, ServerIdentity, UpstreamOptions, UpstreamProxy,
};
use junctura_model::Result;
use junctura_transport::{
    Carrier, Inbox, LocalCarrier, Outbox, PeerCredentials, PollInterest, RING_BYTES, ReceiveResult, ReceivedRings,
    SendResult, ServerAddress, ServerListener, UnixCarrier, conformance_tests, wait,
};
use junctura_wire::body::{Hello, Welcome};
use junctura_wire::{Reply, Request};

/// A carrier, and what has to live as long as it.
struct Kept<C, K> {
    carrier: C,
    _kept: K,
}

impl<C: Carrier, K: Send> Carrier for Kept<C, K> {
    fn receive(&mut self, into: &mut Inbox) -> Result<ReceiveResult> {
        self.carrier.receive(into)
    }

    fn send(&mut self, from: &mut Outbox) -> Result<SendResult> {
        self.carrier.send(from)
    }

    fn as_fd(&self) -> BorrowedFd<'_> {
        self.carrier.as_fd()
    }

    fn bell(&self) -> Option<BorrowedFd<'_>> {
        self.carrier.bell()
    }

    fn may_sleep(&mut self) -> bool {
        self.carrier.may_sleep()
    }

    fn woke(&mut self) {
        self.carrier.woke();
    }

    fn waits_for_socket(&self) -> bool {
        self.carrier.waits_for_socket()
    }

    fn peer(&self) -> &PeerCredentials {
        self.carrier.peer()
    }
}

/// A carrier that moves the link behind it whenever it is used.
struct Driven {
    carrier: UnixCarrier,
    link: Arc<Mutex<[SteppedEnd; 2]>>,
}

impl Driven {
    fn drive(&self) {
        let mut ends = self.link.lock().unwrap();
        while ends.iter_mut().any(|end| end.step().0) {}
    }
}

impl Carrier for Driven {
    fn receive(&mut self, into: &mut Inbox) -> Result<ReceiveResult> {
        self.drive();
        self.carrier.receive(into)
    }

    fn send(&mut self, from: &mut Outbox) -> Result<SendResult> {
        // Until nothing goes any more, as when both threads had all the time that they need.
        loop {
            let before = from.len();
            let sent = self.carrier.send(from)?;
            self.drive();
            if sent == SendResult::All || from.len() == before {
                return Ok(sent);
            }
        }
    }

    fn as_fd(&self) -> BorrowedFd<'_> {
        self.carrier.as_fd()
    }

    fn peer(&self) -> &PeerCredentials {
        self.carrier.peer()
    }
}

/// A link within this thread, between sockets of this machine.
fn driven(secrets: Option<&Secrets>) -> (Driven, Driven) {
    driven_over(1, secrets)
}

/// A link of so many streams.
fn driven_over(streams: usize, secrets: Option<&Secrets>) -> (Driven, Driven) {
    let (near, client) = UnixCarrier::pair().unwrap();
    let (gate, far) = UnixCarrier::pair().unwrap();
    let (one, other) = UnixStream::pair().unwrap();
    let (authority, server) = (secrets.map(Secrets::authority), secrets.map(Secrets::server));
    let mut client = SteppedEnd::client(client, one, authority.as_ref()).unwrap();
    let mut gate = SteppedEnd::gate(gate, other, server.as_ref(), 0).unwrap();
    if streams > 1 {
        let (ones, others) = (1..streams).map(|_| UnixStream::pair().unwrap()).unzip();
        client = client.with_client_sides(ones, PART_BYTES, authority.as_ref()).unwrap();
        gate = gate.with_gate_sides(others, PART_BYTES, server.as_ref()).unwrap();
    }
    let link = Arc::new(Mutex::new([client, gate]));
    let end = |carrier| Driven {
        carrier,
        link: Arc::clone(&link),
    };
    (end(near), end(far))
}

type Near = Kept<LocalCarrier, RelayThread>;
type Far = Kept<LocalCarrier, (Gate, ServerListener, tempfile::TempDir)>;

/// A link of threads, over loopback, to a gate before a listener that stands for the server.
fn threads(secrets: Option<&Secrets>) -> (Near, Far) {
    threads_over(1, secrets)
}

/// A link of so many streams.
fn threads_over(streams: u8, secrets: Option<&Secrets>) -> (Near, Far) {
    let room = tempfile::tempdir().unwrap();
    let pool = ServerAddress::Path(room.path().join("pool.sock"));
    let mut listener = ServerListener::bind(&pool).unwrap();
    let options = GateOptions {
        tls: secrets.map(Secrets::server),
        ..GateOptions::new("tcp://127.0.0.1:0".parse().unwrap(), pool, ServerIdentity::default())
    };
    let gate = Gate::open(options).unwrap();
    let authority = secrets.map(Secrets::authority);
    let dial = DialOptions {
        endpoint: gate.endpoint(),
        token: None,
        tls: authority.as_ref(),
        users: LoopbackUsers::Own,
        mirror_bytes: 0,
        streams,
    };
    let mut dialed = dial.dial(|| Ok(())).unwrap();
    dial.add_streams(&mut dialed, || Ok(())).unwrap();
    assert_eq!(dialed.streams(), usize::from(streams));
    let (near, link) = dialed.start().unwrap();
    // It has connected before it let the client in.
    let far = listener.accept().unwrap().unwrap();
    let near = Kept {
        carrier: LocalCarrier::new(near),
        _kept: link,
    };
    let far = Kept {
        carrier: LocalCarrier::new(far),
        _kept: (gate, listener, room),
    };
    (near, far)
}

/// A channel of a link that others could share, through an upstream. What is between its ends stays until the program ends: it
/// belongs to neither of them.
fn shared(secrets: Option<&Secrets>) -> (LocalCarrier, LocalCarrier) {
    shared_over(1, secrets)
}

/// As before, of a link of so many streams.
fn shared_over(streams: u8, secrets: Option<&Secrets>) -> (LocalCarrier, LocalCarrier) {
    let room = tempfile::tempdir().unwrap();
    let pool = ServerAddress::Path(room.path().join("pool.sock"));
    let mut listener = ServerListener::bind(&pool).unwrap();
    let options = GateOptions {
        tls: secrets.map(Secrets::server),
        ..GateOptions::new("tcp://127.0.0.1:0".parse().unwrap(), pool, ServerIdentity::default())
    };
    let gate = Gate::open(options).unwrap();
    let options = UpstreamOptions {
        endpoint: gate.endpoint().clone(),
        token: None,
        tls: secrets.map(Secrets::authority),
        users: LoopbackUsers::Own,
        mirror_bytes: 0,
        streams,
    };
    let upstream = UpstreamProxy::open(&ServerAddress::Path(room.path().join("near.sock")), options).unwrap();
    // The gate has seen that the server is there.
    drop(listener.accept().unwrap().unwrap());
    let near = UnixCarrier::connect(upstream.address()).unwrap();
    let far = loop {
        if let Some(far) = listener.accept().unwrap() {
            break far;
        }
        wait(listener.as_fd(), PollInterest::READ).unwrap();
    };
    let _between = std::mem::ManuallyDrop::new((gate, upstream, listener, room));
    (LocalCarrier::new(near), LocalCarrier::new(far))
}

/// Waits for the next frame, and hands it on.
fn next(carrier: &mut LocalCarrier, inbox: &mut Inbox, mut each: impl FnMut(&mut LocalCarrier, Heard<'_>)) {
    loop {
        if let Some((frame, descriptor)) = inbox.next_frame().unwrap() {
            return each(carrier, (frame, descriptor));
        }
        if carrier.receive(inbox).unwrap() == ReceiveResult::Nothing {
            wait(carrier.as_fd(), PollInterest::READ).unwrap();
        }
    }
}

type Heard<'a> = (junctura_wire::WireFrame<'a>, Option<std::os::fd::OwnedFd>);

/// A link on which both sides have said who they are, and go on through rings.
fn rings(secrets: Option<&Secrets>) -> (Near, Far) {
    let (mut near, mut far) = threads(secrets);
    let (mut inbox, mut outbox) = (Inbox::new(), Outbox::new());
    let hello = Request::Hello(Hello {
        ring_bytes: Some(RING_BYTES as u32),
        ..Hello::default()
    });
    outbox.push(|out| hello.encode(0, out)).unwrap();
    assert_eq!(near.send(&mut outbox), Ok(SendResult::All));
    next(&mut far.carrier, &mut inbox, |far, (frame, _)| {
        let Ok(Request::Hello(hello)) = Request::decode(&frame) else {
            panic!("no Hello")
        };
        outbox
            .push(|out| Reply::Welcome(Welcome::default()).encode(0, out))
            .unwrap();
        far.offer_rings(&mut outbox, hello.ring_bytes.unwrap() as usize)
            .unwrap();
        assert_eq!(far.send(&mut outbox), Ok(SendResult::All));
    });
    let (mut inbox, mut gathered, mut is_done) = (Inbox::new(), ReceivedRings::default(), false);
    while !is_done {
        next(&mut near.carrier, &mut inbox, |near, (frame, descriptor)| {
            if let (Ok(Reply::Rings(head)), Some(descriptor)) = (Reply::decode(&frame), descriptor)
                && let Some(rings) = gathered.add(head, descriptor).unwrap()
            {
                near.switch(rings, 0);
                is_done = true;
            }
        });
    }
    (near, far)
}

mod driven_in_the_clear {
    use super::*;
    conformance_tests!(driven(None), driven);
}

mod driven_within_tls {
    use super::*;
    conformance_tests!(driven(Some(&Secrets::new())), driven);
}

mod threads_in_the_clear {
    use super::*;
    conformance_tests!(threads(None), in time);
}

mod threads_within_tls {
    use super::*;
    conformance_tests!(threads(Some(&Secrets::new())), in time);
}

mod several_driven_in_the_clear {
    use super::*;
    conformance_tests!(driven_over(3, None), driven);
}

mod several_driven_within_tls {
    use super::*;
    conformance_tests!(driven_over(3, Some(&Secrets::new())), driven);
}

mod several_in_the_clear {
    use super::*;
    conformance_tests!(threads_over(3, None), in time);
}

mod several_within_tls {
    use super::*;
    conformance_tests!(threads_over(3, Some(&Secrets::new())), in time);
}

mod shared_in_the_clear {
    use super::*;
    conformance_tests!(shared(None), in time);
}

mod shared_within_tls {
    use super::*;
    conformance_tests!(shared(Some(&Secrets::new())), in time);
}

mod several_shared_in_the_clear {
    use super::*;
    conformance_tests!(shared_over(2, None), in time);
}

mod rings_in_the_clear {
    use super::*;
    conformance_tests!(rings(None), in time);
}

mod rings_within_tls {
    use super::*;
    conformance_tests!(rings(Some(&Secrets::new())), in time);
}
