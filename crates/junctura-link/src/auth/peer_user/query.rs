//! Asks the kernel for one TCP socket of the host (`sock_diag(7)`): some microseconds, however many sockets there are.

use std::io::Result;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use rustix::io::Errno;
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, netlink, recv, send, socket_with};

use super::{AskingSide, ESTABLISHED, LISTEN, SYN_RECEIVED, SocketEnds, SocketRow, canonical};

/// `struct nlmsghdr`.
const HEAD_BYTES: usize = 16;
/// `struct inet_diag_req_v2`.
const QUERY_BYTES: usize = 56;
/// `struct inet_diag_msg`.
const ANSWER_BYTES: usize = 72;
/// More than an answer and its attributes have. A longer answer is cut, since only its beginning is read.
const BUFFER_BYTES: usize = 1024;
const SOCK_DIAG_BY_FAMILY: u16 = 20;
const NLMSG_ERROR: u16 = 2;
const NLM_F_REQUEST: u16 = 1;
const AF_INET: u8 = 2;
const AF_INET6: u8 = 10;
const IPPROTO_TCP: u8 = 6;

/// The owner of the peer, and whether that is final: `(None, true)`: no process has proven to have the peer's socket open.
pub(super) fn owner_by(
    ask: &mut dyn FnMut(SocketAddr, SocketAddr) -> Result<Option<SocketRow>>,
    ends: SocketEnds,
    asking: AskingSide,
) -> Result<(Option<u32>, bool)> {
    let is_peer = |row: &SocketRow| row.local == ends.far && row.remote == ends.near;
    let proven = |row: &Option<SocketRow>| match row {
        Some(row) if row.state == ESTABLISHED && row.inode != 0 => Some(row.uid),
        _ => None,
    };
    let first = proven(&ask(ends.far, ends.near)?.filter(is_peer));
    if first.is_some() {
        return Ok((first, true));
    }
    if asking == AskingSide::Connector {
        // First the listening socket, then the connection: had the one been closed, the other would have ended with it.
        let listening = ask(ends.far, SocketAddr::new(ends.near.ip(), 0))?;
        let listening =
            listening.filter(|row| row.state == LISTEN && row.inode != 0 && row.local.port() == ends.far.port());
        let row = ask(ends.far, ends.near)?.filter(is_peer);
        let waits = row.is_some_and(|row| matches!(row.state, ESTABLISHED | SYN_RECEIVED));
        let owner = proven(&row).or(listening.filter(|_| waits).map(|row| row.uid));
        if owner.is_some() {
            return Ok((owner, true));
        }
    }
    // Where the kernel does not find this end either, it cannot be asked in this way.
    let own = ask(ends.near, ends.far)?;
    Ok((
        None,
        own.is_some_and(|row| row.local == ends.near && row.remote == ends.far),
    ))
}

/// Asks the kernel for the socket that has this local and this remote address. For a remote port of 0 that is the listening
/// socket that takes connections to the local address.
pub(super) fn ask(local: SocketAddr, remote: SocketAddr) -> Result<Option<SocketRow>> {
    let socket = socket_with(
        AddressFamily::NETLINK,
        SocketType::RAW,
        SocketFlags::CLOEXEC,
        Some(netlink::SOCK_DIAG),
    )?;
    send(&socket, &query(local, remote), SendFlags::empty())?;
    let mut buffer = [0; BUFFER_BYTES];
    // The kernel has answered before the call returns.
    let (bytes, _) = recv(&socket, &mut buffer[..], RecvFlags::DONTWAIT)?;
    read(&buffer[..bytes])
}

/// The request, as its receiver reads it: addresses and ports in the order of the network, all else in that of this host.
fn query(local: SocketAddr, remote: SocketAddr) -> [u8; HEAD_BYTES + QUERY_BYTES] {
    let mut bytes = [0; HEAD_BYTES + QUERY_BYTES];
    let length = (HEAD_BYTES + QUERY_BYTES) as u32;
    bytes[0..4].copy_from_slice(&length.to_ne_bytes());
    bytes[4..6].copy_from_slice(&SOCK_DIAG_BY_FAMILY.to_ne_bytes());
    bytes[6..8].copy_from_slice(&NLM_F_REQUEST.to_ne_bytes());
    let body = &mut bytes[HEAD_BYTES..];
    body[0] = if local.is_ipv4() { AF_INET } else { AF_INET6 };
    body[1] = IPPROTO_TCP;
    // All states; no interface; any cookie.
    body[4..8].fill(0xff);
    body[48..56].fill(0xff);
    for (address, port_at, at) in [(local, 8, 12), (remote, 10, 28)] {
        body[port_at..port_at + 2].copy_from_slice(&address.port().to_be_bytes());
        match address.ip() {
            IpAddr::V4(ip) => body[at..at + 4].copy_from_slice(&ip.octets()),
            IpAddr::V6(ip) => body[at..at + 16].copy_from_slice(&ip.octets()),
        }
    }
    bytes
}

/// Reads the answer. `None`: there is no such socket.
fn read(bytes: &[u8]) -> Result<Option<SocketRow>> {
    let strange = || std::io::Error::other("the kernel returned an unexpected answer");
    let word = |at: usize| {
        let word = bytes.get(at..at + 4).and_then(|word| word.try_into().ok());
        word.map(u32::from_ne_bytes).ok_or_else(strange)
    };
    let kind = bytes.get(4..6).and_then(|kind| kind.try_into().ok());
    match kind.map(u16::from_ne_bytes) {
        Some(SOCK_DIAG_BY_FAMILY) => {}
        Some(NLMSG_ERROR) => {
            let number = (word(HEAD_BYTES)? as i32).wrapping_neg();
            let is_absent = number == Errno::NOENT.raw_os_error();
            return if is_absent {
                Ok(None)
            } else {
                Err(std::io::Error::from_raw_os_error(number))
            };
        }
        _ => return Err(strange()),
    }
    let body = bytes.get(HEAD_BYTES..HEAD_BYTES + ANSWER_BYTES).ok_or_else(strange)?;
    let address = |port_at: usize, at: usize| {
        let port = u16::from_be_bytes([body[port_at], body[port_at + 1]]);
        let ip: [u8; 16] = body[at..at + 16].try_into().map_err(|_| strange())?;
        let ip = match body[0] {
            AF_INET => IpAddr::V4(Ipv4Addr::new(ip[0], ip[1], ip[2], ip[3])),
            AF_INET6 => IpAddr::V6(Ipv6Addr::from(ip)),
            _ => return Err(strange()),
        };
        Ok(canonical(SocketAddr::new(ip, port)))
    };
    Ok(Some(SocketRow {
        local: address(4, 8)?,
        remote: address(6, 24)?,
        state: body[1],
        uid: word(HEAD_BYTES + 64)?,
        inode: u64::from(word(HEAD_BYTES + 68)?),
    }))
}

#[cfg(test)]
mod tests {
    use std::net::{TcpListener, TcpStream};

    use super::*;

    fn ends() -> SocketEnds {
        SocketEnds {
            near: "127.0.0.1:40000".parse().unwrap(),
            far: "127.0.0.1:7000".parse().unwrap(),
        }
    }

    fn row(state: u8, uid: u32, inode: u64) -> SocketRow {
        SocketRow {
            local: ends().far,
            remote: ends().near,
            state,
            uid,
            inode,
        }
    }

    /// The socket that listens at the far end.
    fn listening(uid: u32) -> SocketRow {
        SocketRow {
            remote: "0.0.0.0:0".parse().unwrap(),
            ..row(LISTEN, uid, 5)
        }
    }

    /// An answer of the kernel for these words: family, state, ports and addresses, user and inode.
    fn answer(family: u8, addresses: [&[u8]; 2], uid: u32, inode: u32) -> Vec<u8> {
        let mut bytes = vec![0; HEAD_BYTES + ANSWER_BYTES + 20];
        bytes[4..6].copy_from_slice(&SOCK_DIAG_BY_FAMILY.to_ne_bytes());
        let body = &mut bytes[HEAD_BYTES..];
        (body[0], body[1]) = (family, ESTABLISHED);
        body[4..8].copy_from_slice(&[0x1b, 0x58, 0x9c, 0x40]);
        for (address, at) in addresses.into_iter().zip([8, 24]) {
            body[at..at + address.len()].copy_from_slice(address);
        }
        body[64..68].copy_from_slice(&uid.to_ne_bytes());
        body[68..72].copy_from_slice(&inode.to_ne_bytes());
        bytes
    }

    #[test]
    fn answers_are_read_as_the_kernel_writes_them() {
        let four = answer(AF_INET, [&[127, 0, 0, 1]; 2], 1000, 4711);
        assert_eq!(read(&four).unwrap(), Some(row(ESTABLISHED, 1000, 4711)));
        let mapped = Ipv4Addr::LOCALHOST.to_ipv6_mapped().octets();
        let six = answer(AF_INET6, [&mapped; 2], 7, 0);
        assert_eq!(read(&six).unwrap(), Some(row(ESTABLISHED, 7, 0)));
        let error = |errno: i32| {
            let mut bytes = vec![0; HEAD_BYTES + 20];
            bytes[4..6].copy_from_slice(&NLMSG_ERROR.to_ne_bytes());
            bytes[HEAD_BYTES..HEAD_BYTES + 4].copy_from_slice(&(-errno).to_ne_bytes());
            bytes
        };
        assert_eq!(read(&error(2)).unwrap(), None);
        assert_eq!(read(&error(1)).unwrap_err().raw_os_error(), Some(1));
        for errno in [0, i32::MAX, i32::MIN + 1, -1] {
            let _ = read(&error(errno));
        }
        for end in 0..HEAD_BYTES + ANSWER_BYTES {
            assert!(read(&four[..end]).is_err(), "{end} bytes");
        }
        assert!(read(&answer(1, [&[]; 2], 0, 0)).is_err());
    }

    #[test]
    fn only_an_open_socket_proves_a_user() {
        let asked = |asking, peer: Option<SocketRow>, listens: Option<SocketRow>, own: bool| {
            let mut ask = |local: SocketAddr, remote: SocketAddr| {
                Ok(match remote.port() {
                    0 => listens,
                    _ if local == ends().near => own.then(|| SocketRow {
                        local,
                        remote,
                        ..row(ESTABLISHED, 0, 1)
                    }),
                    _ => peer,
                })
            };
            owner_by(&mut ask, ends(), asking).unwrap()
        };
        let (open, waits) = (Some(row(ESTABLISHED, 3, 9)), Some(row(ESTABLISHED, 0, 0)));
        for asking in [AskingSide::Acceptor, AskingSide::Connector] {
            assert_eq!(asked(asking, open, None, true), (Some(3), true));
            assert_eq!(asked(asking, None, Some(listening(4)), true), (None, true));
            assert_eq!(asked(asking, waits, None, true), (None, true));
            assert_eq!(asked(asking, waits, None, false), (None, false));
            for state in (0..=255).filter(|state| ![ESTABLISHED, SYN_RECEIVED].contains(state)) {
                assert_eq!(
                    asked(asking, Some(row(state, 3, 9)), Some(listening(4)), true),
                    (None, true)
                );
            }
            // The kernel names a listening socket where there is no connection.
            assert_eq!(
                asked(asking, Some(listening(4)), Some(listening(4)), true),
                (None, true)
            );
        }
        assert_eq!(
            asked(AskingSide::Acceptor, waits, Some(listening(4)), true),
            (None, true)
        );
        assert_eq!(
            asked(AskingSide::Connector, waits, Some(listening(4)), true),
            (Some(4), true)
        );
        let half = Some(row(SYN_RECEIVED, 0, 0));
        assert_eq!(
            asked(AskingSide::Connector, half, Some(listening(4)), true),
            (Some(4), true)
        );
        let closed = Some(SocketRow {
            inode: 0,
            ..listening(4)
        });
        assert_eq!(asked(AskingSide::Connector, waits, closed, true), (None, true));
    }

    #[test]
    fn the_kernel_is_asked_for_sockets_of_this_process() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (near, far) = (client.local_addr().unwrap(), client.peer_addr().unwrap());
        let Ok(Some(row)) = ask(near, far) else {
            println!("skipped: this kernel cannot be asked for a socket");
            return;
        };
        let own = rustix::process::geteuid().as_raw();
        assert_eq!(
            (row.local, row.remote, row.state, row.uid),
            (near, far, ESTABLISHED, own)
        );
        assert_ne!(row.inode, 0);
        let owner = || owner_by(&mut ask, SocketEnds { near, far }, AskingSide::Connector).unwrap();
        assert_eq!(owner(), (Some(own), true), "nobody has accepted it");
        let _server = listener.accept().unwrap();
        assert_eq!(owner(), (Some(own), true));
    }
}
