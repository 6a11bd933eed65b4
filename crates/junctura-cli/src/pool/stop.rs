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
/// a requirement receive what is visible, as long as they release something at least every 10 s. All objects in the memory of the
/// server are lost then. The command waits for the exit; after Ctrl-C it ends, and the server continues to drain.
/// With --timeout or --now the server exits although objects were not received. To limit only the wait of this command, use
/// timeout(1).
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
        Err(left) if arguments.now && left.code() == Code::Timeout => say!("junctura: {}", left.cause()),
        Err(left) if left.code() == Code::Timeout => {
            let limit = arguments
                .timeout
                .map_or_else(String::new, |limit| format!(" at the end of {limit:?} (--timeout)"));
            let cause = left.cause();
            let left_over = cause.strip_prefix("ended before all was received; ").unwrap_or(cause);
            let cause =
                format!("the server has ended{limit}, and objects that were not received are lost; {left_over}");
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
        let left = still_owed(&serde_json::from_str(&stat).unwrap_or_default());
        if left != reported && !left.is_empty() {
            let end = limit.map_or_else(String::new, |limit| {
                format!("; after {limit:?} it ends, and these objects are lost")
            });
            say!(
                "junctura: {} drains, and waits until consumers have released {left}{end}; --now ends it",
                pool.url()
            );
            reported = left;
        }
    }
}

/// Returns the objects that requirements are owed and follows have yet to receive, by the counters of a server; empty: none.
fn still_owed(stat: &Value) -> String {
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
                ", which nothing reads"
            } else {
                ""
            };
            format!("{owed} of requirement {name}{reader}")
        } else {
            let members = if count(group, "member_count") == 0 {
                ", which has no members"
            } else {
                ""
            };
            format!("{owed} of group {name}{members}")
        });
    }
    let unnamed = count(&stat["interests"], "owed").saturating_sub(named);
    if unnamed > 0 {
        left.push(format!("{unnamed} of requirements without a name"));
    }
    let undelivered = count(&stat["draining"], "undelivered");
    if undelivered > 0 {
        left.push(format!("{undelivered} of follows"));
    }
    left.join(", ")
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
            still_owed(&stat),
            "2 of requirement b, 1 of requirement c, which nothing reads, 3 of group d, which has no members, \
             1 of requirements without a name, 4 of follows"
        );
        assert_eq!(still_owed(&Value::Null), "");
    }
}
