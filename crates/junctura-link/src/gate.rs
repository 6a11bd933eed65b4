//! Where clients of other machines come in: a listener, and a thread for each of them.
//!
//! Before a client has shown who it is, it costs a thread and some kilobytes for [`greeting::TIME_MAX`] at most, and there are
//! at most [`GREETINGS_MAX`] of them at a time. Whoever is refused is logged with where it came from; secrets never are.
//!
//! A client that asks for several streams is told what its link is called, and dials again for each. A further stream is let in
//! when it names a link that lasts and lacks it, shows the same token, and comes as the first one did, in the clear or within TLS.

use std::collections::HashMap;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use junctura_model::{Code, Error, Result};
use junctura_transport::{Address, LocalCarrier, UnixCarrier};
use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};

use crate::channel::Side;
use crate::door::Door;
use crate::greeting::{self, Answer, Identity, Joins, LinkId, Offered, Shown, Talk};
use crate::owner::Asking;
use crate::porter::Porter;
use crate::relay::Relay;
use crate::sides::{Lead, STREAMS_MAX, Sides};
use crate::stream::Stream;
use crate::{Endpoint, LoopbackUsers, ServerTls, TokenKey, refused};

/// Clients that have come and not yet shown who they are.
const GREETINGS_MAX: usize = 64;
/// Connections altogether; of a link of several streams, each counts.
const LINKS_MAX: usize = 8192;
/// The first byte of a TLS connection (RFC 8446, section 5.1: a handshake).
const TLS_BEGINS: u8 = 22;
/// How long the links have, when the gate closes, to say what the server said last.
const CLOSING_TIME_MAX: Duration = Duration::from_secs(2);
/// Refusals that are logged in one second: strangers must not fill a disk.
const REFUSALS_TOLD: u64 = 10;
const STACK_BYTES: usize = 512 << 10;

/// What a gate is to be.
#[derive(Debug)]
pub struct GateOptions {
    /// Where it listens.
    pub endpoint: Endpoint,
    /// The pool that it leads to.
    pub pool: Address,
    /// Which server serves it.
    pub identity: Identity,
    /// How it shows who it is; needed beyond loopback.
    pub tls: Option<ServerTls>,
    /// The key of the tokens that clients must show. Without it only clients on loopback are let in, those of `users`.
    pub key: Option<TokenKey>,
    /// The users of this host that are let in where there is no key.
    pub users: LoopbackUsers,
    /// Who is not heard of for so long is given up.
    pub lease: Duration,
}

impl GateOptions {
    /// Long enough for a program that the machine has no time for, short enough not to keep others waiting.
    pub const LEASE: Duration = Duration::from_secs(10);

    /// A gate without TLS and tokens, for loopback and clients of this user.
    #[must_use]
    pub fn new(endpoint: Endpoint, pool: Address, identity: Identity) -> Self {
        Self {
            endpoint,
            pool,
            identity,
            tls: None,
            key: None,
            users: LoopbackUsers::Own,
            lease: Self::LEASE,
        }
    }

    /// Nothing is open to other machines that does not say who it is and ask who comes.
    fn check(&self, addresses: &[SocketAddr]) -> Result<()> {
        let beyond = addresses.iter().any(|address| !address.ip().is_loopback());
        if beyond && (self.tls.is_none() || self.key.is_none()) {
            let cause = "beyond loopback a pool is served with TLS and tokens alone: `junctura cert` and `junctura token` make \
                         what is needed";
            return Err(Error::new(Code::Denied, self.endpoint.to_string(), cause));
        }
        if self.lease < Duration::from_millis(100) || self.lease > Duration::from_hours(24) {
            let cause = "a lease lasts from 100 milliseconds to a day";
            return Err(Error::new(Code::InvalidArgument, format!("{:?}", self.lease), cause));
        }
        Ok(())
    }
}

/// A pool's open door. It closes when this value is dropped, and every link with it.
#[derive(Debug)]
pub struct Gate {
    endpoint: Endpoint,
    shared: Arc<Shared>,
    stop: Arc<OwnedFd>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug)]
struct Shared {
    options: GateOptions,
    state: Mutex<State>,
    /// A link has ended.
    ended: Condvar,
}

#[derive(Debug, Default)]
struct State {
    greetings: usize,
    next: u64,
    /// Refusals since then.
    refused: u64,
    telling_since: Option<Instant>,
    links: Vec<(u64, TcpStream)>,
    /// Links of several streams.
    several: HashMap<LinkId, Several>,
}

/// A link that more streams may join.
#[derive(Debug)]
struct Several {
    sides: Arc<Sides>,
    /// Which of them have not come.
    lacks: Vec<u8>,
    /// Whose it is.
    name: String,
    is_secret: bool,
}

/// More streams may join a link as long as this lasts.
struct Joinable<'a> {
    shared: &'a Shared,
    link: LinkId,
}

impl Drop for Joinable<'_> {
    fn drop(&mut self) {
        self.shared.state().several.remove(&self.link);
    }
}

/// Who was let in.
enum Admitted<'a> {
    Link(Box<Relay>, Option<Joinable<'a>>),
    Side(Box<Porter>),
}

impl Gate {
    /// Listens, and lets clients in from now on.
    ///
    /// # Errors
    /// `Denied` for an endpoint beyond loopback without TLS and tokens; `AlreadyExists` when somebody listens there;
    /// `Unavailable` for a host that is not this one; `InvalidArgument` for a lease that is none; `Io` otherwise.
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
            refused(code, subject.as_str(), "cannot listen", error)
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
        let shared = Arc::new(Shared {
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

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn listen(self: &Arc<Self>, listener: &TcpListener, stop: &OwnedFd) {
        loop {
            let mut both = [PollFd::new(listener, PollFlags::IN), PollFd::new(stop, PollFlags::IN)];
            match poll(&mut both, None) {
                Ok(_) if !both[1].revents().is_empty() => return,
                Ok(_) | Err(rustix::io::Errno::INTR) => self.accept_all(listener),
                Err(errno) => {
                    tracing::error!(%errno, "the gate is closed");
                    return;
                }
            }
        }
    }

    fn accept_all(self: &Arc<Self>, listener: &TcpListener) {
        loop {
            match listener.accept() {
                Ok((socket, peer)) => {
                    if let Err(error) = self.begin(socket, peer) {
                        self.tell(peer, &error);
                    }
                }
                Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => return,
                Err(error) if error.kind() == std::io::ErrorKind::ConnectionAborted => {}
                Err(error) => {
                    // Most likely this process may open no more descriptors: the next one may find some.
                    tracing::warn!(%error, "a connection could not be taken");
                    let pause = Timespec::try_from(Duration::from_millis(50));
                    if let Ok(pause) = pause {
                        let _ = poll(&mut [], Some(&pause));
                    }
                    return;
                }
            }
        }
    }

    fn begin(self: &Arc<Self>, socket: TcpStream, peer: SocketAddr) -> Result<()> {
        let io = |error: std::io::Error| Error::new(Code::Io, "connection", error.to_string());
        let handle = socket.try_clone().map_err(io)?;
        let number = {
            let mut state = self.state();
            if state.greetings >= GREETINGS_MAX || state.links.len() >= LINKS_MAX {
                let cause = format!("{} others are coming in, {} are in", state.greetings, state.links.len());
                return Err(Error::new(Code::LimitExceeded, "connection", cause));
            }
            state.greetings += 1;
            state.next += 1;
            let number = state.next;
            state.links.push((number, handle));
            number
        };
        let shared = Arc::clone(self);
        let spawned = std::thread::Builder::new()
            .name("junctura-link".to_owned())
            .stack_size(STACK_BYTES)
            .spawn(move || shared.serve(number, socket, peer));
        spawned.map(|_| ()).map_err(|error| {
            self.state().greetings -= 1;
            self.end(number);
            io(error)
        })
    }

    /// One client, from its first word to its last.
    fn serve(&self, number: u64, socket: TcpStream, peer: SocketAddr) {
        let let_in = self.let_in(socket, peer);
        self.state().greetings -= 1;
        match let_in {
            Ok(Admitted::Link(relay, joinable)) => {
                match relay.run().0 {
                    Ok(_) => tracing::debug!(%peer, "a link ended"),
                    Err(error) => tracing::info!(%peer, %error, "a link ended"),
                }
                drop(joinable);
            }
            Ok(Admitted::Side(porter)) => porter.run(),
            Err(error) => self.tell(peer, &error),
        }
        self.end(number);
    }

    /// Says who was refused, and why; of many in one second, how many.
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

    fn let_in(&self, socket: TcpStream, peer: SocketAddr) -> Result<Admitted<'_>> {
        let options = &self.options;
        let until = Instant::now() + greeting::TIME_MAX;
        let tls = if first_byte(&socket, until)? == TLS_BEGINS {
            let tls = options.tls.as_ref().ok_or_else(|| {
                let cause = "it begins with TLS, and this gate has no certificate";
                Error::new(Code::Unsupported, "greeting", cause)
            })?;
            Some(tls.connection()?)
        } else if peer.ip().to_canonical().is_loopback() {
            None
        } else {
            return Err(Error::new(Code::Denied, "greeting", "it does not begin with TLS"));
        };
        let is_secret = tls.is_some();
        let origin = format!("tcp{} from {peer}", if is_secret { ", TLS" } else { "" });
        let mut stream = Stream::new(socket, tls)?;
        let mut talk = Talk {
            stream: &mut stream,
            until,
            interrupted: &mut || Ok(()),
        };
        let heard = talk.hear()?;
        let shown: Shown<'_> = greeting::decode(&heard)?;
        if let Some(joins) = shown.joins {
            let joined = self
                .check(&shown, talk.stream)
                .and_then(|name| self.join(joins, &name, is_secret));
            let answer = Answer {
                failure: joined.as_ref().err().map(Into::into),
                lease_ms: options.lease.as_millis() as u64,
                ..Answer::default()
            };
            talk.say(&greeting::encode(&answer)?)?;
            let porter = Porter::new(joined?, joins.number, stream, options.lease)?;
            return Ok(Admitted::Side(Box::new(porter)));
        }
        let mut joinable = None;
        let local = self.check(&shown, talk.stream).and_then(|name| {
            tracing::debug!(%peer, name, "a link begins");
            let local = UnixCarrier::connect(&options.pool)?;
            joinable = self.expect(shown.streams.unwrap_or(1), name, is_secret)?;
            Ok(local)
        });
        let answer = Answer {
            failure: local.as_ref().err().map(Into::into),
            lease_ms: options.lease.as_millis() as u64,
            offered: local.is_ok().then(|| Offered {
                address: options.pool.to_string(),
                machine: greeting::machine(),
                identity: options.identity,
            }),
            link: joinable.as_ref().map(|(joinable, ..)| joinable.link),
            streams: joinable.as_ref().map(|(.., streams)| *streams),
        };
        talk.say(&greeting::encode(&answer)?)?;
        let local = local?;
        let (side, lease, mirror_bytes) = (Side::Server, options.lease, shown.mirror_bytes);
        let relay = if shown.is_shared {
            // That connection has shown that the server is there; each client gets one of its own.
            drop(local);
            Relay::with_door(side, Door::Out(options.pool.clone()), stream, lease, mirror_bytes)
        } else {
            Relay::new(side, LocalCarrier::new(local), stream, lease, mirror_bytes)
        };
        let relay = relay.with_origin(origin);
        Ok(match joinable {
            None => Admitted::Link(Box::new(relay), None),
            Some((joinable, lead, _)) => Admitted::Link(Box::new(relay.with_sides(lead)), Some(joinable)),
        })
    }

    /// A link that is to have so many streams, and how many it may have; `None`: one.
    fn expect(&self, streams: u8, name: String, is_secret: bool) -> Result<Option<(Joinable<'_>, Lead, u8)>> {
        let streams = streams.min(STREAMS_MAX);
        if streams < 2 {
            return Ok(None);
        }
        let (link, lead) = (greeting::link_id()?, Lead(Sides::new()?));
        let several = Several {
            sides: Arc::clone(&lead.0),
            lacks: (1..streams).collect(),
            name,
            is_secret,
        };
        self.state().several.insert(link, several);
        Ok(Some((Joinable { shared: self, link }, lead, streams)))
    }

    /// What one more stream has in common with the others of its link.
    fn join(&self, joins: Joins, name: &str, is_secret: bool) -> Result<Arc<Sides>> {
        let mut state = self.state();
        let found = state.several.get_mut(&joins.link).and_then(|several| {
            let place = several.lacks.iter().position(|number| *number == joins.number)?;
            if several.name != name || several.is_secret != is_secret {
                return None;
            }
            several.lacks.swap_remove(place);
            Some(Arc::clone(&several.sides))
        });
        // Who guesses does not learn what was wrong.
        found.ok_or_else(|| Error::new(Code::Denied, "stream of a link", "no link lacks it"))
    }

    /// The name of a client that may use the pool. Nothing else that a client asks for is done before.
    fn check(&self, shown: &Shown<'_>, stream: &Stream) -> Result<String> {
        match (&self.options.key, &shown.token) {
            (None, _) if self.options.users == LoopbackUsers::Any => Ok(String::new()),
            (None, _) => stream.peer_must_be_own(Asking::Acceptor).map(|()| String::new()),
            (Some(key), Some(token)) => key.check(token),
            (Some(_), None) => Err(Error::new(
                Code::Denied,
                "token",
                "this pool asks for one, and none was shown",
            )),
        }
    }

    fn end(&self, number: u64) {
        self.state().links.retain(|(link, _)| *link != number);
        self.ended.notify_all();
    }

    /// Gives the links some time to end, and ends those that do not.
    fn close(&self) {
        let until = Instant::now() + CLOSING_TIME_MAX;
        let mut state = self.state();
        while !state.links.is_empty() {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                for (_, socket) in &state.links {
                    let _ = socket.shutdown(std::net::Shutdown::Both);
                }
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
            "it ended before it had said anything",
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
