//! The user at the other end of a TCP connection of this host.
//!
//! A unix socket has the credentials of its peer; a TCP socket has none. But the kernel knows the owner of every TCP socket of the
//! host: it can be asked for one ([`query`]), and where it cannot, it lists all in `/proc/net/tcp` and `/proc/net/tcp6` (proc(5)).
//! The peer's socket is the one whose local address is the remote address of this end, and the other way round.
//!
//! A row proves its owner only while a process has the socket open: a socket in `TIME_WAIT`, or one that its process has closed,
//! is listed with user 0 and inode 0. Therefore only established sockets with an inode count. Wherever the owner cannot be
//! proven (no `/proc`, another network namespace, a user that this user namespace does not map) the answer is an error, never
//! a guess.

use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpStream};
use std::sync::{Mutex, PoisonError};

mod query;

use junctura_model::{Code, Error, Result};
use junctura_transport::no_descriptors;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::geteuid;

/// Bytes of one table that are read, at most: about 400,000 sockets.
const TABLE_BYTES_MAX: u64 = 64 << 20;
/// Bytes of a row, at most. The kernel pads rows to 150 bytes (IPv4) and 170 bytes (IPv6).
const ROW_BYTES_MAX: u64 = 512;
/// Scans for one connection, at most. A scan may miss a row while other connections of the host begin and end.
const SCANS_MAX: usize = 3;
/// The tables, by address family.
const TABLES: [&str; 2] = ["/proc/net/tcp", "/proc/net/tcp6"];
/// The user that represents all users that a user namespace does not map, unless the administrator chose another one.
const OVERFLOW_USER: u32 = 65534;

/// Which users of this host are peers of a loopback connection that neither TLS nor a token protects.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LoopbackUsers {
    /// Only the user of this process, as with unix sockets. Root is no exception.
    #[default]
    Own,
    /// Every user of this host.
    Any,
}

/// Both ends of a connection, as this end sees them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct SocketEnds {
    near: SocketAddr,
    far: SocketAddr,
}

/// The side of a connection that asks for its peer's owner.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AskingSide {
    /// The side that accepted the connection: its peer has a socket of its own.
    Acceptor,
    /// The side that connected: while no process has accepted its connection, the owner of the listening socket is its peer.
    Connector,
}

/// One socket of the host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct SocketRow {
    local: SocketAddr,
    remote: SocketAddr,
    state: u8,
    uid: u32,
    inode: u64,
}

/// States of a socket (`include/net/tcp_states.h` of Linux).
const ESTABLISHED: u8 = 1;
const SYN_RECEIVED: u8 = 3;
const LISTEN: u8 = 10;

/// Refuses a peer of another user, and one whose user cannot be proven.
///
/// Asks the kernel for the peer's socket, which takes microseconds. Where that is impossible, it reads the kernel's tables, one reader of a
/// process at a time: milliseconds, and more with each TCP socket of the host.
///
/// # Errors
/// `Denied` for a peer of another or of an unknown user; `Disconnected` for a connection that has ended.
pub(crate) fn must_be_own(socket: &TcpStream, asking: AskingSide) -> Result<()> {
    let gone = |error: std::io::Error| Error::new(Code::Disconnected, "greeting", error.to_string());
    let ends = SocketEnds {
        near: canonical(socket.local_addr().map_err(gone)?),
        far: canonical(socket.peer_addr().map_err(gone)?),
    };
    let found = match query::owner_by(&mut query::ask, ends, asking) {
        Ok((Some(uid), _)) => Ok(uid),
        Ok((None, true)) => Err(UnknownOwner::Unlisted("no process has its socket open".to_owned())),
        Ok((None, false)) | Err(_) => look_up(ends, asking, &mut |table| File::open(table).map(BufReader::new)),
    };
    // Only now it is certain that the row was of this connection, and not of a later one between the same ports.
    socket.peer_addr().map_err(gone)?;
    if matches!(found, Err(UnknownOwner::Unlisted(_))) && is_closed(socket, ends) {
        let cause = "the other end closed the connection before its user was known";
        return Err(Error::new(Code::Disconnected, "greeting", cause));
    }
    decide(found, geteuid().as_raw(), asking, are_all_users_mapped)
}

/// Whether the peer's process has closed its socket. The kernel may list that before this end receives it.
fn is_closed(socket: &TcpStream, ends: SocketEnds) -> bool {
    let is_left = |row: SocketRow| {
        let is_open = row.inode != 0 || matches!(row.state, ESTABLISHED | SYN_RECEIVED);
        row.local == ends.far && row.remote == ends.near && !is_open
    };
    if query::ask(ends.far, ends.near).is_ok_and(|row| row.is_some_and(is_left)) {
        return true;
    }
    let mut end = [PollFd::new(socket, PollFlags::RDHUP)];
    poll(&mut end, Some(&Timespec::default())).is_ok_and(|ended| ended > 0)
}

/// Why the owner of a peer is not known.
#[derive(Clone, Debug, PartialEq, Eq)]
enum UnknownOwner {
    Unlisted(String),
    /// This process can open no file now.
    NoDescriptors(Errno),
}

/// The owner of the peer; `Err`: why it is not known.
fn look_up<R: BufRead>(
    ends: SocketEnds,
    asking: AskingSide,
    open: &mut dyn FnMut(&'static str) -> std::io::Result<R>,
) -> std::result::Result<u32, UnknownOwner> {
    /// Untrusted clients that cause many look-ups must not occupy every processor.
    static TURN: Mutex<()> = Mutex::new(());
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    let mut tables = TABLES;
    if ends.far.is_ipv6() {
        tables.reverse();
    }
    let mut cause = format!("{} lists no owner", tables[0]);
    for _ in 0..SCANS_MAX {
        for table in tables {
            let scanned = open(table).and_then(|rows| owner_in(rows, ends, asking));
            match scanned {
                Ok(Some(uid)) => return Ok(uid),
                Ok(None) => {}
                // A host without IPv6 has no second table.
                Err(error) if error.kind() == std::io::ErrorKind::NotFound && table != tables[0] => {}
                Err(error) => match Errno::from_io_error(&error) {
                    Some(errno @ (Errno::MFILE | Errno::NFILE)) => return Err(UnknownOwner::NoDescriptors(errno)),
                    _ => cause = format!("{table}: {error}"),
                },
            }
        }
    }
    Err(UnknownOwner::Unlisted(cause))
}

/// The owner of the peer, if this table lists it.
fn owner_in(mut rows: impl BufRead, ends: SocketEnds, asking: AskingSide) -> std::io::Result<Option<u32>> {
    let mut rows = rows.by_ref().take(TABLE_BYTES_MAX);
    let mut line = Vec::new();
    let mut listening = ListeningSockets::default();
    loop {
        line.clear();
        let read = rows.by_ref().take(ROW_BYTES_MAX).read_until(b'\n', &mut line)?;
        if read == 0 && rows.limit() > 0 {
            return Ok(None);
        }
        if line.last() != Some(&b'\n') {
            return Err(std::io::Error::other("too long"));
        }
        let Some(row) = SocketRow::read(&line) else { continue };
        if asking == AskingSide::Connector && row.state == LISTEN {
            listening.add(&row, ends.far);
        }
        if row.local != ends.far || row.remote != ends.near {
            continue;
        }
        match (asking, row.state) {
            (_, ESTABLISHED) if row.inode != 0 => return Ok(Some(row.uid)),
            // The kernel lists listening sockets first. Had the one that took this connection been closed since, the
            // connection would have ended with it, because no process has accepted it.
            (AskingSide::Connector, ESTABLISHED | SYN_RECEIVED) => return Ok(listening.owner()),
            _ => {}
        }
    }
}

/// The listening sockets that may have accepted a connection.
#[derive(Debug, Default)]
struct ListeningSockets {
    /// How closely the address matches; the kernel chooses the closest.
    closeness: u8,
    owner: Option<u32>,
    has_several: bool,
}

impl ListeningSockets {
    fn add(&mut self, row: &SocketRow, at: SocketAddr) {
        let ip = row.local.ip();
        let closeness = match ip {
            _ if row.local.port() != at.port() || row.inode == 0 => return,
            ip if ip == at.ip() => 3,
            IpAddr::V4(ip) if ip.is_unspecified() && at.is_ipv4() => 2,
            IpAddr::V6(ip) if ip.is_unspecified() => 1,
            _ => return,
        };
        match closeness.cmp(&self.closeness) {
            std::cmp::Ordering::Less => {}
            std::cmp::Ordering::Equal => self.has_several |= self.owner != Some(row.uid),
            std::cmp::Ordering::Greater => {
                *self = Self {
                    closeness,
                    owner: Some(row.uid),
                    has_several: false,
                }
            }
        }
    }

    /// Returns the common owner.
    fn owner(&self) -> Option<u32> {
        self.owner.filter(|_| !self.has_several)
    }
}

impl SocketRow {
    /// Reads a row; `None`: this is no row.
    fn read(line: &[u8]) -> Option<Self> {
        let line = std::str::from_utf8(line).ok()?;
        // sl local remote state queues timer retransmits uid timeout inode …
        let mut words = line.split_ascii_whitespace();
        let local = address(words.nth(1)?)?;
        let remote = address(words.next()?)?;
        let state = u8::from_str_radix(words.next()?, 16).ok()?;
        let uid = words.nth(3)?.parse().ok()?;
        let inode = words.nth(1)?.parse().ok()?;
        Some(Self {
            local,
            remote,
            state,
            uid,
            inode,
        })
    }
}

/// Reads an address: words of 32 bits in memory order, in hexadecimal digits, then the port.
fn address(text: &str) -> Option<SocketAddr> {
    let (words, port) = text.split_once(':')?;
    let port = u16::from_str_radix(port, 16).ok()?;
    let word = |at: usize| {
        let word = u32::from_str_radix(words.get(8 * at..8 * at + 8)?, 16).ok()?;
        Some(word.to_ne_bytes())
    };
    let ip = match words.len() {
        8 => IpAddr::V4(Ipv4Addr::from(word(0)?)),
        32 => {
            let mut bytes = [0; 16];
            for (at, into) in bytes.chunks_exact_mut(4).enumerate() {
                into.copy_from_slice(&word(at)?);
            }
            IpAddr::V6(Ipv6Addr::from(bytes))
        }
        _ => return None,
    };
    Some(canonical(SocketAddr::new(ip, port)))
}

/// An IPv4 address that a socket for IPv6 has, as IPv4; without scope and flow, which the tables lack.
fn canonical(address: SocketAddr) -> SocketAddr {
    SocketAddr::new(address.ip().to_canonical(), address.port())
}

/// Whether such a peer is accepted by a process of user `own`.
fn decide(
    found: std::result::Result<u32, UnknownOwner>,
    own: u32,
    asking: AskingSide,
    are_all_users_mapped: impl FnOnce() -> bool,
) -> Result<()> {
    let denied = |cause: String| Err(Error::new(Code::Denied, "loopback connection", cause));
    let (peer, this, remedy) = match asking {
        AskingSide::Acceptor => (
            "the client",
            "the pool",
            "serve the pool with `--security FOLDER` and give the client a token (or serve all users of this host: \
             `--security none`)",
        ),
        AskingSide::Connector => (
            "the server",
            "this client",
            "name the certificate authority of the server, as `JUNCTURA_CA_FILE` (or trust servers of all users of this \
             host: `JUNCTURA_CA_FILE=none`)",
        ),
    };
    match found {
        Ok(uid) if uid != own => denied(format!("{peer} runs as user {uid}, {this} as user {own}; {remedy}")),
        Ok(OVERFLOW_USER) if !are_all_users_mapped() => denied(format!(
            "{peer} runs as user {OVERFLOW_USER}, which may be any user that this user namespace does not map; {remedy}"
        )),
        Ok(_) => Ok(()),
        Err(UnknownOwner::NoDescriptors(errno)) => {
            let whose = if asking == AskingSide::Acceptor {
                "the server"
            } else {
                "this process"
            };
            let cause = no_descriptors(whose, errno).unwrap_or_default();
            Err(Error::new(Code::LimitExceeded, "loopback connection", cause))
        }
        Err(UnknownOwner::Unlisted(cause)) => denied(format!("the user of {peer} is unknown ({cause}); {remedy}")),
    }
}

/// Whether every user of the host has a number of its own in this user namespace (`user_namespaces(7)`).
fn are_all_users_mapped() -> bool {
    let map = std::fs::read_to_string("/proc/self/uid_map").unwrap_or_default();
    map.split_ascii_whitespace().eq(["0", "0", "4294967295"])
}

#[cfg(test)]
mod tests;
