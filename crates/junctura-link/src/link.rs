//! A client's connection to a gate: it dials, authenticates, and has a thread relay from then on.

use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use junctura_model::{Code, Error, Result};
use junctura_transport::{LocalCarrier, UnixCarrier};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketFlags, SocketType, connect, socket_with, sockopt};

use crate::auth::handshake::{self, ClientProof, HandshakeAnswer, LinkId, LinkJoin, LocalOffer, TimedExchange};
use crate::auth::peer_user::AskingSide;
use crate::record::LinkRecord;
use crate::relay::StreamRelay;
use crate::relay::channel::LinkSide;
use crate::relay::channel_source::ChannelSource;
use crate::stream::LinkStream;
use crate::streams::stream_worker::StreamWorker;
use crate::streams::{STREAMS_MAX, SideStreams, StreamsGuard};
use crate::{ClientTls, ClientToken, Endpoint, LoopbackUsers, refused};

/// How long one address of a host may take to answer, before the next one is tried.
const CONNECT_TIME_MAX: Duration = Duration::from_secs(5);

/// How to reach a gate.
#[derive(Debug)]
pub struct DialOptions<'a> {
    /// Where it is.
    pub endpoint: &'a Endpoint,
    /// The token for the gate.
    pub token: Option<&'a ClientToken>,
    /// The authorities to trust; beyond loopback they are required.
    pub tls: Option<&'a ClientTls>,
    /// The users of this host whose servers are spoken to without TLS.
    pub users: LoopbackUsers,
    /// The most bytes of unheld payloads that are kept here.
    pub mirror_bytes: u64,
    /// The number of streams of the link, from 1 to 8: large payloads use all streams. A gate of an earlier version gives
    /// it one.
    pub streams: u8,
}

/// A gate that let this client in.
pub struct DialedGate {
    endpoint: Endpoint,
    /// Which one of the endpoint's addresses.
    address: SocketAddr,
    stream: LinkStream,
    /// The gate's identifier of the link, and the number of streams that it may have.
    pub(crate) granted: Option<(LinkId, u8)>,
    /// Those beyond the first.
    sides: Vec<LinkStream>,
    lease: Duration,
    offered: Option<LocalOffer>,
    mirror_bytes: u64,
}

/// The thread that relays. Dropped, it ends the client's connection to it, and waits until the other end has taken
/// everything that the client sent, or the lease is over. In a forked child it has no effect.
#[derive(Debug)]
pub struct RelayThread {
    /// The client's end, which others may hold, too.
    near: UnixCarrier,
    thread: Option<JoinHandle<()>>,
    process: u32,
    streams: usize,
}

impl DialOptions<'_> {
    /// Connects and authenticates. Waits for the network; `interrupted` is called when a signal arrives, and its error ends
    /// the wait.
    ///
    /// # Errors
    /// `InvalidArgument` for an invalid number of streams; `Unavailable` when no server listens there or answers in time;
    /// `Denied` when the token is not valid, the server's certificate is not trusted, the endpoint is beyond loopback
    /// without an authority to trust, or the server is of another user of this host; `Protocol` when another kind of server
    /// listens there.
    pub fn dial(&self, interrupted: impl FnMut() -> Result<()>) -> Result<DialedGate> {
        self.dial_for(false, interrupted)
    }

    /// As [`Self::dial`]; `is_shared`: for several clients, each with a channel of its own.
    pub(crate) fn dial_for(&self, is_shared: bool, mut interrupted: impl FnMut() -> Result<()>) -> Result<DialedGate> {
        if !(1..=STREAMS_MAX).contains(&self.streams) {
            let subject = format!("{} streams", self.streams);
            let cause = format!("a link has from 1 to {STREAMS_MAX}");
            return Err(Error::new(Code::InvalidArgument, subject, cause));
        }
        let mut last = None;
        for address in self.endpoint.resolve()? {
            match self.dial_one(address, is_shared, &mut interrupted) {
                Err(error) if error.code() == Code::Unavailable => last = Some(error),
                Err(error) => return Err(self.named(&error)),
                dialed => return dialed,
            }
        }
        let none = || Error::new(Code::Unavailable, "", "the host has no address");
        Err(self.named(&last.unwrap_or_else(none)))
    }

    /// Adds the place to an error.
    fn named(&self, error: &Error) -> Error {
        let subject = match error.subject() {
            "" => self.endpoint.to_string(),
            subject => format!("{}: {subject}", self.endpoint),
        };
        Error::new(error.code(), subject, error.cause())
    }

    fn dial_one(
        &self,
        address: SocketAddr,
        is_shared: bool,
        interrupted: &mut dyn FnMut() -> Result<()>,
    ) -> Result<DialedGate> {
        let shown = ClientProof {
            is_shared,
            streams: (self.streams > 1).then_some(self.streams),
            ..ClientProof::default()
        };
        let (stream, answer) = self.greet(address, shown, interrupted)?;
        let streams = answer.streams.unwrap_or(1).min(self.streams);
        Ok(DialedGate {
            endpoint: self.endpoint.clone(),
            address,
            stream,
            granted: answer.link.map(|link| (link, streams)),
            sides: Vec::new(),
            lease: Duration::from_millis(answer.lease_ms.max(1)),
            offered: answer.offered,
            mirror_bytes: self.mirror_bytes,
        })
    }

    /// The further streams of a link, as many as were asked for and the gate gives. Waits for the network as [`Self::dial`] does, for
    /// one after the other.
    ///
    /// # Errors
    /// As [`Self::dial`].
    pub fn add_streams(&self, dialed: &mut DialedGate, mut interrupted: impl FnMut() -> Result<()>) -> Result<()> {
        let Some((link, streams)) = dialed.granted else {
            return Ok(());
        };
        for number in 1..streams {
            let shown = ClientProof {
                joins: Some(LinkJoin { link, number }),
                ..ClientProof::default()
            };
            let (stream, _) = self
                .greet(dialed.address, shown, &mut interrupted)
                .map_err(|error| self.named(&error))?;
            dialed.sides.push(stream);
            // The gate's end is there already, and would miss it.
            for stream in dialed.sides.iter_mut().chain([&mut dialed.stream]) {
                let mut talk = TimedExchange {
                    stream,
                    until: Instant::now() + handshake::TIME_MAX,
                    interrupted: &mut interrupted,
                };
                talk.say(&LinkRecord::Beat.to_bytes())
                    .map_err(|error| self.named(&error))?;
            }
        }
        Ok(())
    }

    /// Connects, and is let in with what it has to show.
    fn greet<'a>(
        &'a self,
        address: SocketAddr,
        mut shown: ClientProof<'a>,
        interrupted: &mut dyn FnMut() -> Result<()>,
    ) -> Result<(LinkStream, HandshakeAnswer<'static>)> {
        let is_beyond = !address.ip().is_loopback();
        if is_beyond && self.tls.is_none() {
            let cause = "beyond loopback a pool is reached through TLS alone: name the certificate authority to trust";
            return Err(Error::new(Code::Denied, "", cause));
        }
        let socket = open(address, interrupted)?;
        let tls = self.tls.map(|tls| tls.connection(self.endpoint.host())).transpose()?;
        let is_proven = tls.is_some() || self.users == LoopbackUsers::Any;
        let mut stream = LinkStream::new(socket, tls)?;
        stream.widen();
        // Before anything is sent: a token in the clear would admit another user that listens there in the server's place.
        if !is_proven {
            stream.peer_must_be_own(AskingSide::Connector)?;
        }
        shown.token = self.token.map(|token| token.reveal().into());
        shown.mirror_bytes = self.mirror_bytes;
        let mut talk = TimedExchange {
            stream: &mut stream,
            until: Instant::now() + handshake::TIME_MAX,
            interrupted,
        };
        match talk.say(&handshake::encode(&shown)?) {
            // A gate that refuses a client at once has answered before it closed the connection.
            Err(error) if error.code() == Code::Disconnected => {}
            said => said?,
        }
        let heard = talk.hear().map_err(|error| match error.code() {
            Code::Timeout | Code::Disconnected => Error::new(Code::Unavailable, "", error.cause()),
            _ => error,
        })?;
        let answer: HandshakeAnswer<'_> = handshake::decode(&heard)?;
        if let Some(failure) = answer.failure {
            return Err(failure.into());
        }
        let answer = HandshakeAnswer {
            failure: None,
            lease_ms: answer.lease_ms,
            offered: answer.offered,
            link: answer.link,
            streams: answer.streams,
        };
        Ok((stream, answer))
    }
}

/// The threads that carry the streams of a link beyond the first.
struct StreamWorkers {
    lead: StreamsGuard,
    porters: Vec<JoinHandle<()>>,
}

impl StreamWorkers {
    /// `None`: there are no such streams.
    fn of(streams: Vec<LinkStream>, lease: Duration) -> Result<Option<Self>> {
        if streams.is_empty() {
            return Ok(None);
        }
        let lead = StreamsGuard(SideStreams::new()?);
        let mut porters = Vec::new();
        for (number, stream) in (1..).zip(streams) {
            let porter = StreamWorker::new(Arc::clone(&lead.0), number, stream, lease)?;
            let thread = std::thread::Builder::new()
                .name("junctura-stream".to_owned())
                .spawn(move || porter.run())
                .map_err(|error| refused(Code::Io, "thread", "cannot be started", error))?;
            porters.push(thread);
        }
        Ok(Some(Self { lead, porters }))
    }

    fn join(crew: Option<Self>, relay: StreamRelay) -> StreamRelay {
        match crew {
            None => relay,
            Some(crew) => relay.with_sides(crew.lead).with_porters(crew.porters),
        }
    }
}

impl DialedGate {
    /// How to reach the same server without a network, if it is on this machine.
    #[must_use]
    pub fn nearby(&self) -> Option<&LocalOffer> {
        let machine = handshake::machine();
        self.offered
            .as_ref()
            .filter(|offered| !machine.is_empty() && offered.machine == machine)
    }

    /// How many streams the link has.
    #[must_use]
    pub fn streams(&self) -> usize {
        1 + self.sides.len()
    }

    /// Continues through the network: returns the client's end of a connection, as if the server were local, and the thread
    /// that carries it.
    ///
    /// # Errors
    /// `LimitExceeded` when this process may open no more descriptors, `Io` when the system gives no thread.
    pub fn start(self) -> Result<(UnixCarrier, RelayThread)> {
        let (near, far) = UnixCarrier::pair()?;
        let streams = self.streams();
        let Self {
            endpoint,
            stream,
            sides,
            lease,
            mirror_bytes,
            ..
        } = self;
        let crew = StreamWorkers::of(sides, lease)?;
        let thread = std::thread::Builder::new()
            .name("junctura-link".to_owned())
            .spawn(move || {
                let relay = StreamRelay::new(LinkSide::Client, LocalCarrier::new(far), stream, lease, mirror_bytes);
                if let (Err(error), _) = StreamWorkers::join(crew, relay).run() {
                    tracing::info!(%endpoint, %error, "a link ended");
                }
            })
            .map_err(|error| refused(Code::Io, "thread", "cannot be started", error))?;
        Ok((
            near.clone(),
            RelayThread {
                near,
                thread: Some(thread),
                process: std::process::id(),
                streams,
            },
        ))
    }
}

impl DialedGate {
    /// Relays for all clients that connect through `door`, until the link ends or the source is closed.
    pub(crate) fn relay_for(self, door: ChannelSource) -> (Result<()>, Option<ChannelSource>) {
        let crew = match StreamWorkers::of(self.sides, self.lease) {
            Ok(crew) => crew,
            Err(error) => return (Err(error), Some(door)),
        };
        let relay = StreamRelay::with_door(LinkSide::Client, door, self.stream, self.lease, self.mirror_bytes);
        let (ended, door) = StreamWorkers::join(crew, relay).run();
        (ended.map(drop), door)
    }
}

impl std::fmt::Debug for DialedGate {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Dialed({})", self.endpoint)
    }
}

impl RelayThread {
    /// How many streams it has.
    #[must_use]
    pub fn streams(&self) -> usize {
        self.streams
    }
}

impl Drop for RelayThread {
    fn drop(&mut self) {
        let Some(thread) = self.thread.take() else { return };
        if self.process == std::process::id() {
            self.near.close();
            let ended = thread.join();
            debug_assert!(ended.is_ok(), "a link's thread does not panic");
        } else {
            // The thread is the parent's; its handle names nothing here.
            let _kept = std::mem::ManuallyDrop::new(thread);
        }
    }
}

/// A connected socket.
fn open(address: SocketAddr, interrupted: &mut dyn FnMut() -> Result<()>) -> Result<TcpStream> {
    let family = if address.is_ipv4() {
        AddressFamily::INET
    } else {
        AddressFamily::INET6
    };
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = socket_with(family, SocketType::STREAM, flags, None)
        .map_err(|errno| refused(Code::LimitExceeded, "", "cannot open a socket", errno))?;
    let unreached = |errno: Errno| match errno {
        Errno::CONNREFUSED => refused(Code::Unavailable, "", "no server listens on this host and port", errno),
        _ => refused(Code::Unavailable, "", "cannot be reached", errno),
    };
    match connect(&socket, &address) {
        Ok(()) => return Ok(socket.into()),
        Err(Errno::INPROGRESS | Errno::INTR) => {}
        Err(errno) => return Err(unreached(errno)),
    }
    let until = Instant::now() + CONNECT_TIME_MAX;
    loop {
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            let cause = format!("no answer within {CONNECT_TIME_MAX:?}");
            return Err(Error::new(Code::Unavailable, "", cause));
        }
        let timeout = Timespec::try_from(left).map_err(|error| refused(Code::Io, "", "time", error))?;
        match poll(&mut [PollFd::new(&socket, PollFlags::OUT)], Some(&timeout)) {
            Ok(0) => {}
            Ok(_) => break,
            Err(Errno::INTR) => interrupted()?,
            Err(errno) => return Err(refused(Code::Io, "", "cannot wait", errno)),
        }
    }
    match sockopt::socket_error(&socket) {
        Ok(Ok(())) => Ok(socket.into()),
        Ok(Err(errno)) | Err(errno) => Err(unreached(errno)),
    }
}
