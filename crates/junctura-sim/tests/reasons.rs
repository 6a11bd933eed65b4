//! Blocked states of seeded runs: the change that the explanation of a wait names unblocks it.

use junctura_sim::run::unblocking::unblock;

/// Steps of each run.
const STEPS: u64 = 250;

/// Judges runs until so many waits were judged, or all seeds were taken. Returns how many waits were judged.
fn judge(seeds: impl Iterator<Item = u64>, enough: u64) -> u64 {
    let mut judged = 0;
    for seed in seeds {
        match unblock(seed, STEPS) {
            Ok(count) => judged += count,
            Err(why) => panic!("seed {seed}: {why}"),
        }
        if judged >= enough {
            break;
        }
    }
    judged
}

#[test]
fn what_a_wait_names_unblocks_it() {
    let is_all = std::env::var_os("JUNCTURA_SEEDS").is_some_and(|seeds| seeds == "all");
    let seeds = if is_all { 1_000 } else { 300 };
    let judged = judge(0..seeds, u64::MAX);
    assert!(judged >= seeds, "{judged} waits in {seeds} runs");
}

/// A hundred thousand waits, of fixed seeds and then of fresh ones.
#[test]
#[ignore = "long and random: make soak"]
fn soak_blocked_states() {
    const WAITS: u64 = 100_000;
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    let first = now.map_or(1, |since| since.as_secs() << 20);
    println!("fresh seeds from {first}");
    let fixed = judge(0..20_000, WAITS / 2);
    let fresh = judge(first.., WAITS - fixed.min(WAITS / 2));
    assert!(fixed + fresh >= WAITS);
}
