//! Help texts and errors about the command line, with tips for words that other programs use.

use std::io::{self, IsTerminal, Write};

use clap::error::{ContextKind, ContextValue};
use junctura_terminal::output::is_styled;
use junctura_terminal::visible::VisibleWriter;

/// Titles in help texts, and in errors about the command line.
const TITLES: [&str; 7] = [
    "error",
    "Usage",
    "Commands",
    "Arguments",
    "Options",
    "Examples",
    "Exit status",
];

/// Prints a help text, or an error about the command line, to the stream that it belongs to.
pub(crate) fn usage(told: &clap::Error) {
    fn print(text: &str, mut stream: impl Write + IsTerminal) {
        let text = sections(text, is_styled(stream.is_terminal()));
        // A reader that has closed the stream is no failure.
        let _ = VisibleWriter(&mut stream)
            .write_all(text.as_bytes())
            .and_then(|()| stream.flush());
    }
    let mut text = told.render().to_string();
    for (unclear, clear) in OTHER_WORDS {
        text = text.replace(unclear, clear);
    }
    if !text.ends_with('\n') {
        text.push('\n');
    }
    if let Some(tip) = tip_for_command(told)
        .or_else(|| tip_for_pool(told))
        .or_else(|| tip_for_option(told))
    {
        // In place of a name that only looks alike.
        let (error, usage) = text.split_once("\n\nUsage:").unwrap_or((&text, ""));
        let error = error.split("\n\n").next().unwrap_or(error);
        text = format!("{error}\n\n  tip: {tip}\n\nUsage:{usage}");
    }
    if told.use_stderr() {
        print(&text, io::stderr());
    } else {
        print(&text, io::stdout());
    }
}

/// Texts of Rust's parsers of numbers, and clearer ones.
const OTHER_WORDS: [(&str, &str); 4] = [
    ("invalid digit found in string", "a whole number is expected"),
    ("cannot parse integer from empty string", "a whole number is expected"),
    ("invalid float literal", "a number is expected"),
    ("number too large to fit in target type", "the number is too large"),
];

/// Commands that people try first, and what does it here.
const OTHER_COMMANDS: [(&[&str], &str); 9] = [
    (
        &["rm", "del", "delete", "remove", "unlink"],
        "`pool withdraw` removes one object, `pool withdraw-all` all that match, `store wipe` those of a store",
    ),
    (
        &["cat", "read", "demand"],
        "`get SELECTOR -o -` writes a payload to standard output",
    ),
    (
        &["subscribe", "sub", "follow", "monitor"],
        "`get --follow` gets new objects, `watch` shows only events",
    ),
    (
        &["publish", "pub", "offer", "add", "write", "put"],
        "`put` puts files into a pool, `store archive` into a store",
    ),
    (
        &["list", "query", "find", "search", "dir"],
        "`ls` lists the objects of a pool, `ls --store` those of a store",
    ),
    (
        &["get", "fetch"],
        "`get` gets payloads from a pool, `store retrieve` from a store",
    ),
    (
        &["wait", "poll", "sync"],
        "`wait-for` waits until objects are visible, `get --wait` gets them then",
    ),
    (&["start", "server", "daemon"], "`pool serve` serves a pool"),
    (
        &["status", "info"],
        "`pool stat` shows what a pool has, `store stat` what a store has",
    ),
];

/// Names the command that does what an unknown one is for elsewhere, or the group that an unknown one belongs to.
fn tip_for_command(told: &clap::Error) -> Option<String> {
    let Some(ContextValue::String(unknown)) = told.get(ContextKind::InvalidSubcommand) else {
        return None;
    };
    let known = |(words, _): &&(&[&str], &str)| words.contains(&unknown.as_str());
    if let Some((_, tip)) = OTHER_COMMANDS.iter().find(known) {
        return Some((*tip).to_owned());
    }
    let whole = crate::command();
    if let Some(command) = whole.find_subcommand(unknown) {
        let takes_store = command.get_arguments().any(|argument| argument.get_id() == "store");
        let of_store = if takes_store { ", with --store for a store" } else { "" };
        return Some(format!("there is `junctura {unknown}`{of_store}"));
    }
    let groups: Vec<String> = whole
        .get_subcommands()
        .filter(|group| group.find_subcommand(unknown).is_some_and(|part| !part.is_hide_set()))
        .map(|group| format!("`junctura {} {unknown}`", group.get_name()))
        .collect();
    (!groups.is_empty()).then(|| format!("there is {}", groups.join(" and ")))
}

/// The option of a pool's address that was given alone.
fn tip_for_pool(told: &clap::Error) -> Option<String> {
    let Some(ContextValue::String(unknown)) = told.get(ContextKind::InvalidArg) else {
        return None;
    };
    let is_address = unknown.starts_with("unix:") || unknown.starts_with("tcp:");
    is_address.then(|| format!("--pool {unknown} names the pool"))
}

/// Options that people try with a command that does not have them, and what does it.
const OTHER_OPTIONS: [(&str, &str, &str); 3] = [
    (
        "get",
        "--store",
        "`store retrieve SELECTOR --store URL -o FILE` gets objects of a store; --behind URL also searches one",
    ),
    (
        "put",
        "--store",
        "`store archive FILE --store URL` puts files into a store",
    ),
    (
        "cp",
        "--store",
        "`store archiver --store URL` copies objects of a pool into a store",
    ),
];

/// Names the command that has an unknown option.
fn tip_for_option(told: &clap::Error) -> Option<String> {
    let (Some(ContextValue::String(unknown)), Some(ContextValue::StyledStr(usage))) =
        (told.get(ContextKind::InvalidArg), told.get(ContextKind::Usage))
    else {
        return None;
    };
    let usage = usage.to_string();
    let is_tried = |(command, option, _): &&(&str, &str, &str)| {
        usage.starts_with(&format!("Usage: junctura {command} ")) && unknown == option
    };
    OTHER_OPTIONS.iter().find(is_tried).map(|(_, _, tip)| (*tip).to_owned())
}

/// Returns a help text with styled titles of its sections: the text before the colon of a line that is not indented.
/// Controls become U+FFFD: an error cites arguments.
fn sections(text: &str, styled: bool) -> String {
    let visible = |letter: char| {
        if letter.is_control() && letter != '\n' && letter != '\t' {
            '\u{fffd}'
        } else {
            letter
        }
    };
    let text: String = text.chars().map(visible).collect();
    if !styled {
        return text;
    }
    let style = |line: &str| match line.split_once(':') {
        Some((title, rest)) if TITLES.contains(&title) || crate::TASKS.iter().any(|(task, _)| *task == title) => {
            format!("\x1b[1m{title}:\x1b[0m{rest}")
        }
        _ => line.to_owned(),
    };
    text.split('\n').map(style).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn titles_of_help_are_styled_and_controls_are_not_repeated() {
        let text = "About: a pool\n\nUsage: junctura put\n\nOptions:\n      --pool <URL>\n\terror: no\x1b[2J\u{9b}";
        let plain = text.replace(['\x1b', '\u{9b}'], "\u{fffd}");
        assert_eq!(sections(text, false), plain);
        let styled = plain
            .replace("Usage:", "\x1b[1mUsage:\x1b[0m")
            .replace("Options:", "\x1b[1mOptions:\x1b[0m");
        assert_eq!(sections(text, true), styled);
    }
}
