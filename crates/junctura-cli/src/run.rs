//! `junctura run`: workflows, and products of fields as they come. The Python package does both (`python/junctura/workflow`,
//! `python/junctura/products`); this becomes it.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::Args;
use clap::builder::PossibleValue;
use junctura::Result;

use crate::program::Program;

const EXAMPLES: &str = "Examples:
  junctura run workflow.yaml --check                             what it would run, and what waits for what
  junctura run workflow.yaml                                     run it; Ctrl-C ends it in order
  junctura run workflow.yaml --resume runs/ensemble/latest       go on with it: what is done is not done again
  junctura run recipes/*.yaml --check                            what they need, and which files they make
  junctura run recipes/*.yaml --pool unix:model                  until all products are made
  junctura run recipes/*.yaml --until-gone 'member-*'            or until all members have left
  junctura run t850.yaml --behind /data/archive --workers 4      also of fields that a store has
  junctura run recipes/*.yaml --now                              of what is there now; waits for nothing
  junctura run t850.yaml --announce unix:default                 tell others of each product that is there
  junctura run recipes/*.yaml --keep-going                       those that are right, if some are wrong
  junctura run --schema recipe > recipe.schema.json              what a recipe may say, for an editor
Exit status of a workflow: 0 done; 1 a task failed; 2 the file or the command line is wrong; 130 interrupted.
Needs Python with the package: pip install 'junctura[products]'.";

/// Run a workflow, or make products of fields as they come
///
/// A workflow (YAML) has services, producers and consumers as tasks, and says when each starts: at once, after others, on an object in
/// the pool, once for each object. Services end when their users are done, and nothing is left when the run has ended.
///
/// Each recipe (YAML) says which fields it needs, what is done with them, and what comes of it: GRIB, netCDF, Zarr, maps, tables of
/// points. Only those fields are taken from the pool, each is decoded once, and a product is there a moment after its last field.
/// What is there already from an earlier run is not made again. A plan says what else is to be done with fields as they come, and where
/// they go.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// A workflow; or recipes for products, or a plan; in YAML
    #[arg(required_unless_present = "schema", value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Print the JSON Schema of such files, by which editors help to write them, and do nothing else
    #[arg(long, value_name = "KIND", value_parser = kinds(), conflicts_with = "files")]
    schema: Option<String>,
    /// Say what the files mean: what a workflow runs, and what waits for what; which fields recipes need, and which files they make
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
    #[command(flatten)]
    workflow: Workflow,
    #[command(flatten)]
    products: Products,
}

/// Kinds of files that have a schema; `requirement` is the earlier name of `recipe`.
fn kinds() -> [PossibleValue; 3] {
    [
        PossibleValue::new("workflow"),
        PossibleValue::new("recipe").alias("requirement"),
        PossibleValue::new("plan"),
    ]
}

/// What is said of workflows alone.
#[derive(Args, Debug)]
#[command(next_help_heading = "Workflows")]
struct Workflow {
    /// Say each command as it would be run
    #[arg(long)]
    dry_run: bool,
    /// Go on with the run in this folder: tasks that are done are not done again
    #[arg(long, value_name = "RUN", conflicts_with = "run_dir")]
    resume: Option<OsString>,
    /// The folder of the run (default: runs/NAME/TIME)
    #[arg(long, value_name = "DIR")]
    run_dir: Option<OsString>,
    /// How many cores local tasks may have at once (default: what the workflow says, else all)
    #[arg(long, value_name = "N")]
    parallel: Option<OsString>,
}

/// Options of recipes and plans alone. The Python program has the defaults, and gets only options that are given.
#[derive(Args, Debug)]
#[command(next_help_heading = "Products")]
struct Products {
    #[arg(
        long,
        value_name = "URL",
        help = "Where the fields are: unix:NAME, unix:/path.sock, unix:@abstract or tcp://HOST:PORT (default: $JUNCTURA_POOL, else unix:default)"
    )]
    pool: Option<OsString>,
    #[arg(
        id = "client_name",
        long = "as",
        visible_alias = "name",
        value_name = "NAME",
        help = "What this calls itself in the pool (default: $JUNCTURA_NAME, else junctura run)"
    )]
    name: Option<OsString>,
    /// A store behind the pool: what it has is used, too; where no pool is served, it alone
    #[arg(long, value_name = "URL")]
    behind: Option<OsString>,
    /// Where the products go (default: products)
    #[arg(long, value_name = "DIR")]
    out: Option<OsString>,
    /// Processes that make products (default: auto, by cores and memory)
    #[arg(long, value_name = "N")]
    workers: Option<OsString>,
    /// Products on the workers of a Dask cluster, by its scheduler's address or file; --out has to be a folder that they see, too
    #[arg(long, value_name = "ADDRESS", conflicts_with = "workers")]
    dask: Option<OsString>,
    /// End when everybody of this name has left the pool, with what can be made; `*` is anything, may be given again
    #[arg(long, value_name = "NAME")]
    until_gone: Vec<OsString>,
    /// Make what the fields that are there allow, and end
    #[arg(long)]
    now: bool,
    /// End when no client is left that could offer what is missing, and nothing has come for so long (default: 10s)
    #[arg(long, value_name = "TIME")]
    patience: Option<OsString>,
    /// A pool in which each product is announced as soon as it is there, by an object that says what it is and where
    #[arg(long, value_name = "URL")]
    announce: Option<OsString>,
    /// Name and leave out recipes that are wrong, and make the products of all others; the exit status is 1 then
    #[arg(long)]
    keep_going: bool,
}

/// Becomes the Python program, with its output and exit status.
pub(crate) fn run(arguments: &Arguments, program: &Program) -> Result<()> {
    Err(program.become_module("junctura._run", words(arguments), arguments.python.as_ref()))
}

/// What was said, and nothing else: which of it fits depends on what the files are.
fn words(arguments: &Arguments) -> Vec<OsString> {
    let Arguments { workflow, products, .. } = arguments;
    let mut words: Vec<OsString> = Vec::new();
    for (name, value) in [
        ("--resume", &workflow.resume),
        ("--run-dir", &workflow.run_dir),
        ("--parallel", &workflow.parallel),
        ("--pool", &products.pool),
        ("--as", &products.name),
        ("--behind", &products.behind),
        ("--out", &products.out),
        ("--workers", &products.workers),
        ("--dask", &products.dask),
        ("--announce", &products.announce),
        ("--patience", &products.patience),
    ] {
        if let Some(value) = value {
            words.push(joined(name, value));
        }
    }
    if let Some(kind) = &arguments.schema {
        words.push(joined("--schema", &OsString::from(kind)));
    }
    words.extend(products.until_gone.iter().map(|name| joined("--until-gone", name)));
    for (name, is_set) in [
        ("--dry-run", workflow.dry_run),
        ("--check", arguments.check),
        ("--json", arguments.json),
        ("--quiet", arguments.quiet),
        ("--keep-going", products.keep_going),
        ("--now", products.now),
    ] {
        words.extend(is_set.then(|| OsString::from(name)));
    }
    // What follows is a file, whatever it begins with.
    words.push(OsString::from("--"));
    words.extend(arguments.files.iter().map(|file| file.clone().into_os_string()));
    words
}

/// An option with its value in one word, so that a value may begin with a dash.
fn joined(name: &str, value: &OsString) -> OsString {
    let mut word = OsString::from(name);
    word.push("=");
    word.push(value);
    word
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

    fn told(said: &[&str]) -> Vec<OsString> {
        words(&Line::parse_from(said).arguments)
    }

    #[test]
    fn python_is_told_what_was_said_and_nothing_else() {
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
            "--keep-going",
            "--now",
            "--patience",
            "1min",
        ];
        let expected = [
            "--pool=unix:x",
            "--announce=unix:y",
            "--patience=1min",
            "--until-gone=m-*",
            "--until-gone=n",
            "--json",
            "--keep-going",
            "--now",
            "--",
            "a.yaml",
            "b.yaml",
        ];
        assert_eq!(told(&said), expected);
        assert_eq!(told(&["run", "a.yaml"]), ["--", "a.yaml"]);
    }

    #[test]
    fn a_schema_needs_no_file() {
        for kind in ["plan", "recipe", "requirement"] {
            assert_eq!(
                told(&["run", "--schema", kind]),
                [format!("--schema={kind}").as_str(), "--"]
            );
        }
        for wrong in [
            &["run"][..],
            &["run", "--schema", "plan", "a.yaml"],
            &["run", "--schema", "diagram"],
        ] {
            assert!(Line::try_parse_from(wrong).is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn python_is_told_what_was_said_of_a_workflow() {
        let said = ["run", "w.yaml", "--resume", "runs/w/latest", "--parallel", "4", "-q"];
        let expected = ["--resume=runs/w/latest", "--parallel=4", "--quiet", "--", "w.yaml"];
        assert_eq!(told(&said), expected);
        assert_eq!(
            told(&["run", "--dry-run", "w.yaml", "--run-dir", "x"]),
            ["--run-dir=x", "--dry-run", "--", "w.yaml"]
        );
        assert!(Line::try_parse_from(["run", "w.yaml", "--resume", "x", "--run-dir", "y"]).is_err());
    }
}
