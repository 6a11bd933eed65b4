//! `junctura weights`: files of regridding weights. The Python package converts them; this becomes it.

use std::ffi::OsString;

use clap::{Args, Subcommand};
use junctura::Result;
use junctura_terminal::program::ProgramWords;

use crate::python_program::PythonLine;

const EXAMPLES: &str = "Examples:
  junctura weights convert rmp_t42_to_r1.nc t42_r1.weights      for C, C++ and Fortran: jct_weights_open
  junctura weights convert yac.nc yac.weights --source-shape 180x360 --target-shape 90x180
Needs Python with the package and its extra `remap`: pip install 'PATH[remap]', PATH being a wheel or a clone of Junctura.";

/// Convert files of regridding weights
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct WeightsArguments {
    #[command(subcommand)]
    command: WeightsCommand,
}

#[derive(Subcommand, Debug)]
enum WeightsCommand {
    Convert(ConvertArguments),
}

/// Convert weights of SCRIP, ESMF, cdo or YAC (netCDF) to the binary format that programs read without netCDF, and back
#[derive(Args, Debug)]
struct ConvertArguments {
    /// The file to read, of any of the formats
    #[arg(value_name = "FROM")]
    source: OsString,
    /// The file to write; an existing one is replaced
    #[arg(value_name = "TO")]
    target: OsString,
    /// The format of the file to write
    #[arg(long, value_name = "FORM", value_parser = ["binary", "esmf", "scrip"], default_value = "binary")]
    form: String,
    /// The shape of the source grid, such as 180x360, where the file lacks it
    #[arg(long, value_name = "SHAPE")]
    source_shape: Option<OsString>,
    /// The shape of the target grid, where the file lacks it
    #[arg(long, value_name = "SHAPE")]
    target_shape: Option<OsString>,
    /// Print nothing
    #[arg(long, short)]
    quiet: bool,
    /// The Python that has the package (default: the one that runs this command, else python3)
    #[arg(long, value_name = "FILE")]
    python: Option<OsString>,
}

/// Becomes the Python program, with its output and exit status.
pub(crate) fn run(arguments: &WeightsArguments, program: &ProgramWords) -> Result<()> {
    let WeightsCommand::Convert(given) = &arguments.command;
    let words = PythonLine::of("convert")
        .value("--form", &given.form)
        .values([
            ("--source-shape", &given.source_shape),
            ("--target-shape", &given.target_shape),
        ])
        .flags([("--quiet", given.quiet)])
        .end([&given.source, &given.target]);
    Err(program.become_module("junctura.remap", words, given.python.as_ref()))
}
