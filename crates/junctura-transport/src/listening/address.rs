//! Where a server is, as users write it.
//!
//! | written | is |
//! |---|---|
//! | `unix:NAME` | the socket `NAME.sock` in this user's own directory (see [`ServerAddress::path`]) |
//! | `unix:/a/path.sock` | the socket of this path; its directory is the user's own business |
//! | `unix:@NAME` | a name in Linux's abstract space, without a file; it exists per network namespace |
//!
//! A name is 1 to 64 of `A-Z a-z 0-9 . _ -`, so that it can be part of a path without becoming another one.

use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use junctura_model::{Code, Error, Result};

use crate::listening::directory;

/// Letters of the longest name.
const NAME_LENGTH_MAX: usize = 64;
/// The prefix of every address.
const SCHEME: &str = "unix:";

/// Where a server is.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum ServerAddress {
    /// A name within this user's own directory.
    Named(ServerName),
    /// A path, absolute.
    Path(PathBuf),
    /// A name in the abstract space.
    Abstract(ServerName),
}

/// A checked name: 1 to 64 of `A-Z a-z 0-9 . _ -`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ServerName(String);

impl ServerName {
    /// Checks a name.
    ///
    /// # Errors
    /// `InvalidArgument`, pointing at the first wrong letter.
    pub fn new(name: impl Into<String>) -> Result<Self> {
        let name = name.into();
        let wrong = |cause: &str| Error::new(Code::InvalidArgument, format!("name {name:?}"), cause);
        if name.is_empty() {
            return Err(wrong("it is empty"));
        }
        if let Some(at) = name.find(|letter: char| !letter.is_ascii_alphanumeric() && !"._-".contains(letter)) {
            return Err(wrong("only A-Z a-z 0-9 . _ - are allowed").at(at));
        }
        if name.len() > NAME_LENGTH_MAX {
            return Err(wrong("it is longer than 64"));
        }
        Ok(Self(name))
    }

    /// The name.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for ServerName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

impl ServerAddress {
    /// The path of the socket; `None` for one in the abstract space.
    ///
    /// The directory of named sockets is `$XDG_RUNTIME_DIR/junctura` where that variable names a directory of this user,
    /// else `/tmp/junctura-UID` (batch jobs often inherit a variable whose directory is not there).
    #[must_use]
    pub fn path(&self) -> Option<PathBuf> {
        match self {
            Self::Named(name) => Some(directory::of_this_user().join(format!("{name}.sock"))),
            Self::Path(path) => Some(path.clone()),
            Self::Abstract(_) => None,
        }
    }
}

impl fmt::Display for ServerAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Named(name) => write!(f, "{SCHEME}{name}"),
            Self::Path(path) => write!(f, "{SCHEME}{}", path.display()),
            Self::Abstract(name) => write!(f, "{SCHEME}@{name}"),
        }
    }
}

impl FromStr for ServerAddress {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let Some(rest) = text.strip_prefix(SCHEME) else {
            return Err(Error::new(Code::InvalidArgument, text, no_scheme(text)));
        };
        if let Some(name) = rest.strip_prefix('@') {
            return ServerName::new(name).map(Self::Abstract);
        }
        if !rest.contains('/') {
            return ServerName::new(rest).map(Self::Named);
        }
        if rest.contains('\0') || !Path::new(rest).is_absolute() || rest.ends_with('/') {
            let here = std::env::current_dir().ok().filter(|_| !rest.ends_with('/'));
            let meant = here.map_or_else(String::new, |here| {
                format!("; did you mean {SCHEME}{}?", here.join(rest).display())
            });
            let cause = format!("a socket path must be absolute and name a file{meant}");
            return Err(Error::new(Code::InvalidArgument, text, cause));
        }
        Ok(Self::Path(PathBuf::from(rest)))
    }
}

/// Describes what an address is, and which one a text without `unix:` may mean.
fn no_scheme(text: &str) -> String {
    let rest = text.split_once("://").map_or(text, |(_, rest)| rest);
    let rest = rest.strip_prefix("tcp:").unwrap_or(rest);
    let is_host = |host: &str| host.parse::<std::net::IpAddr>().is_ok() || host == "localhost" || host.contains('.');
    let meant = match rest.rsplit_once(':') {
        Some((host, port)) if !host.is_empty() && port.parse::<u16>().is_ok() => Some(format!("tcp://{host}:{port}")),
        _ if text.starts_with('/') => Some(format!("{SCHEME}{text}")),
        None if !is_host(text) && ServerName::new(text).is_ok() => Some(format!("{SCHEME}{text}")),
        _ => None,
    };
    let meant = meant.map_or_else(String::new, |meant| format!("; did you mean {meant}?"));
    let empty = if text.is_empty() {
        "it is empty (the option or the variable that names the pool has no value); "
    } else {
        ""
    };
    format!("{empty}an address is unix:NAME, unix:/absolute/path.sock, unix:@NAME or tcp://HOST:PORT{meant}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_and_written_again() {
        for text in [
            "unix:default",
            "unix:run-7.b_2",
            "unix:/run/x/pool.sock",
            "unix:@seventh",
            "unix:..",
        ] {
            assert_eq!(text.parse::<ServerAddress>().unwrap().to_string(), text);
        }
        let longest = format!("unix:{}", "n".repeat(64));
        assert!(longest.parse::<ServerAddress>().is_ok());
    }

    #[test]
    fn what_is_no_address_is_refused() {
        let too_long = format!("unix:{}", "n".repeat(65));
        for text in [
            "",
            "default",
            "tcp://node:1",
            "unix:",
            "unix:@",
            "unix:a b",
            "unix:a/b",
            "unix:./a",
            "unix:../a",
            "unix:/a/",
            "unix:/a\0b",
            "unix:@a/b",
            "unix:naïve",
            &too_long,
        ] {
            assert_eq!(
                text.parse::<ServerAddress>().unwrap_err().code(),
                Code::InvalidArgument,
                "{text:?}"
            );
        }
        assert_eq!(ServerName::new("a b").unwrap_err().position(), Some(1));
    }

    #[test]
    fn an_address_that_may_be_meant_is_named() {
        let cause = |text: &str| text.parse::<ServerAddress>().unwrap_err().cause().to_owned();
        for (text, meant) in [
            ("model", "unix:model"),
            ("/run/x.sock", "unix:/run/x.sock"),
            ("localhost:7000", "tcp://localhost:7000"),
            ("tcp:localhost:7000", "tcp://localhost:7000"),
            ("node7.hpc:7000", "tcp://node7.hpc:7000"),
            ("http://node7:7000", "tcp://node7:7000"),
            ("tcp:[::1]:7000", "tcp://[::1]:7000"),
        ] {
            assert!(
                cause(text).ends_with(&format!("or tcp://HOST:PORT; did you mean {meant}?")),
                "{text}"
            );
        }
        for text in ["", "http://node/x", "a b", "node.hpc"] {
            assert!(cause(text).ends_with("or tcp://HOST:PORT"), "{text}: {}", cause(text));
        }
    }

    #[test]
    fn a_name_stays_within_its_directory() {
        let path = "unix:..".parse::<ServerAddress>().unwrap().path().unwrap();
        assert_eq!(path.parent().unwrap(), directory::of_this_user());
        assert_eq!("unix:@x".parse::<ServerAddress>().unwrap().path(), None);
    }
}
