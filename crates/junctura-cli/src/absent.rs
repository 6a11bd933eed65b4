//! Pools without a server: a command that only reads fails, or waits for the server, and names the pools that are served.
//!
//! If such a command started a server, a mistyped name would be hidden.

use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::time::{Duration, Instant};

use junctura::{Code, Error, Pool, Result};
use junctura_model::nearest;
use junctura_terminal::interrupt::InterruptFlag;
use junctura_transport::{ServerAddress, is_served, served_in};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::inotify::{self, CreateFlags, WatchFlags};
use rustix::io::read;

/// Interval at which a command checks for a server if it notices no change.
const LOOKED_EVERY: Duration = Duration::from_millis(100);
/// Delay after which a command reports that it waits for a server.
const PATIENCE: Duration = Duration::from_secs(1);
/// Maximum number of pools named in a message.
const NAMED_MAX: usize = 8;

/// Opens a pool to read from it.
///
/// # Errors
/// `NotFound` if `unix:NAME` has no server; errors of `open`.
pub(crate) fn open_served(url: &str, open: impl FnOnce() -> Result<Pool>) -> Result<Pool> {
    open().map_err(|error| match AbsentServer::of(url, &error) {
        Some(absent) => Error::new(Code::NotFound, url, absent.cause()),
        None => error,
    })
}

/// Opens a pool to read from it, and waits until `unix:NAME` has a server.
///
/// # Errors
/// `Timeout` if there is none at the deadline; `Interrupted`; errors of `open`.
pub(crate) fn open_when_served(
    url: &str,
    deadline: Option<Instant>,
    interrupt: &InterruptFlag,
    open: impl Fn() -> Result<Pool>,
) -> Result<Pool> {
    let began = Instant::now();
    let socket = url.parse::<ServerAddress>().ok().and_then(|address| address.path());
    let changes = Changes::of(socket.as_deref().and_then(Path::parent));
    let mut is_reported = false;
    loop {
        let error = match open() {
            Err(error) => error,
            opened => return opened,
        };
        let Some(absent) = AbsentServer::of(url, &error) else {
            return Err(error);
        };
        if deadline.is_some_and(|deadline| Instant::now() >= deadline) {
            return Err(Error::new(Code::Timeout, url, absent.cause()));
        }
        if !is_reported && began.elapsed() >= PATIENCE {
            is_reported = true;
            say!("junctura: waits for the server of {url}: {}", absent.cause());
        }
        interrupt.check()?;
        changes.wait(deadline);
    }
}

/// Waits until a server may have begun to listen in a folder.
struct Changes(Option<OwnedFd>);

impl Changes {
    fn of(folder: Option<&Path>) -> Self {
        let watch = |folder: &Path| {
            let watch = inotify::init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK).ok()?;
            inotify::add_watch(&watch, folder, WatchFlags::CREATE | WatchFlags::MOVED_TO).ok()?;
            Some(watch)
        };
        Self(folder.and_then(watch))
    }

    /// Returns at a change, at the deadline and every [`LOOKED_EVERY`]: a folder may be missing, and a server binds its socket before
    /// it listens.
    fn wait(&self, deadline: Option<Instant>) {
        let mut waited: Vec<PollFd<'_>> = self.0.iter().map(|watch| PollFd::new(watch, PollFlags::IN)).collect();
        let left = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
        let timeout = LOOKED_EVERY.min(left.unwrap_or(LOOKED_EVERY));
        // Ctrl-C ends the wait, too.
        let _ = poll(&mut waited, Timespec::try_from(timeout).ok().as_ref());
        let mut events = [MaybeUninit::uninit(); 1024];
        if let Some(watch) = &self.0 {
            while read(watch, &mut events).is_ok_and(|(read, _)| !read.is_empty()) {}
        }
    }
}

/// A name of this user without a server, and the names that have one.
#[derive(Debug)]
struct AbsentServer {
    name: String,
    served: Vec<String>,
}

impl AbsentServer {
    /// Returns none for an error with another reason.
    fn of(url: &str, error: &Error) -> Option<Self> {
        let (Code::Unavailable, Ok(address @ ServerAddress::Named(_))) = (error.code(), url.parse()) else {
            return None;
        };
        let socket = address.path()?;
        let name = socket.file_stem()?.to_str()?.to_owned();
        let folder = socket.parent()?;
        (!is_served(&socket)).then(|| Self {
            name,
            served: served_in(folder),
        })
    }

    /// Returns the text for an error or a message.
    fn cause(&self) -> String {
        let near = nearest(self.served.iter().map(String::as_str), &self.name);
        let meant = near.map_or_else(String::new, |near| format!("; did you mean unix:{near}?"));
        let (first, rest) = self.served.split_at(self.served.len().min(NAMED_MAX));
        let first: Vec<String> = first.iter().map(|name| format!("unix:{name}")).collect();
        let served = match (first.join(", "), rest.len()) {
            (none, _) if none.is_empty() => "no pool of this user is served here".to_owned(),
            (first, 0) => format!("pools that are served here: {first}"),
            (first, more) => format!("pools that are served here: {first} and {more} more"),
        };
        format!("no server runs there; {served}{meant}")
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixListener;

    use super::*;

    #[test]
    fn only_sockets_with_a_server_are_named() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        let _served = UnixListener::bind(path("model.sock")).unwrap();
        drop(UnixListener::bind(path("dead.sock")).unwrap());
        std::fs::write(path("other.start"), b"").unwrap();
        assert_eq!(served_in(folder.path()), ["model"]);
        assert_eq!(served_in(&path("missing")), [""; 0]);
    }

    #[test]
    fn the_nearest_name_is_suggested() {
        let absent = |served: &[&str]| AbsentServer {
            name: "modell".to_owned(),
            served: served.iter().map(|&name| name.to_owned()).collect(),
        };
        assert_eq!(
            absent(&["default", "model"]).cause(),
            "no server runs there; pools that are served here: unix:default, unix:model; did you mean unix:model?"
        );
        assert_eq!(
            absent(&[]).cause(),
            "no server runs there; no pool of this user is served here"
        );
        let many: Vec<String> = (0..10).map(|n| format!("pool-number-{n}")).collect();
        let many: Vec<&str> = many.iter().map(String::as_str).collect();
        assert!(absent(&many).cause().ends_with("unix:pool-number-7 and 2 more"));
    }

    #[test]
    fn other_errors_stay() {
        let error = |code| Error::new(code, "unix:x", "");
        assert!(AbsentServer::of("unix:@x", &error(Code::Unavailable)).is_none());
        assert!(AbsentServer::of("tcp://127.0.0.1:1", &error(Code::Unavailable)).is_none());
        assert!(AbsentServer::of("unix:no-such-pool-here", &error(Code::Denied)).is_none());
        assert!(AbsentServer::of("unix:no-such-pool-here", &error(Code::Unavailable)).is_some());
    }
}
