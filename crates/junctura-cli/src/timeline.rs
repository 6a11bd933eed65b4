//! `junctura timeline` draws the timeline of a workflow run. The Python package does it; this process becomes it.

use std::ffi::OsString;

use clap::Args;
use junctura::Result;
use junctura_terminal::program::ProgramWords;

const EXAMPLES: &str = "Examples:
  junctura timeline runs/ensemble/latest                     into runs/ensemble/latest/timeline.html
  junctura timeline runs/ensemble/latest --out - > now.html  of a run in progress
Needs Python with the package: pip install PATH, PATH being a wheel or a clone of Junctura.";

/// Draw the timeline of a workflow run
///
/// Writes one HTML file without external resources: when each task waited and ran, why it started, how it ended, which objects became visible,
/// and the critical path of the run. `junctura run` draws the timeline at the end of a run.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct TimelineArguments {
    /// Folder of the run
    #[arg(value_name = "RUN")]
    run: OsString,
    /// The file (default: RUN/timeline.html); - means standard output
    #[arg(short, long, value_name = "FILE")]
    out: Option<OsString>,
    /// The Python that has the package (default: the one that runs this command, else python3)
    #[arg(long, value_name = "FILE")]
    python: Option<OsString>,
}

/// Becomes the Python program, with its output and exit status.
pub(crate) fn run(arguments: &TimelineArguments, program: &ProgramWords) -> Result<()> {
    let mut words = Vec::new();
    if let Some(out) = &arguments.out {
        words.extend([OsString::from("--out"), out.clone()]);
    }
    words.extend([OsString::from("--"), arguments.run.clone()]);
    Err(program.become_module("junctura.workflow.timeline", words, arguments.python.as_ref()))
}
