//! Runs simulations of a pool until one fails, and prints how to repeat it.

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Instant;

use clap::Parser;
use junctura_sim::world::World;
use junctura_sim::{Failure, Steps, failure, run, write_history};

/// Seeded simulation of a pool with many clients, delays and crashes, judged by a reference model.
#[derive(Parser)]
struct Options {
    /// The first seed.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// How many seeds to run.
    #[arg(long, default_value_t = 1)]
    runs: u64,
    /// Steps of each run.
    #[arg(long, default_value_t = 400)]
    steps: u64,
    /// Take only these steps, as a failing run printed them.
    #[arg(long, value_delimiter = ',')]
    only: Vec<u64>,
    /// Print this many of the last events of a failing run.
    #[arg(long, default_value_t = 60)]
    events: usize,
    /// Print the events of runs that do not fail, too.
    #[arg(long)]
    show: bool,
    /// Continue after a failing run.
    #[arg(long)]
    keep_going: bool,
    /// Write each run's histories into a directory of its own below this one.
    #[arg(long)]
    history: Option<PathBuf>,
}

fn main() -> ExitCode {
    let options = Options::parse();
    // Panics of the core are caught and reported with their run.
    std::panic::set_hook(Box::new(|_| {}));
    let start = Instant::now();
    let mut failed = 0;
    let mut events = 0;
    for seed in options.seed..options.seed.saturating_add(options.runs) {
        let steps = if options.only.is_empty() {
            Steps::First(options.steps)
        } else {
            Steps::Only(options.only.clone())
        };
        match one(seed, &steps, &options) {
            Ok(count) => events += count,
            Err(why) => {
                failed += 1;
                report(seed, &why, failure(seed, &steps), &options);
                if !options.keep_going {
                    break;
                }
            }
        }
    }
    let seconds = start.elapsed().as_secs_f64();
    println!(
        "{} runs, {failed} failed, {events} events, {seconds:.1} s",
        options.runs
    );
    if failed == 0 {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

fn one(seed: u64, steps: &Steps, options: &Options) -> Result<u64, String> {
    let history = options.history.as_deref();
    let mut world = World::new(seed, history.is_some()).map_err(|error| error.to_string())?;
    world.trace = options.show.then(Vec::new);
    run(&mut world, seed, steps).map_err(|(_, why)| why)?;
    for line in world.trace.iter().flatten() {
        println!("{line}");
    }
    if let Some(directory) = history {
        write_history(&world, &directory.join(seed.to_string())).map_err(|error| error.to_string())?;
    }
    Ok(world.events())
}

fn report(seed: u64, why: &str, failure: Option<Failure>, options: &Options) {
    println!("seed {seed} fails: {why}");
    let Some(failure) = failure else {
        println!("    (not without recording: repeat with --history)");
        return;
    };
    let skipped = failure.trace.len().saturating_sub(options.events);
    if skipped > 0 {
        println!("    … {skipped} events before these");
    }
    for line in &failure.trace[skipped..] {
        println!("    {line}");
    }
    println!("  {}", failure.why);
    let steps: Vec<String> = failure.steps.iter().map(ToString::to_string).collect();
    println!("  repeat: junctura-sim --seed {seed} --only {}", steps.join(","));
}
