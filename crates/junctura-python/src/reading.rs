//! What a pool keeps for its readers, and how they follow it.

use junctura::{FollowOptions, Group, RequireOptions, Versions};
use pyo3::prelude::*;

use crate::error::{OrRaise, invalid};
use crate::follow::{FollowArguments, PyFollow};
use crate::options::{size as read_size, timeout as read_timeout};
use crate::pool::PyPool;
use crate::require::{PyRequirement, on_full as read_on_full, options as require_options};

#[pymethods]
impl PyPool {
    /// Everything that matches a selector: what is there, then what comes, each version of each object once.
    ///
    /// Parameters
    /// ----------
    /// selector : str, optional
    ///     The empty one, and none, match everything. With `group`, none joins what stands.
    /// window : int, optional
    ///     How many objects of it may be held or on their way at once: who keeps so many gets no more until some are released.
    ///     By default 256, and 8 for a member of a group, since what is on its way to one is kept from the others.
    /// order_by : str, optional
    ///     The attribute by which what is there is ordered; by default the key.
    /// cursor : str, optional
    ///     Goes on after the object whose `cursor` this is.
    /// only_new : bool
    ///     Whether to leave out what is there.
    /// until_live : bool
    ///     Whether to end when the follow has caught up: when all has been given that was there, or came since `cursor`, and what
    ///     came while that was given. What a newer version replaces after that moment, before its turn, is a gap. In a group: when
    ///     all that is there has been given, to whichever member.
    /// gaps : "raise", "yield" or "ignore"
    ///     What to do where objects went before they could be given: raise `Gone` (with the `Gap` as its `gap`; the follow
    ///     goes on when it is asked again), give the `Gap`, or nothing.
    /// live : "ignore" or "yield"
    ///     Whether to give `Live` between what was there and what comes.
    /// group : str, optional
    ///     The name of a consumer group: the follow is a member, and the members share what matches, each object to one of
    ///     them at a time. The group is made if it does not stand, and outlives its members: what matches, from then on, stays
    ///     until a member released it. An object is done when it is released. What a member had when it died goes to another,
    ///     marked (`Object.redelivered`), and so does what a `with obj:` left by an exception.
    /// versions, time_to_live
    ///     Of a group that is made, as `Pool.require`; a group that stands on other terms is a `Conflict`.
    /// requirement : str, optional
    ///     The name of a requirement: the follow gives all that it is owed, oldest first, then what it will be owed. It has no
    ///     selector of its own. One follow reads a requirement at a time.
    ///
    /// Returns
    /// -------
    /// Follow
    ///
    /// Raises
    /// ------
    /// InvalidSelector
    ///     Pointing at the character.
    /// NotFound
    ///     There is no requirement, or no group, of this name.
    /// Conflict
    ///     Another follow reads the requirement, or the group stands on other terms.
    /// Expired
    ///     The cursor is of another life of the server.
    ///
    /// Examples
    /// --------
    /// >>> with junctura.Pool(schema="free") as pool:
    /// ...     for name in "abc":
    /// ...         version = pool.offer(b"payload", name=name)
    /// ...     for obj in pool.follow("name=a/c", until_live=True):
    /// ...         print(obj["name"])
    /// a
    /// c
    ///
    /// >>> with junctura.Pool(schema="free") as pool:
    /// ...     one, two = (pool.follow("", group="workers") for _ in range(2))
    /// ...     version = pool.offer(b"payload", name="job")
    /// ...     with one.next() as obj:
    /// ...         print(obj["name"], obj.redelivered)
    /// ...     pool.retract("workers")
    /// job False
    /// 0
    #[pyo3(signature = (selector=None, *, window=None, order_by=None, cursor=None, only_new=false, until_live=false, gaps="raise", live="ignore", group=None, requirement=None, versions="all", time_to_live=None))]
    #[allow(
        clippy::too_many_arguments,
        clippy::fn_params_excessive_bools,
        reason = "keyword arguments of Python"
    )]
    fn follow(
        &self,
        py: Python<'_>,
        selector: Option<&str>,
        window: Option<u32>,
        order_by: Option<String>,
        cursor: Option<String>,
        only_new: bool,
        until_live: bool,
        gaps: &str,
        live: &str,
        group: Option<String>,
        requirement: Option<String>,
        versions: &str,
        time_to_live: Option<f64>,
    ) -> PyResult<PyFollow> {
        let (group, joins) = group_of(py, selector, group, versions, time_to_live)?;
        let options = FollowOptions {
            window,
            order_by,
            cursor,
            only_new,
            until_live,
            requirement,
            group,
        };
        let selector = selector.unwrap_or_default();
        PyFollow::new(
            py,
            FollowArguments { options, gaps, live },
            |options| match &joins {
                Some(group) => self.inner.join_with(group, options),
                None => self.inner.follow_with(selector, options),
            },
            selector,
        )
    }

    /// Says early what will be wanted: what matches, from now on, stays until it was received through the requirement and
    /// released.
    ///
    /// Parameters
    /// ----------
    /// selector : str
    /// name : str, optional
    ///     For a requirement that outlives its client: it stands until it is retracted, or until its time to live is over. The
    ///     same name and terms again join it. What a client that died had received through it and not released is owed again.
    /// time_to_live : float, optional
    ///     For one with a name: seconds that it stands while no client uses it (has it as a `Requirement`, follows or waits
    ///     through it, or holds what came through it). None: until it is retracted.
    /// versions : "all" or "newest"
    ///     Whether every version of each object is kept, or one until a newer one comes.
    /// group : bool
    ///     Whether one with a name is a consumer group, before there is any member: see `Pool.follow`.
    /// on_full : "wait" or "break"
    ///     When there is no room for what it keeps: offers wait for its readers, or it is broken, and they are told in a gap.
    /// quota : int or str, optional
    ///     With "break": bytes, or a text such as "2GiB", that it may keep though nothing else keeps them. None: any, until somebody waits for memory.
    /// stuck_after : float, optional
    ///     Seconds that its readers may release nothing while others wait, before it is broken. None: as the pool says (60).
    ///
    /// Returns
    /// -------
    /// Requirement
    ///
    /// Raises
    /// ------
    /// InvalidSelector
    ///     Pointing at the character.
    /// Conflict
    ///     The name stands on other terms, or for a group where none is meant.
    /// LimitExceeded
    ///     The pool has as many with a name as it keeps.
    ///
    /// Examples
    /// --------
    /// >>> with junctura.Pool(schema="free") as pool:
    /// ...     with pool.require("name=a/b", name="archive", time_to_live=3600.0):
    /// ...         version = pool.offer(b"payload", name="a")
    /// ...     with pool.follow(requirement="archive", until_live=True) as follow:
    /// ...         print([obj["name"] for obj in follow])
    /// ...     pool.retract("archive")
    /// ['a']
    /// 0
    #[pyo3(signature = (selector, *, name=None, time_to_live=None, versions="all", group=false, on_full="wait", quota=None, stuck_after=None))]
    #[expect(clippy::too_many_arguments, reason = "Python names them")]
    fn require(
        &self,
        py: Python<'_>,
        selector: &str,
        name: Option<String>,
        time_to_live: Option<f64>,
        versions: &str,
        group: bool,
        on_full: &str,
        quota: Option<&Bound<'_, PyAny>>,
        stuck_after: Option<f64>,
    ) -> PyResult<PyRequirement> {
        let options = require_terms(py, (name, time_to_live, versions), group, (on_full, quota), stuck_after)?;
        py.detach(|| self.inner.require_with(selector, options))
            .or_raise_about(py, selector)
            .map(PyRequirement::new)
    }

    /// Ends a requirement that has a name, whoever made it: what only it kept may go, and its reader's follow ends.
    ///
    /// Parameters
    /// ----------
    /// name : str
    ///
    /// Returns
    /// -------
    /// int
    ///     How many objects it was still owed.
    ///
    /// Raises
    /// ------
    /// NotFound
    ///     There is none of this name.
    fn retract(&self, py: Python<'_>, name: &str) -> PyResult<u64> {
        py.detach(|| self.inner.retract(name)).or_raise(py)
    }
}

/// The group that a follow is a member of: one that is made, or the name of one that stands.
pub(crate) fn group_of(
    py: Python<'_>,
    selector: Option<&str>,
    group: Option<String>,
    versions: &str,
    time_to_live: Option<f64>,
) -> PyResult<(Option<Group>, Option<String>)> {
    let terms = require_options(py, group, time_to_live, versions)?;
    let is_on_terms = time_to_live.is_some() || terms.versions != Versions::All;
    let joins = terms.name.clone().filter(|_| selector.is_none());
    if is_on_terms && (joins.is_some() || terms.name.is_none()) {
        let cause = "versions and time_to_live are those of a group that is made: with group and a selector";
        return Err(invalid(py, "follow", cause));
    }
    let group = terms.name.filter(|_| joins.is_none()).map(|name| Group {
        name,
        versions: terms.versions,
        time_to_live: terms.time_to_live,
    });
    Ok((group, joins))
}

/// The terms of a requirement.
pub(crate) fn require_terms(
    py: Python<'_>,
    (name, time_to_live, versions): (Option<String>, Option<f64>, &str),
    group: bool,
    (on_full, quota): (&str, Option<&Bound<'_, PyAny>>),
    stuck_after: Option<f64>,
) -> PyResult<RequireOptions> {
    Ok(RequireOptions {
        group,
        on_full: read_on_full(py, on_full, quota.map(read_size).transpose()?)?,
        stuck_after: read_timeout(py, stuck_after)?,
        ..require_options(py, name, time_to_live, versions)?
    })
}
