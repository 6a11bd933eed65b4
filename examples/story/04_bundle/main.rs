//! A bundle: fields that belong together become visible together, or not at all.

use junctura::{BundleOptions, Pool};

fn key(param: &str) -> [(&str, &str); 9] {
    [
        ("class", "od"),
        ("stream", "oper"),
        ("date", "2026-11-20"),
        ("time", "12"),
        ("type", "fc"),
        ("levtype", "pl"),
        ("step", "6"),
        ("levelist", "500"),
        ("param", param),
    ]
}

fn main() -> junctura::Result<()> {
    let pool = match std::env::args().nth(1) {
        Some(address) => Pool::connect(&address)?,
        None => Pool::embedded()?,
    };
    let options = BundleOptions {
        members: Some(2),
        ..BundleOptions::default()
    };
    let nothing: [(&str, &str); 0] = [];
    // Two producers know the bundle by its path; either may come first.
    let first = pool.open_bundle("run/step=6", nothing, options)?;
    first.offer(key("t"), b"temperature")?;
    println!("one of two is staged, {} to be seen", pool.list("step=6")?.len());

    let second = pool.open_bundle("run/step=6", nothing, options)?;
    second.offer(key("u"), b"wind")?;
    first.wait(None)?;
    println!("two of two, {} to be seen", pool.list("step=6")?.len());
    Ok(())
}
