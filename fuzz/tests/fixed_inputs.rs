//! Each target with the inputs of `corpus`, and with ones that are made of these: the same in each run.

use std::fs;
use std::path::{Path, PathBuf};

use junctura_fuzz::TARGETS;

/// Changed inputs of each target; without `JUNCTURA_SEEDS=all` fewer.
fn rounds() -> u64 {
    let is_gate = std::env::var_os("JUNCTURA_SEEDS").is_some_and(|seeds| seeds == "all");
    if is_gate { 20_000 } else { 500 }
}

/// Bytes of the largest changed input.
const BYTES_MAX: usize = 16 << 10;
/// Changes of one input.
const CHANGES_MAX: usize = 6;
/// Numbers at which counts and sizes are easily wrong.
const NUMBERS: [u64; 10] = [
    0,
    1,
    0x7f,
    0xff,
    0x7fff,
    0xffff,
    0x7fff_ffff,
    0xffff_ffff,
    i64::MAX as u64,
    u64::MAX,
];

fn house() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn inputs_of(target: &str) -> Vec<Vec<u8>> {
    if target == "wire" {
        return golden_frames();
    }
    let folder = house().join("fuzz/corpus").join(target);
    let mut files: Vec<PathBuf> = fs::read_dir(&folder)
        .unwrap_or_else(|error| panic!("{}: {error}", folder.display()))
        .map(|entry| entry.expect("an entry").path())
        .collect();
    files.sort();
    files.iter().map(|file| fs::read(file).expect("a file")).collect()
}

fn golden_frames() -> Vec<Vec<u8>> {
    let text = fs::read_to_string(house().join("docs/formats/wire-golden.txt")).expect("golden frames");
    let frames = text.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    let frames = frames.map(|line| line.split_once(' ').expect("a name and a frame").1);
    frames.map(bytes_of_hexadecimal).collect()
}

fn bytes_of_hexadecimal(digits: &str) -> Vec<u8> {
    let pairs = (0..digits.len()).step_by(2);
    pairs
        .map(|at| u8::from_str_radix(&digits[at..at + 2], 16).expect("two digits"))
        .collect()
}

/// Words that a text of this target may contain.
fn words_of(target: &str) -> Vec<Vec<u8>> {
    let text = fs::read_to_string(house().join("fuzz/dict").join(target)).unwrap_or_default();
    let quoted = text.lines().filter_map(|line| line.split('"').nth(1));
    quoted.map(|word| word.as_bytes().to_vec()).collect()
}

/// Numbers that depend on a seed alone: `SplitMix64`, <https://prng.di.unimi.it/splitmix64.c>.
struct Random(u64);

impl Random {
    fn number(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, end: usize) -> usize {
        (self.number() % end.max(1) as u64) as usize
    }
}

fn change(bytes: &mut Vec<u8>, inputs: &[Vec<u8>], words: &[Vec<u8>], random: &mut Random) {
    let at = random.below(bytes.len() + 1);
    let length = random.below((bytes.len() - at).min(64) + 1);
    match random.below(8) {
        0 if at < bytes.len() => bytes[at] ^= 1 << random.below(8),
        1 if at < bytes.len() => bytes[at] = random.number() as u8,
        2 => drop(bytes.drain(at..at + length)),
        3 => {
            let again = bytes[at..at + length].to_vec();
            bytes.splice(at..at, again);
        }
        4 => {
            let number = NUMBERS[random.below(NUMBERS.len())];
            let width = 1 << random.below(4);
            let written = if random.below(2) == 0 {
                number.to_le_bytes()[..width].to_vec()
            } else {
                number.to_be_bytes()[8 - width..].to_vec()
            };
            let end = (at + width).min(bytes.len());
            bytes.splice(at..end, written);
        }
        5 => {
            let other = &inputs[random.below(inputs.len())];
            let from = random.below(other.len() + 1);
            bytes.truncate(at);
            bytes.extend_from_slice(&other[from..]);
        }
        6 if !words.is_empty() => {
            let word = &words[random.below(words.len())];
            bytes.splice(at..at, word.iter().copied());
        }
        _ => bytes.truncate(at),
    }
    bytes.truncate(BYTES_MAX);
}

#[test]
fn no_target_fails_with_an_input_of_the_corpus_or_one_made_of_them() {
    for (name, target) in TARGETS {
        let inputs = inputs_of(name);
        assert!(!inputs.is_empty(), "{name} has no inputs");
        let words = words_of(name);
        let run = |bytes: &[u8], what: &str| {
            let ended = std::panic::catch_unwind(|| target(bytes));
            assert!(ended.is_ok(), "target {name}, {what}: {}", bytes.escape_ascii());
        };
        for (index, input) in inputs.iter().enumerate() {
            run(input, &format!("input {index}"));
        }
        for seed in 0..rounds() {
            let mut random = Random(seed);
            let mut bytes = inputs[random.below(inputs.len())].clone();
            for _ in 0..=random.below(CHANGES_MAX) {
                change(&mut bytes, &inputs, &words, &mut random);
            }
            run(&bytes, &format!("seed {seed}"));
        }
    }
}
