//! How many commits a second writers get in each place: `cargo run --release --features s3 --example commits -- URL exclusive|appended`.
//!
//! Each flush has one object of 1 KiB. Writers are threads of this process, which commit together, and processes, which do not.
//! Beside them stands the floor of a file system: one `write` and `fdatasync` of as many bytes.

#![allow(clippy::unwrap_used, reason = "an example")]

use std::fs::File;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::fs::FileExt;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use junctura_model::{Given, Schema};
use junctura_store::{Commits, Layout, Store};

const TIME: Duration = Duration::from_secs(3);
const PAYLOAD: [u8; 1024] = [7; 1024];
/// Says to a process that is started which writer it is.
const WRITER: &str = "JUNCTURA_EXAMPLE_WRITER";

/// Flushes until the time is over; says how often.
fn write(store: &Store, writer: usize) -> u64 {
    let mut flushes = 0;
    let mut archive = store.writer().unwrap();
    let began = Instant::now();
    while began.elapsed() < TIME {
        let (number, step) = (writer.to_string(), flushes.to_string());
        let field = [
            ("class", "od"),
            ("expver", "0001"),
            ("stream", "enfo"),
            ("date", "20261120"),
            ("time", "0000"),
            ("type", "pf"),
            ("levtype", "sfc"),
            ("step", &*step),
            ("number", &*number),
            ("param", "2t"),
        ];
        archive
            .archive(field.map(|(name, value)| (name, Given::Text(value))), &PAYLOAD)
            .unwrap();
        archive.flush().unwrap();
        flushes += 1;
    }
    flushes
}

fn threads(url: &str, writers: usize) -> f64 {
    let store = Store::open_url(url).unwrap();
    let began = Instant::now();
    let flushes: u64 = std::thread::scope(|scope| {
        let store = &store;
        let writing: Vec<_> = (0..writers)
            .map(|writer| scope.spawn(move || write(store, writer)))
            .collect();
        writing.into_iter().map(|writer| writer.join().unwrap()).sum()
    });
    flushes as f64 / began.elapsed().as_secs_f64()
}

fn processes(url: &str, writers: usize) -> f64 {
    let start = |writer: usize| {
        let program = std::env::current_exe().unwrap();
        let mut command = Command::new(program);
        command.arg(url).env(WRITER, writer.to_string());
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap()
    };
    let mut all: Vec<_> = (0..writers).map(start).collect();
    let mut outputs: Vec<_> = all
        .iter_mut()
        .map(|child| BufReader::new(child.stdout.take().unwrap()))
        .collect();
    let mut line = String::new();
    for output in &mut outputs {
        output.read_line(&mut line).unwrap();
    }
    let began = Instant::now();
    for child in &mut all {
        drop(child.stdin.take());
    }
    let mut flushes = 0;
    for output in &mut outputs {
        line.clear();
        output.read_line(&mut line).unwrap();
        flushes += line.trim().parse::<u64>().unwrap();
    }
    let rate = flushes as f64 / began.elapsed().as_secs_f64();
    for mut child in all {
        child.wait().unwrap();
    }
    rate
}

/// A process that was started: it opens, says so, and writes when it is told.
fn started(url: &str, writer: &str) {
    let store = Store::open_url(url).unwrap();
    println!("ready");
    std::io::stdin().read_to_end(&mut Vec::new()).unwrap();
    println!("{}", write(&store, writer.parse().unwrap()));
    std::io::stdout().flush().unwrap();
}

fn floor(folder: &str) -> f64 {
    let path = std::path::Path::new(folder).with_extension("floor");
    let file = File::create(&path).unwrap();
    let record = [7; 1024 + 200];
    let (began, mut writes) = (Instant::now(), 0_u64);
    while began.elapsed() < TIME {
        file.write_all_at(&record, writes * record.len() as u64).unwrap();
        file.sync_data().unwrap();
        writes += 1;
    }
    std::fs::remove_file(path).unwrap();
    writes as f64 / began.elapsed().as_secs_f64()
}

fn main() {
    let mut arguments = std::env::args().skip(1);
    let url = arguments.next().expect("the URL of a store to make");
    if let Ok(writer) = std::env::var(WRITER) {
        return started(&url, &writer);
    }
    let commits = match arguments.next().as_deref() {
        Some("exclusive") => Some(Commits::Exclusive),
        Some("appended") => Some(Commits::Appended),
        _ => None,
    };
    let layout = Layout {
        commits,
        ..Layout::default()
    };
    let store = Store::create_url(&url, &[Schema::builtin("mars").unwrap()], &layout).unwrap();
    println!("commits of 1 KiB a second: {:?}", store.commits());
    if !url.contains(':') {
        println!("  append and fdatasync   {:9.0}", floor(&url));
    }
    for writers in [1, 8, 32] {
        println!("  {writers:2} threads             {:9.0}", threads(&url, writers));
        if !url.starts_with("memory:") {
            println!("  {writers:2} processes           {:9.0}", processes(&url, writers));
        }
    }
}
