//! A layout as YAML: the names of the text form, with lists where that has separators.
//!
//! ```yaml
//! shape: [100, 60]
//! grid: [2, 3]
//! block: [1, 4]
//! cuts: [[0, 30, 100], "*"]
//! order: F
//! ```
//! ```yaml
//! shape: [10, 10]
//! slabs:                            # of each rank
//!   - [0:5x0:10]
//!   - [[[5, 10], [0, 4]], 5:10x4:10]
//! ```

use junctura_model::yaml::{self, Read, YamlData, YamlFault, YamlFields, YamlNode};
use junctura_model::{Code, Error, Result};

use crate::Layout;
use crate::text::{LayoutParts, NAMES};

impl Layout {
    /// Parses a layout in YAML; see the module `yaml`.
    ///
    /// # Errors
    /// `InvalidArgument` that names the line; those of the text form.
    pub fn from_yaml(text: &str) -> Result<Self> {
        let trouble = |trouble: YamlFault| {
            Error::new(
                Code::InvalidArgument,
                format!("layout line {}", trouble.line),
                trouble.why,
            )
        };
        let root = yaml::parse(text).map_err(trouble)?;
        let fields = YamlFields::new(&root, "a layout", &NAMES).map_err(trouble)?;
        let mut parts = LayoutParts::default();
        for name in NAMES {
            if let Some(node) = fields.get(name) {
                parts.read(name, &joined(node, name, separators(name)).map_err(trouble)?)?;
            }
        }
        parts.layout()
    }
}

/// Returns the separators of the text form between the items of lists, from the outermost.
fn separators(name: &str) -> &'static [&'static str] {
    match name {
        "cuts" => &["x", ","],
        "slabs" => &[";", ",", "x", ":"],
        "ranks" | "order" | "storage" => &[],
        _ => &["x"],
    }
}

fn joined(node: &YamlNode, name: &str, separators: &[&str]) -> Read<String> {
    match (&node.data, separators.split_first()) {
        (YamlData::Text(text), _) => Ok(text.clone().unwrap_or_default()),
        (YamlData::List(items), Some((between, within))) => {
            let items = items.iter().map(|item| joined(item, name, within));
            Ok(items.collect::<Read<Vec<_>>>()?.join(between))
        }
        _ => Err(YamlFault::new(node.line, format!("{name} is not written like this"))),
    }
}
