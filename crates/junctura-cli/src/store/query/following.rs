//! Objects of a store as they are committed: the loop of all commands that follow one.

use std::time::{Duration, Instant};

use junctura::{Code, Error, Result};
use junctura_store::{Listing, Store, StoredObject};
use junctura_terminal::interrupt::InterruptFlag;

use crate::attributes::about_selector;

/// What ends it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FollowEnd {
    /// So many objects.
    pub(crate) count: Option<u64>,
    /// This moment: it is a good end where no count is asked for.
    pub(crate) deadline: Option<Instant>,
}

impl FollowEnd {
    /// So many objects, or a time from now on.
    pub(crate) fn new(count: Option<u64>, timeout: Option<Duration>) -> Self {
        let deadline = timeout.and_then(|timeout| Instant::now().checked_add(timeout));
        Self { count, deadline }
    }
}

/// Tells what is there, or what came after a commit, and then what comes.
///
/// # Errors
/// `Timeout` when the count was not reached in time; those of a follow, and what `take` says.
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
            let cause = format!("{left} more were to come");
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

/// What happens in a follow.
pub(crate) enum FollowedStep<'a> {
    /// It waits, or ends: what was written is not kept back.
    Wait,
    /// These objects of this listing are new.
    New(&'a Listing, &'a [StoredObject<'a>]),
}
