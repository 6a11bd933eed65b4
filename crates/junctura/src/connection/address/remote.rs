//! Pools behind a gate, on this machine or another, and the transports to them.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;
use std::sync::atomic::{AtomicU64, Ordering};

use junctura_link::{
    ClientTls, ClientToken, DialOptions, DialedGate, Endpoint, Gate, GateOptions, LoopbackUsers, RelayThread,
    STREAMS_MAX, ServerIdentity, UpstreamOptions, UpstreamProxy,
};
use junctura_model::{Code, Error, Result};
use junctura_transport::{ServerAddress, UnixCarrier};

use super::ReachedPool;
use super::credential_files::CredentialFiles;
use crate::connection::Hook;

/// The variable with the allowed transports, in order of preference.
const WAYS_VARIABLE: &str = "JUNCTURA_TRANSPORTS";
/// For tests: with `tcp`, pools of this machine are also reached over TCP, through a gate of the client itself; with
/// `upstream`, additionally through its own upstream proxy.
const DETOUR_VARIABLE: &str = "JUNCTURA_TEST_DETOUR";
/// The authority of a user that accepts servers of all users of this host, without TLS.
const NO_AUTHORITY: &str = "none";
/// The variable with the number of streams of a connection.
const STREAMS_VARIABLE: &str = "JUNCTURA_STREAMS";
/// Payloads that no client holds are cached up to this many bytes, and up to 25 % of physical memory.
const MIRROR_BYTES: u64 = 1 << 30;

/// A pool behind a gate.
#[derive(Clone, Debug)]
pub(crate) struct RemotePool {
    endpoint: Endpoint,
    ways: Vec<PoolRoute>,
    files: CredentialFiles,
    token: Option<ClientToken>,
    tls: Option<ClientTls>,
    users: LoopbackUsers,
    mirror_bytes: u64,
    streams: u8,
}

/// The options of a user for a pool behind a gate.
#[derive(Clone, Debug, Default)]
pub(crate) struct RemoteSettings {
    pub(crate) transports: Option<String>,
    pub(crate) token_file: Option<PathBuf>,
    pub(crate) ca_file: Option<PathBuf>,
    pub(crate) mirror_bytes: Option<u64>,
    pub(crate) streams: Option<usize>,
}

/// A transport to a pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PoolRoute {
    /// Memory that both processes map, on one machine.
    Shared,
    /// A network connection.
    Tcp,
}

/// A carrier beside the connection's own socket. Dropping it ends the carrier, too.
#[derive(Debug, Default)]
pub(crate) struct CarrierGuard {
    link: Option<RelayThread>,
    _upstream: Option<UpstreamProxy>,
    _detour: Option<Gate>,
    /// Whether a network connection uses TLS.
    is_secret: bool,
    /// The reason for the choice.
    why: String,
}

impl CarrierGuard {
    /// Returns whether the connection uses a network.
    pub(crate) fn is_network(&self) -> bool {
        self.link.is_some()
    }

    /// Returns the chosen transport, and the reason.
    pub(crate) fn route(&self) -> String {
        let what = match (self.is_network(), self.is_secret) {
            (false, _) => "shm",
            (true, false) => "tcp",
            (true, true) => "tcp, TLS",
        };
        let what = match self.link.as_ref().map_or(1, RelayThread::streams) {
            1 => what.to_owned(),
            streams => format!("{what}, {streams} streams"),
        };
        if self.why.is_empty() {
            what
        } else {
            format!("{what}: {}", self.why)
        }
    }
}

impl RemotePool {
    pub(super) fn new(endpoint: Endpoint, settings: &RemoteSettings) -> Result<Self> {
        let ways = match &settings.transports {
            Some(text) => ways(text)?,
            None => match std::env::var(WAYS_VARIABLE) {
                Ok(text) => ways(&text)?,
                Err(_) => vec![PoolRoute::Shared, PoolRoute::Tcp],
            },
        };
        let is_beyond = endpoint
            .resolve()
            .is_ok_and(|found| found.iter().any(|address| !address.ip().is_loopback()));
        let files = CredentialFiles::find(settings.token_file.as_ref(), settings.ca_file.as_ref(), is_beyond);
        let (authority, users) = match files.authority.path() {
            Some(file) if file.as_os_str() == NO_AUTHORITY => (None, LoopbackUsers::Any),
            authority => (authority, LoopbackUsers::Own),
        };
        Ok(Self {
            endpoint,
            ways,
            token: files.token.path().map(|path| ClientToken::read(path)).transpose()?,
            tls: authority.map(|path| ClientTls::read(path)).transpose()?,
            files,
            users,
            mirror_bytes: settings.mirror_bytes.unwrap_or_else(mirror_bytes),
            streams: settings
                .streams
                .map_or_else(streams, |number| streams_of(&number.to_string()))?,
        })
    }

    /// Returns the local proxy that serves that pool to this user's processes on this host, if one is running.
    fn upstream_of_this_machine(&self) -> Option<(ServerAddress, UnixCarrier)> {
        let address = UpstreamProxy::usual_address(&self.endpoint)?;
        let carrier = UnixCarrier::connect(&address).ok()?;
        Some((address, carrier))
    }

    pub(super) fn reach<T>(&self, hook: Option<&Hook>, mut greet: impl FnMut(ReachedPool) -> Result<T>) -> Result<T> {
        let mut passed = SkippedRoutes::default();
        if self.ways.first() == Some(&PoolRoute::Shared)
            && let Some((address, carrier)) = self.upstream_of_this_machine()
        {
            let why = format!("{address} is this machine's way to {}", self.endpoint);
            match greet(self.by_memory(carrier, why, None)) {
                Err(error) if is_elsewhere(&error) || error.code() == Code::Disconnected => {
                    passed.by(&format!("{address} does not lead there ({})", error.cause()));
                }
                greeted => return greeted,
            }
        }
        let dial = DialOptions {
            endpoint: &self.endpoint,
            token: self.token.as_ref(),
            tls: self.tls.as_ref(),
            users: self.users,
            mirror_bytes: self.mirror_bytes,
            streams: self.streams,
        };
        let dialed = dial.dial(|| hook.map_or(Ok(()), |hook| hook()));
        let mut dialed = Some(dialed.map_err(|error| self.files.explain(error))?);
        for way in &self.ways {
            match way {
                PoolRoute::Tcp => {
                    let Some(mut dialed) = dialed.take() else { continue };
                    dial.add_streams(&mut dialed, || hook.map_or(Ok(()), |hook| hook()))?;
                    return greet(self.by_network(dialed, passed.why)?);
                }
                PoolRoute::Shared => match dialed.as_ref().and_then(DialedGate::nearby) {
                    None => passed.by("the server is on another machine"),
                    Some(offered) => {
                        let why = format!("{} is on this machine", self.endpoint);
                        let near = ServerAddress::from_str(&offered.address)
                            .and_then(|address| UnixCarrier::connect(&address));
                        let greeted =
                            near.and_then(|carrier| greet(self.by_memory(carrier, why, Some(offered.identity))));
                        match greeted {
                            Err(error) if is_elsewhere(&error) => {
                                passed.by(&format!("the server's own socket is out of reach ({})", error.cause()));
                            }
                            greeted => return greeted,
                        }
                    }
                },
            }
        }
        let cause = format!("none of the ways that may be taken leads there: {}", passed.why);
        Err(Error::new(Code::Unavailable, self.endpoint.to_string(), cause))
    }

    fn by_memory(&self, carrier: UnixCarrier, why: String, expected: Option<ServerIdentity>) -> ReachedPool {
        let beside = CarrierGuard {
            why,
            ..CarrierGuard::default()
        };
        self.reached(carrier, beside, expected)
    }

    fn by_network(&self, dialed: DialedGate, why: String) -> Result<ReachedPool> {
        let (carrier, link) = dialed.start()?;
        let beside = CarrierGuard {
            link: Some(link),
            is_secret: self.tls.is_some(),
            why,
            ..CarrierGuard::default()
        };
        Ok(self.reached(carrier, beside, None))
    }

    fn reached(&self, carrier: UnixCarrier, beside: CarrierGuard, expected: Option<ServerIdentity>) -> ReachedPool {
        tracing::debug!(endpoint = %self.endpoint, route = beside.route(), "reached");
        ReachedPool {
            carrier,
            beside,
            expected: expected.map(|server| (server.pid, server.incarnation)),
        }
    }
}

/// The reasons why preferred transports were skipped.
#[derive(Debug, Default)]
struct SkippedRoutes {
    why: String,
}

impl SkippedRoutes {
    fn by(&mut self, why: &str) {
        if !self.why.is_empty() {
            self.why.push_str("; ");
        }
        self.why.push_str(why);
    }
}

/// Serves the pool behind a gate to the processes of this machine.
///
/// # Errors
/// As [`UpstreamProxy::open`]; `InvalidArgument` for a URL that names no gate.
pub(crate) fn open_upstream(url: &str, address: Option<&str>, settings: &RemoteSettings) -> Result<UpstreamProxy> {
    let remote = RemotePool::new(url.parse()?, settings)?;
    let address = match address {
        Some(text) => text.parse()?,
        None => UpstreamProxy::usual_address(&remote.endpoint).ok_or_else(|| {
            Error::new(
                Code::InvalidArgument,
                url,
                "name the address to serve it at: it is too long",
            )
        })?,
    };
    let options = UpstreamOptions {
        endpoint: remote.endpoint,
        token: remote.token,
        tls: remote.tls,
        users: remote.users,
        mirror_bytes: remote.mirror_bytes,
        streams: remote.streams,
    };
    UpstreamProxy::open(&address, options).map_err(|error| remote.files.explain(error))
}

/// Returns whether an address of this machine leads to no server, or to a different one.
fn is_elsewhere(error: &Error) -> bool {
    matches!(error.code(), Code::Unavailable | Code::Denied | Code::Io)
}

fn ways(text: &str) -> Result<Vec<PoolRoute>> {
    let ways = text.split(',').map(|way| match way.trim() {
        "shm" => Ok(PoolRoute::Shared),
        "tcp" => Ok(PoolRoute::Tcp),
        other => Err(Error::new(
            Code::InvalidArgument,
            format!("transport {other:?}"),
            "known are shm and tcp",
        )),
    });
    ways.collect()
}

fn mirror_bytes() -> u64 {
    let info = rustix::system::sysinfo();
    let total = info.totalram as u64 * u64::from(info.mem_unit.max(1));
    (total / 4).min(MIRROR_BYTES)
}

/// Returns the number of streams from the environment.
fn streams() -> Result<u8> {
    std::env::var(STREAMS_VARIABLE).map_or(Ok(1), |text| streams_of(&text))
}

fn streams_of(text: &str) -> Result<u8> {
    let number = text
        .trim()
        .parse()
        .ok()
        .filter(|number| (1..=STREAMS_MAX).contains(number));
    let cause = || format!("a link has from 1 to {STREAMS_MAX}");
    number.ok_or_else(|| Error::new(Code::InvalidArgument, format!("{text} streams"), cause()))
}

/// For tests: returns the connection to a pool of this machine, if the variable requests a detour.
pub(super) fn detour(address: &ServerAddress, hook: Option<&Hook>) -> Result<Option<ReachedPool>> {
    match std::env::var(DETOUR_VARIABLE).as_deref() {
        Ok("tcp") => own_detour(address, hook).map(Some),
        Ok("upstream") => shared_detour(address).map(Some),
        _ => Ok(None),
    }
}

/// Connects over TCP to a pool of this machine.
fn own_detour(address: &ServerAddress, hook: Option<&Hook>) -> Result<ReachedPool> {
    // A peer that cannot be reached directly counts as absent.
    drop(UnixCarrier::connect(address)?);
    let any: Endpoint = "tcp://127.0.0.1:0".parse()?;
    let gate = Gate::open(GateOptions::new(any, address.clone(), ServerIdentity::default()))?;
    let dial = DialOptions {
        endpoint: gate.endpoint(),
        token: None,
        tls: None,
        users: LoopbackUsers::Own,
        mirror_bytes: mirror_bytes(),
        streams: streams()?,
    };
    let ask = || hook.map_or(Ok(()), |hook| hook());
    let mut dialed = dial.dial(ask)?;
    dial.add_streams(&mut dialed, ask)?;
    let (carrier, link) = dialed.start()?;
    Ok(ReachedPool {
        carrier,
        beside: CarrierGuard {
            link: Some(link),
            _detour: Some(gate),
            is_secret: false,
            _upstream: None,
            why: format!("{DETOUR_VARIABLE} is set"),
        },
        expected: None,
    })
}

/// As [`own_detour`], through an upstream proxy without other clients.
fn shared_detour(address: &ServerAddress) -> Result<ReachedPool> {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    drop(UnixCarrier::connect(address)?);
    let gate = Gate::open(GateOptions::new(
        "tcp://127.0.0.1:0".parse()?,
        address.clone(),
        ServerIdentity::default(),
    ))?;
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    let near = format!("unix:@junctura-detour-{}-{number}", std::process::id()).parse()?;
    let options = UpstreamOptions {
        endpoint: gate.endpoint().clone(),
        token: None,
        tls: None,
        users: LoopbackUsers::Own,
        mirror_bytes: mirror_bytes(),
        streams: streams()?,
    };
    let upstream = UpstreamProxy::open(&near, options)?;
    Ok(ReachedPool {
        carrier: UnixCarrier::connect(&near)?,
        beside: CarrierGuard {
            _upstream: Some(upstream),
            _detour: Some(gate),
            why: format!("{DETOUR_VARIABLE} is set"),
            ..CarrierGuard::default()
        },
        expected: None,
    })
}

impl fmt::Display for RemotePool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.endpoint.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ways_are_taken_in_their_order() {
        assert_eq!(ways("tcp, shm").unwrap(), [PoolRoute::Tcp, PoolRoute::Shared]);
        for text in ["", "tcp,", "rdma", "shm;tcp"] {
            assert_eq!(ways(text).unwrap_err().code(), Code::InvalidArgument, "{text:?}");
        }
    }

    #[test]
    fn a_link_has_from_one_to_eight_streams() {
        assert_eq!(streams_of("1").unwrap(), 1);
        assert_eq!(streams_of(" 8 ").unwrap(), 8);
        for text in ["", "0", "9", "-1", "300", "two", "1.5"] {
            let error = streams_of(text).unwrap_err();
            assert_eq!(error.code(), Code::InvalidArgument, "{text:?}");
        }
    }
}
