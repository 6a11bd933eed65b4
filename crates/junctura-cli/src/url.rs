//! Which pool a command talks to.

use clap::Args;
use junctura::{Pool, PoolBuilder};

/// Arguments of every command that talks to a pool.
#[derive(Args, Clone, Debug)]
pub(crate) struct PoolArguments {
    #[arg(
        help = "The pool: unix:NAME, unix:/path.sock or unix:@abstract",
        long,
        env = "JUNCTURA_POOL",
        default_value = "unix:default",
        value_name = "URL"
    )]
    pub(crate) pool: String,
}

impl PoolArguments {
    /// A builder for the pool; `unix:NAME` is started if nobody serves it yet.
    pub(crate) fn builder(&self, name: &str) -> PoolBuilder {
        Pool::builder()
            .url(&self.pool)
            .name(name)
            .start(!self.pool.contains('@') && !self.pool.contains('/'))
    }
}
