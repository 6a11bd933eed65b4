//! `junctura mesh` and `junctura view`: meshes of simulations. The Python package does both (`python/junctura/mesh`); this process becomes it.

use std::ffi::OsString;

use clap::builder::PossibleValue;
use clap::{Args, Subcommand};
use junctura::Result;
use junctura_terminal::program::ProgramWords;

use crate::python_program::{PythonLine, PythonPoolArguments};

const MODULE: &str = "junctura.mesh";

const MESH: &str = "Examples:
  junctura mesh info wing.exo
  junctura mesh copy wing.exo wing.cgns
  junctura mesh compare wing.exo wing.cgns";

const COPY: &str = "Examples:
  junctura mesh copy wing.exo 'unix:model?case=wing'           every step of a file, into a pool
  junctura mesh copy 'unix:model?case=wing' wing.cgns          what the pool has now, into a file
  junctura mesh copy wing.exo 'file:///data/store?case=wing'   into a store
Needs Python with the package and its extra `mesh`: pip install 'PATH[mesh]', PATH being a wheel or a clone of Junctura.";

const COMPARE: &str = "Examples:
  junctura mesh compare wing.exo wing.cgns                       exactly
  junctura mesh compare wing.exo 'unix:model?case=wing' --rel 1e-9
  junctura mesh compare single.exo double.exo --float-eps        as 4-byte floats
Exit status: 0 equal; 1 they differ.
Needs Python with the package and its extra `mesh`: pip install 'PATH[mesh]', PATH being a wheel or a clone of Junctura.";

const REPLAY: &str = "Examples:
  junctura mesh replay wing.exo 'unix:model?case=wing' --interval 500ms
Needs Python with the package and its extra `mesh`: pip install 'PATH[mesh]', PATH being a wheel or a clone of Junctura.";

const INFO: &str = "Examples:
  junctura mesh info wing.exo
  junctura mesh info 'unix:model?case=wing' --json
Needs Python with the package and its extra `mesh`: pip install 'PATH[mesh]', PATH being a wheel or a clone of Junctura.";

const VIEW: &str = "Examples:
  junctura view case=wing --field pressure --out 'pic-%04d.png'            while the simulation runs
  junctura view case=wing --field pressure --out 'pic-%04d.png' --now      of the steps that are there
  junctura view case=wing --field speed --out 'v-%04d.png' --range 0,2.5 --from xy --movie speed.mp4
Needs Python with the package and its extra `mesh`: pip install 'PATH[mesh]', PATH being a wheel or a clone of Junctura.";

/// Copy, compare, replay and describe meshes of simulations
///
/// A mesh is an Exodus file (.exo, .e, .g), a CGNS file (.cgns), or a URL that ends with ?case=CASE: of a pool (unix:NAME, tcp:) or a store (file:, s3:).
/// `&channel=NAME` selects one of several meshes of a case.
#[derive(Args, Debug)]
#[command(after_help = MESH)]
pub(crate) struct MeshCommandArguments {
    #[command(subcommand)]
    command: MeshCommand,
    /// The Python that has the package (default: the one that runs this command, else python3)
    #[arg(long, value_name = "FILE", global = true)]
    python: Option<OsString>,
}

#[derive(Subcommand, Debug)]
enum MeshCommand {
    /// Copy all steps of a mesh
    ///
    /// A file appears complete, or not at all, and is replaced if it exists. Parts that the target cannot express are reported.
    #[command(after_help = COPY)]
    Copy {
        /// The mesh
        #[arg(value_name = "FROM")]
        from: OsString,
        /// The file to write, or the URL of a pool or a store with the case
        #[arg(value_name = "TO")]
        to: OsString,
        /// Print no progress and no summary
        #[arg(long, short)]
        quiet: bool,
    },
    /// Compare two meshes, step by step
    ///
    /// Prints changed values, missing blocks, sets and fields, and points or elements that are in another order. Types of elements in memory, and content that only one
    /// of two formats can express, are not compared.
    #[command(after_help = COMPARE)]
    Compare {
        /// The first mesh
        #[arg(value_name = "A")]
        first: OsString,
        /// The second mesh
        #[arg(value_name = "B")]
        second: OsString,
        /// Accept differences of at most this much
        #[arg(long = "abs", value_name = "X")]
        absolute: Option<OsString>,
        /// Accept differences of at most this much, relative to the greater value
        #[arg(long = "rel", value_name = "X")]
        relative: Option<OsString>,
        /// Accept differences that 4-byte floats cannot represent
        #[arg(long)]
        float_eps: bool,
        /// Print at most this many differences (default: 20)
        #[arg(long, value_name = "N")]
        limit: Option<u32>,
        /// Print differences only
        #[arg(long, short)]
        quiet: bool,
    },
    /// Offer the steps of a mesh one by one, as a simulation would
    #[command(after_help = REPLAY)]
    Replay {
        /// The mesh
        #[arg(value_name = "FROM")]
        from: OsString,
        /// The URL of a pool with the case
        #[arg(value_name = "TO")]
        to: OsString,
        /// Time between two steps (default: 1s)
        #[arg(long, value_name = "TIME")]
        interval: Option<OsString>,
        /// Print no progress and no summary
        #[arg(long, short)]
        quiet: bool,
    },
    /// Describe a mesh: points, blocks, sets, fields, times
    #[command(after_help = INFO)]
    Info {
        /// The mesh
        #[arg(value_name = "A")]
        mesh: OsString,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
}

/// Draw the steps of a simulation as pictures, while it runs
///
/// Draws a PNG file for each step as soon as all ranks have offered it, without a display, and prints its path. Ends when the pool does. A viewer that is started again
/// draws only pictures that are missing or have changed; the simulation is not affected.
#[expect(clippy::struct_excessive_bools, reason = "one for each option")]
#[derive(Args, Debug)]
#[command(after_help = VIEW)]
pub(crate) struct ViewArguments {
    /// Selects one mesh: case=wing, channel=fluid
    #[arg(value_name = "SELECTOR", required = true)]
    selector: Vec<OsString>,
    #[command(flatten)]
    pool: PythonPoolArguments,
    /// The field that colors the mesh; of a vector its magnitude
    #[arg(long, value_name = "NAME")]
    field: OsString,
    /// Path of the pictures, with the place of the step's number: pic-%04d.png
    #[arg(short, long, value_name = "PATTERN")]
    out: OsString,
    /// At the end, also write one movie of all pictures: .mp4, .mkv or .webm (by the program ffmpeg), .webp or .gif
    #[arg(long, value_name = "FILE")]
    movie: Option<OsString>,
    /// Pictures of the movie in a second (default: 10)
    #[arg(long, value_name = "N", requires = "movie")]
    rate: Option<OsString>,
    /// Size in pixels (default: 800x600)
    #[arg(long, value_name = "WIDTHxHEIGHT")]
    size: Option<OsString>,
    /// Values at the ends of the color scale (default: the least and the greatest value of each picture)
    #[arg(long, value_name = "LOW,HIGH", allow_hyphen_values = true)]
    range: Option<OsString>,
    /// Direction of view: isometric, or on a plane of axes (default: iso)
    #[arg(long, value_name = "DIRECTION", value_parser = ["iso", "xy", "xz", "yz"].map(PossibleValue::new))]
    from: Option<String>,
    /// Color map, by its name in Matplotlib (default: viridis)
    #[arg(long, value_name = "MAP")]
    colors: Option<OsString>,
    /// Draw edges of elements
    #[arg(long)]
    edges: bool,
    /// Draw only steps whose number is a multiple of N
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    every: Option<u32>,
    /// End after this step
    #[arg(long, value_name = "STEP")]
    last: Option<u64>,
    /// Draw the steps that are present, and end
    #[arg(long)]
    now: bool,
    /// Draw existing pictures again
    #[arg(long)]
    redraw: bool,
    /// Print no progress and no summary
    #[arg(long, short)]
    quiet: bool,
    /// The Python that has the package (default: the one that runs this command, else python3)
    #[arg(long, value_name = "FILE")]
    python: Option<OsString>,
}

/// Becomes the Python program, with its output and exit status.
pub(crate) fn run(arguments: &MeshCommandArguments, program: &ProgramWords) -> Result<()> {
    Err(program.become_module(MODULE, mesh_words(&arguments.command), arguments.python.as_ref()))
}

/// Likewise.
pub(crate) fn view(arguments: &ViewArguments, program: &ProgramWords) -> Result<()> {
    Err(program.become_module(MODULE, view_words(arguments), arguments.python.as_ref()))
}

fn mesh_words(command: &MeshCommand) -> Vec<OsString> {
    match command {
        MeshCommand::Copy { from, to, quiet } => PythonLine::of("copy").flags([("--quiet", *quiet)]).end([from, to]),
        MeshCommand::Compare {
            first,
            second,
            absolute,
            relative,
            float_eps,
            limit,
            quiet,
        } => PythonLine::of("compare")
            .values([("--abs", absolute), ("--rel", relative)])
            .values([("--limit", &limit.map(|limit| limit.to_string()))])
            .flags([("--float-eps", *float_eps), ("--quiet", *quiet)])
            .end([first, second]),
        MeshCommand::Replay {
            from,
            to,
            interval,
            quiet,
        } => PythonLine::of("replay")
            .values([("--interval", interval)])
            .flags([("--quiet", *quiet)])
            .end([from, to]),
        MeshCommand::Info { mesh, json } => PythonLine::of("info").flags([("--json", *json)]).end([mesh]),
    }
}

fn view_words(arguments: &ViewArguments) -> Vec<OsString> {
    PythonLine::of("view")
        .values(arguments.pool.values())
        .value("--field", &arguments.field)
        .value("--out", &arguments.out)
        .values([
            ("--movie", &arguments.movie),
            ("--rate", &arguments.rate),
            ("--size", &arguments.size),
            ("--range", &arguments.range),
            ("--colors", &arguments.colors),
        ])
        .values([("--from", &arguments.from)])
        .values([("--every", &arguments.every.map(|every| every.to_string()))])
        .values([("--last", &arguments.last.map(|last| last.to_string()))])
        .flags([
            ("--edges", arguments.edges),
            ("--now", arguments.now),
            ("--redraw", arguments.redraw),
            ("--quiet", arguments.quiet),
        ])
        .end(&arguments.selector)
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct MeshLine {
        #[command(flatten)]
        arguments: MeshCommandArguments,
    }

    #[derive(Parser)]
    struct ViewLine {
        #[command(flatten)]
        arguments: ViewArguments,
    }

    fn mesh(words: &[&str]) -> Vec<OsString> {
        mesh_words(&MeshLine::parse_from(words).arguments.command)
    }

    #[test]
    fn python_gets_the_options_that_are_given() {
        assert_eq!(
            mesh(&["mesh", "copy", "a.exo", "b.cgns"]),
            ["copy", "--", "a.exo", "b.cgns"]
        );
        let words = [
            "mesh",
            "compare",
            "a",
            "b",
            "--abs",
            "1e-3",
            "--float-eps",
            "--limit",
            "3",
            "-q",
        ];
        let expected = [
            "compare",
            "--abs=1e-3",
            "--limit=3",
            "--float-eps",
            "--quiet",
            "--",
            "a",
            "b",
        ];
        assert_eq!(mesh(&words), expected);
        let words = ["mesh", "replay", "a", "b", "--interval", "1s"];
        assert_eq!(mesh(&words), ["replay", "--interval=1s", "--", "a", "b"]);
        assert_eq!(mesh(&["mesh", "info", "--json", "a"]), ["info", "--json", "--", "a"]);
    }

    #[test]
    fn a_view_needs_a_selector_a_field_and_a_pattern() {
        let words = [
            "view", "case=a", "--field", "p", "--out", "p-%d.png", "--range", "-1,1", "--now",
        ];
        let expected = [
            "view",
            "--field=p",
            "--out=p-%d.png",
            "--range=-1,1",
            "--now",
            "--",
            "case=a",
        ];
        let parse = |words: &[&str]| ViewLine::try_parse_from(words).map(|line| view_words(&line.arguments));
        assert!(parse(&words[..5]).is_err());
        assert!(parse(&["view", "case=a", "--field=p", "--out=p-%d.png", "--every", "0"]).is_err());
        // A range may be negative.
        assert_eq!(parse(&words).unwrap(), expected);
    }
}
