//! Sums up the reports of the processes of a run, which are one JSON file each.

use std::collections::BTreeMap;
use std::path::Path;

use junctura_terminal::size;
use serde::Deserialize;

/// The report of one process: see `c/intercept/common/report.c`.
#[derive(Deserialize)]
struct ProcessReport {
    library: String,
    files: Vec<ReportedFile>,
    fallen_through: Vec<String>,
}

#[derive(Deserialize)]
struct ReportedFile {
    path: String,
    mode: String,
    offered: u64,
    offered_bytes: u64,
    received: u64,
    received_bytes: u64,
}

#[derive(Default)]
struct FileSum {
    processes: u64,
    offered: u64,
    offered_bytes: u64,
    received: u64,
    received_bytes: u64,
}

/// At most so many files are named that were left alone.
const NAMED_MAX: usize = 5;

/// Prints the sums on standard error.
pub(super) fn print(folder: &Path) {
    for line in lines(&read(folder)) {
        say!("junctura with: {line}");
    }
}

fn read(folder: &Path) -> Vec<ProcessReport> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let texts = entries.filter(|entry| entry.path().extension().is_some_and(|end| end == "json"));
    let texts = texts.filter_map(|entry| std::fs::read(entry.path()).ok());
    texts.filter_map(|text| serde_json::from_slice(&text).ok()).collect()
}

fn lines(reports: &[ProcessReport]) -> Vec<String> {
    let mut sums: BTreeMap<(&str, &str, &str), FileSum> = BTreeMap::new();
    for report in reports {
        for file in &report.files {
            let sum = sums.entry((&report.library, &file.path, &file.mode)).or_default();
            sum.processes += 1;
            sum.offered += file.offered;
            sum.offered_bytes += file.offered_bytes;
            sum.received += file.received;
            sum.received_bytes += file.received_bytes;
        }
    }
    let mut lines = Vec::new();
    for ((library, path, mode), sum) in &sums {
        if *mode == "file" {
            continue;
        }
        let mut parts = Vec::new();
        if sum.offered > 0 {
            parts.push(format!(
                "{} objects offered, {}",
                sum.offered,
                size::bytes(sum.offered_bytes)
            ));
        }
        if sum.received > 0 {
            parts.push(format!(
                "{} objects received, {}",
                sum.received,
                size::bytes(sum.received_bytes)
            ));
        }
        if parts.is_empty() {
            parts.push("nothing offered or received".to_owned());
        }
        let processes = if sum.processes == 1 {
            "1 process".to_owned()
        } else {
            format!("{} processes", sum.processes)
        };
        lines.push(format!("{library}: {path} ({mode}, {processes}): {}", parts.join("; ")));
    }
    let left: Vec<&str> = sums
        .keys()
        .filter(|(_, _, mode)| *mode == "file")
        .map(|(_, path, _)| *path)
        .collect();
    if lines.is_empty() {
        let seen = if left.is_empty() {
            "no file was opened by a library that can be intercepted; a program may have the library linked statically"
        } else {
            "no rule puts one of the files that were opened into the pool"
        };
        lines.push(format!("nothing was intercepted: {seen}"));
    }
    if !left.is_empty() {
        let more = left.len().saturating_sub(NAMED_MAX);
        let more = if more > 0 {
            format!(" and {more} more")
        } else {
            String::new()
        };
        let named = left[..left.len().min(NAMED_MAX)].join(", ");
        lines.push(format!("left to the real library: {named}{more}"));
    }
    let mut functions: Vec<&str> = reports
        .iter()
        .flat_map(|report| &report.fallen_through)
        .map(String::as_str)
        .collect();
    functions.sort_unstable();
    functions.dedup();
    if !functions.is_empty() {
        lines.push(format!("executed by the real library: {}", functions.join(", ")));
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(mode: &str, offered: u64, fallen: &[&str]) -> ProcessReport {
        let file = ReportedFile {
            path: "wrfout".to_owned(),
            mode: mode.to_owned(),
            offered,
            offered_bytes: offered * 1024,
            received: 0,
            received_bytes: 0,
        };
        ProcessReport {
            library: "netcdf".to_owned(),
            files: vec![file],
            fallen_through: fallen.iter().map(|&name| name.to_owned()).collect(),
        }
    }

    #[test]
    fn processes_are_summed_up_by_file() {
        let reports = [
            report("pool", 2, &["nc_b"]),
            report("pool", 3, &["nc_b", "nc_a"]),
            report("file", 0, &[]),
        ];
        assert_eq!(
            lines(&reports),
            [
                "netcdf: wrfout (pool, 2 processes): 5 objects offered, 5.0 KiB",
                "left to the real library: wrfout",
                "executed by the real library: nc_a, nc_b",
            ]
        );
    }

    #[test]
    fn a_run_without_reports_is_explained() {
        assert!(lines(&[])[0].starts_with("nothing was intercepted: no file was opened"));
        let left = lines(&[report("file", 0, &[])]);
        assert!(
            left[0].starts_with("nothing was intercepted: no rule puts one of the files"),
            "{left:?}"
        );
        assert_eq!(left[1], "left to the real library: wrfout");
    }
}
