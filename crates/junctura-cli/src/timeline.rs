//! `junctura timeline`: what happened in a run of a workflow, as a picture. The Python package draws it; this becomes it.

use std::ffi::OsString;

use clap::Args;
use junctura::Result;
use junctura_terminal::program::ProgramWords;

const EXAMPLES: &str = "Examples:
  junctura timeline runs/ensemble/latest                     into runs/ensemble/latest/timeline.html
  junctura timeline runs/ensemble/latest --out - > now.html  of a run that goes on
Needs Python with the package: pip install junctura.";

/// Draw what happened in a run of a workflow
///
/// One file of HTML, which needs no other and no network: when each task waited and ran, why it started, how it ended, what came into the
/// pool, and which chain of tasks and waits decided how long the run took. `junctura run` draws it at the end.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct TimelineArguments {
    /// The folder of the run
    #[arg(value_name = "RUN")]
    run: OsString,
    /// Where the page goes (default: RUN/timeline.html); - is standard output
    #[arg(long, value_name = "FILE")]
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
