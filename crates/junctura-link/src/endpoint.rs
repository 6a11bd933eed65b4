//! Where a pool is served over TCP, as users write it: `tcp://HOST:PORT`.

use std::fmt;
use std::net::{SocketAddr, ToSocketAddrs};
use std::str::FromStr;

use junctura_model::{Code, Error, Result};

use crate::refused;

/// The prefix of every endpoint.
const SCHEME: &str = "tcp://";
/// Letters of the longest name of a host (RFC 1035).
const HOST_LENGTH_MAX: usize = 253;

/// A host and a port.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Endpoint {
    host: String,
    port: u16,
}

impl Endpoint {
    /// Whether this text is meant as one.
    #[must_use]
    pub fn is_meant(text: &str) -> bool {
        text.starts_with(SCHEME)
    }

    /// The host's name or number, without brackets.
    #[must_use]
    pub fn host(&self) -> &str {
        &self.host
    }

    /// The port; 0, to listen: any that is free.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Its addresses. Asks the system's resolver, which may take its time.
    ///
    /// # Errors
    /// `Unavailable` when the host has none.
    pub fn resolve(&self) -> Result<Vec<SocketAddr>> {
        let found = (self.host.as_str(), self.port).to_socket_addrs();
        let found: Vec<_> = found
            .map_err(|error| refused(Code::Unavailable, self.to_string(), "its host is unknown", error))?
            .collect();
        if found.is_empty() {
            return Err(Error::new(
                Code::Unavailable,
                self.to_string(),
                "its host has no address",
            ));
        }
        Ok(found)
    }
}

impl From<SocketAddr> for Endpoint {
    fn from(address: SocketAddr) -> Self {
        Self {
            host: address.ip().to_string(),
            port: address.port(),
        }
    }
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.host.contains(':') {
            write!(f, "{SCHEME}[{}]:{}", self.host, self.port)
        } else {
            write!(f, "{SCHEME}{}:{}", self.host, self.port)
        }
    }
}

impl FromStr for Endpoint {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let wrong = |cause: &str| Error::new(Code::InvalidArgument, text, cause);
        let form = "an address is tcp://HOST:PORT, tcp://[IPv6]:PORT";
        let rest = text.strip_prefix(SCHEME).ok_or_else(|| wrong(form))?;
        let (host, port) = rest.rsplit_once(':').ok_or_else(|| wrong(form))?;
        let bare = host.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
        if bare.is_none() && host.contains(':') {
            return Err(wrong("an IPv6 address must be in brackets"));
        }
        let host = bare.unwrap_or(host);
        let is_name = |letter: char| letter.is_ascii_alphanumeric() || ".-_:%".contains(letter);
        if host.is_empty() || host.len() > HOST_LENGTH_MAX || !host.chars().all(is_name) {
            return Err(wrong(form));
        }
        let port = port.parse().map_err(|_| wrong("a port is a number from 0 to 65535"))?;
        Ok(Self {
            host: host.to_owned(),
            port,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_and_written_again() {
        for text in ["tcp://node-7.cluster:7000", "tcp://127.0.0.1:0", "tcp://[::1]:65535"] {
            assert_eq!(text.parse::<Endpoint>().unwrap().to_string(), text);
        }
        let endpoint: Endpoint = "tcp://[::1]:7".parse().unwrap();
        assert_eq!((endpoint.host(), endpoint.port()), ("::1", 7));
        assert_eq!(endpoint.resolve().unwrap(), ["[::1]:7".parse().unwrap()]);
    }

    #[test]
    fn what_is_no_endpoint_is_refused() {
        for text in [
            "",
            "unix:default",
            "tcp:node:7",
            "tcp://node",
            "tcp://:7",
            "tcp://node:",
            "tcp://node:65536",
            "tcp://node:-1",
            "tcp://::1:7",
            "tcp://a b:7",
            "tcp://a/b:7",
            "tcp://node:7/path",
        ] {
            let error = text.parse::<Endpoint>().unwrap_err();
            assert_eq!(error.code(), Code::InvalidArgument, "{text:?}");
        }
    }
}
