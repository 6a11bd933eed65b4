//! The server of a pool: whether it answers and turns, how near it is to its limits, and which clients are stuck.

use std::time::Duration;

use junctura::reasons::WaitingRequest;
use junctura::{Code, Error, Pool, PoolBoard, Result};
use junctura_terminal::size;
use rustix::time::{ClockId, clock_gettime};
use serde_json::Value;

use super::DoctorFinding;
use crate::absent::open_served;
use crate::pool::beside::within;
use crate::pool::explain::chains::WaitGraph;
use crate::top::alarms;

/// A server that does not answer in this time hangs.
const PATIENCE: Duration = Duration::from_secs(3);
/// Requests that are looked at.
const WAITS_MAX: usize = 10_000;
/// A request that waits for others so long is stuck.
const STUCK_MS: u64 = 60_000;
/// From this part of a limit on, it is near, in percent.
const NEAR_PERCENT: u64 = 80;
/// The wall clock may be corrected by so much.
const CLOCK_STEP_NS: u64 = 1_000_000_000;

/// The answers of a server.
struct ServerAnswers {
    route: String,
    stat: Value,
    waits: Vec<WaitingRequest>,
    board: Option<PoolBoard>,
}

/// Checks the server of a pool.
pub(super) fn findings(url: &str) -> Vec<DoctorFinding> {
    let given = url.to_owned();
    match within(PATIENCE, move || ask(&given)) {
        Ok(Some(answers)) => judge(&answers),
        Ok(None) => vec![silent(url)],
        Err(error) => vec![DoctorFinding::fail(
            "server",
            error.to_string(),
            "no program can use the pool",
            "start it (junctura pool serve --pool URL), or correct the address and the credentials",
        )],
    }
}

fn ask(url: &str) -> Result<ServerAnswers> {
    let builder = Pool::builder().url(url).name("junctura doctor").visitor(true);
    let pool = open_served(url, || builder.open())?;
    let stat =
        serde_json::from_str(&pool.stat()?).map_err(|error| Error::new(Code::Protocol, "stat", error.to_string()))?;
    let board = match pool.board() {
        Err(error) if error.code() == Code::Unsupported => None,
        board => Some(board?),
    };
    Ok(ServerAnswers {
        route: pool.route()?,
        stat,
        waits: pool.reasons().waits(WAITS_MAX)?,
        board,
    })
}

/// The finding about a server that does not answer.
fn silent(url: &str) -> DoctorFinding {
    let board = PoolBoard::of_silent_server(url).ok();
    let (who, age) = board.map_or((String::new(), String::new()), |board| {
        let age = board.turn_age().as_secs_f64();
        let pid = board.head().pid;
        (format!(" of process {pid}"), format!("; it last turned {age:.1} s ago"))
    });
    DoctorFinding::fail(
        "server",
        format!("the server{who} does not answer within {PATIENCE:?}{age}"),
        "all clients wait",
        "continue it, if it is stopped (kill -CONT PID); else end it (kill PID). junctura top shows its last numbers",
    )
}

fn judge(answers: &ServerAnswers) -> Vec<DoctorFinding> {
    let server = &answers.stat["server"];
    let pid = server["pid"].as_u64().unwrap_or_default();
    let mut found = vec![DoctorFinding::ok("server", format!("process {pid} answers"))];
    found.push(judge_version(server["version"].as_str()));
    found.push(DoctorFinding::ok("route", answers.route.clone()));
    match &answers.board {
        Some(board) => {
            found.push(judge_clock(board));
            found.extend(judge_board(board));
        }
        None => found.push(DoctorFinding::ok(
            "board",
            "not over a network; the counters of stat are used",
        )),
    }
    found.extend(judge_limits(&answers.stat));
    found.extend(judge_spill(&answers.stat["spill"]));
    found.extend(judge_waits(&answers.waits));
    found
}

fn judge_version(served: Option<&str>) -> DoctorFinding {
    const CHECK: &str = "server version";
    let own = env!("CARGO_PKG_VERSION");
    match served {
        Some(version) if version == own => DoctorFinding::ok(CHECK, version),
        other => DoctorFinding::warn(
            CHECK,
            format!(
                "the server has {}, this command {own}",
                other.unwrap_or("an earlier one")
            ),
            "the board and reasons of another version may not be readable",
            "use the command of the same installation, or restart the server",
        ),
    }
}

/// Compares the distance of the clocks with that at the start of the server.
fn judge_clock(board: &PoolBoard) -> DoctorFinding {
    let head = board.head();
    let distance = |wall: u64, monotonic: u64| i128::from(wall) - i128::from(monotonic);
    let now = distance(clock_ns(ClockId::Realtime), clock_ns(ClockId::Monotonic));
    judge_step(now - distance(head.started_wall_ns, head.started_ns))
}

fn judge_step(step_ns: i128) -> DoctorFinding {
    const CHECK: &str = "wall clock";
    if step_ns.unsigned_abs() <= u128::from(CLOCK_STEP_NS) {
        return DoctorFinding::ok(CHECK, "not changed since the server started");
    }
    DoctorFinding::warn(
        CHECK,
        format!("changed by {:.1} s since the server started", step_ns as f64 / 1e9),
        "times in logs and in tokens differ from those of other machines; the pool itself uses another clock",
        "check the time service of this machine (chronyc tracking, timedatectl)",
    )
}

fn clock_ns(clock: ClockId) -> u64 {
    let time = clock_gettime(clock);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// The findings in the numbers of the board.
fn judge_board(board: &PoolBoard) -> Vec<DoctorFinding> {
    let alarms = alarms(board);
    if alarms.is_empty() {
        return vec![DoctorFinding::ok("pool", "nothing needs attention")];
    }
    let findings = alarms.into_iter().map(|alarm| {
        let (consequence, remedy) = advice(alarm.code);
        if alarm.is_failure {
            DoctorFinding::fail("pool", alarm.text, consequence, remedy)
        } else {
            DoctorFinding::warn("pool", alarm.text, consequence, remedy)
        }
    });
    findings.collect()
}

/// The consequence of an alarm, and its remedy.
fn advice(code: &str) -> (&'static str, &'static str) {
    match code {
        "not_turning" | "ended" | "inconsistent" => ("all clients wait", "continue or restart the server"),
        "draining" => (
            "new offers fail",
            "let the readers receive what they are owed, or end it with junctura pool stop --now",
        ),
        "waiting_for_memory" | "memory_near_limit" => (
            "producers wait for memory",
            "junctura explain --memory states what keeps it; start or repair the readers, or serve with a larger --budget or with --spill",
        ),
        "records_near_limit" => (
            "offers wait although payload memory is free",
            "withdraw objects, or offer fewer and larger ones",
        ),
        "spill_near_limit" | "spill_refused" => (
            "producers wait when memory is full",
            "free the disk, or serve with a larger --spill-size",
        ),
        "broken" => (
            "its readers miss objects, which they receive as gaps",
            "repair the reader; junctura pool require with a larger --quota or --stuck-after",
        ),
        "stopped" => (
            "objects are kept for it, and memory fills",
            "restart the reader, or end the requirement: junctura pool retract NAME",
        ),
        _ => (
            "requests of clients fail",
            "look at the messages of the clients; junctura explain",
        ),
    }
}

fn judge_limits(stat: &Value) -> Vec<DoctorFinding> {
    let number = |value: &Value| value.as_u64().unwrap_or_default();
    let limits = &stat["limits"];
    let used = [
        ("clients", &stat["clients_connected"], &limits["clients"]),
        ("objects", &stat["objects"]["visible"], &limits["objects"]),
        (
            "named requirements",
            &stat["interests"]["named"],
            &limits["named_requirements"],
        ),
        ("objects owed", &stat["interests"]["owed"], &limits["owed"]),
        ("open bundles", &stat["bundles"]["open"], &limits["bundles_open"]),
    ];
    let near = used.into_iter().filter_map(|(what, used, limit)| {
        let (used, limit) = (number(used), number(limit));
        let percent = used.saturating_mul(100).checked_div(limit)?;
        (percent >= NEAR_PERCENT).then(|| {
            DoctorFinding::warn(
                "limits",
                format!("{used} of {limit} {what}"),
                "requests beyond the limit fail with LimitExceeded or wait",
                "end what is not used any more; docs/guide/operations.md lists the limits",
            )
        })
    });
    let mut found: Vec<DoctorFinding> = near.collect();
    if found.is_empty() {
        found.push(DoctorFinding::ok("limits", "none is near"));
    }
    found
}

/// Compares what the file tier may still take with what its disk has.
fn judge_spill(spill: &Value) -> Option<DoctorFinding> {
    const CHECK: &str = "spill disk";
    let directory = spill["directory"].as_str()?;
    let number = |name: &str| spill[name].as_u64().unwrap_or_default();
    let wanted = number("limit_bytes").saturating_sub(number("used_bytes"));
    let Ok(disk) = rustix::fs::statvfs(directory) else {
        return Some(DoctorFinding::ok(
            CHECK,
            format!("{directory} is not visible to this process"),
        ));
    };
    let free = disk.f_bavail.saturating_mul(disk.f_frsize);
    let found = format!(
        "{directory}: {} free, {} may still be used",
        size::bytes(free),
        size::bytes(wanted)
    );
    if free >= wanted {
        return Some(DoctorFinding::ok(CHECK, found));
    }
    let remedy = "free the disk, or serve with a smaller --spill-size";
    Some(DoctorFinding::warn(
        CHECK,
        found,
        "the disk is full before the file tier is",
        remedy,
    ))
}

/// Which requests are stuck. A demand for an object that is not offered yet is not.
fn judge_waits(waits: &[WaitingRequest]) -> Vec<DoctorFinding> {
    const CHECK: &str = "waits";
    let is_stuck = |request: &&WaitingRequest| {
        request.because != "nothing_matches" && request.waits_ms.unwrap_or_default() >= STUCK_MS
    };
    let stuck: Vec<&WaitingRequest> = waits.iter().filter(is_stuck).collect();
    let mut found = Vec::new();
    if let Some(longest) = stuck.iter().max_by_key(|request| request.waits_ms) {
        let text = format!(
            "{} requests have waited for a minute or more; {} of {} for {} s",
            stuck.len(),
            longest.kind,
            longest.client.name,
            longest.waits_ms.unwrap_or_default() / 1000
        );
        found.push(DoctorFinding::warn(
            CHECK,
            text,
            "these clients make no progress",
            "junctura explain states what each waits for",
        ));
    }
    let graph = WaitGraph::new(waits.to_vec());
    for cycle in graph.cycles() {
        let names: Vec<&str> = cycle.iter().map(|client| client.name.as_str()).collect();
        found.push(DoctorFinding::fail(
            CHECK,
            format!("{} wait for each other", names.join(", ")),
            "none of them makes progress",
            "junctura explain shows the cycle; end one of them, or change the order of its requests",
        ));
    }
    if found.is_empty() {
        found.push(DoctorFinding::ok(
            CHECK,
            format!("{} requests wait, none is stuck", waits.len()),
        ));
    }
    found
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::FindingLevel::{Fail, Ok, Warn};
    use super::super::testing::levels;
    use super::*;

    #[test]
    fn an_embedded_pool_is_in_order() {
        let pool = Pool::builder().schema("free").open().unwrap();
        let found = findings(pool.url());
        assert!(levels(&found).iter().all(|&level| level == Ok), "{found:?}");
        let missing = findings("unix:@no-server-listens-here");
        assert_eq!(levels(&missing), [Fail]);
    }

    #[test]
    fn limits_and_versions_are_compared() {
        let stat = |clients: u64| json!({"clients_connected": clients, "limits": {"clients": 100}});
        assert_eq!(levels(&judge_limits(&stat(79))), [Ok]);
        assert_eq!(levels(&judge_limits(&stat(80))), [Warn]);
        assert_eq!(levels(&[judge_version(Some(env!("CARGO_PKG_VERSION")))]), [Ok]);
        assert_eq!(
            levels(&[judge_version(Some("0.0.1")), judge_version(None)]),
            [Warn, Warn]
        );
        assert_eq!(
            levels(&[judge_step(999_999_999), judge_step(-2_000_000_000)]),
            [Ok, Warn]
        );
        let spill = |limit: u64| json!({"directory": "/", "limit_bytes": limit, "used_bytes": 0});
        assert_eq!(
            levels(&[judge_spill(&spill(1)).unwrap(), judge_spill(&spill(u64::MAX)).unwrap()]),
            [Ok, Warn]
        );
        assert!(judge_spill(&Value::Null).is_none());
    }

    #[test]
    fn a_demand_for_the_future_is_not_stuck() {
        let request = |because: &str, waits_ms| WaitingRequest {
            because: because.to_owned(),
            waits_ms: Some(waits_ms),
            ..WaitingRequest::default()
        };
        assert_eq!(
            levels(&judge_waits(&[
                request("nothing_matches", 100_000),
                request("memory", 59_999)
            ])),
            [Ok]
        );
        assert_eq!(levels(&judge_waits(&[request("memory", 60_000)])), [Warn]);
    }

    #[test]
    fn every_alarm_has_advice() {
        for code in [
            "not_turning",
            "broken",
            "stopped",
            "errors",
            "spill_refused",
            "draining",
        ] {
            let (consequence, remedy) = advice(code);
            assert!(!consequence.is_empty() && !remedy.is_empty());
        }
    }
}
