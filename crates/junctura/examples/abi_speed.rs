//! One hand-over after the other in a private pool, in Rust: allocate, fill, offer, demand, release. `benches/simulations/abi_speed.c` is
//! the same in C.
//!
//! `abi_speed BYTES ROUNDS BATCHES` prints microseconds a round, of the best batch and of the median one.

use std::time::Instant;

use junctura::{Code, Error, OfferOptions, Pool, Retention};

fn main() -> junctura::Result<()> {
    let words: Vec<usize> = std::env::args().skip(1).filter_map(|word| word.parse().ok()).collect();
    let [bytes, rounds, batches] = words[..] else {
        let cause = "usage: abi_speed BYTES ROUNDS BATCHES";
        return Err(Error::new(Code::InvalidArgument, "arguments", cause));
    };
    let pool = Pool::builder().schema("free").open()?;
    let mut times = Vec::new();
    for batch in 0..=batches {
        let start = Instant::now();
        for round in 0..rounds {
            hand_over(&pool, bytes, batch * rounds + round)?;
        }
        times.push(start.elapsed().as_secs_f64() * 1e6 / rounds as f64);
    }
    // The first one warms up.
    times.remove(0);
    times.sort_by(f64::total_cmp);
    println!(
        "{{\"us\": {{\"best\": {:.3}, \"median\": {:.3}}}}}",
        times[0],
        times[batches / 2]
    );
    Ok(())
}

fn hand_over(pool: &Pool, bytes: usize, number: usize) -> junctura::Result<()> {
    let name = format!("r{number}");
    let mut allocation = pool.allocate(bytes)?;
    allocation.fill(number as u8);
    let options = OfferOptions {
        retention: Some("released:1".parse::<Retention>()?),
        ..OfferOptions::default()
    };
    allocation.offer_with([("name", &*name)], options)?;
    let object = pool.demand(&*format!("name={name}"), None)?;
    assert_eq!(object.payload().last(), Some(&(number as u8)));
    object.release()
}
