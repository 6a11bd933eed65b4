//! Arguments of `junctura load store`.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, ValueEnum};
use junctura::{Code, Error, Result};
use junctura_terminal::program::ProgramWords;
use serde::Serialize;

use crate::FieldArguments;
use crate::load::LoadSpace;
use crate::stamp::BYTES_MIN;

/// Default number of objects of a load.
const OBJECTS: f64 = 1000.0;
/// Maximum number of processes, and of threads of each.
const LANES_MAX: u32 = 1024;

const EXAMPLES: &str = "Examples:
  junctura load store --preset ensemble --writers 1,2,4   what a store takes and gives, beside a plain write
  junctura load store --preset ensemble --scale 0.01 --writers 1,2,4 --threads 1,2 --plot sweep.png
  junctura load store --store /data/scratch --pattern b --contended --catalogue checkpoint --threads 1,4 --json";

/// Load a store as an archive of forecasts does, and measure
///
/// Processes write fields of members x steps x levels x parameters and read them, beside a plain write of the same bytes. Without
/// --store, each row of the table has its own store in the temporary folder of the system.
#[derive(Args, Clone, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct StoreLoadArguments {
    /// The store to load, a folder or bucket, which is created if it does not exist and keeps the objects
    /// (default: one for each row of the table, in the temporary folder of the system, removed afterwards). The plain files for comparison
    /// are written next to its data, or in the temporary folder if the data is in a bucket
    #[arg(long, value_name = "URL")]
    pub(crate) store: Option<String>,
    #[command(flatten)]
    pub(crate) fields: FieldArguments,
    /// Access pattern
    #[arg(long, value_enum, default_value_t = AccessPattern::A)]
    pub(crate) pattern: AccessPattern,
    /// All writers write to one dataset; default: each writes to its own
    #[arg(long)]
    pub(crate) contended: bool,
    /// Source of the catalogue for readers
    #[arg(long, value_enum, value_name = "FROM", default_value_t = CatalogueSource::Log)]
    pub(crate) catalogue: CatalogueSource,
    /// A standard load
    #[arg(long, value_enum, conflicts_with_all = ["members", "steps", "levels", "params", "size", "read_back"])]
    pub(crate) preset: Option<LoadPreset>,
    /// Fraction of the objects: 0.01 is the first hundredth (default: 1,000 objects)
    #[arg(long, value_name = "PART")]
    pub(crate) scale: Option<f64>,
    /// Pattern a: as many readers as writers read this share of the objects during the write
    #[arg(long, value_name = "SHARE", default_value_t = 0.0)]
    pub(crate) read_back: f64,
    /// Pattern b: number of rewrites of each object
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) rewrites: u64,
    /// Number of objects between flushes of a writer
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) every: u64,
    /// Number of writing processes, and of reading ones; several numbers make a row of the table each
    #[arg(long, value_name = "N,…", default_value = "1", value_delimiter = ',')]
    pub(crate) writers: Vec<u32>,
    /// Number of threads of each process, likewise
    #[arg(long, value_name = "N,…", default_value = "1", value_delimiter = ',')]
    pub(crate) threads: Vec<u32>,
    /// Plot the rows of the table: PNG, or another format of matplotlib by the extension of the name
    #[arg(long, value_name = "FILE")]
    pub(crate) plot: Option<PathBuf>,
    /// The Python that has matplotlib, for --plot (default: the one that runs this command, else python3)
    #[arg(long, value_name = "PROGRAM", requires = "plot")]
    pub(crate) python: Option<OsString>,
    /// Print a JSON line for each row of the table
    #[arg(long)]
    pub(crate) json: bool,
    #[arg(skip)]
    pub(crate) program: ProgramWords,
}

/// Access pattern of the objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum AccessPattern {
    /// All objects are written, then all are read
    A,
    /// All objects are rewritten while they are read
    B,
}

/// Source of the catalogue for readers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum CatalogueSource {
    /// The commit log alone
    Log,
    /// A checkpoint, an index that is created before they start, and later commits
    Checkpoint,
}

/// A standard load.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum LoadPreset {
    /// 5 members x 10 steps x 200 levels x 11 parameters of 803 KiB; 70 % are read during the write
    Ensemble,
}

/// A load with its arguments resolved.
#[derive(Clone, Debug)]
pub(crate) struct StoreLoad {
    pub(crate) space: LoadSpace,
    pub(crate) count: u64,
    pub(crate) payload_bytes: usize,
    pub(crate) read_back: f64,
}

impl StoreLoad {
    /// # Errors
    /// `InvalidArgument` for arguments that contradict each other.
    pub(crate) fn of(options: &StoreLoadArguments) -> Result<Self> {
        let (space, bytes, read_back) = match options.preset {
            None => (options.fields.space(), options.fields.size, options.read_back),
            Some(LoadPreset::Ensemble) => (ENSEMBLE, 803 << 10, 0.7),
        };
        let whole = space.objects();
        if whole == 0 {
            return Err(invalid(
                "--members",
                "at least one of members, steps, levels and parameters",
            ));
        }
        let scale = options.scale.unwrap_or_else(|| (OBJECTS / whole as f64).min(1.0));
        if !(scale > 0.0 && scale <= 1.0) {
            return Err(invalid("--scale", "more than 0, at most 1"));
        }
        if !(0.0..=1.0).contains(&read_back) {
            return Err(invalid("--read-back", "at least 0, at most 1"));
        }
        if options.pattern == AccessPattern::B && options.read_back > 0.0 {
            return Err(invalid("--read-back", "in pattern b everything is read meanwhile"));
        }
        if options.pattern == AccessPattern::A && options.rewrites > 1 {
            return Err(invalid("--rewrites", "in pattern a nothing is re-written"));
        }
        let load = Self {
            space,
            count: (whole as f64 * scale).ceil() as u64,
            payload_bytes: (bytes as usize).max(BYTES_MIN),
            read_back: if options.pattern == AccessPattern::A {
                read_back
            } else {
                0.0
            },
        };
        options
            .rows()
            .try_for_each(|(writers, threads)| load.check(writers, threads))?;
        Ok(load)
    }

    fn check(&self, writers: u32, threads: u32) -> Result<()> {
        for (name, count) in [("--writers", writers), ("--threads", threads)] {
            if !(1..=LANES_MAX).contains(&count) {
                return Err(invalid(name, &format!("from 1 to {LANES_MAX}")));
            }
        }
        let lanes = u64::from(writers) * u64::from(threads);
        if lanes > self.count {
            let cause = format!("{writers} x {threads} share {} objects: each needs one", self.count);
            return Err(invalid("--writers", &cause));
        }
        Ok(())
    }
}

const ENSEMBLE: LoadSpace = LoadSpace {
    members: 5,
    steps: 10,
    levels: 200,
    params: 11,
};

impl StoreLoadArguments {
    /// Returns the numbers of writers and threads of all rows.
    pub(crate) fn rows(&self) -> impl Iterator<Item = (u32, u32)> + '_ {
        let of_writers = |&writers| self.threads.iter().map(move |&threads| (writers, threads));
        self.writers.iter().flat_map(of_writers)
    }
}

fn invalid(subject: &str, cause: &str) -> Error {
    Error::new(Code::InvalidArgument, subject, cause)
}

#[cfg(test)]
mod tests {
    use clap::{Args as _, Command, FromArgMatches};

    use super::*;

    fn load(words: &[&str]) -> std::result::Result<StoreLoad, String> {
        let command = StoreLoadArguments::augment_args(Command::new("store"));
        let matches = command.try_get_matches_from([&["store"], words].concat());
        let arguments = matches.and_then(|matches| StoreLoadArguments::from_arg_matches(&matches));
        let arguments = arguments.map_err(|error| error.to_string())?;
        StoreLoad::of(&arguments).map_err(|error| error.to_string())
    }

    #[test]
    fn a_preset_says_what_the_load_is() {
        let ensemble = load(&["--preset", "ensemble", "--scale", "1"]).unwrap();
        assert_eq!((ensemble.count, ensemble.payload_bytes), (110_000, 822_272));
        assert!((ensemble.read_back - 0.7).abs() < 1e-9);
        let part = load(&["--preset", "ensemble", "--scale", "0.01"]).unwrap();
        assert_eq!(part.count, 1100);
        assert_eq!(load(&[]).unwrap().count, 1000);
    }

    #[test]
    fn what_makes_no_load_is_refused() {
        for (words, cause) in [
            (&["--pool", "unix:x"][..], "unexpected argument"),
            (&["--preset", "ensemble", "--steps", "3"], "cannot be used with"),
            (&["--python", "python3"], "--plot"),
            (&["--scale", "0"], "--scale"),
            (&["--scale", "1.5"], "--scale"),
            (&["--scale", "nan"], "--scale"),
            (&["--read-back", "1.5"], "--read-back"),
            (&["--read-back", "0.5", "--pattern", "b"], "--read-back"),
            (&["--rewrites", "2"], "--rewrites"),
            (&["--writers", "0"], "--writers"),
            (&["--threads", "2,0"], "--threads"),
            (&["--levels", "0"], "at least one"),
            (&["--scale", "0.0001", "--writers", "2"], "share 1 objects"),
        ] {
            let error = load(words).unwrap_err();
            assert!(error.contains(cause), "{words:?}: {error}");
        }
    }
}
