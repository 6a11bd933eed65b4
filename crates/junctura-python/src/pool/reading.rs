//! Retention of objects for readers, and follows.

use junctura::{FollowOptions, Group, RequireOptions, Versions};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::conversion::keywords::refuse_unknown;
use crate::conversion::options::{size as read_size, timeout as read_timeout};
use crate::handles::follow::{FollowArguments, PyFollow};
use crate::handles::require::{PyRequirement, on_full as read_on_full, options as require_options};
use crate::pool::PyPool;
use crate::runtime::error::{OrRaise, invalid};

#[pymethods]
impl PyPool {
    /// Delivers every object that matches a selector: the existing ones, then new ones; each version of each object
    /// once.
    ///
    /// Parameters
    /// ----------
    /// selector : str, optional
    ///     An empty selector, or none, matches every object. With `group`, no selector joins the existing group.
    /// window : int, optional
    ///     Flow control: how many of its objects may be held or in flight at once. A reader that holds that many
    ///     receives no more until it releases some. Default: 256, and 8 for a member of a group, since objects in
    ///     flight to one member are not available to the others.
    /// order_by : str, optional
    ///     The attribute that orders the existing objects; defaults to the key.
    /// cursor : str, optional
    ///     Continues after the object whose `cursor` this is.
    /// only_new : bool
    ///     Whether to skip existing objects.
    /// until_live : bool
    ///     Whether to end when the follow has caught up: when it has delivered every object that existed, or was
    ///     offered since `cursor`, and those that were offered in the meantime. An object that a newer version replaces
    ///     after that moment and before its delivery is a gap. In a group: when every existing object has been
    ///     delivered, to any member.
    /// gaps : "raise", "yield" or "ignore"
    ///     How to report objects that were removed before they could be delivered: raise `Gone` (with the `Gap` as its
    ///     `gap`; the next call continues the follow), yield the `Gap`, or ignore it.
    /// live : "ignore" or "yield"
    ///     Whether to yield `Live` between the existing objects and the new ones.
    /// group : str, optional
    ///     The name of a consumer group. The follow becomes a member, and the members share the matching objects: each
    ///     object is delivered to one member at a time (at-least-once delivery, completed once). The group is created
    ///     if it does not exist, and outlives its members: from then on, matching objects are retained until a member
    ///     has released them. Releasing an object completes it. Objects that a member held when it disconnected, or
    ///     that a `with obj:` block gave back after an exception, are redelivered to another member and marked
    ///     (`Object.redelivered`).
    /// versions, time_to_live
    ///     For a group that is created, as for `Pool.require`; an existing group with different terms is a `Conflict`.
    /// requirement : str, optional
    ///     The name of a requirement. The follow delivers every object that the requirement retains, oldest first, then
    ///     new ones. It has no selector of its own. One follow reads a requirement at a time.
    ///
    /// Returns
    /// -------
    /// Follow
    ///
    /// Raises
    /// ------
    /// InvalidSelector
    ///     The selector is invalid; the error gives the position.
    /// NotFound
    ///     No requirement, or no group, has this name.
    /// Conflict
    ///     Another follow reads the requirement, or the group has different terms.
    /// Expired
    ///     The cursor is from another incarnation of the server.
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
    #[pyo3(signature = (selector=None, *, window=None, order_by=None, cursor=None, only_new=false, until_live=false, gaps="raise", live="ignore", group=None, requirement=None, versions="all", time_to_live=None, **unknown), text_signature = "($self, selector=None, *, window=None, order_by=None, cursor=None, only_new=False, until_live=False, gaps='raise', live='ignore', group=None, requirement=None, versions='all', time_to_live=None)")]
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
        unknown: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<PyFollow> {
        refuse_unknown(py, "Pool.follow", unknown)?;
        let (group, join) = group_of(py, selector, group, versions, time_to_live)?;
        let options = FollowOptions {
            window,
            order_by,
            cursor,
            only_new,
            until_live,
            requirement,
            group,
            join,
        };
        let selector = selector.unwrap_or_default();
        let follow = PyFollow::new(
            py,
            FollowArguments { options, gaps, live },
            |options| self.inner.follow_with(selector, options),
            selector,
        )?;
        self.warn_of_mistakes(py, selector)?;
        Ok(follow)
    }

    /// Registers interest in advance: from now on, every matching object is retained until it has been received through
    /// the requirement and released.
    ///
    /// Parameters
    /// ----------
    /// selector : str
    /// name : str, optional
    ///     For a requirement that outlives its client: it exists until it is retracted, or until its time to live
    ///     expires. Creating it again with the same terms joins it. Objects that a disconnected client had received
    ///     through it and not released are redelivered.
    /// time_to_live : float, optional
    ///     For a named requirement: seconds that it exists while no client uses it (has it as a `Requirement`, follows
    ///     or waits through it, or holds objects received through it). None: until it is retracted.
    /// versions : "all" or "newest"
    ///     Whether every version of each object is retained, or only the newest.
    /// group : bool
    ///     Whether a named requirement is a consumer group, before it has any member: see `Pool.follow`.
    /// on_full : "wait" or "break"
    ///     Backpressure policy when there is no memory for the objects it retains: offers block until its readers
    ///     release some, or the requirement is broken and its readers receive a gap.
    /// quota : int or str, optional
    ///     With "break": bytes, or a text such as "2GiB", of objects that only this requirement retains. None: no
    ///     limit, until an offer waits for memory.
    /// stuck_after : float, optional
    ///     Seconds without a release by its readers, while offers wait, before it is broken. None: the default of the
    ///     pool (60).
    ///
    /// Returns
    /// -------
    /// Requirement
    ///
    /// Raises
    /// ------
    /// InvalidSelector
    ///     The selector is invalid; the error gives the position.
    /// Conflict
    ///     The name exists with different terms, or is a group although none is requested, or the reverse.
    /// LimitExceeded
    ///     The pool has reached its limit of named requirements.
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
    #[pyo3(signature = (selector, *, name=None, time_to_live=None, versions="all", group=false, on_full="wait", quota=None, stuck_after=None, **unknown), text_signature = "($self, selector, *, name=None, time_to_live=None, versions='all', group=False, on_full='wait', quota=None, stuck_after=None)")]
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
        unknown: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<PyRequirement> {
        refuse_unknown(py, "Pool.require", unknown)?;
        let options = require_terms(py, (name, time_to_live, versions), group, (on_full, quota), stuck_after)?;
        let requirement = py
            .detach(|| self.inner.require_with(selector, options))
            .or_raise_about(py, selector)?;
        self.warn_of_mistakes(py, selector)?;
        Ok(PyRequirement::new(requirement))
    }

    /// Retracts a named requirement, regardless of its creator: objects that only it retained may be removed, and its
    /// reader's follow ends.
    ///
    /// Parameters
    /// ----------
    /// name : str
    ///
    /// Returns
    /// -------
    /// int
    ///     Number of objects that it still retained.
    ///
    /// Raises
    /// ------
    /// NotFound
    ///     No requirement has this name.
    fn retract(&self, py: Python<'_>, name: &str) -> PyResult<u64> {
        py.detach(|| self.inner.retract(name)).or_raise(py)
    }
}

/// The group of a follow: one to create, or the name of an existing one.
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
