//! Workers: the members of a group share what matches; each field goes to one of them.

use std::collections::BTreeMap;
use std::thread;

use junctura::{FollowOptions, Item, Pool, RequireOptions};

/// Takes fields until the group is owed nothing any more.
fn work(pool: &Pool) -> junctura::Result<Vec<u32>> {
    let options = FollowOptions {
        join: Some("workers".to_owned()),
        until_live: true,
        ..FollowOptions::default()
    };
    let mut done = Vec::new();
    for item in pool.follow_with("", options)? {
        // Done when it is dropped; in a panic it would go to another worker.
        if let Item::Object(field) = item? {
            done.extend(field.get("step").and_then(|step| step.parse::<u32>().ok()));
        }
    }
    Ok(done)
}

fn main() -> junctura::Result<()> {
    let pool = match std::env::args().nth(1) {
        Some(address) => Pool::connect(&address)?,
        None => Pool::embedded()?,
    };
    // From now on what matches is kept for the group, though nobody is there yet.
    let group = RequireOptions {
        name: Some("workers".to_owned()),
        group: true,
        ..RequireOptions::default()
    };
    pool.require_with("param=t", group)?;
    for step in ["0", "6", "12", "18", "24"] {
        let key = [
            ("class", "od"),
            ("stream", "oper"),
            ("date", "2026-11-20"),
            ("time", "12"),
            ("type", "fc"),
            ("levtype", "pl"),
            ("step", step),
            ("levelist", "500"),
            ("param", "t"),
        ];
        pool.offer(key, b"a field")?;
    }

    let workers = [0, 1].map(|_| {
        let pool = pool.clone();
        thread::spawn(move || work(&pool))
    });
    let mut done = BTreeMap::new();
    for worker in workers {
        for step in worker.join().expect("a worker does not panic")? {
            *done.entry(step).or_insert(0) += 1;
        }
    }
    for (step, times) in done {
        println!("step {step}: done {times} time");
    }
    pool.retract("workers")?;
    Ok(())
}
