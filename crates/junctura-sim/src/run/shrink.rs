//! Makes a run, and makes a failing one as short as possible.

use crate::run::rng::Rng;
use crate::world::{World, own_fault};

/// Which steps of a seed are taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Steps {
    /// The first so many.
    First(u64),
    /// Only these, in this order.
    Only(Vec<u64>),
}

impl Steps {
    fn list(&self) -> Vec<u64> {
        match self {
            Self::First(count) => (1..=*count).collect(),
            Self::Only(steps) => steps.clone(),
        }
    }
}

/// The step that represents the end of a run.
const LAST_STEP: u64 = u64::MAX;

/// Makes one run to its end, in `world`.
///
/// # Errors
/// The broken promise, and the number of steps before it; all steps, if it was found at the end.
pub fn run(world: &mut World, seed: u64, steps: &Steps) -> Result<(), (usize, String)> {
    let list = steps.list();
    world
        .populate(&mut Rng::of_step(seed, LAST_STEP - 1))
        .map_err(|why| (0, why))?;
    for (taken, &step) in list.iter().enumerate() {
        world
            .step(&mut Rng::of_step(seed, step))
            .map_err(|why| (taken + 1, why))?;
    }
    world
        .end(&mut Rng::of_step(seed, LAST_STEP))
        .map_err(|why| (list.len(), why))
}

/// A failing run, shrunk.
#[derive(Clone, Debug)]
pub struct Failure {
    /// Its seed.
    pub seed: u64,
    /// The broken promise.
    pub why: String,
    /// The steps that are needed.
    pub steps: Vec<u64>,
    /// The last events, in words.
    pub trace: Vec<String>,
}

/// Runs a seed; if it fails, finds few steps with which it fails in the same way, and records the events.
#[must_use]
pub fn failure(seed: u64, steps: &Steps) -> Option<Failure> {
    let (taken, mut why) = try_steps(seed, &steps.list(), None)?;
    let mut needed = steps.list();
    needed.truncate(taken);
    // Away with larger parts first, then with single steps.
    let mut part = needed.len() / 2;
    while part > 0 {
        let mut start = 0;
        while start < needed.len() {
            let mut fewer = needed.clone();
            fewer.drain(start..(start + part).min(needed.len()));
            match try_steps(seed, &fewer, None) {
                Some((taken, reason)) if kind(&reason) == kind(&why) => {
                    fewer.truncate(taken);
                    (needed, why) = (fewer, reason);
                }
                _ => start += part,
            }
        }
        part /= 2;
    }
    let mut trace = Vec::new();
    if let Some((_, reason)) = try_steps(seed, &needed, Some(&mut trace)) {
        why = reason;
    }
    Some(Failure {
        seed,
        why,
        steps: needed,
        trace,
    })
}

/// A failure without its numbers: two that differ only there are taken for the same.
fn kind(why: &str) -> String {
    why.chars().filter(|c| !c.is_ascii_digit()).take(60).collect()
}

fn try_steps(seed: u64, steps: &[u64], trace: Option<&mut Vec<String>>) -> Option<(usize, String)> {
    let mut world = match World::new(seed, false) {
        Ok(world) => world,
        Err(error) => return Some((0, own_fault(&error))),
    };
    world.trace = trace.is_some().then(Vec::new);
    let outcome = run(&mut world, seed, &Steps::Only(steps.to_vec())).err();
    if let Some(trace) = trace {
        *trace = world.trace.take().unwrap_or_default();
    }
    outcome
}
