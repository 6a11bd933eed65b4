//! Two thousand seeded runs of the core with crashes and delays, each judged by the reference model.
//!
//! The seeds are fixed, so that a change either passes or does not. Fresh ones are for `make soak`; one that fails there is
//! printed with the command that repeats it, and joins [`ONCE_FAILED`].

use junctura_sim::{Steps, failure};

/// Runs of the gate; without `JUNCTURA_SEEDS=all` a part of them.
fn runs() -> u64 {
    let is_all = std::env::var_os("JUNCTURA_SEEDS").is_some_and(|seeds| seeds == "all");
    if is_all { 2_000 } else { 300 }
}
const STEPS: u64 = 400;

/// Seeds that found something once.
const ONCE_FAILED: [u64; 36] = [
    770_020_516,
    77_122_184,
    2_946_289,
    104_316,
    125_830,
    305_080,
    312_227,
    333_775,
    5_291,
    3_055,
    5_481,
    200_480,
    203_978,
    206_823,
    208_426,
    208_990,
    313_609,
    1_030,
    311_482,
    326_949,
    7_112_901_356,
    7_112_902_578,
    7_112_912_705,
    7_112_922_579,
    7_112_930_525,
    7_112_939_197,
    7_112_960_216,
    7_112_964_840,
    5_985,
    6_291,
    6_505,
    7_436,
    6_774,
    26_000_507,
    26_000_889,
    28_013_970,
];

fn judge(seeds: impl Iterator<Item = u64>) {
    for seed in seeds {
        if let Some(failure) = failure(seed, &Steps::First(STEPS)) {
            let steps: Vec<String> = failure.steps.iter().map(ToString::to_string).collect();
            let last = failure.trace.len().saturating_sub(40);
            panic!(
                "{}\n{}\nrepeat: cargo run --release -p junctura-sim -- --seed {seed} --only {}",
                failure.trace[last..].join("\n"),
                failure.why,
                steps.join(",")
            );
        }
    }
}

#[test]
fn the_even_seeds_keep_every_promise() {
    judge((0..runs()).step_by(2));
}

#[test]
fn the_odd_seeds_keep_every_promise() {
    judge((1..runs()).step_by(2));
}

#[test]
fn seeds_that_once_failed_do_so_no_more() {
    judge(ONCE_FAILED.into_iter());
}

/// Fresh seeds, from `JUNCTURA_SEED` on or from the clock.
#[test]
#[ignore = "long and random: make soak"]
fn soak_fresh_seeds() {
    let first = std::env::var("JUNCTURA_SEED")
        .ok()
        .and_then(|text| text.parse().ok())
        .unwrap_or_else(|| {
            let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
            now.map_or(1, |since| since.as_secs() << 20)
        });
    println!("JUNCTURA_SEED={first}");
    judge(first..first + 200_000);
}
