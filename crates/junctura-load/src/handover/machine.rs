//! Figures of the machine without a pool, for comparison.

use std::fs::{self, File};
use std::hint::black_box;
use std::io::{Read, Write};
use std::process::{Child, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;
use junctura::{Code, Error, Result};
use junctura_terminal::program::ProgramWords;

use super::LatencySpread;

/// Larger than caches.
const COPIED_BYTES: usize = 64 << 20;

/// One thread copies memory into memory; the best of several rounds.
pub(super) fn memcpy_gib_per_s(time: Duration) -> f64 {
    let from = vec![1u8; COPIED_BYTES];
    let mut into = vec![2u8; COPIED_BYTES];
    let began = Instant::now();
    let mut best = f64::INFINITY;
    while best.is_infinite() || began.elapsed() < time {
        let round = Instant::now();
        into.copy_from_slice(black_box(&from));
        black_box(&mut into);
        best = best.min(round.elapsed().as_secs_f64());
    }
    COPIED_BYTES as f64 / f64::from(1 << 30) / best
}

/// Two threads wake each other.
pub(super) fn thread_round_trips(time: Duration) -> Result<LatencySpread> {
    const OVER: u64 = u64::MAX;
    let turn = Arc::new(AtomicU64::new(0));
    let heard = Arc::clone(&turn);
    let here = thread::current();
    let other = thread::spawn(move || {
        let mut next = 1;
        loop {
            match heard.load(Ordering::Acquire) {
                OVER => break,
                now if now == next => {
                    heard.store(next + 1, Ordering::Release);
                    here.unpark();
                    next += 2;
                }
                _ => thread::park(),
            }
        }
    });
    let mut next = 1;
    let spread = spread(time, || {
        turn.store(next, Ordering::Release);
        other.thread().unpark();
        while turn.load(Ordering::Acquire) != next + 1 {
            thread::park();
        }
        next += 2;
        Ok(())
    });
    turn.store(OVER, Ordering::Release);
    other.thread().unpark();
    let joined = other.join();
    joined.map_err(|_| Error::new(Code::Io, "bench", "a thread failed"))?;
    spread
}

/// Two processes wake each other through pipes.
pub(super) fn process_round_trips(time: Duration, program: &ProgramWords) -> Result<LatencySpread> {
    let mut other = EchoProcess::start(program, &["load", "echo", "echo"])?;
    let mut byte = [7u8];
    spread(time, || {
        other.write(&byte)?;
        other.read(&mut byte)
    })
}

/// The part of the other process.
pub(super) fn echo() -> Result<()> {
    let (mut stdin, mut stdout) = (std::io::stdin().lock(), std::io::stdout().lock());
    let mut byte = [0u8];
    while stdin.read(&mut byte).map_err(|error| io(&error))? == 1 {
        stdout
            .write_all(&byte)
            .and_then(|()| stdout.flush())
            .map_err(|error| io(&error))?;
    }
    Ok(())
}

/// Objects as files: each is written beside its place, moved there, read and removed, as programs do that meet in a folder.
pub(super) fn files_per_s(time: Duration, bytes: usize) -> Result<f64> {
    let folder = tempfile::tempdir().map_err(|error| io(&error))?;
    let (staged, place) = (folder.path().join("staged"), folder.path().join("object"));
    let payload = vec![3u8; bytes];
    let mut read = Vec::with_capacity(bytes);
    let mut round = || -> std::io::Result<()> {
        File::create(&staged)?.write_all(&payload)?;
        fs::rename(&staged, &place)?;
        read.clear();
        File::open(&place)?.read_to_end(&mut read)?;
        fs::remove_file(&place)
    };
    let began = Instant::now();
    let mut count = 0u32;
    while count == 0 || began.elapsed() < time {
        round().map_err(|error| io(&error))?;
        count += 1;
    }
    Ok(f64::from(count) / began.elapsed().as_secs_f64())
}

/// How long this takes, over and over.
pub(super) fn spread(time: Duration, mut round: impl FnMut() -> Result<()>) -> Result<LatencySpread> {
    let mut times = Histogram::<u64>::new_with_bounds(1, 60_000_000_000, 3)
        .map_err(|error| Error::new(Code::Io, "bench", error.to_string()))?;
    // The first ones are about starting.
    for _ in 0..100 {
        round()?;
    }
    let began = Instant::now();
    while times.is_empty() || began.elapsed() < time {
        let one = Instant::now();
        round()?;
        times.saturating_record(one.elapsed().as_nanos() as u64);
    }
    let us = |quantile| times.value_at_quantile(quantile) as f64 / 1e3;
    Ok(LatencySpread {
        p50: us(0.5),
        p99: us(0.99),
    })
}

/// Another process, which ends with this value.
pub(super) struct EchoProcess {
    process: Child,
}

impl EchoProcess {
    pub(super) fn start(program: &ProgramWords, arguments: &[&str]) -> Result<EchoProcess> {
        let mut command = program.command()?;
        command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped());
        let process = command.spawn().map_err(|error| io(&error))?;
        Ok(EchoProcess { process })
    }

    pub(super) fn write(&mut self, bytes: &[u8]) -> Result<()> {
        let pipe = self.process.stdin.as_mut();
        pipe.map_or(Ok(()), |pipe| pipe.write_all(bytes))
            .map_err(|error| io(&error))
    }

    pub(super) fn read(&mut self, bytes: &mut [u8]) -> Result<()> {
        let pipe = self.process.stdout.as_mut();
        pipe.map_or(Ok(()), |pipe| pipe.read_exact(bytes))
            .map_err(|error| io(&error))
    }
}

impl Drop for EchoProcess {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn io(error: &std::io::Error) -> Error {
    Error::new(Code::Io, "bench", error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_takes_some_time() {
        let time = Duration::from_millis(1);
        assert!(memcpy_gib_per_s(time) > 0.0);
        assert!(files_per_s(time, 1000).unwrap() > 0.0);
        let woken = thread_round_trips(time).unwrap();
        assert!(woken.p50 > 0.0 && woken.p99 >= woken.p50);
    }
}
