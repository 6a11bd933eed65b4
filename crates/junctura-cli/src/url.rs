//! The pool of a command.

use std::time::{Duration, Instant};

use clap::Args;
use junctura::{Code, Error, Pool, PoolBuilder, Result};
use junctura_model::command::shell_word;
use junctura_terminal::interrupt::InterruptFlag;
use junctura_terminal::progress::SlowWork;

use crate::absent::{open_served, open_when_served};
use crate::exit::proposals::note_pool;
use crate::pool::beside::within;

/// How long the connection may take with a shorter timeout, which is one for objects.
const CONNECT_MIN: Duration = Duration::from_secs(1);

/// Options of every command that connects to a pool.
#[derive(Args, Clone, Debug)]
pub(crate) struct PoolArguments {
    #[arg(
        help = "The pool: unix:NAME, unix:/path.sock, unix:@abstract or tcp://HOST:PORT",
        long,
        env = "JUNCTURA_POOL",
        default_value = "unix:default",
        value_name = "URL"
    )]
    pub(crate) pool: String,
    #[command(flatten)]
    pub(crate) client: ClientArguments,
}

/// The client name of a command.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct ClientArguments {
    #[arg(
        id = "client_name",
        help = "The name of this client in the pool, for events, counters and `pool serve --until-gone` [default: junctura and the command]",
        long = "as",
        visible_alias = "name",
        env = "JUNCTURA_NAME",
        hide_env_values = true,
        value_name = "NAME"
    )]
    name: Option<String>,
}

impl ClientArguments {
    /// Returns the name, or else this one.
    pub(crate) fn or(&self, name: &str) -> String {
        let given = self.name.as_deref().filter(|given| !given.is_empty());
        given.unwrap_or(name).to_owned()
    }

    /// Connects to read schemas.
    pub(crate) fn connect(&self, url: &str) -> Result<Pool> {
        open_served(url, || Pool::builder().url(url).name(self.or("junctura schema")).open())
    }
}

/// The store behind the pool.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct BehindArguments {
    /// Also search this store for objects that have left the pool
    #[arg(long, value_name = "URL")]
    behind: Option<String>,
}

impl BehindArguments {
    pub(crate) fn url(&self) -> Option<&str> {
        self.behind.as_deref()
    }

    pub(crate) fn put_behind(&self, builder: PoolBuilder) -> PoolBuilder {
        match &self.behind {
            Some(url) => builder.store(url),
            None => builder,
        }
    }
}

/// Opens a pool, whose server may be started for that, and prints the probable mistakes.
pub(crate) fn open_noted(builder: PoolBuilder) -> Result<Pool> {
    let pool = builder.open()?;
    for mistake in pool.reasons().opening_mistakes() {
        say!("junctura: {mistake}");
    }
    Ok(pool)
}

impl PoolArguments {
    /// Returns a builder for the pool; a server of `unix:NAME` is started if none runs.
    pub(crate) fn builder(&self, name: &str) -> PoolBuilder {
        builder(&self.pool).name(self.client.or(name))
    }

    /// Connects to the pool, and starts its server if none runs; waits there end with Ctrl-C.
    pub(crate) fn connect(&self, interrupt: &InterruptFlag, name: &str) -> Result<Pool> {
        open_noted(interrupt.watch(self.builder(name)))
    }

    /// Connects to a pool that is served.
    ///
    /// # Errors
    /// `NotFound` where `unix:NAME` has no server.
    pub(crate) fn connect_to_read(&self, interrupt: &InterruptFlag, name: &str) -> Result<Pool> {
        open_served(&self.pool, || interrupt.watch(self.reader(name)).open())
    }

    /// As [`Self::connect_to_read`], with a store behind the pool.
    pub(crate) fn connect_with(&self, interrupt: &InterruptFlag, behind: &BehindArguments, name: &str) -> Result<Pool> {
        open_served(&self.pool, || self.open_with(interrupt, behind, name, None))
    }

    /// As [`Self::connect_with`]; a client that visits only looks at the pool, and is served after others.
    pub(crate) fn connect_to_list(
        &self,
        interrupt: &InterruptFlag,
        behind: &BehindArguments,
        visits: bool,
        name: &str,
    ) -> Result<Pool> {
        let _slow = behind.url().map(SlowWork::store);
        let builder = behind.put_behind(self.reader(name)).visitor(visits);
        open_served(&self.pool, || interrupt.watch(builder).open())
    }

    /// As [`Self::connect_with`], and waits until the pool is served, at most until the deadline.
    ///
    /// # Errors
    /// `Timeout` where it is not served then.
    pub(crate) fn connect_and_wait(
        &self,
        interrupt: &InterruptFlag,
        behind: &BehindArguments,
        name: &str,
        deadline: Option<Instant>,
    ) -> Result<Pool> {
        open_when_served(&self.pool, deadline, interrupt, || {
            self.open_with(interrupt, behind, name, deadline)
        })
    }

    /// As [`Self::connect_to_read`]; the connection has to be made by the deadline.
    ///
    /// # Errors
    /// `Timeout` where the server has not answered then.
    pub(crate) fn connect_by(&self, interrupt: &InterruptFlag, name: &str, deadline: Option<Instant>) -> Result<Pool> {
        let behind = BehindArguments::default();
        open_served(&self.pool, || self.open_with(interrupt, &behind, name, deadline))
    }

    fn open_with(
        &self,
        interrupt: &InterruptFlag,
        behind: &BehindArguments,
        name: &str,
        deadline: Option<Instant>,
    ) -> Result<Pool> {
        let _slow = behind.url().map(SlowWork::store);
        self.open_by(interrupt.watch(behind.put_behind(self.reader(name))), deadline)
    }

    /// Opens the pool; the connection has to be made by the deadline, or within a second.
    ///
    /// # Errors
    /// `Timeout` where the server has not answered then.
    pub(crate) fn open_by(&self, builder: PoolBuilder, deadline: Option<Instant>) -> Result<Pool> {
        let Some(deadline) = deadline else {
            return builder.open();
        };
        let left = deadline.saturating_duration_since(Instant::now()).max(CONNECT_MIN);
        let opened = within(left, move || builder.open())?;
        opened.ok_or_else(|| {
            let url = shell_word(&self.pool);
            let cause = format!("the server did not answer in time; `junctura doctor --pool {url}` examines it");
            Error::new(Code::Timeout, self.pool.as_str(), cause)
        })
    }

    /// Returns a builder for a pool that is served.
    pub(crate) fn reader(&self, name: &str) -> PoolBuilder {
        note_pool(&self.pool);
        Pool::builder().url(&self.pool).name(self.client.or(name))
    }
}

/// Returns a builder for the pool at a URL; a server of `unix:NAME` is started if none runs.
pub(crate) fn builder(url: &str) -> PoolBuilder {
    note_pool(url);
    Pool::builder()
        .url(url)
        .start(url.starts_with("unix:") && !url.contains('@') && !url.contains('/'))
}
