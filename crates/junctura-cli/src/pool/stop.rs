//! `junctura pool stop` shuts the server of a pool down in order.

use std::time::{Duration, Instant};

use clap::Args;
use junctura::{Code, Error, Pool, Result};
use junctura_terminal::interrupt::InterruptFlag;
use junctura_terminal::size;
use serde_json::Value;

use crate::absent::open_served;
use crate::url::PoolArguments;

const EXAMPLES: &str = "Examples:
  junctura pool stop                                when all objects that requirements are owed were received
  junctura pool stop --pool unix:mine --timeout 30s        after 30 seconds also without: unreceived objects are lost
  junctura pool stop --now";

/// Stop the server of a pool
///
/// The server refuses new offers and clients, and exits when everything that requirements are owed was received. Follows without
/// a requirement receive what is visible, as long as they release something at least every 10 s; what one that is slower misses is
/// reported (exit status 3). All objects in the memory of the server are lost then. The command waits for the exit; after Ctrl-C it
/// ends, and the server continues to drain. With --timeout or --now the server exits although objects were not received. To limit
/// only the wait of this command, use timeout(1).
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct StopArguments {
    #[command(flatten)]
    pool: PoolArguments,
    /// End the server after this time in any case, and report the objects that were not received (exit status 4; default: no limit)
    #[arg(long, value_name = "TIME", value_parser = size::parse_duration)]
    timeout: Option<Duration>,
    /// End the server at once, and report the objects that were not received
    #[arg(long, conflicts_with = "timeout")]
    now: bool,
}

/// Interval at which the command checks what the server waits for.
const PATIENCE: Duration = Duration::from_millis(500);

/// Runs the command.
pub(crate) fn run(arguments: &StopArguments) -> Result<()> {
    let interrupt = InterruptFlag::install()?;
    let deadline = arguments
        .timeout
        .and_then(|timeout| Instant::now().checked_add(timeout));
    let builder = interrupt.watch(arguments.pool.reader("junctura pool stop").visitor(true));
    let pool = open_served(&arguments.pool.pool, || arguments.pool.open_by(builder, deadline))?;
    let timeout = if arguments.now {
        Some(Duration::ZERO)
    } else {
        deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()))
    };
    match wait_for_the_end(&pool, timeout, arguments.timeout) {
        Err(left) if arguments.now && left.code() == Code::Timeout => say!("junctura: {}", lost(left.cause())),
        Err(left) if matches!(left.code(), Code::Timeout | Code::Gone) => {
            let limit = arguments.timeout.filter(|_| left.code() == Code::Timeout);
            let limit = limit.map_or_else(String::new, |limit| format!(" after {limit:?} (--timeout)"));
            let cause = format!("the server has ended{limit}, and {}", lost(left.cause()));
            return Err(Error::new(left.code(), pool.url(), cause));
        }
        ended => ended?,
    }
    say!("junctura: {} has ended", pool.url());
    Ok(())
}

/// Waits until the server has ended. Prints what the server waits for after [`PATIENCE`] and at each change.
fn wait_for_the_end(pool: &Pool, timeout: Option<Duration>, limit: Option<Duration>) -> Result<()> {
    let mut ended = pool.begin_stop(timeout)?;
    let mut reported = String::new();
    loop {
        if ended.wait_within(PATIENCE)?.is_some() {
            return Ok(());
        }
        // The server may exit before it answers; the next turn reports that.
        let Ok(stat) = pool.stat() else { continue };
        let left = yet_to_receive(&serde_json::from_str(&stat).unwrap_or_default());
        if left != reported && !left.is_empty() {
            let end = limit.map_or_else(String::new, |limit| {
                format!("after {limit:?} the server ends, and they are lost; ")
            });
            let url = pool.url();
            say!(
                "junctura: {url} drains until {left}; {end}`junctura get --all --requirement NAME` (or --group) receives them; --now ends it at once, and they are lost"
            );
            reported = left;
        }
    }
}

/// Returns what an error of a server that has ended states about unreceived objects: how many are lost, and for which clients.
fn lost(cause: &str) -> String {
    let left = cause.strip_prefix("ended before all was received; left: ");
    let counted = left.and_then(|left| left.split_once(", "));
    counted.map_or_else(
        || cause.to_owned(),
        |(count, clients)| {
            let (were, are) = if count == "1" {
                ("object was", "is")
            } else {
                ("objects were", "are")
            };
            format!("{count} {were} not received and {are} lost: {clients}")
        },
    )
}

/// Returns the objects that requirements are owed and follows have yet to receive, by the counters of a server; empty: none.
fn yet_to_receive(stat: &Value) -> String {
    let count = |one: &Value, name: &str| one[name].as_u64().unwrap_or_default();
    let mut named = 0;
    let mut left = Vec::new();
    for one in stat["named_requirements"].as_array().into_iter().flatten() {
        let owed = count(one, "owed");
        if owed == 0 {
            continue;
        }
        named += owed;
        let name = one["name"].as_str().unwrap_or_default();
        let group = &one["group"];
        left.push(if group.is_null() {
            let reader = if one["reader"].is_null() {
                " (no client reads it)"
            } else {
                ""
            };
            format!("{owed} for requirement {name}{reader}")
        } else {
            let members = if count(group, "member_count") == 0 {
                " (it has no members)"
            } else {
                ""
            };
            format!("{owed} for group {name}{members}")
        });
    }
    let total = count(&stat["interests"], "owed").max(named);
    if total > named {
        left.push(format!("{} for requirements without a name", total - named));
    }
    let undelivered = count(&stat["draining"], "undelivered");
    if undelivered > 0 {
        left.push(format!("{undelivered} for follows"));
    }
    let all = total + undelivered;
    if all == 0 {
        return String::new();
    }
    let s = if all == 1 { "" } else { "s" };
    format!("consumers have received {all} object{s}: {}", left.join(", "))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_requirements_are_owed_is_named() {
        let stat = json!({
            "interests": {"owed": 7},
            "draining": {"owed": 7, "undelivered": 4},
            "named_requirements": [
                {"name": "a", "owed": 0, "group": null, "reader": null},
                {"name": "b", "owed": 2, "group": null, "reader": {"pid": 1}},
                {"name": "c", "owed": 1, "group": null, "reader": null},
                {"name": "d", "owed": 3, "group": {"member_count": 0}, "reader": null},
            ],
        });
        assert_eq!(
            yet_to_receive(&stat),
            "consumers have received 11 objects: 2 for requirement b, 1 for requirement c (no client reads it), \
             3 for group d (it has no members), 1 for requirements without a name, 4 for follows"
        );
        assert_eq!(yet_to_receive(&Value::Null), "");
    }

    #[test]
    fn lost_objects_are_counted() {
        let cause =
            "ended before all was received; left: 2, a (pid 1 on h) follows \"\" (1); b (pid 2 on h) follows \"\" (1)";
        let expected = "2 objects were not received and are lost: a (pid 1 on h) follows \"\" (1); \
                        b (pid 2 on h) follows \"\" (1)";
        assert_eq!(lost(cause), expected);
        assert_eq!(lost("something else"), "something else");
    }
}
