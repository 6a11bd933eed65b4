//! Times how fast arrays go from one layout into another, for `benches/arrays.py`.
//!
//! ```text
//! array_speed FROM TO FROM_TYPE TO_TYPE ROUNDS [huge] [portable]
//! array_speed plan FROM TO
//! ```
//! The producers' pieces lie in one shared memory; each rank of TO is a process of its own that copies what it wants into private memory,
//! all at once. In each round they also `memcpy` as much as they want between two memories of their own; both have been touched before. The
//! figures are JSON on standard output. Before anything is timed, each rank compares what it took with what the portable way gives.

#![allow(
    unsafe_code,
    clippy::unwrap_used,
    reason = "maps shared memory; a tool for measuring ends when anything fails"
)]

use std::hint::black_box;
use std::io::{BufRead, BufReader, Write};
use std::os::fd::AsRawFd;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::Arc;

use junctura_copy::Gather;
use junctura_layout::{Axis, Distribution, Element, Layout, Plan, PlanSide};
use rustix::fs::{MemfdFlags, ftruncate, memfd_create};
use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap, mmap_anonymous};
use rustix::time::{ClockId, clock_gettime};
use serde_json::json;

/// What is measured.
struct Work {
    from: Arc<Layout>,
    to: Arc<Layout>,
    types: (Element, Element),
    rounds: usize,
    is_huge: bool,
    ways: Vec<String>,
    arguments: Vec<String>,
}

impl Work {
    fn new(arguments: &[String]) -> Self {
        let [from, to, from_type, to_type, rounds, more @ ..] = arguments else {
            panic!("array_speed FROM TO FROM_TYPE TO_TYPE ROUNDS [huge] [portable]");
        };
        let has = |word: &str| more.iter().any(|argument| argument == word);
        let mut ways = vec!["memcpy", "copy"];
        ways.extend(has("portable").then_some("portable"));
        Self {
            from: Arc::new(from.parse().unwrap()),
            to: Arc::new(to.parse().unwrap()),
            types: (from_type.parse().unwrap(), to_type.parse().unwrap()),
            rounds: rounds.parse().unwrap(),
            is_huge: has("huge"),
            ways: ways.into_iter().map(str::to_owned).collect(),
            arguments: arguments.to_vec(),
        }
    }

    /// Bytes of each piece, and of those before it; each begins a page.
    fn pieces(&self) -> (Vec<(usize, usize)>, usize) {
        let mut end = 0;
        let mut all = Vec::new();
        for rank in 0..self.from.ranks() {
            let bytes = self.from.room(rank) as usize * self.types.0.kind.bytes();
            all.push((end, bytes));
            end += bytes.next_multiple_of(4096);
        }
        (all, end)
    }
}

fn now_ns() -> u64 {
    let time = clock_gettime(ClockId::Monotonic);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

fn cpu_ns() -> u64 {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// Private memory that has been touched.
fn private(bytes: usize, is_huge: bool) -> &'static mut [u8] {
    let room = bytes.max(1).next_multiple_of(2 << 20);
    // SAFETY: a new map, which stays until the process ends.
    unsafe {
        let map = mmap_anonymous(
            std::ptr::null_mut(),
            room,
            ProtFlags::READ | ProtFlags::WRITE,
            MapFlags::PRIVATE,
        )
        .unwrap();
        if is_huge {
            madvise(map, room, Advice::LinuxHugepage).unwrap();
        }
        let memory = std::slice::from_raw_parts_mut(map.cast::<u8>(), bytes);
        memory.fill(1);
        memory
    }
}

/// One rank of those that want something: does what it is told line by line, and says when it began and ended.
fn consumer(work: &Work, rank: u64, shared: &str) {
    let (places, bytes) = work.pieces();
    let file = std::fs::File::open(shared).unwrap();
    // SAFETY: nobody writes there any more.
    let memory = unsafe {
        let map = mmap(std::ptr::null_mut(), bytes, ProtFlags::READ, MapFlags::SHARED, &file, 0).unwrap();
        std::slice::from_raw_parts(map.cast::<u8>(), bytes)
    };
    // A first plan has the caches cold; what comes after is what a rank plans with.
    let timed = || {
        let began = now_ns();
        let plan = Plan::whole(&work.from, &work.to, PlanSide::To, rank).unwrap();
        let planned = now_ns();
        let gather = Gather::new(&plan, work.types.0, work.types.1).unwrap();
        (planned - began, now_ns() - planned, plan, gather)
    };
    let all: Vec<_> = (0..9).map(|_| timed()).collect();
    let plan_ns = all.iter().map(|(time, ..)| *time).min().unwrap();
    let gather_ns = all.iter().map(|(_, time, ..)| *time).min().unwrap();
    let (_, _, plan, gather) = all.into_iter().next().unwrap();
    let portable = gather.clone().portable();
    let pieces: Vec<&[u8]> = gather
        .peers()
        .iter()
        .map(|&peer| &memory[places[peer as usize].0..][..places[peer as usize].1])
        .collect();
    let into = private(work.to.room(rank) as usize * work.types.1.kind.bytes(), work.is_huge);
    let wanted = gather.elements() as usize * work.types.0.kind.bytes();
    let (source, target) = (private(wanted, false), private(wanted, false));
    portable.run(&pieces, into, 1).unwrap();
    let same = into.to_vec();
    into.fill(1);
    gather.run(&pieces, into, 1).unwrap();
    assert!(same == *into, "the quick way gives something else");
    drop(same);
    println!("{plan_ns} {gather_ns} {} {}", plan.listed(), plan.boxes());
    for line in std::io::stdin().lines() {
        let (began, cpu) = (now_ns(), cpu_ns());
        match line.unwrap().as_str() {
            "memcpy" => target.copy_from_slice(black_box(source)),
            "copy" => gather.run(&pieces, into, 1).unwrap(),
            _ => portable.run(&pieces, into, 1).unwrap(),
        }
        black_box((&into, &target));
        println!("{began} {} {}", now_ns(), cpu_ns() - cpu);
    }
}

struct Rank {
    process: Child,
    tell: ChildStdin,
    hear: BufReader<ChildStdout>,
}

impl Rank {
    fn numbers(&mut self) -> Vec<u64> {
        let mut line = String::new();
        self.hear.read_line(&mut line).unwrap();
        line.split_whitespace().map(|number| number.parse().unwrap()).collect()
    }
}

fn start(work: &Work, shared: &str) -> Vec<Rank> {
    let one = |rank: u64| {
        let mut process = Command::new(std::env::current_exe().unwrap())
            .arg("--rank")
            .arg(rank.to_string())
            .arg(shared)
            .args(&work.arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        Rank {
            tell: process.stdin.take().unwrap(),
            hear: BufReader::new(process.stdout.take().unwrap()),
            process,
        }
    };
    (0..work.to.ranks()).map(one).collect()
}

/// From the first that began to the last that ended, and what it took of the processors, in milliseconds.
fn together(ranks: &mut [Rank], way: &str) -> [f64; 2] {
    for rank in ranks.iter_mut() {
        writeln!(rank.tell, "{way}").unwrap();
    }
    let times: Vec<Vec<u64>> = ranks.iter_mut().map(Rank::numbers).collect();
    let began = times.iter().map(|times| times[0]).min().unwrap();
    let ended = times.iter().map(|times| times[1]).max().unwrap();
    let cpu: u64 = times.iter().map(|times| times[2]).sum();
    [(ended - began) as f64 / 1e6, cpu as f64 / 1e6]
}

fn median(numbers: &[f64]) -> f64 {
    let mut sorted = numbers.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted[sorted.len() / 2]
}

/// Numbers that differ, so that an element in the wrong place is seen.
fn fill(memory: &mut [u8], element: Element) {
    let mut number = 1.0_f64;
    for bytes in memory.chunks_exact_mut(element.kind.bytes()) {
        match bytes.len() {
            8 => bytes.copy_from_slice(&number.to_ne_bytes()),
            4 => bytes.copy_from_slice(&(number as f32).to_ne_bytes()),
            length => bytes.copy_from_slice(&number.to_bits().to_ne_bytes()[..length]),
        }
        number += 1.0;
    }
}

fn measure(work: &Work) {
    let (places, bytes) = work.pieces();
    let file = memfd_create("pieces", MemfdFlags::CLOEXEC).unwrap();
    ftruncate(&file, bytes as u64).unwrap();
    // SAFETY: consumers start when everything is written.
    unsafe {
        let map = mmap(
            std::ptr::null_mut(),
            bytes,
            ProtFlags::READ | ProtFlags::WRITE,
            MapFlags::SHARED,
            &file,
            0,
        )
        .unwrap();
        for (from, length) in places {
            fill(
                std::slice::from_raw_parts_mut(map.cast::<u8>().add(from), length),
                work.types.0,
            );
        }
    }
    let shared = format!("/proc/{}/fd/{}", std::process::id(), file.as_raw_fd());
    let mut ranks = start(work, &shared);
    let told: Vec<Vec<u64>> = ranks.iter_mut().map(Rank::numbers).collect();
    let most = |at: usize| told.iter().map(|numbers| numbers[at]).max().unwrap();
    let mut times: Vec<Vec<[f64; 2]>> = vec![Vec::new(); work.ways.len()];
    for round in 0..=work.rounds {
        for (way, times) in work.ways.iter().zip(&mut times) {
            let time = together(&mut ranks, way);
            // The first round warms up.
            times.extend((round > 0).then_some(time));
        }
    }
    for rank in ranks {
        let Rank {
            mut process,
            tell,
            hear,
        } = rank;
        drop((tell, hear));
        process.wait().unwrap();
    }
    let each = |at: usize| {
        let paired = |what: usize| -> Vec<f64> {
            let pairs = times[0].iter().zip(&times[at]);
            pairs.map(|(limit, time)| limit[what] / time[what]).collect()
        };
        let (wall, cpu) = (paired(0), paired(1));
        let ms: Vec<f64> = times[at].iter().map(|time| time[0]).collect();
        json!({
            "ms": median(&ms),
            "ms_min": ms.iter().copied().fold(f64::MAX, f64::min),
            "share_of_memcpy": median(&wall),
            "share_min": wall.iter().copied().fold(f64::MAX, f64::min),
            "share_max": wall.iter().copied().fold(0.0, f64::max),
            "share_by_cpu": median(&cpu),
        })
    };
    let named = |(at, way): (usize, &String)| (way.clone(), each(at));
    let ways: serde_json::Map<String, serde_json::Value> = work.ways.iter().enumerate().map(named).collect();
    let planning_ms = (most(0) + most(1)) as f64 / 1e6;
    let figures = json!({
        "planning_share": planning_ms / ways["copy"]["ms"].as_f64().unwrap(),
        "ways": ways,
        "plan_us": most(0) as f64 / 1e3,
        "gather_us": most(1) as f64 / 1e3,
        "listed": most(2),
        "boxes": most(3),
        "bytes": work.to.elements() * work.types.0.kind.bytes() as u64,
    });
    println!("{figures}");
}

/// What planning would be that looks at each rank of FROM, and asks by a formula whether anything is shared with it: how many there are.
/// Of arrays of one dimension in blocks that are dealt out in turn.
fn scan(from: &Layout, to: &Layout, rank: u64) -> u64 {
    let of = |layout: &Layout| match layout.distribution() {
        Distribution::Grid { axes, .. } => match axes[0] {
            Axis::Cyclic { parts, block, .. } => (parts, block),
            Axis::Cuts(_) => panic!("cuts"),
        },
        Distribution::Slabs(_) => panic!("slabs"),
    };
    let ((giving, one), (taking, other)) = (of(from), of(to));
    let gcd = |mut a: u64, mut b: u64| {
        while b > 0 {
            (a, b) = (b, a % b);
        }
        a
    };
    let step = gcd(giving * one, taking * other);
    let mine = step - rank * other % step;
    let shares = |peer: &u64| (peer * one + one - 1 + mine) % step < one + other - 1;
    (0..giving).filter(shares).count() as u64
}

/// How long one rank in the middle of TO plans, the best of many times.
fn plan_only(from: &str, to: &str) {
    let (from, to): (Arc<Layout>, Arc<Layout>) = (Arc::new(from.parse().unwrap()), Arc::new(to.parse().unwrap()));
    let element = "f8".parse().unwrap();
    let (mut plan_ns, mut gather_ns, mut listed) = (u64::MAX, u64::MAX, 0);
    for _ in 0..2000 {
        let began = now_ns();
        let plan = black_box(Plan::whole(&from, &to, PlanSide::To, to.ranks() / 2).unwrap());
        let planned = now_ns();
        black_box(Gather::new(&plan, element, element).unwrap());
        plan_ns = plan_ns.min(planned - began);
        gather_ns = gather_ns.min(now_ns() - planned);
        listed = plan.listed();
    }
    let (mut scan_ns, mut shared) = (u64::MAX, 0);
    for _ in 0..20 {
        let began = now_ns();
        shared = black_box(scan(&from, &to, to.ranks() / 2));
        scan_ns = scan_ns.min(now_ns() - began);
    }
    let plan = Plan::whole(&from, &to, PlanSide::To, to.ranks() / 2).unwrap();
    // Who would meet only behind the end of the array is found by the scan alone.
    assert!(plan.partners().len() as u64 <= shared);
    let figures = json!({
        "scan_us": scan_ns as f64 / 1e3,
        "partners": shared,
        "plan_us": plan_ns as f64 / 1e3,
        "gather_us": gather_ns as f64 / 1e3,
        "listed": listed,
        "plan_ns_a_run": plan_ns as f64 / listed as f64,
    });
    println!("{figures}");
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match &arguments[..] {
        [flag, rank, shared, rest @ ..] if flag == "--rank" => {
            consumer(&Work::new(rest), rank.parse().unwrap(), shared);
        }
        [word, from, to] if word == "plan" => plan_only(from, to),
        _ => measure(&Work::new(&arguments)),
    }
}
