//! Commands that messages propose: complete, so that they run as they are pasted into a shell.

use std::borrow::Cow;

/// How such a command begins in a message; a backtick ends it.
const BEGIN: &str = "`junctura ";
/// Commands that address a pool.
const OF_A_POOL: [&str; 10] = [
    "doctor",
    "explain",
    "get",
    "ls",
    "put",
    "schema show",
    "top",
    "wait-for",
    "watch",
    "pool",
];
/// Options and commands with which they address none, or name it themselves.
const WITHOUT: [&str; 3] = ["--pool", "--store", "serve"];

/// Returns a text as one word of a shell.
///
/// ```
/// # use junctura_model::command::shell_word;
/// assert_eq!(shell_word("step=6"), "step=6");
/// assert_eq!(shell_word("{name=it's}"), r"'{name=it'\''s}'");
/// ```
#[must_use]
pub fn shell_word(text: &str) -> Cow<'_, str> {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_-+=:,./@%".contains(&byte);
    if !text.is_empty() && text.bytes().all(is_plain) {
        return Cow::Borrowed(text);
    }
    Cow::Owned(format!("'{}'", text.replace('\'', r"'\''")))
}

/// Returns the command that frees a key at once.
///
/// ```
/// # use junctura_model::command::forget;
/// assert_eq!(forget("{name=a}", "free"), "`junctura pool withdraw '{name=a}' --schema free --forget`");
/// ```
#[must_use]
pub fn forget(key: &str, schema: &str) -> String {
    format!("{BEGIN}pool withdraw {} --schema {schema} --forget`", shell_word(key))
}

/// Adds the address of a pool to each command of a message that addresses a pool and does not name it.
///
/// ```
/// # use junctura_model::command::with_pool;
/// assert_eq!(with_pool("nothing; `junctura ls` lists all", "unix:m"), "nothing; `junctura ls --pool unix:m` lists all");
/// assert_eq!(with_pool("`junctura ls --pool unix:x` lists all", "unix:m"), "`junctura ls --pool unix:x` lists all");
/// ```
#[must_use]
pub fn with_pool<'m>(message: &'m str, url: &str) -> Cow<'m, str> {
    let mut parts = message.split(BEGIN);
    let Some(before) = parts.next().filter(|before| before.len() < message.len()) else {
        return Cow::Borrowed(message);
    };
    let mut complete = before.to_owned();
    for part in parts {
        let (command, after) = part.split_once('`').unwrap_or((part, ""));
        complete.extend([BEGIN, command]);
        if is_of_a_pool(command) {
            complete.extend([" --pool ", &shell_word(url)]);
        }
        if command.len() < part.len() {
            complete.extend(["`", after]);
        }
    }
    Cow::Owned(complete)
}

fn is_of_a_pool(command: &str) -> bool {
    let is_named = |name: &str| {
        let rest = command.strip_prefix(name);
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(' '))
    };
    OF_A_POOL.iter().any(|name| is_named(name)) && !command.split(' ').any(|word| WITHOUT.contains(&word))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_commands_of_a_pool_get_its_address() {
        for same in [
            "no command",
            "`junctura pool serve --budget SIZE`",
            "`junctura store axes --store x`",
            "`junctura token make F`",
            "`junctura doctor --pool unix:a`",
            "`junctural ls`",
        ] {
            assert_eq!(with_pool(same, "unix:m"), same);
        }
        assert_eq!(
            with_pool(
                "a `junctura explain --memory`, b `junctura pool stat`; `x`",
                "unix:/my files/a"
            ),
            "a `junctura explain --memory --pool 'unix:/my files/a'`, b `junctura pool stat --pool 'unix:/my files/a'`; `x`"
        );
        assert_eq!(with_pool("a `junctura ls", "u"), "a `junctura ls --pool u");
    }
}
