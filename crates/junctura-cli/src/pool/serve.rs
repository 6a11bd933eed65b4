//! `junctura pool serve` serves a pool to other processes.

use std::io::Write as _;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use junctura::{Code, Error, Pool, Result};
use junctura_link::{Endpoint, Gate, GateOptions, LoopbackUsers, ServerIdentity};
use junctura_pool::server::{Server, ServerOptions, private_address};
use junctura_pool::{PoolConfig, SpillConfig};
use junctura_terminal::interrupt::survive_file_limit;
use junctura_terminal::size;
use junctura_transport::{ServerAddress, join_small_blocks_at_once};

use crate::admin::doctor;
use crate::admin::security;
use crate::metrics::serving::MetricsOptions;
use crate::model::schema_files;
use crate::pool::require::read;

const EXAMPLES: &str = "Examples:
  junctura pool serve                                        this user's own pool, until Ctrl-C
  junctura pool serve --pool unix:model --budget 16GiB --spill /local/tmp
  junctura pool serve --pool unix:model --schema mine.yaml --requirements wanted.yaml
  junctura pool serve --pool unix:model --until-gone model,viewer        until both have disconnected
  junctura pool serve --upstream tcp://node7:7000                 node7's pool, fetched once for all processes of this machine";

/// Serve a pool until stopped (`junctura pool stop`, SIGTERM or Ctrl-C)
///
/// The pool is in the memory of this process: objects are lost when it ends. After the first SIGTERM or Ctrl-C the server drains: it
/// refuses new offers and clients, and exits when all objects that requirements are owed were received, or after --drain-timeout.
/// A second signal ends it at once.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct ServeArguments {
    #[arg(
        help = "The pool: unix:NAME, unix:/path.sock, unix:@abstract or tcp://HOST:PORT [default: $JUNCTURA_POOL, else unix:default]",
        long,
        value_name = "URL"
    )]
    pool: Option<String>,
    /// Serve the pool at tcp://HOST:PORT to this user's processes on this machine. They share one link to it, and an
    /// object for several processes is transferred once. Clients use the same URL, or the address of --pool if it is
    /// given. `JUNCTURA_TOKEN_FILE` and
    /// `JUNCTURA_CA_FILE` name the token and the certificate authority for the link
    #[arg(long, value_name = "URL")]
    upstream: Option<String>,
    /// With --upstream: maximum cache for objects that no client holds (default: 1GiB, or a quarter of this machine's memory)
    #[arg(long, value_name = "SIZE", value_parser = size::parse_bytes, requires = "upstream")]
    mirror: Option<u64>,
    /// With --upstream: number of streams of the link, from 1 to 8; a large payload uses all streams (default:
    /// `JUNCTURA_STREAMS`, or one)
    #[arg(long, value_name = "NUMBER", requires = "upstream")]
    streams: Option<usize>,
    /// Also listen here for clients of other machines: tcp://HOST:PORT (port 0: any free one). Can be given several times
    #[arg(long, value_name = "URL")]
    listen: Vec<String>,
    /// The directory of the certificate and the key for tokens, as `junctura cert` and `junctura token make` make them. Required
    /// beyond loopback; with it, clients on loopback need a token, too. Without it, only processes of this user can connect
    /// over loopback. `none`: every user of this host can connect over loopback, and read, write and stop the pool
    #[arg(long, value_name = "FOLDER|none")]
    security: Option<PathBuf>,
    /// Disconnect a client of another machine that was silent for this time
    #[arg(long, value_name = "TIME", value_parser = size::parse_duration, default_value = "10s")]
    lease: Duration,
    /// A schema of the pool: the name of a built-in one or a file, in YAML or with rules of FDB. The first one is the default; the built-in ones
    /// follow
    #[arg(long, value_name = "NAME|FILE")]
    schema: Vec<String>,
    /// Memory for payloads (default: a quarter of the memory of the machine or of its control group)
    #[arg(long, value_name = "SIZE", value_parser = size::parse_bytes)]
    budget: Option<u64>,
    /// Make so much memory ready before a client leases it, for faster first writes: at most a sixteenth of --budget
    #[arg(long, value_name = "SIZE", value_parser = size::parse_bytes, default_value = "0")]
    ready: u64,
    /// A directory on a local disk for payloads that do not fit in memory. The files are invisible, and none remains when the server
    /// ends, also if it is killed
    #[arg(long, value_name = "FOLDER")]
    spill: Option<PathBuf>,
    /// Maximum size of these payloads (default: four times --budget)
    #[arg(long, value_name = "SIZE", value_parser = size::parse_bytes, requires = "spill")]
    spill_size: Option<u64>,
    /// Payloads of at most this size are part of the message (default: 4KiB)
    #[arg(long, value_name = "SIZE", value_parser = size::parse_bytes)]
    inline_max: Option<u64>,
    /// Add a checksum to every payload; readers verify it
    #[arg(long)]
    checked: bool,
    /// How long the keys of removed objects are remembered (default: 10min)
    #[arg(long, value_name = "TIME", value_parser = size::parse_duration)]
    tombstone_age: Option<Duration>,
    /// Time without a release, while other clients wait for memory, after which a requirement is broken; and without a write, after which a
    /// client with leased memory is disconnected
    #[arg(long, value_name = "TIME", value_parser = size::parse_duration, default_value = "60s")]
    stuck_after: Duration,
    /// Time until an incomplete bundle that no producer has open is aborted (default: 1min)
    #[arg(long, value_name = "TIME", value_parser = size::parse_duration)]
    orphan_timeout: Option<Duration>,
    /// Exit when no client was connected and the pool was empty for this time
    #[arg(long, value_name = "TIME", value_parser = size::parse_duration)]
    end_when_idle: Option<Duration>,
    /// Drain and exit when clients of all these names have connected and disconnected, normally or killed
    #[arg(long, value_name = "NAME,...", value_delimiter = ',')]
    until_gone: Vec<String>,
    /// Create the requirements of this file, as `junctura pool require --file` does, before any client can connect
    #[arg(long, value_name = "FILE")]
    requirements: Option<PathBuf>,
    /// Print the address to standard output once clients can connect; if a server has this unix: address already, print it and exit
    #[arg(long)]
    announce: bool,
    /// Poll for work this long before sleeping, if that pays: lower latency for more processor time
    #[arg(long, value_name = "TIME", value_parser = size::parse_duration, default_value = "50us")]
    spin: Duration,
    /// After SIGTERM or Ctrl-C: maximum wait for readers that are owed objects
    #[arg(long, value_name = "TIME", value_parser = size::parse_duration, default_value = "8s")]
    drain_timeout: Duration,
    #[command(flatten)]
    metrics: MetricsOptions,
}

/// Runs the server.
pub(crate) fn run(arguments: &ServeArguments) -> Result<()> {
    if let Some(url) = &arguments.upstream {
        return arguments.serve_upstream(url);
    }
    join_small_blocks_at_once();
    let (address, endpoints) = arguments.addresses()?;
    open_many_files();
    survive_file_limit()?;
    let mut server = match Server::bind(&address, arguments.options()?) {
        Err(error) if arguments.announce && error.code() == Code::AlreadyExists => {
            arguments.show_earlier(&address.to_string());
            return Ok(());
        }
        bound => bound?,
    };
    let metrics = arguments.metrics.start(&mut server)?;
    let gates = arguments.open_gates(&server, endpoints)?;
    let stopper = server.stopper();
    let mut signals = ends()?;
    std::thread::spawn(move || {
        let mut signals = signals.forever();
        if signals.next().is_some() {
            stopper.drain();
        }
        if signals.next().is_some() {
            stopper.stop();
        }
    });
    let shown = (!Endpoint::is_meant(&arguments.address())).then(|| server.address().to_string());
    let listening = shown
        .into_iter()
        .chain(gates.iter().map(|gate| gate.endpoint().to_string()));
    for url in listening {
        arguments.show(&url);
    }
    if let Some(address) = metrics.address() {
        say!("junctura: metrics at http://{address}/metrics");
    }
    server.run()
}

/// Returns the signals that end a server.
fn ends() -> Result<signal_hook::iterator::Signals> {
    signal_hook::iterator::Signals::new([signal_hook::consts::SIGTERM, signal_hook::consts::SIGINT])
        .map_err(|error| Error::new(Code::Io, "signals", error.to_string()))
}

/// Raises the limit of open files: a client uses four descriptors, and the default limit is often 1,024.
fn open_many_files() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let limit = getrlimit(Resource::Nofile);
    // If that is refused, the server refuses clients for which it has no descriptors.
    let _ = setrlimit(
        Resource::Nofile,
        Rlimit {
            current: limit.maximum,
            ..limit
        },
    );
}

impl ServeArguments {
    fn address(&self) -> String {
        let usual = || std::env::var("JUNCTURA_POOL").unwrap_or_else(|_| "unix:default".to_owned());
        self.pool.clone().unwrap_or_else(usual)
    }

    fn show(&self, url: &str) {
        if self.announce {
            // The reader of the pipe may have ended; other clients can still connect.
            let _ = writeln!(std::io::stdout(), "{url}");
        } else {
            say!("junctura: serving {url}");
        }
    }

    /// Shows the address of the server that runs there already.
    fn show_earlier(&self, url: &str) {
        say!("junctura: a server runs at {url} already, with its own options");
        self.show(url);
    }

    fn serve_upstream(&self, url: &str) -> Result<()> {
        open_many_files();
        survive_file_limit()?;
        let mut pool = Pool::builder().url(url);
        if let Some(bytes) = self.mirror {
            pool = pool.mirror_bytes(bytes);
        }
        if let Some(streams) = self.streams {
            pool = pool.streams(streams);
        }
        let upstream = match pool.upstream(self.pool.as_deref()) {
            Err(error) if self.announce && error.code() == Code::AlreadyExists => {
                // Without a name, the error names the path of the socket.
                let usual = format!("unix:{}", error.subject());
                self.show_earlier(self.pool.as_deref().unwrap_or(&usual));
                return Ok(());
            }
            opened => opened?,
        };
        let mut signals = ends()?;
        self.show(&upstream.address().to_string());
        signals.forever().next();
        drop(upstream);
        Ok(())
    }

    /// Returns the server's own address and its other endpoints. A server that is requested on a network alone has a private address, which
    /// only its clients on this machine receive.
    fn addresses(&self) -> Result<(ServerAddress, Vec<Endpoint>)> {
        let mut endpoints = self.listen.iter().map(|url| url.parse()).collect::<Result<Vec<_>>>()?;
        let address = self.address();
        if Endpoint::is_meant(&address) {
            endpoints.insert(0, address.parse()?);
            return Ok((private_address()?, endpoints));
        }
        Ok((address.parse()?, endpoints))
    }

    fn open_gates(&self, server: &Server, endpoints: Vec<Endpoint>) -> Result<Vec<Gate>> {
        let identity = ServerIdentity {
            pid: std::process::id(),
            incarnation: server.incarnation(),
        };
        let open = |endpoint| {
            let (tls, tokens, users) = match self.security.as_deref() {
                None => (None, None, LoopbackUsers::Own),
                Some(none) if none.as_os_str() == security::NONE => (None, None, LoopbackUsers::Any),
                Some(directory) => {
                    let (tls, tokens) = security::read(directory)?;
                    (Some(tls), Some(tokens), LoopbackUsers::Own)
                }
            };
            Gate::open(GateOptions {
                tls,
                tokens,
                users,
                lease: self.lease,
                ..GateOptions::new(endpoint, server.address().clone(), identity)
            })
        };
        endpoints.into_iter().map(open).collect()
    }

    fn options(&self) -> Result<ServerOptions> {
        let defaults = PoolConfig::default();
        let budget_bytes = match self.budget {
            Some(bytes) => check_budget(bytes, available_bytes())?,
            None => default_budget_bytes(),
        };
        let spill = self.spill.clone();
        let config = PoolConfig {
            schemas: schema_files::with_builtin(&self.schema)?,
            budget_bytes,
            spill: spill.map(|directory| SpillConfig::new(directory, self.spill_size, budget_bytes)),
            inline_bytes_max: self.inline_max.unwrap_or(defaults.inline_bytes_max),
            checked: self.checked,
            stuck_after: self.stuck_after,
            tombstone_age: self.tombstone_age.unwrap_or(defaults.tombstone_age),
            orphan_timeout: self.orphan_timeout.unwrap_or(defaults.orphan_timeout),
            until_gone: self.until_gone.clone(),
            ..defaults
        };
        Ok(ServerOptions {
            config,
            end_when_idle: self.end_when_idle,
            spin: self.spin,
            drain_timeout: self.drain_timeout,
            ready_bytes: self.ready,
            requirements: self.requirements.as_deref().map_or(Ok(Vec::new()), read)?,
            ..ServerOptions::default()
        })
    }
}

/// The smallest memory of a server: less has no room for an object.
const BUDGET_BYTES_MIN: u64 = 1 << 20;

/// Returns the budget.
///
/// # Errors
/// `InvalidArgument` for less than [`BUDGET_BYTES_MIN`], and for more than is available.
fn check_budget(bytes: u64, available_bytes: u64) -> Result<u64> {
    let cause = if bytes < BUDGET_BYTES_MIN {
        format!(
            "{}: the least is {}; a number without a unit counts bytes, as in 4GiB or 512MiB",
            size::bytes(bytes),
            size::bytes(BUDGET_BYTES_MIN)
        )
    } else if bytes > available_bytes {
        format!(
            "{}: this process may have {}; --spill adds room on a disk",
            size::bytes(bytes),
            size::bytes(available_bytes)
        )
    } else {
        return Ok(bytes);
    };
    Err(Error::new(Code::InvalidArgument, "--budget", cause))
}

pub(crate) fn default_budget_bytes() -> u64 {
    (available_bytes() / 4).max(64 << 20)
}

/// Returns half of the memory that this process may use.
pub(crate) fn half_of_memory() -> u64 {
    available_bytes() / 2
}

/// Returns the memory that this process may use: that of the machine or of its control group.
fn available_bytes() -> u64 {
    memory_bytes().min(doctor::group_limit_bytes().unwrap_or(u64::MAX))
}

/// Returns the memory of the machine.
fn memory_bytes() -> u64 {
    let info = rustix::system::sysinfo();
    info.totalram as u64 * u64::from(info.mem_unit.max(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn absurd_budgets_are_refused() {
        const GIB: u64 = 1 << 30;
        assert_eq!(check_budget(4 * GIB, 4 * GIB), Ok(4 * GIB));
        assert_eq!(check_budget(BUDGET_BYTES_MIN, GIB), Ok(BUDGET_BYTES_MIN));
        let refused = |bytes| check_budget(bytes, 23 * GIB).unwrap_err().to_string();
        assert!(refused(4).contains("4 B: the least is 1.0 MiB"), "{}", refused(4));
        assert!(refused(999 * GIB).contains("999.0 GiB: this process may have 23.0 GiB"));
    }
}
