//! What `junctura hammer --store` can be told.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, ValueEnum};
use junctura::{Code, Error, Result};
use serde::Serialize;

use crate::hammer::HammerArguments;
use crate::hammer::load::LoadSpace;
use crate::hammer::stamp::BYTES_MIN;

/// Objects of a load, unless it is said what part of it is wanted.
const OBJECTS: f64 = 1000.0;
/// Processes, and threads of each.
const LANES_MAX: u32 = 1024;

/// Options that only a store's load has.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Loads of a store")]
pub(in crate::hammer) struct StoreLoadArguments {
    /// Load a store instead of a pool: the one in this folder or bucket, made where there is none, which keeps what is written
    /// (default: one for each row of the table, in the system's temporary folder, removed afterwards). The plain files beside it lie
    /// with its data, or in the temporary folder where these lie in a bucket
    #[arg(long, value_name = "URL", num_args = 0..=1, default_missing_value = "", conflicts_with_all = OF_POOLS)]
    pub(crate) store: Option<String>,
    /// What is done
    #[arg(long, value_enum, default_value_t = AccessPattern::A, requires = "store")]
    pub(crate) pattern: AccessPattern,
    /// All writers write into one dataset; without it, each has one of its own
    #[arg(long, requires = "store")]
    pub(crate) contended: bool,
    /// From what readers learn what is there
    #[arg(long, value_enum, value_name = "FROM", default_value_t = CatalogueSource::Log, requires = "store")]
    pub(crate) catalogue: CatalogueSource,
    /// A load that is well known
    #[arg(long, value_enum, requires = "store", conflicts_with_all = ["members", "steps", "levels", "params", "size", "read_back"])]
    pub(crate) preset: Option<LoadPreset>,
    /// Only this part of the objects: 0.01 is the first hundredth (default: 1,000 objects)
    #[arg(long, value_name = "PART", requires = "store")]
    pub(crate) scale: Option<f64>,
    /// Pattern a: as many readers as writers read this share of the objects back while they are written
    #[arg(long, value_name = "SHARE", default_value_t = 0.0, requires = "store")]
    pub(crate) read_back: f64,
    /// Pattern b: how often each object is re-written
    #[arg(long, value_name = "N", default_value_t = 1, requires = "store", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) rewrites: u64,
    /// A writer flushes after each N objects
    #[arg(long, value_name = "N", default_value_t = 100, requires = "store", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) every: u64,
    /// Processes that write, and as many that read; several numbers make a row of the table each
    #[arg(
        long,
        value_name = "N,…",
        default_value = "1",
        value_delimiter = ',',
        requires = "store"
    )]
    pub(crate) writers: Vec<u32>,
    /// Threads of each of them, likewise
    #[arg(
        long,
        value_name = "N,…",
        default_value = "1",
        value_delimiter = ',',
        requires = "store"
    )]
    pub(crate) threads: Vec<u32>,
    /// Draw the rows of the table, too: a PNG, or whatever else matplotlib makes of the name's ending
    #[arg(long, value_name = "FILE", requires = "store")]
    pub(crate) plot: Option<PathBuf>,
    /// The Python that has matplotlib, for --plot (default: the one that runs this command, else python3)
    #[arg(long, value_name = "PROGRAM", requires = "plot")]
    pub(crate) python: Option<OsString>,
}

/// Options that say nothing about a store.
const OF_POOLS: [&str; 23] = [
    "pool",
    "consume_from",
    "offer_to",
    "grib",
    "producers",
    "consumers",
    "groups",
    "followers",
    "retention",
    "kills",
    "cuts",
    "seed",
    "mode",
    "window",
    "bundle",
    "subscriptions",
    "rate",
    "work",
    "duration",
    "warmup",
    "inline_max",
    "spin",
    "history",
];

/// What is done with the objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum AccessPattern {
    /// All are written, then all are read
    A,
    /// All are re-written while they are read
    B,
}

/// From what readers learn what is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum CatalogueSource {
    /// The commit log alone
    Log,
    /// A checkpoint, an index that is made before they begin, and what came after it
    Checkpoint,
}

/// A load that is well known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum LoadPreset {
    /// 5 members x 10 steps x 200 levels x 11 parameters of 803 KiB; 70 % are read back while they are written
    Ensemble,
}

/// A load, as the arguments mean it.
#[derive(Clone, Debug)]
pub(crate) struct StoreLoad {
    pub(crate) space: LoadSpace,
    pub(crate) count: u64,
    pub(crate) payload_bytes: usize,
    pub(crate) read_back: f64,
}

impl StoreLoad {
    /// # Errors
    /// `InvalidArgument` for arguments that make none.
    pub(crate) fn of(arguments: &HammerArguments) -> Result<Self> {
        let options = &arguments.store;
        let (space, bytes, read_back) = match options.preset {
            None => (arguments.space(), arguments.size, options.read_back),
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
    /// Writers, and threads of each, of all rows of the table.
    pub(crate) fn rows(&self) -> impl Iterator<Item = (u32, u32)> + '_ {
        let of_writers = |&writers| self.threads.iter().map(move |&threads| (writers, threads));
        self.writers.iter().flat_map(of_writers)
    }

    /// Whether it is a store that is loaded.
    pub(in crate::hammer) fn is_wanted(&self) -> bool {
        self.store.is_some()
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
        let command = HammerArguments::augment_args(Command::new("hammer"));
        let matches = command.try_get_matches_from([&["hammer"], words].concat());
        let arguments = matches.and_then(|matches| HammerArguments::from_arg_matches(&matches));
        let arguments = arguments.map_err(|error| error.to_string())?;
        StoreLoad::of(&arguments).map_err(|error| error.to_string())
    }

    #[test]
    fn a_preset_says_what_the_load_is() {
        let ensemble = load(&["--store", "--preset", "ensemble", "--scale", "1"]).unwrap();
        assert_eq!((ensemble.count, ensemble.payload_bytes), (110_000, 822_272));
        assert!((ensemble.read_back - 0.7).abs() < 1e-9);
        let part = load(&["--store", "--preset", "ensemble", "--scale", "0.01"]).unwrap();
        assert_eq!(part.count, 1100);
        assert_eq!(load(&["--store"]).unwrap().count, 1000);
    }

    #[test]
    fn what_makes_no_load_is_refused() {
        for (words, cause) in [
            (&["--store", "--pool", "unix:x"][..], "cannot be used with"),
            (
                &["--store", "--preset", "ensemble", "--steps", "3"],
                "cannot be used with",
            ),
            (&["--pattern", "b"], "--store"),
            (&["--plot", "a.png"], "--store"),
            (&["--store", "--python", "python3"], "--plot"),
            (&["--store", "--scale", "0"], "--scale"),
            (&["--store", "--scale", "1.5"], "--scale"),
            (&["--store", "--scale", "nan"], "--scale"),
            (&["--store", "--read-back", "1.5"], "--read-back"),
            (&["--store", "--read-back", "0.5", "--pattern", "b"], "--read-back"),
            (&["--store", "--rewrites", "2"], "--rewrites"),
            (&["--store", "--writers", "0"], "--writers"),
            (&["--store", "--threads", "2,0"], "--threads"),
            (&["--store", "--levels", "0"], "at least one"),
            (&["--store", "--scale", "0.0001", "--writers", "2"], "share 1 objects"),
        ] {
            let error = load(words).unwrap_err();
            assert!(error.contains(cause), "{words:?}: {error}");
        }
    }
}
