//! `junctura store axes` shows the axes that the objects of a store span.

use clap::Args;
use junctura::Result;
use junctura_model::text::quote;
use junctura_terminal::output::StandardOutput;
use serde_json::{Map, Value};

use crate::attributes::about_selector;
use crate::store::StoreArguments;

const EXAMPLES: &str = "Examples:
  junctura store axes --store /data/archive                       of all objects
  junctura store axes --store /data/archive class=od,date=20261120
  junctura store axes --store /data/archive param=t --json | jq -r '.step[]'";

/// List the values of each attribute in a store
///
/// Prints a line for each attribute with its values in all matching objects, in the order of its type.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct AxesArguments {
    #[command(flatten)]
    store: StoreArguments,
    /// Selects objects: all selectors must match; default: all objects
    #[arg(value_name = "SELECTOR")]
    selectors: Vec<String>,
    /// Print JSON: a list of values for each attribute
    #[arg(long)]
    json: bool,
}

/// Runs the command.
pub(crate) fn run(arguments: &AxesArguments) -> Result<()> {
    let store = arguments.store.open()?;
    let selector = crate::store::selector(&arguments.selectors, &store)?;
    let axes = about_selector(store.snapshot()?.axes(&selector), &selector)?;
    let mut out = StandardOutput::new();
    if arguments.json {
        let lists = axes.into_iter().map(|axis| (axis.name, Value::from(axis.values)));
        out.json(&Value::Object(lists.collect::<Map<_, _>>()))?;
        return out.flush();
    }
    for axis in axes {
        let mut line = format!("{}=", axis.name);
        for (number, value) in axis.values.iter().enumerate() {
            line.push_str(if number > 0 { "/" } else { "" });
            quote(value, &mut line);
        }
        writeln!(out, "{line}")?;
    }
    out.flush()
}
