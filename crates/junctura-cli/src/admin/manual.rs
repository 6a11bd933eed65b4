//! `junctura man` writes manual pages, from the same definitions as the help.

use std::io::Write as _;
use std::path::{Path, PathBuf};

use clap::Args;
use junctura::{Code, Error, Result};
use junctura_terminal::output::StandardOutput;

const EXAMPLES: &str = "Examples:
  junctura man --out ~/.local/share/man/man1     then: man junctura-put
  junctura man | man -l -                        the page of the whole command, here and now";

const EXAMPLES_TITLE: &str = "Examples:";
/// Variables of every command.
const COMMON_VARIABLES: [(&str, &str); 2] = [
    (
        "JUNCTURA_LOG",
        "The level of reports on standard error: error, warn (the default), info, debug or trace.",
    ),
    ("NO_COLOR", "If it is not empty, nothing is styled."),
];

/// Write the manual pages
///
/// A page for the command and one for each of its parts: junctura.1, junctura-put.1, junctura-bundle-open.1 and so on.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct ManualArguments {
    /// Write all pages to this folder, which is created if it does not exist (default: print the page of the whole command)
    #[arg(short, long, value_name = "FOLDER")]
    out: Option<PathBuf>,
}

/// Runs the command.
pub(crate) fn run(arguments: &ManualArguments) -> Result<()> {
    let mut command = crate::shown();
    command.build();
    let mut out = StandardOutput::new();
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
    write_page(command, name, &mut page).map_err(|error| io(Path::new(name), &error))?;
    Ok(page)
}

/// Writes the sections in the order of man-pages(7). Those of `clap_mangen` are first, except the examples, whose lines it would fill.
fn write_page(command: &clap::Command, name: &str, page: &mut Vec<u8>) -> std::io::Result<()> {
    let (examples, other) = sections(command);
    let named = command
        .clone()
        .display_name(name.to_owned())
        .bin_name(name.replace('-', " "));
    let manual = clap_mangen::Man::new(named)
        .title(name)
        .source(concat!("junctura ", env!("CARGO_PKG_VERSION")))
        .manual("Junctura");
    manual.render_title(page)?;
    manual.render_name_section(page)?;
    manual.render_synopsis_section(page)?;
    manual.render_description_section(page)?;
    if command.get_arguments().any(|argument| !argument.is_hide_set()) {
        manual.render_options_section(page)?;
    }
    if command.has_subcommands() {
        manual.render_subcommands_section(page)?;
    }
    for text in &other {
        let (title, text) = text.split_once(": ").unwrap_or(("Notes", text));
        write!(page, ".SH {}\n{}\n", title.to_uppercase(), escaped(text))?;
    }
    write_environment(command, page)?;
    if !examples.is_empty() {
        write!(page, ".SH EXAMPLES\n.nf\n{}\n.fi\n", escaped(&examples))?;
    }
    write_references(command, name, page)
}

/// Returns the lines of the examples in the help, and its other paragraphs.
fn sections(command: &clap::Command) -> (String, Vec<String>) {
    let help = command.get_after_help().map(ToString::to_string).unwrap_or_default();
    let (mut examples, mut other) = (String::new(), Vec::new());
    for part in help.split("\n\n").filter(|part| !part.is_empty()) {
        match part.strip_prefix(EXAMPLES_TITLE) {
            Some(lines) => examples.push_str(lines.trim_matches('\n')),
            None => other.push(part.to_owned()),
        }
    }
    (examples, other)
}

fn write_environment(command: &clap::Command, page: &mut Vec<u8>) -> std::io::Result<()> {
    let own = command.get_arguments().filter_map(|argument| {
        let variable = argument.get_env()?.to_str()?;
        let option = argument.get_long()?;
        Some((variable.to_owned(), format!("The default of --{option}.")))
    });
    let common = COMMON_VARIABLES.map(|(variable, text)| (variable.to_owned(), text.to_owned()));
    writeln!(page, ".SH ENVIRONMENT")?;
    for (variable, text) in own.chain(common) {
        write!(page, ".TP\n\\fB{}\\fR\n{}\n", escaped(&variable), escaped(&text))?;
    }
    Ok(())
}

/// Refers to the page of the whole command and to those of its parts.
fn write_references(command: &clap::Command, name: &str, page: &mut Vec<u8>) -> std::io::Result<()> {
    let parts = command
        .get_subcommands()
        .filter(|part| !part.is_hide_set() && part.get_name() != "help")
        .map(|part| format!("{name}-{}", part.get_name()));
    let above = name.rsplit_once('-').map(|_| "junctura".to_owned());
    let pages: Vec<String> = above
        .into_iter()
        .chain(parts)
        .map(|page| format!("\\fB{}\\fR(1)", escaped(&page)))
        .collect();
    if pages.is_empty() {
        return Ok(());
    }
    write!(page, ".SH SEE ALSO\n{}\n", pages.join(",\n"))
}

/// Returns the text with requests of roff escaped.
fn escaped(text: &str) -> String {
    let line = |line: &str| {
        let line = line.replace('\\', "\\e").replace('-', "\\-");
        match line.chars().next() {
            Some('.' | '\'') => format!("\\&{line}"),
            _ => line,
        }
    };
    text.split('\n').map(line).collect::<Vec<_>>().join("\n")
}

fn io(path: &Path, error: &std::io::Error) -> Error {
    Error::new(Code::Io, path.display().to_string(), error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text_of(name: &str) -> String {
        let mut command = crate::shown();
        command.build();
        let part = command.find_subcommand(name).unwrap();
        String::from_utf8(page(part, &format!("junctura-{name}")).unwrap()).unwrap()
    }

    #[test]
    fn examples_keep_their_lines() {
        let text = text_of("get");
        let (_, examples) = text.split_once(".SH EXAMPLES\n.nf\n").unwrap();
        let (examples, after) = examples.split_once("\n.fi\n").unwrap();
        assert!(
            examples.starts_with("  junctura get param=t levelist=500"),
            "{examples}"
        );
        assert!(after.contains(".SH SEE ALSO\n\\fBjunctura\\fR(1)"));
        assert!(text.contains(".SH ENVIRONMENT\n.TP\n\\fBJUNCTURA_POOL\\fR\nThe default of \\-\\-pool."));
        assert!(text.contains(".SH EXIT STATUS\n0 done;"));
        assert!(!text.contains(".SH EXTRA"));
    }

    #[test]
    fn no_line_of_a_text_is_a_request() {
        assert_eq!(escaped(".x -y\n'z\\n"), "\\&.x \\-y\n\\&'z\\en");
    }
}
