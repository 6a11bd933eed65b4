//! The first words of a connection: who is there, and what the pool is like.

use std::sync::Arc;

use junctura_memory::Reuse;
use junctura_model::{Code, Error, Result, Schema};
use junctura_pool::server::Embedded;
use junctura_transport::{Address, Carrier, Inbox, Interest, Outbox, Received, Sent, UnixCarrier, wait};
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
    pub(crate) hook: Option<Hook>,
}

/// Connects to the server at `address`.
///
/// # Errors
/// `Unavailable` when no server is there, `SchemaMismatch` when it has other schemas under the same names, `Denied` when
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
    });
    outbox.push(|out| hello.encode(0, out))?;
    let mut inbox = Inbox::new();
    while carrier.send(&mut outbox)? == Sent::Blocked {
        patiently(&carrier, Interest::WRITE, me.hook.as_ref())?;
    }
    let greeting = loop {
        if let Some(greeting) = greeting(&mut inbox, address, &me.schemas)? {
            break greeting;
        }
        match carrier.receive(&mut inbox)? {
            Received::Nothing => patiently(&carrier, Interest::READ, me.hook.as_ref())?,
            Received::End => {
                let cause = "the server closed the connection before it said welcome";
                return Err(Error::new(Code::Unavailable, address.to_string(), cause));
            }
            Received::Bytes(_) | Received::Full => {}
        }
    };
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

fn greeting(inbox: &mut Inbox, address: &Address, own: &[Arc<Schema>]) -> Result<Option<Greeting>> {
    let Some((frame, _)) = inbox.next_frame()? else {
        return Ok(None);
    };
    match Reply::decode(&frame)? {
        Reply::Welcome(welcome) => Greeting::new(&welcome, address, own).map(Some),
        Reply::Failed(failure) => Err(failure.into()),
        other => Err(Error::new(
            Code::Protocol,
            address.to_string(),
            format!("{:?} instead of welcome", other.kind()),
        )),
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
