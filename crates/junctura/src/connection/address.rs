//! The location of a pool, and the route by which it is reached.

#[cfg(feature = "net")]
mod credential_files;
#[cfg(feature = "net")]
mod remote;

use std::fmt;

use junctura_model::{Code, Error, Result};
use junctura_transport::{ServerAddress, UnixCarrier};

use crate::connection::Hook;
#[cfg(feature = "net")]
use remote::RemotePool;
#[cfg(feature = "net")]
pub(crate) use remote::{CarrierGuard, RemoteSettings, open_upstream};

/// The prefix of URLs of pools behind a gate.
const REMOTE_SCHEME: &str = "tcp://";

/// The location of a pool.
#[derive(Clone, Debug)]
pub(crate) enum PoolAddress {
    /// A socket of this machine.
    Here(ServerAddress),
    /// A gate, on this machine or another.
    #[cfg(feature = "net")]
    There(Box<RemotePool>),
}

/// An established connection, and its carrier.
pub(crate) struct ReachedPool {
    pub(crate) carrier: UnixCarrier,
    pub(crate) beside: CarrierGuard,
    /// The process and incarnation of the server that must answer; any other server is refused.
    pub(crate) expected: Option<(u32, u64)>,
}

/// Without the feature `net` there are no settings.
#[cfg(not(feature = "net"))]
#[derive(Clone, Debug, Default)]
pub(crate) struct RemoteSettings;

/// Without the feature `net` no connection has a separate carrier.
#[cfg(not(feature = "net"))]
#[derive(Debug, Default)]
pub(crate) struct CarrierGuard(());

#[cfg(not(feature = "net"))]
#[expect(clippy::unused_self, reason = "as with the feature `net`")]
impl CarrierGuard {
    pub(crate) fn is_network(&self) -> bool {
        false
    }

    pub(crate) fn route(&self) -> String {
        "shm".to_owned()
    }
}

impl PoolAddress {
    /// Parses a URL.
    ///
    /// # Errors
    /// `InvalidArgument` for an invalid URL or unknown transports; errors of the files; `Unsupported` for `tcp://`
    /// without the feature `net`.
    pub(crate) fn read(url: &str, settings: &RemoteSettings) -> Result<Self> {
        if !url.starts_with(REMOTE_SCHEME) {
            return url.parse().map(Self::Here);
        }
        #[cfg(feature = "net")]
        return RemotePool::new(url.parse()?, settings).map(|remote| Self::There(Box::new(remote)));
        #[cfg(not(feature = "net"))]
        {
            let RemoteSettings = settings;
            Err(lacks_feature(url, "net"))
        }
    }

    /// Connects, trying the transports in order, and passes each connection to `greet` until one reaches the right
    /// server.
    pub(crate) fn reach<T>(&self, hook: Option<&Hook>, mut greet: impl FnMut(ReachedPool) -> Result<T>) -> Result<T> {
        match self {
            Self::Here(address) => {
                #[cfg(feature = "net")]
                if let Some(reached) = remote::detour(address, hook)? {
                    return greet(reached);
                }
                #[cfg(not(feature = "net"))]
                let _ = hook;
                greet(ReachedPool {
                    carrier: UnixCarrier::connect(address)?,
                    beside: CarrierGuard::default(),
                    expected: None,
                })
            }
            #[cfg(feature = "net")]
            Self::There(remote) => remote.reach(hook, greet),
        }
    }
}

/// The error for what this build leaves out.
#[cfg_attr(
    all(feature = "embedded", feature = "net", feature = "store", not(test)),
    expect(dead_code, reason = "nothing is left out")
)]
pub(crate) fn lacks_feature(subject: &str, feature: &str) -> Error {
    let cause = format!("this program is built without the feature `{feature}` of the crate `junctura`");
    Error::new(Code::Unsupported, subject, cause)
}

impl fmt::Display for PoolAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Here(address) => address.fmt(f),
            #[cfg(feature = "net")]
            Self::There(remote) => remote.fmt(f),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_names_the_feature_that_is_left_out() {
        let error = lacks_feature("tcp://node-7:7000", "net");
        assert_eq!(
            (error.code(), error.subject()),
            (Code::Unsupported, "tcp://node-7:7000")
        );
        assert!(error.cause().contains("feature `net` of the crate `junctura`"));
    }
}
