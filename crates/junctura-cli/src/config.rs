//! `junctura config`: where the C library of a wheel is. The Python package states it; this becomes it.

use std::ffi::OsString;

use clap::Args;
use junctura::Result;

use junctura_terminal::program::ProgramWords;

const EXAMPLES: &str = "Examples:
  gcc hello.c -o hello $(junctura config --cflags --libs)
  g++ -std=c++17 hello.cpp -o hello $(junctura config --cflags --libs)
  gfortran $(junctura config --fortran) hello.f90 -o hello $(junctura config --libs)
  cmake -S . -B build -DJunctura_DIR=$(junctura config --cmake)
Needs Python with the package: pip install PATH, PATH being a wheel or a clone of Junctura.";

/// Print what compilers and build systems need for C, C++ and Fortran
///
/// A wheel has the C library, the headers of C and C++, the source of the Fortran module, and files of pkg-config and CMake. Options are
/// printed in one line, in the order of this list.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
#[group(required = true, multiple = true)]
#[allow(clippy::struct_excessive_bools, reason = "each is an option of the command line")]
#[allow(clippy::doc_markdown, reason = "the comments are the text of the help")]
pub(crate) struct ConfigArguments {
    /// The folder of all parts
    #[arg(long)]
    prefix: bool,
    /// Options of the compiler of C or C++
    #[arg(long)]
    cflags: bool,
    /// The source of the Fortran module, which is compiled with the program
    #[arg(long)]
    fortran: bool,
    /// Options of the linker
    #[arg(long)]
    libs: bool,
    /// The folder of the CMake package, for -DJunctura_DIR=
    #[arg(long)]
    cmake: bool,
    /// The folder for PKG_CONFIG_PATH
    #[arg(long)]
    pkgconfig: bool,
}

/// Becomes the Python program, with its output and exit status.
pub(crate) fn run(arguments: &ConfigArguments, program: &ProgramWords) -> Result<()> {
    let options = [
        (arguments.prefix, "--prefix"),
        (arguments.cflags, "--cflags"),
        (arguments.fortran, "--fortran"),
        (arguments.libs, "--libs"),
        (arguments.cmake, "--cmake"),
        (arguments.pkgconfig, "--pkgconfig"),
    ];
    let words = options.into_iter().filter(|(is_given, _)| *is_given);
    let words = words.map(|(_, word)| OsString::from(word)).collect();
    Err(program.become_module("junctura._config", words, None))
}
