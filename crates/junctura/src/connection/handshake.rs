//! The handshake of a connection: identifies the client, and returns the properties of the pool.

use std::sync::Arc;
use std::time::{Duration, Instant};

use junctura_memory::SlotReuse;
use junctura_model::command::shell_word;
use junctura_model::{Code, Error, Result, Schema};
#[cfg(feature = "embedded")]
use junctura_pool::server::EmbeddedServer;
use junctura_transport::{
    Carrier, ConnectionRings, Inbox, LocalCarrier, Outbox, PollInterest, RING_BYTES, ReceiveResult, ReceivedRings,
    SendResult, UnixCarrier, WakeTimer,
};
use junctura_wire::body::{Hello, Welcome};
use junctura_wire::{Reply, Request};

use crate::connection::address::{PoolAddress, ReachedPool};
use crate::connection::schemas::PoolSchemas;
use crate::connection::segments::SegmentMaps;
use crate::connection::{Hook, PoolConnection};

/// A server that takes longer to answer a client that introduces itself hangs.
const ANSWER_MAX: Duration = Duration::from_secs(30);

/// The server that this process embeds, if any; shared by everything that must not outlive it. A forked child's copy
/// has no effect.
#[cfg(feature = "embedded")]
pub(crate) type Home = Option<EmbeddedServer>;
/// Without the feature `embedded` no process embeds a server.
#[cfg(not(feature = "embedded"))]
pub(crate) type Home = Option<std::convert::Infallible>;

/// The server's greeting.
#[derive(Debug)]
pub(crate) struct ServerGreeting {
    /// The name of the server in errors.
    pub(crate) server: String,
    pub(crate) incarnation: u64,
    /// Its process ID, on its machine.
    pub(crate) pid: u32,
    pub(crate) client: u32,
    pub(crate) schemas: PoolSchemas,
    /// The number of the default schema.
    pub(crate) default_schema: u16,
    pub(crate) inline_bytes_max: u64,
    pub(crate) payload_bytes_max: u64,
    pub(crate) checked: bool,
    /// Parts of arrays can be requested: the pool's memory is on another machine.
    pub(crate) packs: bool,
    /// The server accepts releases of objects that are still read.
    pub(crate) keeps_mapped: bool,
}

impl ServerGreeting {
    fn new(welcome: &Welcome<'_>, server: &str, own: &[Arc<Schema>]) -> Result<Self> {
        if welcome.version != junctura_wire::VERSION {
            let cause = format!(
                "it speaks version {}, this client {}",
                welcome.version,
                junctura_wire::VERSION
            );
            return Err(Error::new(Code::Unsupported, server, cause));
        }
        let schemas = PoolSchemas::new(welcome.schemas.iter().map(AsRef::as_ref))?;
        if schemas.is_empty() {
            return Err(Error::new(Code::Protocol, server, "the pool has no schema"));
        }
        let default = own.first().and_then(|first| schemas.position(first.name()));
        Ok(Self {
            server: server.to_owned(),
            pid: welcome.pid,
            incarnation: welcome.incarnation,
            client: welcome.client,
            schemas,
            default_schema: default.unwrap_or(0),
            inline_bytes_max: welcome.inline_bytes_max,
            payload_bytes_max: welcome.payload_bytes_max,
            checked: welcome.checked,
            packs: welcome.packs,
            keeps_mapped: welcome.keeps_mapped,
        })
    }
}

/// The client's introduction.
#[derive(Clone)]
pub(crate) struct ClientIntroduction {
    pub(crate) name: String,
    pub(crate) schemas: Vec<Arc<Schema>>,
    pub(crate) offer_timeout: Option<std::time::Duration>,
    pub(crate) reuse: SlotReuse,
    pub(crate) visitor: bool,
    pub(crate) hook: Option<Hook>,
}

/// Connects to the server at `place`.
///
/// # Errors
/// `Unavailable` if no server is running there or it drains; `SchemaMismatch` if it has different schemas under the
/// same names; `Denied` if it belongs to another user, or requires a token; `Timeout` if it does not answer for half a minute.
pub(crate) fn connect(place: &PoolAddress, me: &ClientIntroduction, home: &Arc<Home>) -> Result<PoolConnection> {
    let server = place.to_string();
    place.reach(me.hook.as_ref(), |reached| {
        greet(reached, &server, me, Arc::clone(home))
    })
}

fn greet(reached: ReachedPool, server: &str, me: &ClientIntroduction, home: Arc<Home>) -> Result<PoolConnection> {
    let ReachedPool {
        mut carrier,
        beside,
        expected,
    } = reached;
    let mut patience = HandshakeWait::begin(server, me.hook.as_ref())?;
    let mut outbox = Outbox::new();
    let hello = Request::Hello(Hello {
        version: junctura_wire::VERSION,
        name: me.name.as_str().into(),
        host: host().into(),
        pid: std::process::id(),
        schemas: me.schemas.iter().map(|schema| schema.to_yaml()).collect(),
        offer_timeout_ms: me.offer_timeout.map(|time| time.as_millis() as u64),
        ring_bytes: wants_rings().then_some(RING_BYTES as u32),
        visits: me.visitor,
        route: Some(beside.route().into()),
        ..Hello::default()
    });
    outbox.push(|out| hello.encode(0, out))?;
    let mut inbox = Inbox::new();
    loop {
        match carrier.send(&mut outbox) {
            Ok(SendResult::Blocked) => patience.wait(&carrier, PollInterest::WRITE)?,
            // A server that rejects a client at once has sent the reason before it closed the connection.
            Err(error) if error.code() == Code::Disconnected => break,
            sent => break sent.map(drop)?,
        }
    }
    let greeting = listen(&mut carrier, &mut inbox, &mut patience, |inbox| {
        greeting(inbox, server, &me.schemas)
    })?;
    if expected.is_some_and(|server| server != (greeting.pid, greeting.incarnation)) {
        return Err(Error::new(
            Code::Unavailable,
            server,
            "another server has its address here",
        ));
    }
    let rings = wants_rings().then(|| rings(&mut carrier, &mut inbox, &mut patience));
    let mut carrier = LocalCarrier::new(carrier);
    if let Some(rings) = rings {
        carrier.switch(rings?, 0);
    }
    let segments = SegmentMaps::new(me.reuse);
    PoolConnection::new(
        (carrier, beside),
        inbox,
        greeting,
        segments,
        me.offer_timeout,
        me.hook.clone(),
        home,
    )
}

/// Receives until `hear` returns a value.
fn listen<T>(
    carrier: &mut UnixCarrier,
    inbox: &mut Inbox,
    patience: &mut HandshakeWait<'_>,
    mut hear: impl FnMut(&mut Inbox) -> Result<Option<T>>,
) -> Result<T> {
    loop {
        if let Some(heard) = hear(inbox)? {
            return Ok(heard);
        }
        match carrier.receive(inbox)? {
            ReceiveResult::Nothing => patience.wait(carrier, PollInterest::READ)?,
            ReceiveResult::End => {
                let cause = "the server closed the connection before the handshake was over";
                return Err(Error::new(Code::Unavailable, patience.server, cause));
            }
            ReceiveResult::Bytes(_) | ReceiveResult::Full => {}
        }
    }
}

/// Returns whether frames use rings in shared memory, according to `JUNCTURA_RINGS` (`on`, the default, or `off`).
fn wants_rings() -> bool {
    std::env::var_os("JUNCTURA_RINGS").is_none_or(|value| value != "off")
}

/// Receives the parts of the rings, which follow the greeting.
fn rings(carrier: &mut UnixCarrier, inbox: &mut Inbox, patience: &mut HandshakeWait<'_>) -> Result<ConnectionRings> {
    let server = patience.server;
    let mut gathered = ReceivedRings::default();
    loop {
        let (head, descriptor) = listen(carrier, inbox, patience, |inbox| match inbox.next_frame()? {
            None => Ok(None),
            Some((frame, descriptor)) => match (Reply::decode(&frame)?, descriptor) {
                (Reply::Rings(head), Some(descriptor)) => Ok(Some((head, descriptor))),
                (Reply::Failed(failure), _) => Err(failure.into()),
                (other, _) => Err(instead_of("rings", &other, server)),
            },
        })?;
        if let Some(rings) = gathered.add(head, descriptor)? {
            return Ok(rings);
        }
    }
}

fn instead_of(expected: &str, other: &Reply<'_>, server: &str) -> Error {
    let cause = format!("{:?} instead of {expected}", other.kind());
    Error::new(Code::Protocol, server, cause)
}

fn greeting(inbox: &mut Inbox, server: &str, own: &[Arc<Schema>]) -> Result<Option<ServerGreeting>> {
    let Some((frame, _)) = inbox.next_frame()? else {
        return Ok(None);
    };
    match Reply::decode(&frame)? {
        Reply::Welcome(welcome) => ServerGreeting::new(&welcome, server, own).map(Some),
        Reply::Failed(failure) => Err(failure.into()),
        other => Err(instead_of("welcome", &other, server)),
    }
}

/// Waits for a server that a client introduces itself to. A signal is answered by the hook, as in every wait.
struct HandshakeWait<'a> {
    server: &'a str,
    hook: Option<&'a Hook>,
    alarm: WakeTimer,
    deadline: Instant,
}

impl<'a> HandshakeWait<'a> {
    fn begin(server: &'a str, hook: Option<&'a Hook>) -> Result<Self> {
        Ok(Self {
            server,
            hook,
            alarm: WakeTimer::new()?,
            deadline: Instant::now() + ANSWER_MAX,
        })
    }

    fn wait(&mut self, carrier: &UnixCarrier, interest: PollInterest) -> Result<()> {
        if Instant::now() >= self.deadline {
            let cause = format!(
                "the server does not answer within {ANSWER_MAX:?}: it hangs or is stopped; `junctura doctor --pool {}` examines it",
                shell_word(self.server)
            );
            return Err(Error::new(Code::Timeout, self.server, cause));
        }
        match self.alarm.wait(carrier.as_fd(), interest, Some(self.deadline)) {
            Err(error) if error.code() == Code::Interrupted => self.hook.map_or(Ok(()), |hook| hook()),
            other => other.map(|_| ()),
        }
    }
}

fn host() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}
