//! `junctura serve`: a pool that other processes share.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use junctura::{Code, Error, Result, Schema};
use junctura_pool::server::{Server, ServerOptions};
use junctura_pool::{Config, Spill};
use junctura_transport::Address;

use crate::size;

/// Serve a pool until stopped (`junctura stop`, SIGTERM or Ctrl-C)
///
/// The pool lives in this process's memory: what clients offered is gone when it ends. The first SIGTERM or Ctrl-C makes it
/// drain: it takes nothing new, and ends when all that requirements are owed was received, or after --drain-timeout. A second
/// one ends it at once.
#[derive(Args, Debug)]
pub(crate) struct Arguments {
    #[arg(
        help = "Where to listen: unix:NAME, unix:/path.sock or unix:@abstract",
        default_value = "unix:default",
        env = "JUNCTURA_POOL"
    )]
    address: String,
    /// A schema of the pool: the name of a built-in one or a YAML file; the first given is the default, the built-in ones
    /// follow
    #[arg(long, value_name = "NAME|FILE")]
    schema: Vec<String>,
    /// Memory for payloads (default: a quarter of this machine's)
    #[arg(long, value_name = "SIZE", value_parser = size::parse_bytes)]
    budget: Option<u64>,
    /// Where payloads go that memory has no room for: a directory on a local disk. Nothing is seen of them there, and nothing
    /// is left when the server ends, however it ends
    #[arg(long, value_name = "DIRECTORY")]
    spill: Option<PathBuf>,
    /// How much may go there (default: four times --budget)
    #[arg(long, value_name = "SIZE", value_parser = size::parse_bytes, requires = "spill")]
    spill_size: Option<u64>,
    /// Payloads of at most this size travel inside the message
    #[arg(long, value_name = "SIZE", value_parser = size::parse_bytes)]
    inline_max: Option<u64>,
    /// Give every payload a checksum, verified when it is received
    #[arg(long)]
    checked: bool,
    /// How long keys that are gone are remembered
    #[arg(long, value_name = "TIME", value_parser = size::parse_duration)]
    tombstone_age: Option<Duration>,
    /// How long a requirement's readers may release nothing while others wait for memory that it keeps, before it is broken
    #[arg(long, value_name = "TIME", value_parser = size::parse_duration, default_value = "60s")]
    stuck_after: Duration,
    /// How long a bundle that is not complete stays when no producer has it open, before it is aborted
    #[arg(long, value_name = "TIME", value_parser = size::parse_duration)]
    orphan_timeout: Option<Duration>,
    /// End when nobody is connected and nothing lies in the pool for this long
    #[arg(long, value_name = "TIME", value_parser = size::parse_duration)]
    end_when_idle: Option<Duration>,
    /// Print the address on standard output once clients can connect; end quietly if another server is there already
    #[arg(long)]
    announce: bool,
    /// Look for work this long before sleeping, where that pays: lower latency for a core that is busy so much longer
    #[arg(long, value_name = "TIME", value_parser = size::parse_duration, default_value = "20us")]
    spin: Duration,
    /// After SIGTERM or Ctrl-C, how long to wait for those who are still owed something
    #[arg(long, value_name = "TIME", value_parser = size::parse_duration, default_value = "8s")]
    drain_timeout: Duration,
}

/// Serves.
pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let address: Address = arguments.address.parse()?;
    open_many_files();
    let server = match Server::bind(&address, arguments.options()?) {
        Err(error) if arguments.announce && error.code() == Code::AlreadyExists => return Ok(()),
        bound => bound?,
    };
    let stopper = server.stopper();
    let mut signals = signal_hook::iterator::Signals::new([signal_hook::consts::SIGTERM, signal_hook::consts::SIGINT])
        .map_err(|error| Error::new(Code::Io, "signals", error.to_string()))?;
    std::thread::spawn(move || {
        let mut signals = signals.forever();
        if signals.next().is_some() {
            stopper.drain();
        }
        if signals.next().is_some() {
            stopper.stop();
        }
    });
    if arguments.announce {
        println!("{}", server.address());
    } else {
        eprintln!("junctura: serving {}", server.address());
    }
    server.run()
}

/// A client takes four descriptors, and the limit is often 1,024 unless one asks for more.
fn open_many_files() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let limit = getrlimit(Resource::Nofile);
    // Where that is refused, the server turns clients away when it can open no more.
    let _ = setrlimit(
        Resource::Nofile,
        Rlimit {
            current: limit.maximum,
            ..limit
        },
    );
}

impl Arguments {
    fn options(&self) -> Result<ServerOptions> {
        let defaults = Config::default();
        let budget_bytes = self.budget.unwrap_or_else(default_budget_bytes);
        let spill = self.spill.clone();
        let config = Config {
            schemas: schemas(&self.schema)?,
            budget_bytes,
            spill: spill.map(|directory| Spill::new(directory, self.spill_size, budget_bytes)),
            inline_bytes_max: self.inline_max.unwrap_or(defaults.inline_bytes_max),
            checked: self.checked,
            stuck_after: self.stuck_after,
            tombstone_age: self.tombstone_age.unwrap_or(defaults.tombstone_age),
            orphan_timeout: self.orphan_timeout.unwrap_or(defaults.orphan_timeout),
            ..defaults
        };
        Ok(ServerOptions {
            config,
            end_when_idle: self.end_when_idle,
            spin: self.spin,
            drain_timeout: self.drain_timeout,
        })
    }
}

/// The schemas that were asked for, then the built-in ones that were not.
pub(crate) fn schemas(asked: &[String]) -> Result<Vec<Arc<Schema>>> {
    let mut schemas = asked.iter().map(|name| schema(name)).collect::<Result<Vec<_>>>()?;
    for builtin in Config::default().schemas {
        if schemas.iter().all(|schema| schema.name() != builtin.name()) {
            schemas.push(builtin);
        }
    }
    Ok(schemas)
}

/// The built-in schema of this name, or the one in this file.
pub(crate) fn schema(name: &str) -> Result<Arc<Schema>> {
    if let Some(schema) = Schema::builtin(name) {
        return Ok(schema);
    }
    let path = PathBuf::from(name);
    let text = std::fs::read_to_string(&path).map_err(|error| {
        let builtin = Schema::BUILTIN_NAMES.join(", ");
        Error::new(
            Code::InvalidArgument,
            format!("schema {name}"),
            format!("{error}; built-in are {builtin}"),
        )
    })?;
    Ok(Arc::new(Schema::parse_yaml(&text)?))
}

fn default_budget_bytes() -> u64 {
    let info = rustix::system::sysinfo();
    let total = info.totalram as u64 * u64::from(info.mem_unit.max(1));
    (total / 4).max(64 << 20)
}
