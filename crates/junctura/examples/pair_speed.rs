//! How fast one producer hands objects to one consumer, and how long an object is on its way.
//!
//! A server, a producer and a consumer, each a process of its own. Objects have eleven attributes of the `mars` schema and
//! are released by the one consumer that each has. `cargo run --release --example pair_speed [OBJECTS]`.

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use junctura::{Code, FollowOptions, Given, Item, OfferOptions, Pool, Result, Retention};
use rustix::time::{ClockId, clock_gettime};

const PARAMS: [&str; 8] = ["t", "u", "v", "q", "z", "w", "r", "d"];
const LEVELS: [i64; 8] = [1000, 925, 850, 700, 500, 300, 200, 100];

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().collect();
    let words: Vec<&str> = arguments.iter().skip(1).map(String::as_str).collect();
    match words[..] {
        ["producer", url, objects, bytes, window] => produce(url, number(objects), number(bytes), number(window)),
        ["consumer", url, objects, window] => consume(url, number(objects), number(window)),
        ["server", spin_us] => serve(number(spin_us)),
        _ => {
            compare(
                words.first().map_or(400_000, |objects| number(objects)),
                words.get(1).copied().unwrap_or("0"),
            );
            Ok(())
        }
    }
}

fn number(text: &str) -> usize {
    text.parse().unwrap_or_default()
}

fn compare(objects: usize, spin_us: &str) {
    println!("   bytes window  objects/s   p50 us   p99 us  CPU us an object: producer server consumer");
    for (bytes, window) in [
        (1024, 1),
        (1024, 64),
        (1024, 1024),
        (804 << 10, 1),
        (804 << 10, 64),
        (804 << 10, 1024),
    ] {
        let objects = if window == 1 { objects / 10 } else { objects };
        run(objects, bytes, window, spin_us);
    }
}

fn run(objects: usize, bytes: usize, window: usize, spin_us: &str) {
    let mut server = spawn(&["server", spin_us]);
    let url = line(&mut server);
    let (objects_text, window_text) = (objects.to_string(), window.to_string());
    let mut consumer = spawn(&["consumer", &url, &objects_text, &window_text]);
    line(&mut consumer);
    let before = cpu(server.id());
    let mut producer = spawn(&["producer", &url, &objects_text, &bytes.to_string(), &window_text]);
    let producer_cpu = line(&mut producer);
    let measured = line(&mut consumer);
    let server_cpu = (cpu(server.id()) - before) as f64 / objects as f64 / 1000.0;
    let measured: Vec<&str> = measured.split_whitespace().collect();
    let [rate, p50, p99, consumer_cpu] = measured[..] else {
        panic!("{measured:?}")
    };
    println!("{bytes:8} {window:6} {rate:>10} {p50:>8} {p99:>8} {producer_cpu:>26} {server_cpu:6.2} {consumer_cpu:>8}");
    drop(server.stdin.take());
    for process in [&mut producer, &mut consumer, &mut server] {
        process.wait().expect("it ends");
    }
}

fn serve(spin_us: usize) -> Result<()> {
    let pool = Pool::builder()
        .spin(Duration::from_micros(spin_us as u64))
        .inline_bytes_max(4096)
        .open()?;
    println!("{}", pool.url());
    // Until the other end is closed.
    std::io::stdin().read_line(&mut String::new()).expect("standard input");
    Ok(())
}

fn produce(url: &str, objects: usize, bytes: usize, window: usize) -> Result<()> {
    let pool = Pool::connect(url)?;
    let options = OfferOptions {
        retention: Some(Retention::Released(1)),
        ..OfferOptions::default()
    };
    let mut pipeline = pool.pipeline(window)?;
    let mut payload = vec![0; bytes];
    let inline = pool.payload_rules()?.inline_bytes_max >= bytes as u64;
    for i in 0..objects {
        let attributes = [
            ("class", Given::Text("od")),
            ("expver", Given::Text("0001")),
            ("stream", Given::Text("enfo")),
            ("date", Given::Text("20261120")),
            ("time", Given::Text("0000")),
            ("type", Given::Text("pf")),
            ("levtype", Given::Text("pl")),
            ("step", Given::Integer((i / 64 % 240) as i64)),
            ("number", Given::Integer((i / 64 / 240) as i64)),
            ("levelist", Given::Integer(LEVELS[i / 8 % 8])),
            ("param", Given::Text(PARAMS[i % 8])),
        ];
        if inline {
            payload[..8].copy_from_slice(&now().to_le_bytes());
            pipeline.offer_with(attributes, &payload, options.clone())?;
        } else {
            let mut slot = pipeline.allocate(bytes)?;
            slot[..8].copy_from_slice(&now().to_le_bytes());
            slot[bytes - 64] = i as u8;
            pipeline.offer_allocation_with(slot, attributes, options.clone())?;
        }
        if window == 1 {
            pipeline.flush()?;
        }
    }
    pipeline.flush()?;
    println!("{:.2}", cpu(std::process::id()) as f64 / objects as f64 / 1000.0);
    Ok(())
}

fn consume(url: &str, objects: usize, window: usize) -> Result<()> {
    let pool = Pool::connect(url)?;
    let options = FollowOptions {
        window: Some(window.max(256) as u32),
        ..FollowOptions::default()
    };
    let mut follow = pool.follow_with("class=od,param=t/u/v/q/z/w/r/d", options)?;
    println!("ready");
    let mut latencies = Vec::with_capacity(objects);
    let (mut first, mut cpu_before) = (None, 0);
    while latencies.len() < objects {
        match follow.next_item()? {
            Some(Item::Object(object)) => {
                if first.is_none() {
                    (first, cpu_before) = (Some(Instant::now()), cpu(std::process::id()));
                }
                let sent = u64::from_le_bytes(object[..8].try_into().expect("eight bytes"));
                std::hint::black_box(object.last());
                latencies.push(now() - sent);
            }
            Some(Item::Live) => {}
            Some(Item::Gap(gap)) => panic!("{gap:?}"),
            None => return Err(junctura::Error::new(Code::Closed, "follow", "it ended")),
        }
    }
    let rate = objects as f64 / first.map_or(f64::NAN, |first| first.elapsed().as_secs_f64());
    let used = (cpu(std::process::id()) - cpu_before) as f64 / objects as f64 / 1000.0;
    latencies.sort_unstable();
    let at = |part: f64| latencies[((objects - 1) as f64 * part) as usize] as f64 / 1000.0;
    println!("{rate:.0} {:.1} {:.1} {used:.2}", at(0.5), at(0.99));
    Ok(())
}

/// Nanoseconds of a clock that all processes share.
fn now() -> u64 {
    let time = clock_gettime(ClockId::Monotonic);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// Nanoseconds that a process has run, all its threads together.
fn cpu(pid: u32) -> u64 {
    let tasks = std::fs::read_dir(format!("/proc/{pid}/task")).expect("the process runs");
    let times = tasks.flatten().filter_map(|task| {
        let text = std::fs::read_to_string(task.path().join("schedstat")).ok()?;
        text.split_whitespace().next()?.parse::<u64>().ok()
    });
    times.sum()
}

fn spawn(arguments: &[&str]) -> std::process::Child {
    let program = std::env::current_exe().expect("this program");
    Command::new(program)
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("it starts")
}

fn line(process: &mut std::process::Child) -> String {
    use std::io::Read;
    let mut line = Vec::new();
    let stdout = process.stdout.as_mut().expect("piped");
    let mut byte = [0];
    while stdout.read(&mut byte).expect("it says something") == 1 && byte != *b"\n" {
        line.push(byte[0]);
    }
    String::from_utf8(line).expect("text")
}
