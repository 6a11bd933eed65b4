//! The tokens of a gate's links: each is checked when a client connects, and again while its link lasts.
//!
//! The listening thread checks the list of tokens once per [`PAUSE`]. A link whose token is not listed any longer, or
//! has expired, ends. The list is read only after a change, and after a link with a token has begun: its token may have
//! been revoked between its check and that.

use std::net::{Shutdown, TcpStream};
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use junctura_model::{Code, Error, Result};
use rustix::event::Timespec;

use super::GateShared;
use crate::auth::handshake::ClientProof;
use crate::auth::peer_user::AskingSide;
#[cfg(not(feature = "tls"))]
use crate::auth::tls::ListVersion;
use crate::auth::token::revoked;
#[cfg(feature = "tls")]
use crate::auth::token_file::ListVersion;
use crate::relay::EndReason;
use crate::stream::LinkStream;
use crate::{LoopbackUsers, TokenAuthority, TokenClaims};

/// The time between two looks at the list. `docs/guide/security.md` promises twice as long.
const PAUSE: Duration = Duration::from_secs(1);

/// A connection of the gate.
#[derive(Debug)]
pub(super) struct OpenLink {
    pub(super) number: u64,
    socket: Arc<TcpStream>,
    /// `None`: it has shown none yet, or needs none.
    token: Option<TokenClaims>,
    /// The reason to end, for its relay, if it has one: the relay sends it to the client, and ends.
    reason: Option<EndReason>,
}

/// The state of the list of tokens at the last look.
#[derive(Debug, Default)]
pub(super) struct TokenWatch {
    looked: Option<Instant>,
    /// The list with which links were compared last; `None`: there was none.
    compared: Option<ListVersion>,
    /// All links have been compared with it.
    is_compared: bool,
}

impl OpenLink {
    pub(super) fn new(number: u64, socket: Arc<TcpStream>) -> Self {
        Self {
            number,
            socket,
            token: None,
            reason: None,
        }
    }

    /// Ends the connection, in both directions.
    pub(super) fn end(&self) {
        let _ = self.socket.shutdown(Shutdown::Both);
    }

    /// Nothing more is read from it; it can still send.
    pub(super) fn end_reading(&self) {
        let _ = self.socket.shutdown(Shutdown::Read);
    }
}

impl GateShared {
    /// Returns the token of a client that may use the pool; `None`: it needs none. Nothing else that a client asks for is done before.
    pub(super) fn check(&self, shown: &ClientProof<'_>, stream: &LinkStream) -> Result<Option<TokenClaims>> {
        match (&self.options.tokens, &shown.token) {
            (None, _) if self.options.users == LoopbackUsers::Any => Ok(None),
            (None, _) => stream.peer_must_be_own(AskingSide::Acceptor).map(|()| None),
            (Some(tokens), Some(token)) => tokens.check(token).map(Some),
            (Some(_), None) => Err(Error::new(
                Code::Denied,
                "token",
                "this pool asks for one, and the client has shown none",
            )),
        }
    }

    /// A link has this token from now on.
    pub(super) fn note_token(&self, number: u64, token: &TokenClaims) {
        let mut state = self.state();
        state.watch.is_compared = false;
        if let Some(link) = state.links.iter_mut().find(|link| link.number == number) {
            link.token = Some(token.clone());
        }
    }

    /// Returns the place for the reason why a link is to end, for its relay.
    pub(super) fn reason_of(&self, number: u64) -> EndReason {
        let reason = EndReason::default();
        let mut state = self.state();
        if let Some(link) = state.links.iter_mut().find(|link| link.number == number) {
            link.reason = Some(Arc::clone(&reason));
        }
        reason
    }

    /// How long the thread that listens may sleep: as long as it likes where no tokens are asked for.
    pub(super) fn pause(&self) -> Option<Timespec> {
        self.options
            .tokens
            .as_ref()
            .and_then(|_| Timespec::try_from(PAUSE).ok())
    }

    /// Ends the links of tokens that were revoked or have expired. Looks at most once per [`PAUSE`].
    pub(super) fn end_invalid(&self) {
        let Some(tokens) = &self.options.tokens else { return };
        let mut state = self.state();
        let now = Instant::now();
        if state.watch.looked.is_some_and(|looked| now - looked < PAUSE) {
            return;
        }
        state.watch.looked = Some(now);
        if state.links.iter().all(|link| link.token.is_none()) {
            return;
        }
        // Before it is read: a change in between is found again.
        let version = tokens.version();
        let is_known = state.watch.is_compared && state.watch.compared == version;
        let listed = (!is_known).then(|| listed(tokens)).flatten();
        state.watch.compared = version;
        // A list that could not be read is read again at the next look.
        state.watch.is_compared = is_known || listed.is_some();
        let seconds = SystemTime::now()
            .duration_since(SystemTime::UNIX_EPOCH)
            .unwrap_or_default()
            .as_secs();
        let mut ending = Vec::new();
        for link in &state.links {
            let Some(token) = &link.token else { continue };
            let is_listed = listed.as_ref().is_none_or(|listed| listed.contains(token));
            let valid = token.check_time(seconds);
            let Err(error) = valid.and_then(|()| if is_listed { Ok(()) } else { Err(revoked()) }) else {
                continue;
            };
            let (id, name) = (format!("{:08x}", token.id), token.name.as_str());
            tracing::warn!(id, name, reason = error.cause(), "a link ends with its token");
            // A relay sends its client the reason. A link that has not ended at the next look is cut.
            match &link.reason {
                Some(reason) if reason.set(error).is_ok() => link.end_reading(),
                _ => ending.push(link),
            }
        }
        // After the reasons: a relay ends with its reason, and not since another stream of its link was cut.
        ending.into_iter().for_each(OpenLink::end);
    }
}

/// `None`: the list cannot be read. Then new clients are refused, and links last until it is changed.
fn listed(tokens: &TokenAuthority) -> Option<Vec<TokenClaims>> {
    tokens
        .list()
        .map_err(|error| tracing::error!(%error, "the list of tokens cannot be read"))
        .ok()
}
