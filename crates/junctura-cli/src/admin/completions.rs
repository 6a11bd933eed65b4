//! `junctura completions` prints the completions of command lines for a shell.

use clap::Args;
use clap_complete::Shell;
use junctura::Result;
use junctura_terminal::output::StandardOutput;

const EXAMPLES: &str = "Examples:
  junctura completions bash > ~/.local/share/bash-completion/completions/junctura
  junctura completions zsh > ~/.zfunc/_junctura           where fpath has ~/.zfunc
  junctura completions fish > ~/.config/fish/completions/junctura.fish";

/// Print completions for a shell
///
/// They are generated from the same definitions as the help, for this version.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct CompletionsArguments {
    /// The shell
    #[arg(value_name = "SHELL")]
    shell: Shell,
}

/// Runs the command.
pub(crate) fn run(arguments: &CompletionsArguments) -> Result<()> {
    let mut script = Vec::new();
    clap_complete::generate(arguments.shell, &mut crate::shown(), "junctura", &mut script);
    let mut out = StandardOutput::new();
    out.bytes(&script)?;
    out.flush()
}
