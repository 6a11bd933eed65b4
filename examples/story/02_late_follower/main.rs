//! A late follower: what was there before it came, and what comes after, are one stream without a gap.

use junctura::{Follow, Item, Object, Pool};

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

fn next(fields: &mut Follow) -> junctura::Result<Option<Object>> {
    while let Some(item) = fields.next_item()? {
        if let Item::Object(field) = item {
            return Ok(Some(field));
        }
    }
    Ok(None)
}

fn main() -> junctura::Result<()> {
    let pool = match std::env::args().nth(1) {
        Some(address) => Pool::connect(&address)?,
        None => Pool::embedded()?,
    };
    offer(&pool, "0")?;
    offer(&pool, "6")?;

    let mut fields = pool.follow("param=t, step=0/to/240/by/6")?;
    for expected in ["there", "there", "comes"] {
        if expected == "comes" {
            offer(&pool, "12")?;
        }
        if let Some(field) = next(&mut fields)? {
            println!("{expected}: {}", String::from_utf8_lossy(&field));
        }
    }
    Ok(())
}
