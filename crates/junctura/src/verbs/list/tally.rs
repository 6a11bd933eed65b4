//! Numbers of visible objects, counted by the server.

use std::sync::Arc;

use junctura_model::{Result, Schema};
use junctura_wire::look::{TalliedGroup, TallyRequest};
use junctura_wire::{FrameKind, Reply, Request, WireFrame};

use crate::connection::in_flight::{ExchangeKind, ServerMessage};
use crate::connection::state::StreamStop;
use crate::connection::{PoolConnection, unexpected};
use crate::explain::warn_of_mistakes;
use crate::pending::{Pending, RequestOutcome};
use crate::pool::Pool;

/// Options of a tally.
#[derive(Clone, Copy, Debug)]
pub struct TallyOptions<'a> {
    /// Counts for each combination of the values of these attributes, at most 8; none: for each schema.
    pub by: &'a [&'a str],
    /// The maximum number of groups, from 1 to 1,000; objects of further groups are counted in [`Tally::others`].
    pub limit: u32,
    /// Also sums the sizes of the payloads: the server reads each object then.
    pub sum_bytes: bool,
    /// Counts only objects in the server's listing index. Newer ones, at most some thousands, are in [`Tally::newer`].
    pub filed_only: bool,
}

impl Default for TallyOptions<'_> {
    fn default() -> Self {
        Self {
            by: &[],
            limit: TallyRequest::GROUPS_MAX,
            sum_bytes: false,
            filed_only: false,
        }
    }
}

/// How many visible objects match a selector.
///
/// ```
/// # use junctura::{Pool, TallyOptions};
/// # fn main() -> junctura::Result<()> {
/// # let pool = Pool::builder().schema("free").open()?;
/// pool.offer([("name", "a")], b"bytes")?;
/// let tally = pool.tally("", TallyOptions { sum_bytes: true, ..TallyOptions::default() })?;
/// assert_eq!((tally.objects(), tally.bytes(), tally.groups.len()), (1, Some(5), 1));
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Tally {
    /// The groups, ordered by schema, then by values. Objects without an attribute are after those with it.
    pub groups: Vec<TallyGroup>,
    /// The number of objects of further groups.
    pub others: u64,
    /// The size of their payloads in bytes, if summed.
    pub other_bytes: Option<u64>,
    /// The number of visible objects that were not looked at: they match or not.
    pub newer: u64,
}

/// The objects of one schema with the same values.
///
/// ```
/// # use junctura::{Pool, TallyGroup, TallyOptions};
/// # fn main() -> junctura::Result<()> {
/// # let pool = Pool::builder().schema("free").open()?;
/// # pool.offer([("name", "a")], b"bytes")?;
/// let tally = pool.tally("", TallyOptions { by: &["name"], ..TallyOptions::default() })?;
/// let TallyGroup { values, objects, .. } = &tally.groups[0];
/// assert_eq!((values[0].as_deref(), *objects), (Some("a"), 1));
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct TallyGroup {
    /// Their schema.
    pub schema: Arc<Schema>,
    /// The value of each attribute of the tally; `None` if the objects do not have it.
    pub values: Vec<Option<String>>,
    /// The number of objects.
    pub objects: u64,
    /// The size of their payloads in bytes, if summed.
    pub bytes: Option<u64>,
}

impl Tally {
    /// Returns the number of objects of all groups.
    #[must_use]
    pub fn objects(&self) -> u64 {
        self.groups.iter().map(|group| group.objects).sum::<u64>() + self.others
    }

    /// Returns the size of their payloads in bytes, if summed.
    #[must_use]
    pub fn bytes(&self) -> Option<u64> {
        let of_groups: Option<u64> = self.groups.iter().map(|group| group.bytes).sum();
        Some(of_groups? + self.other_bytes?)
    }
}

impl Tally {
    /// Returns the attributes of the tally, of these names, that no counted object has; none if no object was counted.
    ///
    /// ```
    /// # use junctura::{Pool, TallyOptions};
    /// # fn main() -> junctura::Result<()> {
    /// let pool = Pool::builder().schema("free").open()?;
    /// pool.offer([("name", "a")], b"")?;
    /// let by = ["name", "nme"];
    /// let tally = pool.tally("", TallyOptions { by: &by, ..TallyOptions::default() })?;
    /// assert_eq!(tally.absent(&by).collect::<Vec<_>>(), ["nme"]);
    /// # Ok(())
    /// # }
    /// ```
    pub fn absent<'a>(&'a self, by: &'a [&'a str]) -> impl Iterator<Item = &'a str> {
        let is_absent = |at: usize| {
            self.groups
                .iter()
                .all(|group| group.values.get(at).is_some_and(Option::is_none))
        };
        let counted = !self.groups.is_empty() && self.others == 0;
        let names = by.iter().copied().enumerate();
        names
            .filter(move |&(at, _)| counted && is_absent(at))
            .map(|(_, name)| name)
    }
}

impl Pool {
    /// Counts the visible objects that match a selector, without listing them. Objects that only a store behind the
    /// pool has are not counted. Blocks until the server has answered.
    ///
    /// ```
    /// # use junctura::{Pool, TallyOptions};
    /// # fn main() -> junctura::Result<()> {
    /// let pool = Pool::builder().schema("free").open()?;
    /// for (space, name) in [("a", "x"), ("a", "y"), ("b", "x")] {
    ///     pool.offer([("space", space), ("name", name)], b"bytes")?;
    /// }
    /// assert_eq!(pool.tally("name=x", TallyOptions::default())?.objects(), 2);
    /// let by_space = pool.tally("", TallyOptions { by: &["space"], sum_bytes: true, ..TallyOptions::default() })?;
    /// let rows: Vec<_> = by_space.groups.iter().map(|group| (group.values[0].as_deref(), group.bytes)).collect();
    /// assert_eq!(rows, [(Some("a"), Some(10)), (Some("b"), Some(5))]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// `InvalidSelector`; `InvalidArgument` for an attribute that no schema of the pool has, for more than 8 attributes
    /// and for a limit out of range.
    pub fn tally(&self, selector: &str, options: TallyOptions<'_>) -> Result<Tally> {
        let tally = self.begin_tally(selector, options)?.wait()?;
        if tally.objects() == 0 {
            warn_of_mistakes(self, selector);
        }
        for name in tally.absent(options.by) {
            warn_of_mistakes(self, &format!("exists({name})"));
        }
        Ok(tally)
    }

    /// Non-blocking version of [`Pool::tally`]. See [`Pending`].
    ///
    /// ```
    /// # use junctura::{Pool, TallyOptions};
    /// # fn main() -> junctura::Result<()> {
    /// # let pool = Pool::builder().schema("free").open()?;
    /// let tally = pool.begin_tally("name=a", TallyOptions::default())?;
    /// assert_eq!(tally.wait()?.objects(), 0);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// Errors that this client detects; the server's errors arrive with the answer.
    pub fn begin_tally(&self, selector: &str, options: TallyOptions<'_>) -> Result<Pending<Tally>> {
        let request = Request::Tally(TallyRequest {
            selector: selector.into(),
            by: options.by.iter().map(|&name| name.into()).collect(),
            limit: options.limit,
            bytes: options.sum_bytes,
            filed_only: options.filed_only,
        });
        self.connection()?.pend(
            ExchangeKind::Once,
            &request,
            StreamStop::Cancel,
            |connection, _, said| match said {
                RequestOutcome::Letter(ServerMessage::Tallied(body)) => read(connection, &body),
                _ => Err(unexpected("no tally")),
            },
        )
    }
}

fn read(connection: &PoolConnection, body: &[u8]) -> Result<Tally> {
    let frame = WireFrame {
        kind: FrameKind::Tallied as u8,
        descriptors: 0,
        request: 0,
        body,
    };
    let Reply::Tallied(tallied) = Reply::decode(&frame)? else {
        return Err(unexpected("no tally"));
    };
    let group = |group: TalliedGroup<'_>| {
        Ok(TallyGroup {
            schema: Arc::clone(connection.known_schema(group.schema)?),
            values: group
                .values
                .into_iter()
                .map(|value| Some(value?.into_owned()))
                .collect(),
            objects: group.objects,
            bytes: group.bytes,
        })
    };
    Ok(Tally {
        groups: tallied.groups.into_iter().map(group).collect::<Result<_>>()?,
        others: tallied.others,
        other_bytes: tallied.other_bytes,
        newer: tallied.newer,
    })
}
