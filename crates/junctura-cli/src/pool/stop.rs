//! `junctura pool stop`: the server of a pool ends, in good order.

use std::time::Duration;

use clap::Args;
use junctura::{Code, Pool, Result};
use junctura_terminal::interrupt::InterruptFlag;
use junctura_terminal::size;
use serde_json::Value;

use crate::url::PoolArguments;

const EXAMPLES: &str = "Examples:
  junctura pool stop                                when all that was promised has been received
  junctura pool stop --pool unix:mine --timeout 30s        but not later than this
  junctura pool stop --now";

/// Stop the server of a pool
///
/// It takes nothing new (no offers, no clients), and ends when everything that requirements are owed was received. What its
/// memory held is gone then. Waits for the end; Ctrl-C ends the waiting, but the server goes on to its end.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct StopArguments {
    #[command(flatten)]
    pool: PoolArguments,
    /// End it after this time anyway, and say what was left (exit status 4; default: as long as it takes)
    #[arg(long, value_name = "TIME", value_parser = size::parse_duration)]
    timeout: Option<Duration>,
    /// End it at once, and say what was left
    #[arg(long, conflicts_with = "timeout")]
    now: bool,
}

/// After this long, and then as often, a command looks what the server waits for.
const PATIENCE: Duration = Duration::from_millis(500);

/// Stops.
pub(crate) fn run(arguments: &StopArguments) -> Result<()> {
    let interrupt = InterruptFlag::install()?;
    let builder = arguments.pool.reader("junctura pool stop").visitor(true);
    let pool = interrupt.watch(builder).open()?;
    let timeout = if arguments.now {
        Some(Duration::ZERO)
    } else {
        arguments.timeout
    };
    match wait_for_the_end(&pool, timeout) {
        Err(left) if arguments.now && left.code() == Code::Timeout => say!("junctura: {}", left.cause()),
        ended => ended?,
    }
    say!("junctura: {} has ended", pool.url());
    Ok(())
}

/// Waits until the server has ended, and prints what it waits for after [`PATIENCE`] and at each change.
fn wait_for_the_end(pool: &Pool, timeout: Option<Duration>) -> Result<()> {
    let mut ended = pool.begin_stop(timeout)?;
    let mut reported = String::new();
    loop {
        if ended.wait_within(PATIENCE)?.is_some() {
            return Ok(());
        }
        // The server may end before it answers; the next turn reports that.
        let Ok(stat) = pool.stat() else { continue };
        let left = still_owed(&serde_json::from_str(&stat).unwrap_or_default());
        if left != reported && !left.is_empty() {
            say!(
                "junctura: {} drains, and waits until consumers have released {left}; --now ends it",
                pool.url()
            );
            reported = left;
        }
    }
}

/// The objects that requirements are owed, by the figures of a server; empty: none.
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
             1 of requirements without a name"
        );
        assert_eq!(still_owed(&Value::Null), "");
    }
}
