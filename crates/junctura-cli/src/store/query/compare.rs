//! `junctura store compare` reports the differences between two stores, or between two experiments in one.

use clap::Args;
use junctura::{Code, Error, Result};
use junctura_store::{ComparedObjects, DifferenceKind, Listing, ObjectDifference, StoredObject};
use junctura_terminal::interrupt::InterruptFlag;
use junctura_terminal::output::StandardOutput;
use junctura_terminal::program::ProgramWords;
use junctura_terminal::progress::WorkProgress;
use serde_json::{Value, json};

use crate::attributes::about_selector;
use crate::store::StoreArguments;
use crate::store::query::values::ValuesArguments;

const EXAMPLES: &str = "Examples:
  junctura store compare --store /data/archive --with /backup/archive                   two stores
  junctura store compare --store /data/archive --with /backup/archive date=20261120     some of their objects
  junctura store compare --store /data/archive expver=0001 --to expver=0002 --ignore expver   two experiments in one
  junctura store compare --store /data/archive --with /new/archive --rtol 1e-6          equal values in different packings are no difference
Bytes are compared by length and checksum, and not read: values that are coded otherwise are other bytes, unless --values, --atol or
--rtol says to look at them.";

/// Compare two stores, or two experiments
///
/// Compares the newest version of each key: whether both stores have it, with equal attributes outside the key, and equal bytes. Prints
/// a line for each difference (exit status 1); `<` marks the first store, `>` the second.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct CompareArguments {
    #[command(flatten)]
    store: StoreArguments,
    /// The second store; default: the same store
    #[arg(long, value_name = "URL", required_unless_present = "to")]
    with: Option<String>,
    /// Selects objects: all selectors must match; default: all objects
    #[arg(value_name = "SELECTOR")]
    selectors: Vec<String>,
    /// Selects objects of the second store, if its selector differs
    #[arg(long, value_name = "SELECTOR")]
    to: Option<String>,
    /// Ignore this attribute, also in keys; several are separated by commas
    #[arg(long, value_name = "ATTRIBUTE", value_delimiter = ',')]
    ignore: Vec<String>,
    #[command(flatten)]
    values: ValuesArguments,
    /// Print only the number of differences
    #[arg(short, long)]
    quiet: bool,
    /// Print JSON: a line for each difference, then a summary
    #[arg(long)]
    json: bool,
}

/// Runs the command.
pub(crate) fn run(arguments: &CompareArguments, program: &ProgramWords) -> Result<()> {
    let interrupt = InterruptFlag::install()?;
    let mut values = arguments.values.begin(program)?;
    let (first, second) = arguments.listings()?;
    let left_out: Vec<&str> = arguments.ignore.iter().map(String::as_str).collect();
    let mut out = StandardOutput::new();
    let mut with_other_values = values.as_ref().map(|_| 0);
    let mut progress = WorkProgress::new();
    let (mut pairs, mut bytes) = (0, 0);
    let compared = first.compare(&second, &left_out, |difference| {
        interrupt.check()?;
        let mut apart = None;
        if let (Some(values), DifferenceKind::Bytes(first, second)) = (&mut values, &difference.what) {
            let by = values.apart(first, second)?;
            (pairs, bytes) = (pairs + 1, bytes + first.bytes() + second.bytes());
            progress.show(bytes, pairs);
            if by == 0.0 {
                return Ok(());
            }
            with_other_values = with_other_values.map(|count| count + 1);
            apart = Some(by);
        }
        let mut told = Ok(());
        progress.suspend(|| {
            told = match (arguments.quiet, arguments.json) {
                (true, _) => Ok(()),
                (_, true) => out.json(&document(difference, apart)),
                (_, false) => tell(difference, apart, &mut out),
            }
        });
        told
    });
    progress.end();
    let compared = compared?;
    summarize(&compared, with_other_values, arguments.json, &mut out)?;
    out.flush()?;
    let is_same = match with_other_values {
        Some(values) => ComparedObjects {
            bytes: values,
            ..compared
        }
        .is_same(),
        None => compared.is_same(),
    };
    if is_same {
        return Ok(());
    }
    let url = arguments.store.url();
    Err(Error::new(Code::Conflict, url, "there are differences"))
}

impl CompareArguments {
    fn listings(&self) -> Result<(Listing, Listing)> {
        let first = self.store.open()?;
        let second = match &self.with {
            Some(url) => crate::store::open(url)?,
            None => first.clone(),
        };
        let to = self.to.as_ref().map(|to| vec![to.clone()]);
        let selectors = [&self.selectors, to.as_ref().unwrap_or(&self.selectors)];
        let find = |store: &junctura_store::Store, selectors: &[String]| {
            let selector = crate::store::selector(selectors, store)?;
            about_selector(store.snapshot()?.list(&selector), &selector)
        };
        Ok((find(&first, selectors[0])?, find(&second, selectors[1])?))
    }
}

/// Returns the summary, with the largest difference of values if they were compared.
fn tell(difference: &ObjectDifference<'_>, apart: Option<f64>, out: &mut StandardOutput) -> Result<()> {
    let key = difference.key;
    let bytes = |object: &StoredObject<'_>| format!("{} bytes, {:08x}", object.bytes(), object.checksum());
    match &difference.what {
        DifferenceKind::OnlyFirst(_) => writeln!(out, "< {key}"),
        DifferenceKind::OnlySecond(_) => writeln!(out, "> {key}"),
        DifferenceKind::Bytes(first, second) => {
            let values = match apart {
                None => String::new(),
                Some(by) if by.is_finite() => format!("; values differ by up to {by}"),
                Some(_) => "; values differ in number, or where there are none".to_owned(),
            };
            writeln!(out, "{key}: < {} > {}{values}", bytes(first), bytes(second))
        }
        DifferenceKind::Attributes(all) => {
            for (name, first, second) in all {
                let text = |value: &Option<String>| value.clone().unwrap_or_else(|| "-".to_owned());
                writeln!(out, "{key}: {name} < {} > {}", text(first), text(second))?;
            }
            Ok(())
        }
    }
}

fn document(difference: &ObjectDifference<'_>, apart: Option<f64>) -> Value {
    let key = difference.key;
    let bytes =
        |object: &StoredObject<'_>| json!({"bytes": object.bytes(), "crc32c": format!("{:08x}", object.checksum())});
    match &difference.what {
        DifferenceKind::OnlyFirst(_) => json!({"key": key, "difference": "only_first"}),
        DifferenceKind::OnlySecond(_) => json!({"key": key, "difference": "only_second"}),
        DifferenceKind::Bytes(first, second) => {
            let mut said = json!({"key": key, "difference": "bytes", "first": bytes(first), "second": bytes(second)});
            if let Some(by) = apart {
                // Infinite differences are null: JSON has no such number.
                said["difference"] = "values".into();
                said["apart"] = by.into();
            }
            said
        }
        DifferenceKind::Attributes(all) => {
            let mut sides = [serde_json::Map::new(), serde_json::Map::new()];
            for (name, first, second) in all {
                sides[0].insert(name.clone(), first.clone().into());
                sides[1].insert(name.clone(), second.clone().into());
            }
            let [first, second] = sides;
            json!({"key": key, "difference": "attributes", "first": first, "second": second})
        }
    }
}

fn summarize(compared: &ComparedObjects, values: Option<u64>, as_json: bool, out: &mut StandardOutput) -> Result<()> {
    let ComparedObjects {
        both,
        only_first,
        only_second,
        attributes,
        bytes,
    } = compared;
    if as_json {
        let mut said = json!({
            "both": both, "only_first": only_first, "only_second": only_second, "attributes": attributes, "bytes": bytes,
        });
        if let Some(values) = values {
            said["values"] = values.into();
        }
        return out.json(&said);
    }
    let values = values.map_or(String::new(), |count| format!(" ({count} with other values)"));
    writeln!(
        out,
        "{both} keys in both: {bytes} with other bytes{values}, {attributes} with other attributes; {only_first} in the first only, \
         {only_second} in the second only"
    )
}
