//! What it costs to match an object with standing selectors, and to list objects: nanoseconds for the mixes that matter.
//!
//! `cargo run --release -p junctura-model --example interests_speed [MIX…]`

#![allow(
    clippy::disallowed_methods,
    reason = "a measuring program reads the clock and its own memory"
)]

use std::sync::Arc;
use std::time::Instant;

use junctura_model::index::{FilingKind, InterestIndex, ObjectIndex};
use junctura_model::selector::testing::TestRandom;
use junctura_model::{Given, Record, Schema, Selector};

/// The attributes of the load, and the fixed value of those that do not vary.
const KEY: [(&str, &str); 11] = [
    ("class", "od"),
    ("expver", "0001"),
    ("stream", "enfo"),
    ("date", "20261120"),
    ("time", "0000"),
    ("type", "pf"),
    ("levtype", "pl"),
    ("step", ""),
    ("number", ""),
    ("levelist", ""),
    ("param", ""),
];
const LEVELS: [&str; 10] = ["1000", "925", "850", "700", "500", "300", "250", "200", "100", "50"];
const PARAMS: [&str; 10] = ["t", "u", "v", "w", "q", "z", "r", "d", "vo", "o3"];

/// The values of the `n`th object of 10 members x 10 steps x 10 levels x 10 parameters.
fn values(n: usize) -> [String; 11] {
    let mut values = KEY.map(|(_, value)| value.to_owned());
    values[7] = ((n / 100 % 10) * 6).to_string();
    values[8] = (n / 1000 % 10 + 1).to_string();
    LEVELS[n / 10 % 10].clone_into(&mut values[9]);
    PARAMS[n % 10].clone_into(&mut values[10]);
    values
}

fn record(schema: &Schema, values: &[String; 11]) -> Record {
    let given = KEY
        .iter()
        .zip(values)
        .map(|((name, _), value)| (*name, Given::Text(value)));
    let mut bytes = Vec::new();
    schema.record(given, &mut bytes).expect("values of the load");
    Record::trusted(bytes)
}

fn objects(schema: &Schema, count: usize) -> Vec<Record> {
    (0..count).map(|n| record(schema, &values(n))).collect()
}

/// As many different odd values as there are selectors.
const MANY: usize = usize::MAX;

/// One of so many values that no object of the load has in that attribute.
fn odd(attribute: usize, n: usize, kinds: usize) -> String {
    let n = n % kinds;
    match KEY[attribute].0 {
        "date" => format!("{:04}{:02}{:02}", 1900 + n / 336 % 100, n / 28 % 12 + 1, n % 28 + 1),
        "time" => format!("{:02}{:02}", 1 + n / 60 % 23, n % 60),
        "step" => (1001 + n).to_string(),
        "number" | "levelist" => (5001 + n).to_string(),
        _ => format!("x{n}"),
    }
}

/// Equalities, some of them short lists, over all attributes.
fn key_list(values: &[String; 11], odd_at: Option<usize>, n: usize, kinds: usize, lists: bool) -> Vec<String> {
    let mut parts = Vec::new();
    for (at, (name, _)) in KEY.iter().enumerate() {
        let mut items = vec![if odd_at == Some(at) {
            odd(at, n, kinds)
        } else {
            values[at].clone()
        }];
        if lists && (n + at).is_multiple_of(4) {
            let extra = 1 + n % 3;
            items.extend((0..extra).map(|more| {
                if odd_at == Some(at) || at < 7 {
                    odd(at, n + more + 1, kinds)
                } else {
                    self::values(n + (more + 1) * 1111)[at].clone()
                }
            }));
        }
        parts.push(format!("{name}={}", items.join("/")));
    }
    parts
}

/// 90 % key lists, 9 % with a range, 1 % a regular expression; each shares all but one attribute with an object, and one in
/// a thousand all.
fn standard(n: usize, random: &mut TestRandom, kinds: usize, lists: bool, short: bool) -> String {
    let values = values(random.below(10_000));
    let odd_at = (n % 1000 != 999).then_some(n % 11);
    let mut parts = key_list(&values, odd_at, n, kinds, lists);
    match n / 11 % 100 {
        0 => {
            // The expression takes the place of an equality that is not the odd one.
            let at = (odd_at.unwrap_or(0) + 1 + n / 1100 % 10) % 11;
            parts[at] = format!("{}~\"^{}$\"", KEY[at].0, values[at]);
            if short {
                let keep = odd_at.unwrap_or(10);
                parts = vec![
                    parts[at].clone(),
                    parts[if keep == at { (at + 1) % 11 } else { keep }].clone(),
                ];
            }
        }
        1..=9 => {
            let at = 7 + n / 1100 % 3;
            let (low, high) = if odd_at == Some(at) { (2000, 3000) } else { (0, 1000) };
            parts[at] = match KEY[at].0 {
                "step" => format!("step={low}/to/{high}/by/6"),
                "number" => format!("number={low}/to/{high}"),
                _ => format!("levelist>={}", if odd_at == Some(at) { 2000 } else { 10 }),
            };
        }
        _ => {}
    }
    parts.join(",")
}

/// All share two attributes and differ in one rare one.
fn two_shared(n: usize) -> String {
    let at = 2 + n % 9;
    format!("class=od,expver=0001,{}={}", KEY[at].0, odd(at, n, MANY))
}

/// A list of a hundred items that has none of the load, beside what the load has.
fn hundred(n: usize) -> String {
    let at = [7, 8, 10][n % 3];
    let items: Vec<String> = (0..100).map(|item| odd(at, n * 37 + item * 11, MANY)).collect();
    format!("class=od,stream=enfo,{}={}", KEY[at].0, items.join("/"))
}

/// Lists of a hundred, half of whose items objects have; another attribute is odd.
fn hundred_common(n: usize) -> String {
    let steps: Vec<String> = (0..100).map(|item| (item * 3 + n % 3).to_string()).collect();
    let numbers: Vec<String> = (0..100).map(|item| (item + 1 + n % 2).to_string()).collect();
    format!("step={},number={},param=x{}", steps.join("/"), numbers.join("/"), n)
}

/// 513 different sets of attributes, each with one odd value.
fn shapes(n: usize, random: &mut TestRandom) -> String {
    let values = values(random.below(10_000));
    let shape = n % 513 + 7;
    let parts = key_list(&values, Some(n % 11), n, MANY, false);
    let kept = parts
        .iter()
        .enumerate()
        .filter(|(at, _)| *at == n % 11 || shape >> at & 1 == 1);
    kept.map(|(_, part)| part.as_str()).collect::<Vec<_>>().join(",")
}

fn all_equal(odd_at: usize) -> String {
    key_list(&values(0), Some(odd_at), 5, MANY, false).join(",")
}

fn selectors(mix: &str, count: usize) -> Vec<String> {
    let mut random = TestRandom(3);
    (0..count)
        .map(|n| match mix {
            "standard" => standard(n, &mut random, MANY, true, false),
            "standard-few-odd-values" => standard(n, &mut random, 7, true, false),
            "standard-one-odd-value" => standard(n, &mut random, 1, false, false),
            "standard-no-lists" => standard(n, &mut random, MANY, false, false),
            "standard-short-regex" => standard(n, &mut random, MANY, true, true),
            "two-shared" => two_shared(n),
            "lists-of-100" => hundred(n),
            "lists-of-100-common" => hundred_common(n),
            "513-shapes" => shapes(n, &mut random),
            "all-equal" => all_equal(10),
            "or" => format!("({}) or ({})", two_shared(n), two_shared(n + 4)),
            "ranges-only" => format!("step={}/to/{}/by/6,levelist>={}", 1000 + n, 2000 + n, n),
            "spans-only" => format!("made={}/to/{}", stamp(n), stamp(n + 3)),
            other => panic!("no mix {other}"),
        })
        .collect()
}

fn stamp(n: usize) -> String {
    format!(
        "2026-11-{:02}T{:02}:{:02}:{:02}Z",
        n / 86_400 % 28 + 1,
        n / 3600 % 24,
        n / 60 % 60,
        n % 60
    )
}

fn rss_mib() -> usize {
    let pages = std::fs::read_to_string("/proc/self/statm").ok();
    let resident = pages.and_then(|text| text.split(' ').nth(1).and_then(|pages| pages.parse::<usize>().ok()));
    (resident.unwrap_or(0) * 4096) >> 20
}

/// Nanoseconds an object, and how many selectors matched it on average. All objects pass in turn, many times; of each
/// hundred the best time counts, so that what else the machine does is left out.
fn time_matches(interests: &mut InterestIndex<u32>, objects: &[Record]) -> (f64, f64) {
    let mut found = Vec::new();
    let mut total = 0;
    let mut best = vec![u128::MAX; objects.len().div_ceil(100)];
    for round in 0..20 {
        for (chunk, best) in objects.chunks(100).zip(&mut best) {
            let start = Instant::now();
            for object in chunk {
                found.clear();
                interests.matches(object.as_ref(), &mut found);
                total += if round == 0 { found.len() } else { 0 };
            }
            *best = start.elapsed().as_nanos().min(*best);
        }
    }
    (
        best.iter().sum::<u128>() as f64 / objects.len() as f64,
        total as f64 / objects.len() as f64,
    )
}

fn time_mix(mix: &str, schema: &Schema, objects: &[Record]) {
    for count in [10, 100_000] {
        let texts = selectors(mix, count);
        let before = rss_mib();
        let selectors: Vec<Selector> = texts
            .iter()
            .map(|text| Selector::parse(text, schema).unwrap_or_else(|error| panic!("{text}: {error}")))
            .collect();
        let parsed = rss_mib();
        let mut interests = InterestIndex::new();
        let start = Instant::now();
        let mut unindexed = 0;
        let mut worst = 0;
        for (id, selector) in selectors.iter().enumerate() {
            let one = Instant::now();
            unindexed += usize::from(interests.insert(id as u32, selector) == FilingKind::Unindexed);
            worst = worst.max(one.elapsed().as_micros());
        }
        let insert = start.elapsed().as_nanos() as f64 / count as f64;
        let filed = rss_mib();
        let (ns, matched) = time_matches(&mut interests, objects);
        let start = Instant::now();
        for (id, selector) in selectors.iter().enumerate() {
            assert!(interests.remove(id as u32, selector));
        }
        let remove = start.elapsed().as_nanos() as f64 / count as f64;
        println!(
            "{mix:<24} {count:>7}  {ns:>8.0} ns/match  {matched:>7.3} found  insert {insert:>6.0} ns (worst {worst} us)  \
             remove {remove:>6.0} ns  selectors {} MiB, filed {} MiB, unindexed {unindexed}",
            parsed - before.min(parsed),
            filed - parsed.min(filed),
        );
    }
}

/// A million objects: what adding, listing and taking out cost.
fn time_objects(schema: &Schema) {
    const COUNT: usize = 1_000_000;
    let mut records = Vec::with_capacity(COUNT);
    for n in 0..COUNT {
        let mut values = values(n);
        values[3] = odd(3, n / 10_000, MANY);
        records.push(record(schema, &values));
    }
    let before = rss_mib();
    let mut objects = ObjectIndex::new();
    let start = Instant::now();
    for (slot, record) in records.iter().enumerate() {
        objects.insert(slot as u32, record.as_ref(), schema);
    }
    println!(
        "insert {:.0} ns, {} MiB for {COUNT} objects",
        start.elapsed().as_nanos() as f64 / COUNT as f64,
        rss_mib() - before
    );
    let date = odd(3, 7, MANY);
    for text in [
        "step=6,number=3,levelist=500,param=t".to_owned(),
        "class=od,expver=0001,stream=enfo,time=0000,type=pf,levtype=pl,step=6,number=3,levelist=500,param=t".to_owned(),
        format!("date={date},step=6,number=3,levelist=500/850,param=t/u/v/q/z"),
        format!("date={date},step=0/to/48/by/6,number=3,levelist>=500,param=t"),
        "step=6,number=3,levelist=500,param~\"^t$\"".to_owned(),
        "step=6,number=3,levelist=500,not param!=t".to_owned(),
        "date=19000101/19000102,number=3,step<=24,param=t".to_owned(),
        "class=od,not param=t".to_owned(),
    ] {
        let selector = Selector::parse(&text, schema).expect("written above");
        let mut best = u128::MAX;
        let (mut candidates, mut found) = (0, 0);
        for _ in 0..20 {
            let start = Instant::now();
            let slots = objects.candidates(&selector);
            let matching: Vec<u32> = slots
                .iter()
                .filter(|&slot| selector.matches(records[slot as usize].as_ref()))
                .collect();
            best = best.min(start.elapsed().as_nanos());
            (candidates, found) = (slots.len(), matching.len());
        }
        println!(
            "{:>9.1} us  {candidates:>7} candidates  {found:>7} found  {text}",
            best as f64 / 1000.0
        );
    }
    let start = Instant::now();
    for (slot, record) in records.iter().enumerate() {
        objects.remove(slot as u32, record.as_ref(), schema);
    }
    println!("remove {:.0} ns", start.elapsed().as_nanos() as f64 / COUNT as f64);
}

fn main() {
    let schema: Arc<Schema> = Schema::builtin("mars").expect("built in");
    let objects = objects(&schema, 10_000);
    let asked: Vec<String> = std::env::args().skip(1).collect();
    let all = [
        "standard",
        "standard-no-lists",
        "standard-few-odd-values",
        "standard-one-odd-value",
        "standard-short-regex",
        "two-shared",
        "lists-of-100",
        "lists-of-100-common",
        "513-shapes",
        "all-equal",
        "or",
        "ranges-only",
    ];
    for mix in all {
        if asked.is_empty() || asked.iter().any(|name| name == mix) {
            time_mix(mix, &schema, &objects);
        }
    }
    if asked.is_empty() || asked.iter().any(|name| name == "objects") {
        time_objects(&schema);
    }
}
