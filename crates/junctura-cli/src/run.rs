//! `junctura run`: products of fields as they come. The Python package does it (`python/junctura/products`); this becomes it.

use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::Command;

use clap::Args;
use junctura::{Code, Error, Result};

use crate::program::Program;
use crate::url::PoolArguments;

const EXAMPLES: &str = "Examples:
  junctura run requirements/*.yaml --check                       what they need, and which files they make
  junctura run requirements/*.yaml --pool unix:model             until all products are made
  junctura run requirements/*.yaml --until-gone 'member-*'       or until all members have left
  junctura run t850.yaml --behind /data/archive --workers 4      also of fields that a store has
  junctura run t850.yaml --announce unix:default                 tell others of each product that is there
Needs Python with the package: pip install 'junctura[products]'.";

/// Make products of fields as they come
///
/// Each requirement (YAML) says which fields it needs, what is done with them, and what comes of it: GRIB, netCDF, Zarr, maps, tables of
/// points. Only those fields are taken from the pool, each is decoded once, and a product is there a moment after its last field.
/// What is there already from an earlier run is not made again. A plan says what else is to be done with fields as they come, and where
/// they go.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// Requirements for products, or a plan; in YAML
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    #[command(flatten)]
    pool: PoolArguments,
    /// A store behind the pool: what it has is used, too
    #[arg(long, value_name = "URL")]
    behind: Option<OsString>,
    /// Where the products go
    #[arg(long, default_value = "products", value_name = "DIR")]
    out: PathBuf,
    /// Processes that make products; `auto`: by cores and memory
    #[arg(long, default_value = "auto", value_name = "N")]
    workers: String,
    /// End when everybody of this name has left the pool, with what can be made; `*` is anything, may be given again
    #[arg(long, value_name = "NAME")]
    until_gone: Vec<String>,
    /// A pool in which each product is announced as soon as it is there, by an object that says what it is and where
    #[arg(long, value_name = "URL")]
    announce: Option<OsString>,
    /// Read the requirements, and say what they need and which files they make
    #[arg(long)]
    check: bool,
    /// Say what became of it for programs
    #[arg(long)]
    json: bool,
    /// Show no progress
    #[arg(long, short)]
    quiet: bool,
    /// The Python that has the package (default: the one that runs this command, else python3)
    #[arg(long, value_name = "FILE")]
    python: Option<OsString>,
}

/// Becomes the Python program, with its output and exit status.
pub(crate) fn run(arguments: &Arguments, program: &Program) -> Result<()> {
    let python = arguments.python.clone().unwrap_or_else(|| program.python());
    let error = Command::new(&python)
        .args(["-m", "junctura.products"])
        .args(words(arguments))
        .exec();
    let cause = format!("{error}; products are made by the Python package: --python says which Python has it");
    Err(Error::new(Code::Unsupported, python.display().to_string(), cause))
}

fn words(arguments: &Arguments) -> Vec<OsString> {
    let mut words: Vec<OsString> = Vec::new();
    let mut option = |name: &str, value: OsString| words.extend([OsString::from(name), value]);
    option("--pool", OsString::from(&arguments.pool.pool));
    option("--as", OsString::from(arguments.pool.client.or("junctura run")));
    option("--out", arguments.out.clone().into_os_string());
    option("--workers", OsString::from(&arguments.workers));
    for name in &arguments.until_gone {
        option("--until-gone", OsString::from(name));
    }
    for (name, value) in [("--behind", &arguments.behind), ("--announce", &arguments.announce)] {
        if let Some(value) = value {
            option(name, value.clone());
        }
    }
    for (name, is_set) in [
        ("--check", arguments.check),
        ("--json", arguments.json),
        ("--quiet", arguments.quiet),
    ] {
        words.extend(is_set.then(|| OsString::from(name)));
    }
    // What follows is a file, whatever it begins with.
    words.push(OsString::from("--"));
    words.extend(arguments.files.iter().map(|file| file.clone().into_os_string()));
    words
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        arguments: Arguments,
    }

    #[test]
    fn python_is_told_what_was_said() {
        let said = [
            "run",
            "a.yaml",
            "b.yaml",
            "--pool",
            "unix:x",
            "--until-gone",
            "m-*",
            "--until-gone",
            "n",
            "--announce",
            "unix:y",
            "--json",
        ];
        let line = Line::parse_from(said);
        let expected = [
            "--pool",
            "unix:x",
            "--as",
            "junctura run",
            "--out",
            "products",
            "--workers",
            "auto",
            "--until-gone",
            "m-*",
            "--until-gone",
            "n",
            "--announce",
            "unix:y",
            "--json",
            "--",
            "a.yaml",
            "b.yaml",
        ];
        assert_eq!(words(&line.arguments), expected);
    }
}
