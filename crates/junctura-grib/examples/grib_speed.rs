//! Prints how long one header takes: split, and split with all keys.
//!
//!     cargo run --release -p junctura-grib --example grib_speed -- FILE... [--rounds N]

#![expect(clippy::disallowed_methods, reason = "a measurement reads files and the clock")]

use std::time::{Duration, Instant};

use junctura_grib::Messages;

fn main() -> std::io::Result<()> {
    let mut arguments = std::env::args().skip(1);
    let mut rounds = 200_u32;
    while let Some(argument) = arguments.next() {
        if argument == "--rounds" {
            rounds = arguments.next().and_then(|n| n.parse().ok()).unwrap_or(rounds);
            continue;
        }
        let bytes = std::fs::read(&argument)?;
        let first = timed(|| first_keys(&bytes));
        let count = Messages::new(&bytes).flatten().count().max(1) as f64;
        let split = timed(|| (0..rounds).for_each(|_| _ = std::hint::black_box(Messages::new(&bytes).count())));
        let keys = timed(|| (0..rounds).for_each(|_| read(&bytes)));
        let each = |total: Duration| total.as_nanos() as f64 / f64::from(rounds) / count;
        let (split, keys, first) = (each(split), each(keys), first.as_secs_f64() * 1e3);
        println!(
            "{argument}: {count} messages, split {split:.0} ns, with keys {keys:.0} ns each; first use {first:.1} ms"
        );
    }
    Ok(())
}

fn timed(work: impl FnOnce()) -> Duration {
    let start = Instant::now();
    work();
    start.elapsed()
}

fn first_keys(bytes: &[u8]) {
    _ = Messages::new(bytes).flatten().next().map(|message| message.keys());
}

fn read(bytes: &[u8]) {
    for message in Messages::new(bytes).flatten() {
        _ = std::hint::black_box(message.keys());
    }
}
