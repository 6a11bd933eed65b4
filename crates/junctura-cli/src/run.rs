//! `junctura run`: workflows, and products of fields as they arrive. The Python package does both (`python/junctura/workflow`,
//! `python/junctura/products`); this becomes it.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::Args;
use clap::builder::PossibleValue;
use junctura::Result;
use junctura_terminal::program::ProgramWords;

use crate::python_program::{PythonLine, PythonPoolArguments};

const EXAMPLES: &str = "Examples:
  junctura run workflow.yaml --check                             validate it, and draw its dependencies
  junctura run workflow.yaml                                     run it; Ctrl-C ends it cleanly
  junctura run workflow.yaml --resume runs/ensemble/latest       resume a run: tasks that are done are skipped
  junctura run recipes/*.yaml --check                            validate them; print their inputs and files
  junctura run recipes/*.yaml --pool unix:model                  run until all products are made
  junctura run recipes/*.yaml --until-gone 'member-*'            or until all members have disconnected
  junctura run t850.yaml --behind /data/archive --workers 4      also take fields from a store
  junctura run recipes/*.yaml --now                              make what the fields present allow, and end
  junctura run t850.yaml --announce unix:default                 offer an object for each complete product
  junctura run recipes/*.yaml --keep-going                       leave out invalid recipes
  junctura run --schema recipe > recipe.schema.json              the JSON Schema of recipes, for an editor
Exit status of a workflow: 0 done; 1 a task failed; 2 the file or the command line is invalid; 130 interrupted.
Needs Python with the package and its extra `products`: pip install 'PATH[products]', PATH being a wheel or a clone of Junctura.";

/// Run a workflow, or make products of fields as they arrive
///
/// A workflow (YAML) starts services, producers and consumers as tasks: immediately, after other tasks, on an object in the pool, or
/// once for each object. Services are stopped when the tasks that use them have ended; no process is left when the run has ended.
///
/// A recipe (YAML) states the fields it needs, the operations, and the product: GRIB, netCDF, Zarr, maps, tables of points. Only
/// these fields are taken from the pool, and each is decoded once. Products that are complete from an earlier run are not made again.
/// A plan states which other actions are applied to fields as they arrive, and to which sinks they are written.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct RunArguments {
    /// A workflow, recipes for products, or a plan, in YAML
    #[arg(required_unless_present = "schema", value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Print the JSON Schema of such files, for editors, and exit
    #[arg(long, value_name = "KIND", value_parser = kinds(), conflicts_with = "files")]
    schema: Option<String>,
    /// Validate the files, and print the dependencies of a workflow, or the inputs and files of recipes; start nothing
    #[arg(long)]
    check: bool,
    /// Print the report as JSON
    #[arg(long)]
    json: bool,
    /// Show no progress
    #[arg(long, short)]
    quiet: bool,
    /// The Python that has the package (default: the one that runs this command, else python3)
    #[arg(long, value_name = "FILE")]
    python: Option<OsString>,
    #[command(flatten)]
    workflow: WorkflowOptions,
    #[command(flatten)]
    products: ProductOptions,
}

/// Kinds of files that have a schema; `requirement` is the earlier name of `recipe`.
fn kinds() -> [PossibleValue; 3] {
    [
        PossibleValue::new("workflow"),
        PossibleValue::new("recipe").alias("requirement"),
        PossibleValue::new("plan"),
    ]
}

/// Options of workflows alone.
#[derive(Args, Debug)]
#[command(next_help_heading = "Workflows")]
struct WorkflowOptions {
    /// Print each command as it would be run
    #[arg(long)]
    dry_run: bool,
    /// Resume the run in this folder: tasks that are done are skipped
    #[arg(long, value_name = "RUN", conflicts_with = "run_dir")]
    resume: Option<OsString>,
    /// The folder of the run (default: runs/NAME/TIME)
    #[arg(long, value_name = "FOLDER")]
    run_dir: Option<OsString>,
    /// Cores that local tasks may use at once (default: as the workflow states, else all)
    #[arg(long, value_name = "N")]
    parallel: Option<OsString>,
}

/// Options of recipes and plans alone.
#[derive(Args, Debug)]
#[command(next_help_heading = "Products")]
struct ProductOptions {
    #[command(flatten)]
    pool: PythonPoolArguments,
    /// A store behind the pool, whose fields are used, too; the only source if no pool is served
    #[arg(long, value_name = "URL")]
    behind: Option<OsString>,
    /// The folder of the products (default: products)
    #[arg(short, long, value_name = "FOLDER")]
    out: Option<OsString>,
    /// Processes that make products (default: auto, by cores and memory)
    #[arg(long, value_name = "N")]
    workers: Option<OsString>,
    /// Make products on the workers of the Dask cluster with this scheduler (address or file); they must share the folder of --out
    #[arg(long, value_name = "ADDRESS", conflicts_with = "workers")]
    dask: Option<OsString>,
    /// End when all clients of this name have disconnected; `*` matches anything; can be repeated
    #[arg(long, value_name = "NAME")]
    until_gone: Vec<OsString>,
    /// Make the products that the fields present allow, and end
    #[arg(long)]
    now: bool,
    /// End this long after the last progress if no client is left that could offer missing fields (default: 10s)
    #[arg(long, value_name = "TIME")]
    patience: Option<OsString>,
    /// A pool to which an object is offered for each complete product, with its attributes and its path
    #[arg(long, value_name = "URL")]
    announce: Option<OsString>,
    /// Report invalid recipes, leave them out, and make all others (exit status 1)
    #[arg(long)]
    keep_going: bool,
}

/// Becomes the Python program, with its output and exit status.
pub(crate) fn run(arguments: &RunArguments, program: &ProgramWords) -> Result<()> {
    Err(program.become_module("junctura._run", words(arguments), arguments.python.as_ref()))
}

/// Returns the given options; the files decide which apply.
fn words(arguments: &RunArguments) -> Vec<OsString> {
    let RunArguments { workflow, products, .. } = arguments;
    let mut line = PythonLine::default()
        .values([
            ("--resume", &workflow.resume),
            ("--run-dir", &workflow.run_dir),
            ("--parallel", &workflow.parallel),
        ])
        .values(products.pool.values())
        .values([
            ("--behind", &products.behind),
            ("--out", &products.out),
            ("--workers", &products.workers),
            ("--dask", &products.dask),
            ("--announce", &products.announce),
            ("--patience", &products.patience),
        ])
        .values([("--schema", &arguments.schema)]);
    for name in &products.until_gone {
        line = line.value("--until-gone", name);
    }
    line.flags([
        ("--dry-run", workflow.dry_run),
        ("--check", arguments.check),
        ("--json", arguments.json),
        ("--quiet", arguments.quiet),
        ("--keep-going", products.keep_going),
        ("--now", products.now),
    ])
    .end(&arguments.files)
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        arguments: RunArguments,
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
