//! How many commits a second writers get in a place, each with one object of 1 KiB; and how many appends a file system takes.
//!
//! ```text
//! commit_speed URL appended|exclusive threads|processes WRITERS SECONDS
//! commit_speed FILE floor BYTES SECONDS
//! ```
//! Each run prints a line of JSON. A new store is made at the URL. Threads commit together where they meet, processes do not; processes have
//! opened the store before the time begins. The floor is one `write` and `fdatasync` of so many bytes, again and again.

#![allow(clippy::unwrap_used, reason = "an example")]

use std::fs::File;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::fs::FileExt;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use junctura_model::{Given, Schema};
use junctura_store::{Commits, Store, StoreLayout};

const PAYLOAD: [u8; 1024] = [7; 1024];

/// Flushes until the time is over; says how often.
fn write(store: &Store, writer: usize, time: Duration) -> u64 {
    let mut flushes = 0;
    let mut archive = store.writer().unwrap();
    let number = writer.to_string();
    let began = Instant::now();
    while began.elapsed() < time {
        let step = flushes.to_string();
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
        let given = field.map(|(name, value)| (name, Given::Text(value)));
        archive.archive(given, &PAYLOAD).unwrap();
        archive.flush().unwrap();
        flushes += 1;
    }
    flushes
}

fn threads(url: &str, writers: usize, time: Duration) -> f64 {
    let store = Store::open_url(url).unwrap();
    let began = Instant::now();
    let flushes: u64 = std::thread::scope(|scope| {
        let start = |writer| {
            let store = &store;
            scope.spawn(move || write(store, writer, time))
        };
        let writing: Vec<_> = (0..writers).map(start).collect();
        writing.into_iter().map(|writer| writer.join().unwrap()).sum()
    });
    flushes as f64 / began.elapsed().as_secs_f64()
}

fn processes(url: &str, writers: usize, time: Duration) -> f64 {
    let start = |writer: usize| {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args([url, "writer", &writer.to_string(), &time.as_secs_f64().to_string()]);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap()
    };
    let mut all: Vec<_> = (0..writers).map(start).collect();
    let outputs = all.iter_mut().map(|child| BufReader::new(child.stdout.take().unwrap()));
    let mut lines: Vec<_> = outputs.map(BufRead::lines).collect();
    for output in &mut lines {
        output.next().unwrap().unwrap();
    }
    let began = Instant::now();
    for child in &mut all {
        drop(child.stdin.take());
    }
    let told = lines.iter_mut().map(|output| output.next().unwrap().unwrap());
    let flushes: u64 = told.map(|line| line.parse::<u64>().unwrap()).sum();
    let rate = flushes as f64 / began.elapsed().as_secs_f64();
    for mut child in all {
        assert!(child.wait().unwrap().success());
    }
    rate
}

/// A process that was started: it opens, says so, and writes when it is told.
fn started(url: &str, writer: usize, time: Duration) {
    let store = Store::open_url(url).unwrap();
    store.snapshot().unwrap();
    println!("ready");
    std::io::stdin().read_to_end(&mut Vec::new()).unwrap();
    println!("{}", write(&store, writer, time));
    std::io::stdout().flush().unwrap();
}

fn floor(path: &str, bytes: usize, time: Duration) -> f64 {
    let file = File::create_new(path).unwrap();
    let record = vec![7; bytes];
    let (began, mut writes) = (Instant::now(), 0_u64);
    while began.elapsed() < time {
        file.write_all_at(&record, writes * bytes as u64).unwrap();
        file.sync_data().unwrap();
        writes += 1;
    }
    let rate = writes as f64 / began.elapsed().as_secs_f64();
    std::fs::remove_file(path).unwrap();
    rate
}

/// Makes a store, and measures there.
fn commits(url: &str, order: &str, who: &str, writers: usize, time: Duration) -> f64 {
    let layout = StoreLayout {
        commits: Some(match order {
            "appended" => Commits::Appended,
            _ => Commits::Exclusive,
        }),
        ..StoreLayout::default()
    };
    // Kept open, since what lies in memory lasts as long as that.
    let store = Store::create_url(url, &[Schema::builtin("mars").unwrap()], &layout).unwrap();
    let rate = match who {
        "threads" => threads(url, writers, time),
        _ => processes(url, writers, time),
    };
    // Each number was given once, and nothing is lost.
    let snapshot = store.snapshot().unwrap();
    assert_eq!(snapshot.commit(), snapshot.list("").unwrap().len() as u64);
    rate
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let time = |text: &str| Duration::from_secs_f64(text.parse().unwrap());
    let rate = match arguments[..] {
        [url, "writer", writer, seconds] => return started(url, writer.parse().unwrap(), time(seconds)),
        [path, "floor", bytes, seconds] => floor(path, bytes.parse().unwrap(), time(seconds)),
        [url, order, who, writers, seconds] => commits(url, order, who, writers.parse().unwrap(), time(seconds)),
        _ => panic!("see the head of this file"),
    };
    println!("{{\"commits_per_s\": {rate:.1}}}");
}
