//! Measures the cost of a look at a large pool for its server.
//!
//! A pool of its own is filled with forecasts of 50 members, 20 levels and 10 parameters. Then it is counted, counted by an attribute, or its first 500
//! objects are listed, several times.
//! `cargo run --release --example look_speed [count|count-by|first|list [OBJECTS [LOOKS]]]` prints a line of JSON: the server's time for one look, its
//! longest turn before the looks, and the longest one during them, from the board's histogram: at most 19 % less than that.

use std::time::{Duration, Instant};

use junctura::board::BoardHistogram;
use junctura::board::histogram::upper_bound;
use junctura::{Code, Error, Given, ListOptions, OfferOptions, Pool, PoolBoard, Result, TallyOptions};

const PARAMS: [&str; 10] = ["t", "u", "v", "q", "z", "w", "r", "d", "vo", "pv"];
const MEMBERS: usize = 50;
const LEVELS: usize = 20;
/// Few enough at once that the server's turns are short.
const WINDOW: usize = 2;

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let kind = arguments.first().map_or("count", String::as_str);
    let number = |at: usize, otherwise: usize| {
        arguments
            .get(at)
            .and_then(|text| text.parse().ok())
            .unwrap_or(otherwise)
    };
    let (objects, looks) = (number(1, 100_000), number(2, 20));
    let pool = Pool::builder().schema("mars").open()?;
    fill(&pool, objects)?;
    let viewer = Pool::builder().url(pool.url()).visitor(true).open()?;
    let board = pool.board()?;
    let turns_before = turns(&pool, &board)?;
    let before = figures(&pool)?;
    let begin = Instant::now();
    for _ in 0..looks {
        let found = look(&viewer, kind)?;
        let expected = if kind == "first" { objects.min(500) } else { objects };
        if found != expected as u64 {
            return Err(Error::new(
                Code::Corrupt,
                kind,
                format!("{found} of {expected} objects"),
            ));
        }
    }
    let each_us = begin.elapsed().as_secs_f64() * 1e6 / looks as f64;
    let after = figures(&pool)?;
    let turns_after = turns(&pool, &board)?;
    let longest = (0..turns_after.len()).rfind(|&bucket| turns_after[bucket] > turns_before[bucket]);
    let bound_us = longest.map_or(0.0, |bucket| upper_bound(bucket) / 1e3);
    println!(
        "{{\"objects\": {objects}, \"looks\": {looks}, \"look_us\": {each_us:.1}, \"server_cpu_us\": {:.1}, \
         \"fill_turn_us\": {:.1}, \"longest_turn_us\": {:.1}}}",
        (after.cpu_ns - before.cpu_ns) as f64 / 1e3 / looks as f64,
        before.longest_turn_ns as f64 / 1e3,
        bound_us.min(after.longest_turn_ns as f64 / 1e3),
    );
    Ok(())
}

/// Looks once; returns the number of objects that were counted or listed.
fn look(pool: &Pool, kind: &str) -> Result<u64> {
    let options = TallyOptions::default();
    match kind {
        "count" => Ok(pool.tally("", options)?.objects()),
        "count-by" => Ok(pool
            .tally(
                "",
                TallyOptions {
                    by: &["param", "levelist"],
                    ..options
                },
            )?
            .objects()),
        "first" => {
            let first = ListOptions {
                limit: Some(500),
                ..ListOptions::default()
            };
            Ok(pool.list_with("", first)?.entries()?.len() as u64)
        }
        _ => Ok(pool.list("")?.len() as u64),
    }
}

/// Counts of turns by their duration, in the buckets of the board.
fn turns(pool: &Pool, board: &PoolBoard) -> Result<Vec<u64>> {
    /// A busy server writes its board after 20 ms.
    const BOARD_AGE_MAX: Duration = Duration::from_millis(50);
    let begin = Instant::now();
    while begin.elapsed() < BOARD_AGE_MAX {
        pool.stat()?;
    }
    Ok(board.snapshot().histogram(BoardHistogram::TurnTime).buckets.clone())
}

struct ServerFigures {
    cpu_ns: u64,
    longest_turn_ns: u64,
}

fn figures(pool: &Pool) -> Result<ServerFigures> {
    let stat = pool.stat()?;
    let number = |name: &str| {
        let (_, rest) = stat.split_once(&format!("\"{name}\":")).unwrap_or_default();
        let digits: String = rest.trim_start().chars().take_while(char::is_ascii_digit).collect();
        digits.parse().unwrap_or_default()
    };
    Ok(ServerFigures {
        cpu_ns: number("cpu_ns"),
        longest_turn_ns: number("longest_turn_ns"),
    })
}

fn fill(pool: &Pool, objects: usize) -> Result<()> {
    let mut pipeline = pool.pipeline(WINDOW)?;
    for i in 0..objects {
        let (forecast, rest) = (
            i / (MEMBERS * LEVELS * PARAMS.len()),
            i % (MEMBERS * LEVELS * PARAMS.len()),
        );
        let date = format!("2026{:02}{:02}", forecast / 28 % 12 + 1, forecast % 28 + 1);
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
            (
                "levelist",
                Given::Integer(1000 - 50 * (rest / PARAMS.len() % LEVELS) as i64),
            ),
            ("param", Given::Text(PARAMS[rest % PARAMS.len()])),
        ];
        pipeline.offer_with(attributes, &[0; 64], OfferOptions::default())?;
    }
    pipeline.flush()?;
    Ok(())
}
