//! Credentials of the process at the other end of a unix socket.

// The kernel writes a struct of the system.
#![allow(unsafe_code)]

use std::mem::size_of;
use std::os::fd::{AsFd, AsRawFd};

use junctura_model::{Code, Result};
use rustix::io::Errno;

use crate::{PeerCredentials, refused};

impl PeerCredentials {
    /// Returns the credentials that the peer had when it connected, or listened. The pid of a process that has no number in
    /// this pid namespace (a container beside) is `None`.
    ///
    /// `rustix::net::sockopt::socket_peercred` cannot express that: its pid is never 0.
    ///
    /// # Errors
    /// `Io` for what is no connected unix socket.
    pub(crate) fn of(socket: impl AsFd) -> Result<Self> {
        let mut peer = libc::ucred { pid: 0, uid: 0, gid: 0 };
        let mut bytes = size_of::<libc::ucred>() as libc::socklen_t;
        // SAFETY: the descriptor is open as long as `socket` is borrowed; the kernel writes at most `bytes` bytes to `peer`, which
        // has as many, and their count to `bytes`. Each value of the three integers of a `ucred` is valid.
        let failed = unsafe {
            libc::getsockopt(
                socket.as_fd().as_raw_fd(),
                libc::SOL_SOCKET,
                libc::SO_PEERCRED,
                (&raw mut peer).cast(),
                &raw mut bytes,
            )
        };
        if failed != 0 {
            let error = std::io::Error::last_os_error();
            let errno = Errno::from_io_error(&error).unwrap_or(Errno::IO);
            return Err(refused(Code::Io, "", "cannot identify the peer", errno));
        }
        Ok(Self {
            uid: peer.uid,
            gid: peer.gid,
            pid: u32::try_from(peer.pid).ok().filter(|&pid| pid > 0),
        })
    }
}

#[cfg(test)]
mod tests {
    use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};
    use rustix::process::{getegid, geteuid};

    use super::*;

    #[test]
    fn the_peer_of_a_pair_is_this_process() {
        let (near, _far) = socketpair(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None).unwrap();
        let peer = PeerCredentials::of(near).unwrap();
        assert_eq!(peer.pid, Some(std::process::id()));
        assert_eq!(peer.uid, geteuid().as_raw());
        assert_eq!(peer.gid, getegid().as_raw());
    }

    #[test]
    fn a_file_has_no_peer() {
        let file = std::fs::File::open("/dev/null").unwrap();
        assert_eq!(PeerCredentials::of(file).unwrap_err().code(), Code::Io);
    }
}
