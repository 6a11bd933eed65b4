//! Follows the commits of a store: the loop of all commands that do so.

use std::time::{Duration, Instant};

use junctura::{Code, Error, Result};
use junctura_store::{Listing, Store, StoredObject};
use junctura_terminal::interrupt::InterruptFlag;

use crate::attributes::about_selector;

/// The end of a follow.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FollowEnd {
    /// A number of objects.
    pub(crate) count: Option<u64>,
    /// A time: a normal end if no count was requested.
    pub(crate) deadline: Option<Instant>,
}

impl FollowEnd {
    /// Returns the end for a number of objects, or a time from now on.
    pub(crate) fn new(count: Option<u64>, timeout: Option<Duration>) -> Self {
        let deadline = timeout.and_then(|timeout| Instant::now().checked_add(timeout));
        Self { count, deadline }
    }
}

/// Delivers existing objects, or those after a commit, and then new ones.
///
/// # Errors
/// `Timeout` if the count was not reached in time; errors of a follow and of `take`.
pub(crate) fn follow(
    store: &Store,
    selector: &str,
    after: Option<u64>,
    until: FollowEnd,
    interrupt: &InterruptFlag,
    mut take: impl FnMut(FollowedStep<'_>) -> Result<()>,
) -> Result<()> {
    let mut left = until.count.unwrap_or(u64::MAX);
    let mut follow = store.follow(selector, after);
    let is_time = || until.deadline.is_some_and(|deadline| Instant::now() >= deadline);
    let mut is_first = true;
    while left > 0 && (is_first || until.count.is_some() || !is_time()) {
        is_first = false;
        take(FollowedStep::Wait)?;
        let timeout = until
            .deadline
            .map(|deadline| deadline.saturating_duration_since(Instant::now()));
        let new = follow.next_within(timeout, || interrupt.check());
        let Some(listing) = about_selector(new, selector)? else {
            if until.count.is_none() {
                break;
            }
            let cause = format!("{left} more were expected");
            return Err(Error::new(Code::Timeout, selector, cause));
        };
        let wanted: Vec<StoredObject<'_>> = listing
            .iter()
            .take(usize::try_from(left).unwrap_or(usize::MAX))
            .collect();
        left -= wanted.len() as u64;
        take(FollowedStep::New(&listing, &wanted))?;
    }
    take(FollowedStep::Wait)
}

/// An event of a follow.
pub(crate) enum FollowedStep<'a> {
    /// The follow waits or ends: output is flushed.
    Wait,
    /// These objects of the listing are new.
    New(&'a Listing, &'a [StoredObject<'a>]),
}
