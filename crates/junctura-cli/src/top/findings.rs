//! Findings: what of a pool's numbers needs attention, the worst first.

use std::time::Duration;

use junctura::board::BoardRequirement;
use junctura::{BoardCounter as Counter, BoardState};
use junctura_terminal::size;

use super::frame::{TopFrame, span};

/// Findings that are shown.
const SHOWN_MAX: usize = 7;
/// From this part of a limit on, it is near, in percent.
const NEAR_PERCENT: u64 = 90;
/// A reader that is owed something and releases nothing for so long has stopped.
const STOPPED: Duration = Duration::from_secs(30);

/// How bad a finding is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum AlarmLevel {
    Warn,
    Fail,
}

/// A number that needs attention.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct TopFinding {
    pub(super) level: AlarmLevel,
    /// A stable code.
    pub(super) code: &'static str,
    pub(super) text: String,
}

impl AlarmLevel {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Warn => "warn",
            Self::Fail => "fail",
        }
    }
}

impl TopFinding {
    fn warn(code: &'static str, text: String) -> Self {
        let level = AlarmLevel::Warn;
        Self { level, code, text }
    }

    fn fail(code: &'static str, text: String) -> Self {
        let level = AlarmLevel::Fail;
        Self { level, code, text }
    }
}

/// Returns what needs attention in a frame.
pub(super) fn findings(frame: &TopFrame) -> Vec<TopFinding> {
    let mut found = Vec::new();
    found.extend(server(frame));
    found.extend(memory(frame));
    found.extend(frame.now.requirements.iter().filter_map(requirement));
    found.extend(failures(frame));
    found.sort_by_key(|finding| std::cmp::Reverse(finding.level));
    found.truncate(SHOWN_MAX);
    found
}

fn server(frame: &TopFrame) -> Vec<TopFinding> {
    let mut found = Vec::new();
    if frame.now.head.state == BoardState::Ended {
        found.push(TopFinding::fail("ended", "the server has ended".to_owned()));
    } else if !frame.is_turning() {
        let text = format!(
            "the server has not turned for {}: it hangs, is stopped, or was killed",
            span(frame.turn_age)
        );
        found.push(TopFinding::fail("not_turning", text));
    }
    if !frame.now.is_consistent {
        let text = "the server was stopped while it wrote these numbers: they are of two moments".to_owned();
        found.push(TopFinding::warn("inconsistent", text));
    }
    if frame.now.head.state == BoardState::Draining {
        let owed = frame.counter(Counter::Owed);
        let text = format!("the server drains: it takes nothing new, and requirements are owed {owed} objects");
        found.push(TopFinding::warn("draining", text));
    }
    found
}

fn memory(frame: &TopFrame) -> Vec<TopFinding> {
    let mut found = Vec::new();
    let count = |counter| frame.counter(counter);
    let waiting = count(Counter::OffersWaiting) + count(Counter::LeasesWaiting);
    if waiting > 0 {
        let text =
            format!("{waiting} offers and leases wait for memory; junctura explain --memory states what keeps it");
        found.push(TopFinding::fail("waiting_for_memory", text));
    }
    let limits = [
        (
            "memory_near_limit",
            "payload memory",
            Counter::UsedBytes,
            Counter::BudgetBytes,
        ),
        (
            "records_near_limit",
            "memory of attributes",
            Counter::RecordBytes,
            Counter::RecordBudgetBytes,
        ),
        (
            "spill_near_limit",
            "the file tier",
            Counter::SpillUsedBytes,
            Counter::SpillLimitBytes,
        ),
    ];
    for (code, what, used, limit) in limits {
        let (used, limit) = (count(used), count(limit));
        let percent = used.saturating_mul(100).checked_div(limit).unwrap_or_default();
        if percent >= NEAR_PERCENT {
            let text = format!("{what} is filled to {percent} % of {}", size::bytes(limit));
            found.push(TopFinding::warn(code, text));
        }
    }
    found
}

fn requirement(one: &BoardRequirement) -> Option<TopFinding> {
    let name = junctura_terminal::visible::printable(&one.name);
    if one.is_broken {
        let text = format!("requirement {name} is broken: its readers miss {} objects", one.lost);
        return Some(TopFinding::fail("broken", text));
    }
    let owed_ns = one.oldest_owed_age_ns?;
    let idle_ns = one.last_release_age_ns.map_or(owed_ns, |idle| idle.min(owed_ns));
    let idle = Duration::from_nanos(idle_ns);
    (idle >= STOPPED).then(|| {
        let text = format!(
            "requirement {name} is owed {} objects, {}, and releases nothing for {}",
            one.owed,
            size::bytes(one.owed_bytes),
            span(idle)
        );
        TopFinding::warn("stopped", text)
    })
}

fn failures(frame: &TopFrame) -> Vec<TopFinding> {
    let mut found = Vec::new();
    let (failed, refused) = (frame.rate(Counter::Failed), frame.rate(Counter::SpillRefused));
    if refused > 0.0 {
        let text = "the disk of the file tier refuses payloads".to_owned();
        found.push(TopFinding::fail("spill_refused", text));
    }
    if failed >= 1.0 {
        found.push(TopFinding::warn(
            "errors",
            format!("{failed:.0} requests fail each second"),
        ));
    }
    found
}
