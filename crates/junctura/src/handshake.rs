//! The first words of a connection: who is there, and what the pool is like.

use std::sync::Arc;

use junctura_memory::Reuse;
use junctura_model::{Code, Error, Result, Schema};
use junctura_pool::server::Embedded;
use junctura_transport::{
    Address, Carrier, Inbox, Interest, LocalCarrier, Outbox, Parts, RING_BYTES, Received, Rings, Sent, UnixCarrier,
    wait,
};
use junctura_wire::body::{Hello, Welcome};
use junctura_wire::{Reply, Request};

use crate::connection::{Connection, Hook};
use crate::segments::Segments;

/// The server that a process embeds, if it does; shared by all that must not outlive it. A forked child's copy is without
/// effect.
pub(crate) type Home = Option<Embedded>;

/// What the server said of itself.
#[derive(Debug)]
pub(crate) struct Greeting {
    pub(crate) address: Address,
    pub(crate) incarnation: u64,
    pub(crate) client: u32,
    pub(crate) schemas: Vec<Arc<Schema>>,
    /// The number of the schema that is meant where none is named.
    pub(crate) default_schema: u16,
    pub(crate) inline_bytes_max: u64,
    pub(crate) payload_bytes_max: u64,
    pub(crate) checked: bool,
}

impl Greeting {
    /// How errors name the server.
    pub(crate) fn server(&self) -> String {
        self.address.to_string()
    }

    fn new(welcome: &Welcome<'_>, address: &Address, own: &[Arc<Schema>]) -> Result<Self> {
        if welcome.version != junctura_wire::VERSION {
            let cause = format!(
                "it speaks version {}, this client {}",
                welcome.version,
                junctura_wire::VERSION
            );
            return Err(Error::new(Code::Unsupported, address.to_string(), cause));
        }
        let schemas: Vec<Arc<Schema>> = welcome
            .schemas
            .iter()
            .map(|text| Schema::parse_yaml(text).map(Arc::new))
            .collect::<Result<_>>()?;
        if schemas.is_empty() {
            return Err(Error::new(
                Code::Protocol,
                address.to_string(),
                "the pool has no schema",
            ));
        }
        let default = own
            .first()
            .and_then(|first| schemas.iter().position(|schema| schema.name() == first.name()));
        Ok(Self {
            address: address.clone(),
            incarnation: welcome.incarnation,
            client: welcome.client,
            schemas,
            default_schema: default.unwrap_or(0) as u16,
            inline_bytes_max: welcome.inline_bytes_max,
            payload_bytes_max: welcome.payload_bytes_max,
            checked: welcome.checked,
        })
    }
}

/// What a client says of itself.
#[derive(Clone)]
pub(crate) struct Introduction {
    pub(crate) name: String,
    pub(crate) schemas: Vec<Arc<Schema>>,
    pub(crate) offer_timeout: Option<std::time::Duration>,
    pub(crate) reuse: Reuse,
    pub(crate) visitor: bool,
    pub(crate) hook: Option<Hook>,
}

/// Connects to the server at `address`.
///
/// # Errors
/// `Unavailable` when no server is there or it drains, `SchemaMismatch` when it has other schemas under the same names, `Denied` when
/// it is another user's.
pub(crate) fn connect(address: &Address, me: &Introduction, home: Arc<Home>) -> Result<Connection> {
    let mut carrier = UnixCarrier::connect(address)?;
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
    });
    outbox.push(|out| hello.encode(0, out))?;
    let mut inbox = Inbox::new();
    while carrier.send(&mut outbox)? == Sent::Blocked {
        patiently(&carrier, Interest::WRITE, me.hook.as_ref())?;
    }
    let greeting = listen(&mut carrier, &mut inbox, address, me.hook.as_ref(), |inbox| {
        greeting(inbox, address, &me.schemas)
    })?;
    let rings = wants_rings().then(|| rings(&mut carrier, &mut inbox, address, me.hook.as_ref()));
    let mut carrier = LocalCarrier::new(carrier);
    if let Some(rings) = rings {
        carrier.switch(rings?, 0);
    }
    let segments = Segments::new(me.reuse);
    Connection::new(
        carrier,
        inbox,
        greeting,
        segments,
        me.offer_timeout,
        me.hook.clone(),
        home,
    )
}

/// Receives until `hear` has heard what it waits for.
fn listen<T>(
    carrier: &mut UnixCarrier,
    inbox: &mut Inbox,
    address: &Address,
    hook: Option<&Hook>,
    mut hear: impl FnMut(&mut Inbox) -> Result<Option<T>>,
) -> Result<T> {
    loop {
        if let Some(heard) = hear(inbox)? {
            return Ok(heard);
        }
        match carrier.receive(inbox)? {
            Received::Nothing => patiently(carrier, Interest::READ, hook)?,
            Received::End => {
                let cause = "the server closed the connection before the handshake was over";
                return Err(Error::new(Code::Unavailable, address.to_string(), cause));
            }
            Received::Bytes(_) | Received::Full => {}
        }
    }
}

/// Whether frames go through rings in shared memory, as `JUNCTURA_RINGS` says (`on`, which is the default, or `off`).
fn wants_rings() -> bool {
    std::env::var_os("JUNCTURA_RINGS").is_none_or(|value| value != "off")
}

/// Receives the parts of the rings, which come behind the welcome.
fn rings(carrier: &mut UnixCarrier, inbox: &mut Inbox, address: &Address, hook: Option<&Hook>) -> Result<Rings> {
    let mut parts = Vec::new();
    while parts.len() < 3 {
        let part = listen(carrier, inbox, address, hook, |inbox| match inbox.next_frame()? {
            None => Ok(None),
            Some((frame, Some(descriptor))) => match Reply::decode(&frame)? {
                Reply::Rings(head) if head.part.get() as usize == parts.len() => Ok(Some((head, descriptor))),
                other => Err(instead_of("rings", &other, address)),
            },
            Some((frame, None)) => match Reply::decode(&frame)? {
                Reply::Failed(failure) => Err(failure.into()),
                other => Err(instead_of("rings", &other, address)),
            },
        })?;
        parts.push(part);
    }
    let ring_bytes = parts[0].0.ring_bytes.get() as usize;
    let mut descriptors = parts.into_iter().map(|(_, descriptor)| descriptor);
    match (descriptors.next(), descriptors.next(), descriptors.next()) {
        (Some(memory), Some(server_bell), Some(client_bell)) => {
            let parts: Parts = [memory, server_bell, client_bell];
            Rings::join(ring_bytes, parts)
        }
        _ => Err(Error::new(Code::Protocol, address.to_string(), "no rings")),
    }
}

fn instead_of(expected: &str, other: &Reply<'_>, address: &Address) -> Error {
    let cause = format!("{:?} instead of {expected}", other.kind());
    Error::new(Code::Protocol, address.to_string(), cause)
}

fn greeting(inbox: &mut Inbox, address: &Address, own: &[Arc<Schema>]) -> Result<Option<Greeting>> {
    let Some((frame, _)) = inbox.next_frame()? else {
        return Ok(None);
    };
    match Reply::decode(&frame)? {
        Reply::Welcome(welcome) => Greeting::new(&welcome, address, own).map(Some),
        Reply::Failed(failure) => Err(failure.into()),
        other => Err(instead_of("welcome", &other, address)),
    }
}

/// Waits, and asks the hook when a signal comes.
fn patiently(carrier: &UnixCarrier, interest: Interest, hook: Option<&Hook>) -> Result<()> {
    match wait(carrier.as_fd(), interest) {
        Err(error) if error.code() == Code::Interrupted => hook.map_or(Ok(()), |hook| hook()),
        other => other.map(|_| ()),
    }
}

fn host() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}
