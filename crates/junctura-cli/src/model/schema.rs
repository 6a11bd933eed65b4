//! `junctura schema` shows and checks schemas: files, built-in ones, and those of a pool or a store; it also changes those of a
//! store.

use std::fs::File;
use std::io::{ErrorKind, Write as _};
use std::path::PathBuf;
use std::sync::Arc;

use clap::{Args, Subcommand};
use junctura::{Code, Error, Result, Schema};
use junctura_model::command::shell_word;
use junctura_model::selector::{Selector, SelectorContext};
use junctura_model::{Attribute, RecordRef};
use junctura_terminal::output::StandardOutput;
use serde_json::json;

use junctura_model::selector::slips::pictured;

use crate::attributes::{AttributePair, given, pair};
use crate::model::schema_files;
use crate::store::{self, StoreArguments};
use crate::today::today;
use crate::url::ClientArguments;

const EXAMPLES: &str = "Examples:
  junctura schema list
  junctura schema init flow --out flow.yaml                                   a file to edit, with comments
  junctura schema check my.yaml
  junctura schema show /fdb/etc/fdb/schema                                    rules of FDB as schemas
  junctura schema check mars --key class=od stream=oper date=2026-11-20 time=12 type=fc levtype=sfc param=2t
  junctura schema check mars --selector 'step=0/to/12/by/6,param=t' --explain
  junctura schema check mars --selector 'retrieve,class=od,date=-1,param=T'   a MARS request
  junctura schema show results --store /data/archive > results.yaml           a schema of a store
  junctura schema set results.yaml --store /data/archive                      for example with an additional attribute";

/// The schema that `init` writes, under another name.
const SKELETON: &str = include_str!("schema_skeleton.yaml");

/// Show schemas; check a file, a key or a selector; change the schemas of a store
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct SchemaArguments {
    #[command(subcommand)]
    command: SchemaCommand,
}

#[derive(Subcommand, Debug)]
enum SchemaCommand {
    Init(InitSchema),
    Check(CheckSchema),
    Show(ShowSchema),
    List(ListSchemas),
    Set(SetSchema),
}

/// Write a schema to edit: a small valid schema in YAML, with comments
#[derive(Args, Debug)]
struct InitSchema {
    /// The name of the schema
    #[arg(value_name = "NAME", default_value = "my-schema")]
    name: String,
    /// Write this file, which must not exist, instead of standard output
    #[arg(short, long, value_name = "FILE")]
    out: Option<PathBuf>,
}

/// Check a schema file, or keys and selectors with a schema
///
/// A file is YAML, or has rules in the language of FDB: each path through the rules is a schema.
#[derive(Args, Debug)]
struct CheckSchema {
    /// A file, or the name of a built-in schema. For a file of FDB with several rules, the first one that accepts the
    /// arguments applies
    #[arg(value_name = "FILE|NAME")]
    schema: String,
    /// Print the canonical key of these attributes, and its hash
    #[arg(long, value_name = "NAME=VALUE", value_parser = pair, num_args = 1..)]
    key: Vec<AttributePair>,
    /// Print the canonical form of a selector or a MARS request
    #[arg(long, value_name = "TEXT")]
    selector: Option<String>,
    /// Also print the selector with its ranges expanded
    #[arg(long, requires = "selector")]
    explain: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Print a schema as YAML; for a file of FDB, each rule
#[derive(Args, Debug)]
struct ShowSchema {
    /// The name of a schema, built-in or of the pool or store, or a file
    #[arg(value_name = "NAME|FILE")]
    schema: String,
    /// Search this pool
    #[arg(long, value_name = "URL")]
    pool: Option<String>,
    /// Search this store
    #[arg(long, value_name = "URL", conflicts_with = "pool")]
    store: Option<String>,
    #[command(flatten)]
    client: ClientArguments,
}

/// List the built-in schemas, or those of a pool or a store
#[derive(Args, Debug)]
struct ListSchemas {
    /// Schemas of this pool; the first is its default
    #[arg(long, value_name = "URL")]
    pool: Option<String>,
    /// Schemas of this store; the first is its default
    #[arg(long, value_name = "URL", conflicts_with = "pool")]
    store: Option<String>,
    #[command(flatten)]
    client: ClientArguments,
    /// Print a JSON line for each schema
    #[arg(long)]
    json: bool,
}

/// Add a schema to a store, or add attributes to one of its schemas
///
/// No existing object is moved or rewritten. An existing schema can get attributes outside its key, after those that it
/// has, and more allowed values. Another unit, and values or ranges that exclude allowed ones, are refused if the store has objects
/// of the schema, since these keep their values. Clients that have the store open use the old schema until they read an object that
/// it does not fit (`SchemaMismatch`).
#[derive(Args, Debug)]
struct SetSchema {
    /// A file, or the name of a built-in schema; each rule of a file of FDB is a schema
    #[arg(value_name = "FILE|NAME")]
    schema: String,
    #[command(flatten)]
    store: StoreArguments,
    /// Also change units, values and ranges that existing objects follow: their values are then read by the new definition
    #[arg(long)]
    redefine: bool,
    /// Print nothing
    #[arg(short, long)]
    quiet: bool,
}

/// Runs the command.
pub(crate) fn run(arguments: &SchemaArguments) -> Result<()> {
    let mut out = StandardOutput::new();
    match &arguments.command {
        SchemaCommand::Init(init) => init.run(&mut out)?,
        SchemaCommand::Check(check) => check.run(&mut out)?,
        SchemaCommand::Show(show) => show.run(&mut out)?,
        SchemaCommand::List(list) => list.run(&mut out)?,
        SchemaCommand::Set(set) => set.run()?,
    }
    out.flush()
}

impl InitSchema {
    fn run(&self, out: &mut StandardOutput) -> Result<()> {
        let text = SKELETON.replacen("my-schema", &self.name, 1);
        Schema::parse_yaml(&text)?;
        let Some(path) = &self.out else {
            return out.bytes(text.as_bytes());
        };
        let written = File::create_new(path).and_then(|mut file| file.write_all(text.as_bytes()));
        written.map_err(|error| {
            let code = if error.kind() == ErrorKind::AlreadyExists {
                Code::AlreadyExists
            } else {
                Code::Io
            };
            Error::new(code, path.display().to_string(), error.to_string())
        })
    }
}

impl CheckSchema {
    fn run(&self, out: &mut StandardOutput) -> Result<()> {
        let schemas = schema_files::read(&self.schema)?;
        if self.key.is_empty() && self.selector.is_none() {
            return schemas.iter().try_for_each(|schema| {
                if self.json {
                    out.json(&about(schema))
                } else {
                    describe(schema, out)
                }
            });
        }
        let mut found: Vec<(&str, String)> = Vec::new();
        if !self.key.is_empty() {
            let (key, hash) = first_of(&schemas, |schema| key(schema, &self.key))?;
            found.extend([("key", key), ("hash", hash)]);
        }
        if let Some(text) = &self.selector {
            let context = SelectorContext { today: today() };
            let selector = first_of(&schemas, |schema| Selector::parse_with(text, schema, &context));
            let selector = selector.map_err(|error| pictured(&error, text))?;
            found.push(("selector", selector.to_string()));
            if self.explain {
                found.push(("explained", selector.explain()));
            }
        }
        if self.json {
            let document = found.into_iter().map(|(name, text)| (name.to_owned(), text.into()));
            return out.json(&serde_json::Value::Object(document.collect()));
        }
        found.iter().try_for_each(|(_, line)| writeln!(out, "{line}"))
    }
}

impl ShowSchema {
    fn run(&self, out: &mut StandardOutput) -> Result<()> {
        let schemas = match (&self.pool, &self.store) {
            (Some(url), _) => vec![self.client.connect(url)?.schema(Some(&self.schema))?],
            (_, Some(url)) => vec![Arc::clone(store::open(url)?.schema(Some(&self.schema))?)],
            _ => schema_files::read(&self.schema)?,
        };
        for (at, schema) in schemas.iter().enumerate() {
            let between = if at > 0 { "---\n" } else { "" };
            write!(out, "{between}{}", schema.to_yaml())?;
        }
        Ok(())
    }
}

impl ListSchemas {
    fn run(&self, out: &mut StandardOutput) -> Result<()> {
        let schemas: Vec<Arc<Schema>> = match (&self.pool, &self.store) {
            (Some(url), _) => self.client.connect(url)?.schemas()?,
            (_, Some(url)) => store::open(url)?.schemas().to_vec(),
            _ => Schema::BUILTIN_NAMES
                .iter()
                .filter_map(|name| Schema::builtin(name))
                .collect(),
        };
        for schema in schemas {
            if self.json {
                out.json(&about(&schema))?;
            } else {
                writeln!(out, "{:<12} {}", schema.name(), schema.doc())?;
            }
        }
        Ok(())
    }
}

impl SetSchema {
    fn run(&self) -> Result<()> {
        let mut store = self.store.open()?;
        for schema in schema_files::read(&self.schema)? {
            let known = store.schema(Some(schema.name())).ok().map(|known| known.to_yaml());
            let set = if self.redefine {
                store.redefine_schema(&schema)
            } else {
                store.set_schema(&schema).map_err(|error| {
                    let cause = error
                        .cause()
                        .replace("schema set FILE", &format!("schema set {}", shell_word(&self.schema)));
                    error.because(cause)
                })
            };
            store = set?;
            if !self.quiet {
                let what = match known {
                    None => "is new",
                    Some(known) if known == schema.to_yaml() => "is as it was",
                    Some(_) => "has changed",
                };
                say!("{}: schema {} {what}", self.store.url(), schema.name());
            }
        }
        Ok(())
    }
}

/// Returns the first success of several schemas, or else the error of the first one.
fn first_of<T>(schemas: &[Arc<Schema>], give: impl Fn(&Schema) -> Result<T>) -> Result<T> {
    let mut failed = None;
    for schema in schemas {
        match give(schema) {
            Ok(given) => return Ok(given),
            Err(error) => _ = failed.get_or_insert(error),
        }
    }
    Err(failed.unwrap_or_else(|| Error::new(Code::NotFound, "schema", "there is none")))
}

fn key(schema: &Schema, pairs: &[AttributePair]) -> Result<(String, String)> {
    let mut record = Vec::new();
    schema.record(given(pairs), &mut record)?;
    let mut key = String::new();
    schema.key_of(RecordRef::trusted(&record), &mut key);
    let hash = schema.key_hash(&key).to_string();
    Ok((key, hash))
}

fn describe(schema: &Schema, out: &mut StandardOutput) -> Result<()> {
    let ends = schema.level_ends();
    let level = |from: usize, to: usize| {
        let names: Vec<String> = schema.attributes()[from..to].iter().map(name).collect();
        names.join(", ")
    };
    writeln!(
        out,
        "{} (generation {}): {}",
        schema.name(),
        schema.generation(),
        schema.doc()
    )?;
    writeln!(out, "dataset      {}", level(0, ends[0]))?;
    writeln!(out, "collocation  {}", level(ends[0], ends[1]))?;
    writeln!(out, "element      {}", level(ends[1], ends[2]))?;
    let others = level(ends[2], schema.attributes().len());
    writeln!(
        out,
        "besides      {others}{}",
        if schema.is_open() {
            ", and any others as texts"
        } else {
            ""
        }
    )?;
    writeln!(out, "fingerprint  {}", schema.fingerprint())
}

/// Returns the type as a schema file names it.
fn name(attribute: &Attribute) -> String {
    let mark = if attribute.level.is_some() && attribute.optional && attribute.default.is_none() {
        "?"
    } else {
        ""
    };
    format!("{}{mark}", attribute.name)
}

fn about(schema: &Schema) -> serde_json::Value {
    let ends = schema.level_ends();
    let names = |from: usize, to: usize| -> Vec<&str> {
        schema.attributes()[from..to]
            .iter()
            .map(|attribute| attribute.name.as_str())
            .collect()
    };
    json!({
        "name": schema.name(),
        "generation": schema.generation(),
        "fingerprint": schema.fingerprint().to_string(),
        "doc": schema.doc(),
        "open": schema.is_open(),
        "key": {
            "dataset": names(0, ends[0]), "collocation": names(ends[0], ends[1]), "element": names(ends[1], ends[2]),
        },
        "attributes": names(0, schema.attributes().len()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_and_its_hash() {
        let schema = Schema::builtin("free").unwrap();
        let (key, hash) = key(&schema, &[pair("name=a b").unwrap()]).unwrap();
        assert_eq!(key, "{space=default}{}{name=\"a b\"}");
        assert_eq!(hash, schema.key_hash(&key).to_string());
    }
}
