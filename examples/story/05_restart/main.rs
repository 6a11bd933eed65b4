//! A restart: what comes while a consumer is away is kept for it, under a name.

use junctura::{FollowOptions, Item, Pool, RequireOptions};

fn offer(pool: &Pool, step: &str) -> junctura::Result<()> {
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
    pool.offer(key, format!("temperature of step {step}").as_bytes())?;
    Ok(())
}

/// A life of the consumer: a connection of its own, as a process of its own would have.
fn live(url: &str, which: &str) -> junctura::Result<()> {
    let pool = Pool::builder().url(url).name("archive").open()?;
    let options = FollowOptions {
        join: Some("archive".to_owned()),
        until_live: true,
        ..FollowOptions::default()
    };
    for item in pool.follow_with("", options)? {
        if let Item::Object(field) = item? {
            println!("{which} life: {}", String::from_utf8_lossy(&field));
        }
    }
    Ok(())
}

fn main() -> junctura::Result<()> {
    let pool = match std::env::args().nth(1) {
        Some(address) => Pool::connect(&address)?,
        None => Pool::embedded()?,
    };
    let group = RequireOptions {
        name: Some("archive".to_owned()),
        group: true,
        ..RequireOptions::default()
    };
    pool.require_with("param=t", group)?;
    offer(&pool, "0")?;
    live(pool.url(), "first")?;
    offer(&pool, "6")?;
    offer(&pool, "12")?;
    live(pool.url(), "second")?;
    println!("still owed: {}", pool.retract("archive")?);
    Ok(())
}
