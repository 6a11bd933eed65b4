//! What an object costs that becomes visible with others, and what one costs by itself.
//!
//! A consumer follows and releases everything. A producer offers the fields of a forecast step again and again: one by one
//! into the pool, or into a bundle that it seals. `seal_ms` is how long the server answers nobody else, at most.
//! `cargo run --release --example bundle_speed [plain|bundle [MEMBERS [BUNDLES]]]` prints a line of JSON.

use std::thread;
use std::time::Instant;

use junctura::{Given, Item, OfferOptions, Pipeline, Pool, Result, Retention};

const PARAMS: [&str; 10] = ["t", "u", "v", "q", "z", "w", "r", "d", "vo", "pv"];
const LEVELS: usize = 20;

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let is_bundled = arguments.first().is_none_or(|kind| kind != "plain");
    let number = |at: usize, otherwise| {
        let given: Option<usize> = arguments.get(at).and_then(|text| text.parse().ok());
        given.unwrap_or(otherwise)
    };
    let (members, rounds) = (number(1, 10_000), number(2, 20));
    let pool = Pool::builder().schema("mars").open()?;
    let url = pool.url().to_owned();
    let reader = thread::spawn(move || read(&url, members * rounds));
    let (mut member_us, mut seal_ms) = (Vec::new(), Vec::new());
    for round in 0..rounds {
        let begin = Instant::now();
        let sealed_ms = if is_bundled {
            let bundle = pool.bundle()?;
            fill(&mut bundle.pipeline(1024)?, round, members)?;
            let begin = Instant::now();
            bundle.seal()?;
            begin.elapsed().as_secs_f64() * 1e3
        } else {
            fill(&mut pool.pipeline(1024)?, round, members)?;
            0.0
        };
        member_us.push(begin.elapsed().as_secs_f64() * 1e6 / members as f64);
        seal_ms.push(sealed_ms);
    }
    let received = reader.join().map_or(Ok(0), |received| received)?;
    println!(
        "{{\"members\": {members}, \"bundles\": {rounds}, \"received\": {received}, \"member_us\": {}, \"seal_ms\": {}}}",
        quantiles(&mut member_us),
        quantiles(&mut seal_ms),
    );
    Ok(())
}

fn fill(pipeline: &mut Pipeline, round: usize, members: usize) -> Result<()> {
    let step = Given::Integer(round as i64);
    for i in 0..members {
        // Members of a forecast come in any order.
        let i = (i * 7919) % members;
        let attributes = [
            ("class", Given::Text("od")),
            ("expver", Given::Text("0001")),
            ("stream", Given::Text("enfo")),
            ("date", Given::Text("20261120")),
            ("time", Given::Text("0000")),
            ("type", Given::Text("pf")),
            ("levtype", Given::Text("pl")),
            ("step", step),
            ("number", Given::Integer((i / PARAMS.len() / LEVELS) as i64)),
            (
                "levelist",
                Given::Integer(1000 - 50 * (i / PARAMS.len() % LEVELS) as i64),
            ),
            ("param", Given::Text(PARAMS[i % PARAMS.len()])),
        ];
        let options = OfferOptions {
            retention: Some(Retention::Released(1)),
            ..OfferOptions::default()
        };
        pipeline.offer_with(attributes, &[0; 64], options)?;
    }
    pipeline.flush()
}

fn read(url: &str, objects: usize) -> Result<usize> {
    let mut follow = Pool::connect(url)?.follow("")?;
    let mut received = 0;
    while received < objects {
        match follow.next_item()? {
            Some(Item::Object(_)) => received += 1,
            Some(_) => {}
            None => break,
        }
    }
    Ok(received)
}

fn quantiles(values: &mut [f64]) -> String {
    values.sort_by(f64::total_cmp);
    let at = |part: f64| values[((values.len() - 1) as f64 * part) as usize];
    format!(
        "{{\"p50\": {:.3}, \"p99\": {:.3}, \"max\": {:.3}}}",
        at(0.5),
        at(0.99),
        at(1.0)
    )
}
