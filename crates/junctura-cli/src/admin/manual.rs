//! `junctura man`: manual pages, from the same description as the help.

use std::path::{Path, PathBuf};

use clap::Args;
use junctura::{Code, Error, Result};

use crate::terminal::output::Out;

const EXAMPLES: &str = "Examples:
  junctura man --out ~/.local/share/man/man1     then: man junctura-put
  junctura man | man -l -                        the page of the whole command, here and now";

/// Write the manual pages
///
/// A page for the command and one for each of its parts: junctura.1, junctura-put.1, junctura-bundle-open.1 and so on.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct ManualArguments {
    /// Write all pages into this folder, which is made if it is not there (default: print the page of the whole command)
    #[arg(short, long, value_name = "FOLDER")]
    out: Option<PathBuf>,
}

/// Writes.
pub(crate) fn run(arguments: &ManualArguments) -> Result<()> {
    let mut command = crate::shown();
    command.build();
    let mut out = Out::new();
    match &arguments.out {
        None => out.bytes(&page(&command, "junctura")?)?,
        Some(folder) => {
            std::fs::create_dir_all(folder).map_err(|error| io(folder, &error))?;
            write_all(&command, "junctura", folder)?;
        }
    }
    out.flush()
}

fn write_all(command: &clap::Command, name: &str, folder: &Path) -> Result<()> {
    let path = folder.join(format!("{name}.1"));
    std::fs::write(&path, page(command, name)?).map_err(|error| io(&path, &error))?;
    let parts = command
        .get_subcommands()
        .filter(|part| !part.is_hide_set() && part.get_name() != "help");
    for part in parts {
        write_all(part, &format!("{name}-{}", part.get_name()), folder)?;
    }
    Ok(())
}

fn page(command: &clap::Command, name: &str) -> Result<Vec<u8>> {
    let mut page = Vec::new();
    let named = command
        .clone()
        .display_name(name.to_owned())
        .bin_name(name.replace('-', " "));
    let rendered = clap_mangen::Man::new(named)
        .title(name)
        .source(concat!("junctura ", env!("CARGO_PKG_VERSION")))
        .manual("Junctura")
        .render(&mut page);
    rendered.map_err(|error| io(Path::new(name), &error))?;
    Ok(page)
}

fn io(path: &Path, error: &std::io::Error) -> Error {
    Error::new(Code::Io, path.display().to_string(), error.to_string())
}
