//! Saying early what will be wanted: what matches stays until it was received through the requirement and released.

use std::sync::Arc;
use std::time::Duration;

use junctura_model::Result;
use junctura_wire::{Request, body};

use crate::connection::{Connection, unexpected};
use crate::demand::demand;
use crate::follow::{Follow, FollowOptions, Gap, follow};
use crate::mail::Letter;
use crate::object::Object;
use crate::pool::Pool;
use crate::stream::Stream;
use crate::target::Target;

/// How to require, where it is not the default.
#[derive(Clone, Debug, Default)]
pub struct RequireOptions {
    /// Of each key only the newest version is kept.
    pub newest_only: bool,
    /// A name, for a requirement that outlives its client.
    pub name: Option<String>,
}

/// A requirement; dropping it retracts it.
#[derive(Debug)]
pub struct Requirement {
    connection: Arc<Connection>,
    stream: Stream,
    selector: String,
    sequence: u64,
}

impl Pool {
    /// Requires everything that matches a selector, from what is visible now on: it cannot go before it was received through
    /// this requirement and released.
    ///
    /// ```
    /// # use junctura::Pool;
    /// # fn main() -> junctura::Result<()> {
    /// let pool = Pool::builder().schema("free").open()?;
    /// let requirement = pool.require("space=demo")?;
    /// pool.offer([("space", "demo"), ("name", "first")], b"bytes")?;
    /// let object = requirement.demand("name=first", None)?;
    /// assert_eq!(&object[..], b"bytes");
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// `InvalidSelector`, pointing at the character.
    pub fn require(&self, selector: &str) -> Result<Requirement> {
        self.require_with(&RequireOptions::default(), selector)
    }

    /// As [`Pool::require`], with options.
    pub fn require_with(&self, options: &RequireOptions, selector: &str) -> Result<Requirement> {
        let connection = self.connection()?;
        let request = Request::Require(body::Require {
            selector: selector.into(),
            newest_only: options.newest_only,
            name: options.name.as_deref().map(Into::into),
        });
        let (stream, sequence) = Stream::begin(&connection, &request)?;
        Ok(Requirement {
            connection,
            stream,
            selector: selector.to_owned(),
            sequence,
        })
    }
}

impl Requirement {
    /// What it requires.
    #[must_use]
    pub fn selector(&self) -> &str {
        &self.selector
    }

    /// The newest sequence number when it began.
    #[must_use]
    pub fn sequence(&self) -> u64 {
        self.sequence
    }

    /// Receives everything that it requires.
    pub fn follow(&self) -> Result<Follow> {
        self.follow_with(&FollowOptions::default(), &self.selector)
    }

    /// Receives what matches a selector, through this requirement.
    pub fn follow_with(&self, options: &FollowOptions, selector: &str) -> Result<Follow> {
        follow(&self.connection, options, selector, Some(self.stream.number()))
    }

    /// Receives one object through this requirement, as [`Pool::demand`].
    pub fn demand<'a>(&self, target: impl Into<Target<'a>>, timeout: Option<Duration>) -> Result<Object> {
        demand(&self.connection, &target.into(), timeout, Some(self.stream.number()))
    }

    /// Objects that it was owed and will not get, because somebody withdrew them by force, if any are known by now. While a
    /// follow receives through the requirement, gaps come there.
    pub fn try_gap(&mut self) -> Result<Option<Gap>> {
        if self.stream.is_over() {
            return Ok(None);
        }
        match self.stream.try_next()? {
            Some(Letter::Gap(body)) => Gap::read(&self.connection, &body).map(Some),
            Some(Letter::Ended(error) | Letter::Failed(error)) => Err(error),
            Some(_) => Err(unexpected("for a requirement")),
            None => Ok(None),
        }
    }

    /// Gives it up: what only it kept may go.
    pub fn retract(mut self) -> Result<()> {
        self.stream.stop()
    }
}
