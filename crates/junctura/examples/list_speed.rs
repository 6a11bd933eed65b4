//! How long a list of a hundred takes among a million objects.
//!
//! A pool of its own is filled with forecasts of 50 members, 20 levels and 10 parameters; then selectors that match a
//! hundred objects are listed one after the other, each with other values.
//! `cargo run --release --example list_speed [one-key-prefix|scattered|pattern [OBJECTS [LISTS]]]` prints a line of JSON.

use std::time::Instant;

use junctura::{Given, OfferOptions, Pool, Result};

const PARAMS: [&str; 10] = ["t", "u", "v", "q", "z", "w", "r", "d", "vo", "pv"];
const MEMBERS: usize = 50;
const LEVELS: usize = 20;
const PER_FORECAST: usize = MEMBERS * LEVELS * PARAMS.len();
/// What every selector here matches, if there are so many forecasts.
const MATCHES: usize = 100;

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let kind = arguments.first().map_or("one-key-prefix", String::as_str);
    let number = |at: usize, otherwise| {
        arguments
            .get(at)
            .and_then(|text| text.parse().ok())
            .unwrap_or(otherwise)
    };
    let (objects, lists) = (number(1, 1_000_000), number(2, 2000));
    let pool = Pool::builder().schema("mars").open()?;
    let begin = Instant::now();
    fill(&pool, objects)?;
    let offered_per_s = objects as f64 / begin.elapsed().as_secs_f64();
    let forecasts = objects / PER_FORECAST;
    let mut times_us = Vec::with_capacity(lists);
    let mut wrong = 0;
    for i in 0..lists {
        let selector = selector(kind, i, forecasts);
        let begin = Instant::now();
        let entries = pool.list(&selector)?;
        times_us.push(begin.elapsed().as_secs_f64() * 1e6);
        let expected = if kind == "one-key-prefix" {
            MATCHES
        } else {
            MATCHES.min(forecasts)
        };
        wrong += usize::from(entries.len() != expected);
    }
    times_us.sort_by(f64::total_cmp);
    let at = |part: f64| times_us[((lists - 1) as f64 * part) as usize];
    println!(
        "{{\"objects\": {objects}, \"lists\": {lists}, \"wrong\": {wrong}, \"offered_per_s\": {offered_per_s:.0}, \
         \"list_us\": {{\"p50\": {:.1}, \"p99\": {:.1}, \"max\": {:.1}}}}}",
        at(0.5),
        at(0.99),
        at(1.0),
    );
    if wrong > 0 {
        let cause = format!("{wrong} lists had another length than they should");
        return Err(junctura::Error::new(junctura::Code::Corrupt, "list", cause));
    }
    Ok(())
}

fn fill(pool: &Pool, objects: usize) -> Result<()> {
    let mut pipeline = pool.pipeline(1024)?;
    for i in 0..objects {
        let (forecast, rest) = (i / PER_FORECAST, i % PER_FORECAST);
        let date = date(forecast);
        let attributes = [
            ("class", Given::Text("od")),
            ("expver", Given::Text("0001")),
            ("stream", Given::Text("enfo")),
            ("date", Given::Text(&date)),
            ("time", Given::Text("0000")),
            ("type", Given::Text("pf")),
            ("levtype", Given::Text("pl")),
            ("step", Given::Integer(24)),
            ("number", Given::Integer((rest / PARAMS.len() / LEVELS) as i64)),
            ("levelist", Given::Integer(level(rest / PARAMS.len()))),
            ("param", Given::Text(PARAMS[rest % PARAMS.len()])),
        ];
        pipeline.offer_with(attributes, &[0; 64], OfferOptions::default())?;
    }
    pipeline.flush()?;
    Ok(())
}

/// Forecasts are a day apart; for this many, months of 28 days will do.
fn date(forecast: usize) -> String {
    let (months, day) = (forecast / 28, forecast % 28 + 1);
    format!("{}{:02}{day:02}", 2000 + months / 12, months % 12 + 1)
}

fn level(index: usize) -> i64 {
    1000 - 50 * (index % LEVELS) as i64
}

/// The i-th selector of a kind; each matches [`MATCHES`] objects, or one of each forecast where there are fewer.
fn selector(kind: &str, i: usize, forecasts: usize) -> String {
    let member = i % MEMBERS;
    let param = PARAMS[i / 3 % PARAMS.len()];
    let level_text = level(i / 7);
    match kind {
        "scattered" => format!("number={member},levelist={level_text},param={param}"),
        "pattern" => format!("number={member},levelist={level_text},param~\"^{param}$\""),
        _ => {
            let levels: Vec<String> = (0..LEVELS / 2)
                .map(|half| level(2 * half + i % 2).to_string())
                .collect();
            format!(
                "date={},number={member},levelist={}",
                date(i % forecasts.max(1)),
                levels.join("/")
            )
        }
    }
}
