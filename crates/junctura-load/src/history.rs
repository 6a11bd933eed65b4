//! Records of the actions and observations of a process, for a judge that is independent of this program.
//!
//! One JSON object a line, written and flushed before the process continues, so that a crashed process leaves a true
//! record. Digests are CRC-32C of the payload.

use std::fs::File;
use std::io::Write;
use std::path::Path;

use hashbrown::HashMap;
use junctura::{Code, Error, Result};
use serde_json::{Value, json};

use crate::pool::plan::{WorkerPlan, WorkerRole};

/// The record of one process; without a directory, nothing is recorded.
pub(crate) struct LoadHistory(Option<File>);

impl LoadHistory {
    pub(crate) fn begin(directory: Option<&Path>, role: &str, name: &str, group: Option<&str>) -> Result<Self> {
        let Some(directory) = directory else {
            return Ok(Self(None));
        };
        let path = directory.join(format!("{name}.jsonl"));
        let file =
            File::create(&path).map_err(|error| Error::new(Code::Io, path.display().to_string(), error.to_string()))?;
        let mut history = Self(Some(file));
        let pid = std::process::id();
        history.write(&json!({"op": "start", "role": role, "name": name, "pid": pid, "group": group}))?;
        Ok(history)
    }

    pub(crate) fn is_kept(&self) -> bool {
        self.0.is_some()
    }

    /// Writes a line, made only if it is wanted.
    pub(crate) fn note(&mut self, line: impl FnOnce() -> Value) -> Result<()> {
        if self.0.is_some() { self.write(&line()) } else { Ok(()) }
    }

    fn write(&mut self, line: &Value) -> Result<()> {
        let Some(file) = &mut self.0 else { return Ok(()) };
        let mut text = line.to_string();
        text.push('\n');
        file.write_all(text.as_bytes())
            .map_err(|error| Error::new(Code::Io, "history", error.to_string()))
    }
}

/// A judge knows keys, not selectors: records of consumers that took only some ensemble members get the keys of the
/// offered objects of these members.
pub(crate) fn name_wanted_keys<'a>(
    directory: &Path,
    plans: impl Iterator<Item = &'a WorkerPlan> + Clone,
) -> Result<()> {
    let record = |plan: &WorkerPlan| directory.join(format!("{}.jsonl", plan.name()));
    // A process that lost its network before it had connected has no record.
    let plans = plans.filter(|plan| record(plan).exists());
    let mut by_share = HashMap::<usize, Vec<String>>::new();
    for producer in plans.clone().filter(|plan| plan.role == WorkerRole::Producer) {
        for line in read_lines(&record(producer))? {
            let Some(id) = line["id"].as_str() else { continue };
            if line["op"] == "offering"
                && let Some(member) = member_of(id)
            {
                by_share
                    .entry(producer.share_of(member))
                    .or_default()
                    .push(id.to_owned());
            }
        }
    }
    for consumer in plans.filter(|plan| plan.role == WorkerRole::Consumer && plan.group.is_none()) {
        let keys = by_share.get(&(consumer.share as usize));
        let path = record(consumer);
        let mut text = String::new();
        for mut line in read_lines(&path)? {
            if line["op"] == "following" {
                line["wants"] = json!(keys.map_or(&[][..], Vec::as_slice));
            }
            text.push_str(&line.to_string());
            text.push('\n');
        }
        std::fs::write(&path, text)
            .map_err(|error| Error::new(Code::Io, path.display().to_string(), error.to_string()))?;
    }
    Ok(())
}

fn read_lines(path: &Path) -> Result<Vec<Value>> {
    let text = std::fs::read_to_string(path)
        .map_err(|error| Error::new(Code::Io, path.display().to_string(), error.to_string()))?;
    Ok(text
        .lines()
        .filter_map(|line| serde_json::from_str(line).ok())
        .collect())
}

fn member_of(key: &str) -> Option<u32> {
    let rest = key.split_once("number=")?.1;
    rest.split([',', '}']).next()?.parse().ok()
}

/// The digest of a payload.
pub(crate) fn digest(payload: &[u8]) -> String {
    format!("{:08x}", crc32c::crc32c(payload))
}
