//! Objects as a tree of the three levels of their keys, with counts and sizes.
//!
//! ```text
//! class=od,expver=0001,stream=enfo,date=20260101,time=0000      160 objects, 2.3 MiB
//! └── type=pf,levtype=pl                                         160 objects, 2.3 MiB
//!     step=0/6/12  number=0/1/… (10)  levelist=500/850  param=t/z
//! ```
//! Of elements, which may be millions, each attribute's values are shown as far as they fit.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use junctura::{Described, Result, Schema};
use junctura_model::text::quote;
use junctura_terminal::output::StandardOutput;
use serde_json::json;

use super::ListTotal;

/// Values of an attribute that are shown; of more, the first and how many.
const SHOWN: usize = 12;
/// Maximum number of values of an attribute that are listed; more are only counted.
const VALUES_MAX: usize = 10_000;

/// A tree that grows with each entry.
pub(super) struct ObjectTree {
    long: bool,
    datasets: BTreeMap<(String, LevelText), DatasetNode>,
}

/// Objects of one collocation, counted.
pub(super) struct TreeGroup<'a> {
    pub(super) schema: &'a Schema,
    pub(super) dataset: LevelText,
    pub(super) collocation: LevelText,
    pub(super) objects: u64,
    pub(super) bytes: u64,
    /// Attributes of the elements, and their values.
    pub(super) axes: Vec<(&'a str, Vec<String>)>,
}

/// One level of a key: its text, ordered by its values in the order of their types.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct LevelText {
    values: Vec<(Option<i128>, String)>,
    text: String,
}

#[derive(Default)]
struct DatasetNode {
    total: ListTotal,
    collocations: BTreeMap<LevelText, CollocationNode>,
}

#[derive(Default)]
struct CollocationNode {
    total: ListTotal,
    axes: Vec<AxisValues>,
    /// Only when they are to be shown: text, size.
    elements: Vec<(String, u64)>,
}

/// The values of an attribute.
struct AxisValues {
    name: String,
    /// By their order, where they have one.
    values: BTreeSet<(Option<i128>, String)>,
    full: bool,
}

impl ObjectTree {
    pub(super) fn new(long: bool) -> ObjectTree {
        ObjectTree {
            long,
            datasets: BTreeMap::new(),
        }
    }

    pub(super) fn add(&mut self, object: &Described, bytes: u64) {
        let schema = object.schema();
        let [dataset, collocation, element] = levels(schema, object.attributes());
        let datasets = self.datasets.entry((schema.name().to_owned(), dataset)).or_default();
        datasets.total.add(bytes);
        let collocation = datasets.collocations.entry(collocation).or_default();
        collocation.total.add(bytes);
        if self.long {
            collocation.elements.push((element.text, bytes));
            return;
        }
        let first = schema.level_ends()[1];
        for (name, text) in object.attributes() {
            if let Some(id) = schema
                .find(name)
                .filter(|id| (first..schema.key_len()).contains(&id.index()))
            {
                collocation
                    .axis(name)
                    .add(schema.attribute(id).kind.scalar.order(text), text);
            }
        }
    }

    /// The objects of all nodes.
    pub(super) fn total(&self) -> ListTotal {
        let mut all = ListTotal::default();
        for dataset in self.datasets.values() {
            all.add_all(dataset.total);
        }
        all
    }

    /// Adds objects that were counted.
    pub(super) fn add_group(&mut self, group: TreeGroup<'_>) {
        let schema = group.schema;
        let total = ListTotal {
            objects: group.objects,
            bytes: group.bytes,
        };
        let key = (schema.name().to_owned(), group.dataset);
        let dataset = self.datasets.entry(key).or_default();
        dataset.total.add_all(total);
        let collocation = dataset.collocations.entry(group.collocation).or_default();
        collocation.total.add_all(total);
        for (name, values) in group.axes {
            let Some(id) = schema.find(name).filter(|_| !values.is_empty()) else {
                continue;
            };
            let axis = collocation.axis(name);
            for text in values {
                axis.add(schema.attribute(id).kind.scalar.order(&text), &text);
            }
        }
    }

    pub(super) fn write(&self, out: &mut StandardOutput) -> Result<()> {
        for ((schema, dataset), DatasetNode { total, collocations }) in &self.datasets {
            out.heading(&format!("{}  [{schema}]  {total}", named(&dataset.text)))?;
            for (number, (text, collocation)) in collocations.iter().enumerate() {
                let is_last = number + 1 == collocations.len();
                let (branch, trunk) = if is_last {
                    ("└── ", "    ")
                } else {
                    ("├── ", "│   ")
                };
                writeln!(out, "{branch}{}  {}", named(&text.text), collocation.total)?;
                for (element, bytes) in &collocation.elements {
                    writeln!(
                        out,
                        "{trunk}    {}  {}",
                        named(element),
                        junctura_terminal::size::bytes(*bytes)
                    )?;
                }
                if !collocation.axes.is_empty() {
                    let axes: Vec<String> = collocation.axes.iter().map(AxisValues::text).collect();
                    writeln!(out, "{trunk}    {}", axes.join("  "))?;
                }
            }
        }
        Ok(())
    }

    /// A line for each collocation.
    pub(super) fn write_json(&self, out: &mut StandardOutput) -> Result<()> {
        for ((schema, dataset), DatasetNode { collocations, .. }) in &self.datasets {
            for (text, collocation) in collocations {
                let mut document = json!({
                    "schema": schema, "dataset": dataset.text, "collocation": text.text,
                    "objects": collocation.total.objects, "bytes": collocation.total.bytes,
                });
                if self.long {
                    document["elements"] = collocation.elements.iter().map(|(text, _)| text.as_str()).collect();
                } else {
                    let axes = collocation
                        .axes
                        .iter()
                        .map(|axis| (axis.name.clone(), axis.texts().collect()));
                    document["axes"] = serde_json::Value::Object(axes.collect());
                }
                out.json(&document)?;
            }
        }
        Ok(())
    }
}

impl CollocationNode {
    fn axis(&mut self, name: &str) -> &mut AxisValues {
        let at = self.axes.iter().position(|axis| axis.name == name).unwrap_or_else(|| {
            self.axes.push(AxisValues {
                name: name.to_owned(),
                values: BTreeSet::new(),
                full: false,
            });
            self.axes.len() - 1
        });
        &mut self.axes[at]
    }
}

impl AxisValues {
    fn add(&mut self, order: Option<i128>, text: &str) {
        if self.values.len() < VALUES_MAX {
            self.values.insert((order, text.to_owned()));
        } else {
            self.full = true;
        }
    }

    fn texts(&self) -> impl Iterator<Item = &str> {
        self.values.iter().map(|(_, text)| text.as_str())
    }

    fn text(&self) -> String {
        let mut out = format!("{}=", self.name);
        for (number, text) in self.texts().take(SHOWN).enumerate() {
            out.push_str(if number > 0 { "/" } else { "" });
            quote(text, &mut out);
        }
        if self.values.len() > SHOWN {
            let more = if self.full { "more than " } else { "" };
            let _ = write!(out, "/… ({more}{})", self.values.len());
        }
        out
    }
}

impl LevelText {
    /// Adds an attribute.
    pub(super) fn push(&mut self, schema: &Schema, name: &str, value: &str) {
        let order = schema
            .find(name)
            .and_then(|id| schema.attribute(id).kind.scalar.order(value));
        self.values.push((order, value.to_owned()));
        if !self.text.is_empty() {
            self.text.push(',');
        }
        self.text.push_str(name);
        self.text.push('=');
        quote(value, &mut self.text);
    }
}

/// The three levels of a key, in their order.
fn levels<'a>(schema: &Schema, attributes: impl Iterator<Item = (&'a str, &'a str)>) -> [LevelText; 3] {
    let mut levels: [LevelText; 3] = Default::default();
    for (name, text) in attributes {
        let Some(id) = schema.find(name) else { continue };
        let Some(level) = schema.level_ends().iter().position(|&end| id.index() < end) else {
            continue;
        };
        levels[level].push(schema, name, text);
    }
    levels
}

/// A level without attributes still has a place.
fn named(level: &str) -> &str {
    if level.is_empty() { "{}" } else { level }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_falls_into_its_levels() {
        let schema = Schema::builtin("free").unwrap();
        let attributes = [("space", "a b"), ("name", "x"), ("other", "y")];
        let levels = levels(&schema, attributes.into_iter()).map(|level| level.text);
        assert_eq!(levels, ["space=\"a b\"", "", "name=x"]);
    }

    #[test]
    fn levels_are_in_the_order_of_their_types() {
        let schema = Schema::builtin("mars").unwrap();
        let level = |step: &str| {
            let mut level = LevelText::default();
            level.push(&schema, "step", step);
            level
        };
        let mut steps = ["100", "9", "90m", "10"].map(level);
        steps.sort();
        assert_eq!(
            steps.map(|step| step.text),
            ["step=90m", "step=9", "step=10", "step=100"]
        );
    }

    #[test]
    fn an_axis_is_in_order_and_says_when_there_are_more() {
        let mut axis = AxisValues {
            name: "step".to_owned(),
            values: BTreeSet::new(),
            full: false,
        };
        for step in [12, 6, 0, 6, 100] {
            axis.add(Some(step), &step.to_string());
        }
        assert_eq!(axis.text(), "step=0/6/12/100");
        (200..300).for_each(|step| axis.add(Some(step), &step.to_string()));
        assert!(axis.text().ends_with("/… (104)"), "{}", axis.text());
    }
}
