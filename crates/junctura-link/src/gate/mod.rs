//! The entry for clients of other machines: a listener, and a thread for each client.
//!
//! Before a client is authenticated, it costs a descriptor, a thread and some kilobytes for [`handshake::TIME_MAX`] at
//! most. The number of such clients is bounded ([`crate::gate::newcomers`]); the oldest ones are evicted for new ones,
//! and get an error if they have begun a greeting in the clear. A client that is refused is logged with its address;
//! secrets never are.
//!
//! A gate keeps a spare descriptor. When the process can open no more, a client is accepted with it, and gets
//! `LimitExceeded` as the answer to its greeting.
//!
//! A client that asks for several streams receives the name of its link, and connects again for each further stream. A
//! further stream is accepted if it names an existing link that lacks it, shows the same token, and is secured as the
//! first one, in the clear or within TLS.
//!
//! The links of a token end when it is revoked or expires ([`tokens`]).

pub(crate) mod newcomers;
mod tokens;

use std::collections::HashMap;
use std::io::IoSlice;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use junctura_model::{Code, Error, Result};
use junctura_transport::{LocalCarrier, ServerAddress, UnixCarrier, for_clients};
use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};

use crate::auth::handshake::{
    self, ClientProof, HandshakeAnswer, LinkId, LinkJoin, LocalOffer, ServerIdentity, TimedExchange,
};
use crate::gate::newcomers::{GateNewcomers, NewcomerFate};
use crate::gate::tokens::{OpenLink, TokenWatch};
use crate::relay::StreamRelay;
use crate::relay::channel::LinkSide;
use crate::relay::channel_source::ChannelSource;
use crate::relay::link_origin::LinkOrigin;
use crate::stream::LinkStream;
use crate::streams::stream_worker::StreamWorker;
use crate::streams::{STREAMS_MAX, SideStreams, StreamsGuard};
use crate::{Endpoint, LoopbackUsers, ServerTls, TokenAuthority, refused};

/// Connections altogether; of a link of several streams, each counts.
const LINKS_MAX: usize = 8192;
/// The first byte of a TLS connection (RFC 8446, section 5.1: a handshake).
const TLS_BEGINS: u8 = 22;
/// The time that links have, when the gate closes, to send the server's last frames.
const CLOSING_TIME_MAX: Duration = Duration::from_secs(2);
/// The time that the gate waits for a newcomer to end before it checks again whether it is to close.
const PAUSE: Duration = Duration::from_millis(50);
/// Refusals that are logged in one second: strangers must not fill a disk.
const REFUSALS_TOLD: u64 = 10;
const STACK_BYTES: usize = 512 << 10;

/// The options of a gate.
#[derive(Debug)]
pub struct GateOptions {
    /// Where it listens.
    pub endpoint: Endpoint,
    /// The pool that it leads to.
    pub pool: ServerAddress,
    /// Which server serves it.
    pub identity: ServerIdentity,
    /// The server's certificate; needed beyond loopback.
    pub tls: Option<ServerTls>,
    /// The tokens that clients must show. Without them only clients on loopback are let in, those of `users`.
    pub tokens: Option<TokenAuthority>,
    /// The users of this host that are let in where no tokens are asked for.
    pub users: LoopbackUsers,
    /// A client that is silent for so long is disconnected.
    pub lease: Duration,
}

impl GateOptions {
    /// Long enough for a program that the machine has no time for, short enough not to keep others waiting.
    pub const LEASE: Duration = Duration::from_secs(10);

    /// A gate without TLS and tokens, for loopback and clients of this user.
    #[must_use]
    pub fn new(endpoint: Endpoint, pool: ServerAddress, identity: ServerIdentity) -> Self {
        Self {
            endpoint,
            pool,
            identity,
            tls: None,
            tokens: None,
            users: LoopbackUsers::Own,
            lease: Self::LEASE,
        }
    }

    /// Checks that nothing is open to other machines without authentication of both sides.
    fn check(&self, addresses: &[SocketAddr]) -> Result<()> {
        let beyond = addresses.iter().any(|address| !address.ip().is_loopback());
        if beyond && (self.tls.is_none() || self.tokens.is_none()) {
            let cause = "beyond loopback a pool is served with TLS and tokens alone: `junctura cert FOLDER --host HOST` and \
                         `junctura token make FOLDER --for NAME` make what is needed";
            return Err(Error::new(Code::Denied, self.endpoint.to_string(), cause));
        }
        if self.lease < Duration::from_millis(100) || self.lease > Duration::from_hours(24) {
            let cause = "a lease must be between 100 milliseconds and a day";
            return Err(Error::new(Code::InvalidArgument, format!("{:?}", self.lease), cause));
        }
        Ok(())
    }
}

/// A pool's open door. It closes when this value is dropped, and every link with it.
#[derive(Debug)]
pub struct Gate {
    endpoint: Endpoint,
    shared: Arc<GateShared>,
    stop: Arc<OwnedFd>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug)]
struct GateShared {
    options: GateOptions,
    state: Mutex<GateState>,
    /// A link, or an evicted newcomer, has ended.
    ended: Condvar,
}

#[derive(Debug, Default)]
struct GateState {
    newcomers: GateNewcomers,
    next: u64,
    /// Refusals since then.
    refused: u64,
    telling_since: Option<Instant>,
    links: Vec<OpenLink>,
    watch: TokenWatch,
    /// Closed for a moment when this process can open no more descriptors, so that a client can be accepted and
    /// refused.
    spare: Option<OwnedFd>,
    /// Links of several streams.
    several: HashMap<LinkId, SharedLink>,
}

/// A link that more streams may join.
#[derive(Debug)]
struct SharedLink {
    sides: Arc<SideStreams>,
    /// The streams that have not connected yet.
    lacks: Vec<u8>,
    /// The id of its token.
    token: Option<u32>,
    is_secret: bool,
}

/// More streams may join a link as long as this lasts.
struct JoinableLink<'a> {
    shared: &'a GateShared,
    link: LinkId,
}

impl Drop for JoinableLink<'_> {
    fn drop(&mut self) {
        self.shared.state().several.remove(&self.link);
    }
}

/// An admitted client.
enum AdmittedClient<'a> {
    Link(Box<StreamRelay>, Option<JoinableLink<'a>>),
    Side(Box<StreamWorker>),
}

impl Gate {
    /// Listens, and lets clients in from now on.
    ///
    /// # Errors
    /// `Denied` for an endpoint beyond loopback without TLS and tokens; `AlreadyExists` when another process listens there;
    /// `Unavailable` for a host that is not this one; `InvalidArgument` for an invalid lease; `Io` otherwise.
    pub fn open(options: GateOptions) -> Result<Self> {
        let addresses = options.endpoint.resolve()?;
        options.check(&addresses)?;
        let subject = options.endpoint.to_string();
        let listener = TcpListener::bind(&*addresses).map_err(|error| {
            let code = match error.kind() {
                std::io::ErrorKind::AddrInUse => Code::AlreadyExists,
                std::io::ErrorKind::AddrNotAvailable => Code::Unavailable,
                std::io::ErrorKind::PermissionDenied => Code::Denied,
                _ => Code::Io,
            };
            let action = match code {
                Code::AlreadyExists => {
                    "cannot listen, since another process has this port: choose another one, or port 0 for a free one"
                }
                _ => "cannot listen",
            };
            refused(code, subject.as_str(), action, error)
        })?;
        let cannot = |error: std::io::Error| refused(Code::Io, subject.as_str(), "cannot listen", error);
        listener.set_nonblocking(true).map_err(cannot)?;
        let bound = listener.local_addr().map_err(cannot)?;
        let endpoint = if options.endpoint.port() == 0 {
            format!("{}", Endpoint::from(bound)).parse()?
        } else {
            options.endpoint.clone()
        };
        let stop =
            Arc::new(eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK).map_err(|errno| cannot(errno.into()))?);
        let shared = Arc::new(GateShared {
            options,
            state: Mutex::default(),
            ended: Condvar::new(),
        });
        let (theirs, stopped) = (Arc::clone(&shared), Arc::clone(&stop));
        let thread = std::thread::Builder::new()
            .name("junctura-gate".to_owned())
            .spawn(move || theirs.listen(&listener, &stopped))
            .map_err(cannot)?;
        Ok(Self {
            endpoint,
            shared,
            stop,
            thread: Some(thread),
        })
    }

    /// Where it listens, with the port that it got.
    #[must_use]
    pub fn endpoint(&self) -> &Endpoint {
        &self.endpoint
    }
}

impl Drop for Gate {
    fn drop(&mut self) {
        let _ = rustix::io::write(&*self.stop, &1_u64.to_ne_bytes());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
        self.shared.close();
    }
}

impl GateShared {
    fn state(&self) -> MutexGuard<'_, GateState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn listen(self: &Arc<Self>, listener: &TcpListener, stop: &OwnedFd) {
        self.keep_spare(stop);
        loop {
            let mut both = [PollFd::new(listener, PollFlags::IN), PollFd::new(stop, PollFlags::IN)];
            match poll(&mut both, self.pause().as_ref()) {
                Ok(_) if !both[1].revents().is_empty() => return,
                Ok(_) | Err(rustix::io::Errno::INTR) => {
                    self.accept_all(listener, stop);
                    self.end_invalid();
                }
                Err(errno) => {
                    tracing::error!(%errno, "the gate is closed");
                    return;
                }
            }
        }
    }

    fn accept_all(self: &Arc<Self>, listener: &TcpListener, stop: &OwnedFd) {
        while self.has_place() {
            match listener.accept() {
                Ok((socket, peer)) => {
                    if let Err(error) = self.begin(socket, peer) {
                        self.tell(peer, &error);
                    }
                    self.keep_spare(stop);
                }
                Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => return,
                Err(error) if error.kind() == std::io::ErrorKind::ConnectionAborted => {}
                Err(_) if self.state().spare.take().is_some() => {}
                Err(error) => {
                    // Most likely this process can open no more descriptors. A newcomer that ends frees one.
                    tracing::warn!(%error, "a connection could not be accepted");
                    let mut state = self.state();
                    let oldest = state.newcomers.evict_oldest();
                    state.wake(oldest);
                    drop(state);
                    if let Ok(pause) = Timespec::try_from(PAUSE) {
                        let _ = poll(&mut [], Some(&pause));
                    }
                    return;
                }
            }
        }
    }

    /// Waits for a moment until a newcomer can have a place. The sockets of evicted newcomers are shut down, so that their
    /// threads end soon; in the meantime the kernel keeps new connections.
    fn has_place(&self) -> bool {
        let state = self.state();
        let waited = self
            .ended
            .wait_timeout_while(state, PAUSE, |state| !state.newcomers.can_evict());
        !waited.unwrap_or_else(PoisonError::into_inner).1.timed_out()
    }

    /// Opens the spare descriptor, a copy of any, unless it is there or the process can open no more.
    fn keep_spare(&self, any: &OwnedFd) {
        let mut state = self.state();
        if state.spare.is_none() {
            state.spare = any.try_clone().ok();
        }
    }

    fn begin(self: &Arc<Self>, socket: TcpStream, peer: SocketAddr) -> Result<()> {
        let socket = Arc::new(socket);
        let number = {
            let mut state = self.state();
            let limit = |cause: String| Err(Error::new(Code::LimitExceeded, "connection", cause));
            if state.links.len() >= LINKS_MAX {
                return limit(format!("{LINKS_MAX} connections are open"));
            }
            state.next += 1;
            let number = state.next;
            let place = state.newcomers.add(number, peer.ip());
            if place == NewcomerFate::None {
                return limit(format!(
                    "{} others have not completed their greetings",
                    state.newcomers.len()
                ));
            }
            state.wake(place);
            state.links.push(OpenLink::new(number, Arc::clone(&socket)));
            number
        };
        let shared = Arc::clone(self);
        let spawned = std::thread::Builder::new()
            .name("junctura-link".to_owned())
            .stack_size(STACK_BYTES)
            .spawn(move || shared.serve(number, socket, peer));
        spawned.map(|_| ()).map_err(|error| {
            self.leave(number);
            self.end(number);
            Error::new(Code::Io, "connection", error.to_string())
        })
    }

    /// One client, from its first word to its last.
    fn serve(&self, number: u64, socket: Arc<TcpStream>, peer: SocketAddr) {
        let let_in = self.let_in(number, socket, peer);
        match let_in {
            Ok(AdmittedClient::Link(relay, joinable)) => {
                match relay.run().0 {
                    Ok(_) => tracing::debug!(%peer, "a link ended"),
                    Err(error) => tracing::info!(%peer, %error, "a link ended"),
                }
                drop(joinable);
            }
            Ok(AdmittedClient::Side(porter)) => porter.run(),
            Err(error) => self.tell(peer, &error),
        }
        self.end(number);
    }

    /// Logs the refused client and the reason; for many in one second, their number.
    fn tell(&self, peer: SocketAddr, error: &Error) {
        let mut state = self.state();
        if state
            .telling_since
            .is_none_or(|since| since.elapsed() >= Duration::from_secs(1))
        {
            let untold = state.refused.saturating_sub(REFUSALS_TOLD);
            state.telling_since = Some(Instant::now());
            state.refused = 0;
            if untold > 0 {
                tracing::warn!(untold, "connections were refused");
            }
        }
        state.refused += 1;
        let is_told = state.refused <= REFUSALS_TOLD;
        drop(state);
        if is_told {
            tracing::warn!(%peer, %error, "a connection was refused");
        }
    }

    /// Reads the greeting of a newcomer, and admits or refuses it. Afterwards it is no newcomer any more.
    fn let_in(&self, number: u64, socket: Arc<TcpStream>, peer: SocketAddr) -> Result<AdmittedClient<'_>> {
        let mut newcomer = GateNewcomer {
            shared: self,
            number,
            is_one: true,
        };
        let until = Instant::now() + handshake::TIME_MAX;
        let begun = self.begin_stream(&socket, peer, until);
        let stream = match begun {
            Ok(stream) => stream,
            Err(error) => {
                let error = newcomer.leave().err().unwrap_or(error);
                // A client that has sent nothing may be about to begin with TLS, where there is a certificate.
                if self.options.tls.is_none() && error.code() == Code::LimitExceeded {
                    refuse(&mut LinkStream::new(socket, None)?, &error);
                }
                return Err(error);
            }
        };
        self.greet(&mut newcomer, stream, peer, until)
    }

    /// Begins in the clear or within TLS, as the first byte indicates.
    fn begin_stream(&self, socket: &Arc<TcpStream>, peer: SocketAddr, until: Instant) -> Result<LinkStream> {
        let tls = if first_byte(socket, until)? == TLS_BEGINS {
            let tls = self.options.tls.as_ref().ok_or_else(|| {
                let cause = "it begins with TLS, and this gate has no certificate";
                Error::new(Code::Unsupported, "greeting", cause)
            })?;
            Some(tls.connection()?)
        } else if peer.ip().to_canonical().is_loopback() {
            None
        } else {
            return Err(Error::new(Code::Denied, "greeting", "it does not begin with TLS"));
        };
        LinkStream::new(Arc::clone(socket), tls)
    }

    fn greet<'a>(
        &'a self,
        newcomer: &mut GateNewcomer<'_>,
        mut stream: LinkStream,
        peer: SocketAddr,
        until: Instant,
    ) -> Result<AdmittedClient<'a>> {
        let options = &self.options;
        let is_secret = stream.is_secret();
        let mut talk = TimedExchange {
            stream: &mut stream,
            until,
            interrupted: &mut || Ok(()),
        };
        let heard = match talk.hear() {
            Ok(heard) => heard,
            Err(error) => {
                let error = newcomer.leave().err().unwrap_or(error);
                if !is_secret && error.code() == Code::LimitExceeded {
                    refuse(&mut stream, &error);
                }
                return Err(error);
            }
        };
        let shown: ClientProof<'_> = handshake::decode(&heard)?;
        let checked = self
            .check(&shown, talk.stream)
            .and_then(|token| newcomer.leave().map(|()| token));
        if let Ok(Some(token)) = &checked {
            self.note_token(newcomer.number, token);
        }
        if checked.is_ok() {
            talk.stream.widen();
        }
        if let Some(joins) = shown.joins {
            let joined = checked.and_then(|token| self.join(joins, token.map(|token| token.id), is_secret));
            let answer = HandshakeAnswer {
                failure: joined.as_ref().err().map(Into::into),
                lease_ms: options.lease.as_millis() as u64,
                ..HandshakeAnswer::default()
            };
            talk.say(&handshake::encode(&answer)?)?;
            let porter = StreamWorker::new(joined?, joins.number, stream, options.lease)?;
            return Ok(AdmittedClient::Side(Box::new(porter)));
        }
        let mut joinable = None;
        let mut origin = LinkOrigin::new(peer, is_secret);
        let local = checked.and_then(|token| {
            let (id, name) = token
                .as_ref()
                .map_or((None, ""), |token| (Some(token.id), token.name.as_str()));
            let token_id = id.map(|id| format!("{id:08x}"));
            tracing::debug!(%peer, token = token_id, name, "a link begins");
            let local = UnixCarrier::connect(&options.pool).map_err(|error| for_clients(&error))?;
            joinable = self.expect(shown.streams.unwrap_or(1), id, is_secret)?;
            origin.token = token;
            Ok(local)
        });
        let answer = HandshakeAnswer {
            failure: local.as_ref().err().map(Into::into),
            lease_ms: options.lease.as_millis() as u64,
            // There every client has all rights.
            offered: (local.is_ok() && origin.has_all_rights()).then(|| LocalOffer {
                address: options.pool.to_string(),
                machine: handshake::machine(),
                identity: options.identity,
            }),
            link: joinable.as_ref().map(|(joinable, ..)| joinable.link),
            streams: joinable.as_ref().map(|(.., streams)| *streams),
        };
        talk.say(&handshake::encode(&answer)?)?;
        let local = local?;
        let (side, lease, mirror_bytes) = (LinkSide::Server, options.lease, shown.mirror_bytes);
        let relay = if shown.is_shared {
            // That connection has shown that the server is there; each client gets one of its own.
            drop(local);
            StreamRelay::with_door(
                side,
                ChannelSource::Out(options.pool.clone()),
                stream,
                lease,
                mirror_bytes,
            )
        } else {
            StreamRelay::new(side, LocalCarrier::new(local), stream, lease, mirror_bytes)
        };
        let relay = relay
            .with_origin(origin)
            .with_end_reason(self.reason_of(newcomer.number));
        Ok(match joinable {
            None => AdmittedClient::Link(Box::new(relay), None),
            Some((joinable, lead, _)) => AdmittedClient::Link(Box::new(relay.with_sides(lead)), Some(joinable)),
        })
    }

    /// A link that is to have so many streams, and how many it may have; `None`: one.
    fn expect(
        &self,
        streams: u8,
        token: Option<u32>,
        is_secret: bool,
    ) -> Result<Option<(JoinableLink<'_>, StreamsGuard, u8)>> {
        let streams = streams.min(STREAMS_MAX);
        if streams < 2 {
            return Ok(None);
        }
        let (link, lead) = (handshake::link_id()?, StreamsGuard(SideStreams::new()?));
        let several = SharedLink {
            sides: Arc::clone(&lead.0),
            lacks: (1..streams).collect(),
            token,
            is_secret,
        };
        self.state().several.insert(link, several);
        Ok(Some((JoinableLink { shared: self, link }, lead, streams)))
    }

    /// The properties that a further stream shares with the others of its link.
    fn join(&self, joins: LinkJoin, token: Option<u32>, is_secret: bool) -> Result<Arc<SideStreams>> {
        let mut state = self.state();
        let found = state.several.get_mut(&joins.link).and_then(|several| {
            let place = several.lacks.iter().position(|number| *number == joins.number)?;
            if several.token != token || several.is_secret != is_secret {
                return None;
            }
            several.lacks.swap_remove(place);
            Some(Arc::clone(&several.sides))
        });
        // A client that guesses does not learn the cause.
        found.ok_or_else(|| Error::new(Code::Denied, "stream of a link", "no link lacks it"))
    }

    /// A newcomer is none any more. False: it was evicted.
    fn leave(&self, number: u64) -> bool {
        let mut state = self.state();
        let was_there = state.newcomers.remove(number);
        if !was_there {
            state.newcomers.forget_evicted();
            self.ended.notify_all();
        }
        was_there
    }

    fn end(&self, number: u64) {
        self.state().links.retain(|link| link.number != number);
        self.ended.notify_all();
    }

    /// Gives the links some time to end, and ends those that do not.
    fn close(&self) {
        let until = Instant::now() + CLOSING_TIME_MAX;
        let mut state = self.state();
        while !state.links.is_empty() {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                state.links.iter().for_each(OpenLink::end);
                return;
            }
            state = self
                .ended
                .wait_timeout(state, left)
                .unwrap_or_else(PoisonError::into_inner)
                .0;
        }
    }
}

impl GateState {
    /// Wakes the thread of a newcomer that was evicted. It can still send.
    fn wake(&self, place: NewcomerFate) {
        let NewcomerFate::Of(evicted) = place else { return };
        if let Some(link) = self.links.iter().find(|link| link.number == evicted) {
            link.end_reading();
        }
    }
}

/// A client that is not authenticated yet, in the thread that reads its greeting.
struct GateNewcomer<'a> {
    shared: &'a GateShared,
    number: u64,
    is_one: bool,
}

impl GateNewcomer<'_> {
    /// It is none any more.
    ///
    /// # Errors
    /// `LimitExceeded` for one that was evicted.
    fn leave(&mut self) -> Result<()> {
        if std::mem::take(&mut self.is_one) && !self.shared.leave(self.number) {
            let cause = "too many others have connected before its greeting was complete; try again";
            return Err(Error::new(Code::LimitExceeded, "greeting", cause));
        }
        Ok(())
    }
}

impl Drop for GateNewcomer<'_> {
    fn drop(&mut self) {
        let _ = self.leave();
    }
}

/// Answers that a client is refused, as far as the socket takes it at once.
fn refuse(stream: &mut LinkStream, error: &Error) {
    let answer = HandshakeAnswer {
        failure: Some(error.into()),
        ..HandshakeAnswer::default()
    };
    if let Ok(bytes) = handshake::encode(&answer) {
        let _ = stream.write(&[IoSlice::new(&bytes)]);
    }
}

/// Waits for the first byte, and leaves it there.
fn first_byte(socket: &TcpStream, until: Instant) -> Result<u8> {
    let io = |error: std::io::Error| Error::new(Code::Disconnected, "greeting", error.to_string());
    let left = until.saturating_duration_since(Instant::now());
    socket.set_nonblocking(false).map_err(io)?;
    socket
        .set_read_timeout(Some(left.max(Duration::from_millis(1))))
        .map_err(io)?;
    let mut byte = [0];
    match socket.peek(&mut byte) {
        Ok(0) => Err(Error::new(
            Code::Disconnected,
            "greeting",
            "the connection ended before it sent anything",
        )),
        Ok(_) => Ok(byte[0]),
        Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {
            Err(Error::new(Code::Timeout, "greeting", "it took too long"))
        }
        Err(error) => Err(io(error)),
    }
}

#[cfg(test)]
mod tests;
