//! The figures for people, and what they mean in words.

use junctura::Result;
use junctura_terminal::output::StandardOutput;
use junctura_terminal::size;

use super::{BenchFigures, LatencySpread};

/// A figure that is this many times worse than it should be is worth a remark.
const REMARKABLE: f64 = 4.0;
/// An answer passes through a server twice, which is four wake-ups where the bare one is two.
const ANSWER_REMARKABLE: f64 = 8.0;

pub(super) fn write(figures: &BenchFigures, out: &mut StandardOutput) -> Result<()> {
    let large = size::bytes(figures.large_bytes as u64);
    let ratios = &figures.ratios;
    let lines = [
        ("through a pool", String::new(), String::new()),
        (
            "small objects",
            format!("{:.0} /s", figures.small_objects_per_s),
            format!(
                "{:.2} us each, {:.2} of a process's wake-up",
                1e6 / figures.small_objects_per_s,
                ratios.small_to_process_wake
            ),
        ),
        (
            "large objects",
            format!("{:.0} /s", figures.large_objects_per_s),
            format!(
                "{large} each: {:.1} GiB/s, {:.1} times one copy, {:.1} times files",
                figures.large_gib_per_s, ratios.large_to_memcpy, ratios.large_to_file
            ),
        ),
        (
            "there and back",
            times(figures.round_trip_us),
            format!("{:.1} times a bare one", ratios.round_trip_to_process_wake),
        ),
        ("the machine itself", String::new(), String::new()),
        (
            "one copy in memory",
            format!("{:.1} GiB/s", figures.memcpy_gib_per_s),
            "one thread".to_owned(),
        ),
        (
            "two threads, there and back",
            times(figures.thread_wake_us),
            "a wake-up each way".to_owned(),
        ),
        (
            "two processes, there and back",
            times(figures.process_wake_us),
            "a byte through a pipe each way".to_owned(),
        ),
        (
            "files",
            format!("{:.0} /s", figures.file_objects_per_s),
            format!(
                "{large} each, written, moved, read: {:.1} GiB/s",
                figures.file_gib_per_s
            ),
        ),
    ];
    for (what, figure, remark) in lines {
        if figure.is_empty() {
            out.heading(what)?;
        } else {
            writeln!(out, "  {what:<30} {figure:>24}   {remark}")?;
        }
    }
    out.heading("interpretation")?;
    for sentence in meaning(figures) {
        writeln!(out, "  {sentence}")?;
    }
    Ok(())
}

fn times(spread: LatencySpread) -> String {
    format!("{:.1} us (99 %: {:.0})", spread.p50, spread.p99)
}

fn meaning(figures: &BenchFigures) -> Vec<String> {
    let ratios = &figures.ratios;
    let mut sentences = vec![
        if ratios.large_to_memcpy >= 1.0 {
            "Large objects are handed over faster than this machine copies them: their bytes stay where they are."
                .to_owned()
        } else {
            format!(
                "Large objects reach {:.2} of one copy in memory: something other than their bytes takes the time.",
                ratios.large_to_memcpy
            )
        },
        format!(
            "A producer and a consumer that exchange files would move {:.0} files per second; through a pool {:.1} times as many.",
            figures.file_objects_per_s, ratios.large_to_file
        ),
        format!(
            "An answer takes {:.1} us: four wake-ups, through the server there and back; two alone take {:.1} us here.",
            figures.round_trip_us.p50, figures.process_wake_us.p50
        ),
    ];
    if ratios.round_trip_to_process_wake > ANSWER_REMARKABLE {
        sentences.push(format!(
            "That is {:.0} times the bare wake-ups: are other programs busy, or fewer processors free than the three that it needs?",
            ratios.round_trip_to_process_wake
        ));
    }
    if figures.processors < 3 {
        sentences.push(format!(
            "This process may use {} processors: producer, server and consumer take turns on them, and rates are lower than on three.",
            figures.processors
        ));
    }
    if figures.round_trip_us.p99 > REMARKABLE * figures.round_trip_us.p50 {
        sentences.push(
            "One answer of a hundred takes several times as long as most: the machine is shared or noisy.".to_owned(),
        );
    }
    sentences
}

#[cfg(test)]
mod tests {
    use super::super::{BenchFigures, BenchRatios, LatencySpread};
    use super::*;

    #[test]
    fn words_follow_from_figures() {
        let spread = LatencySpread { p50: 10.0, p99: 20.0 };
        let mut figures = BenchFigures {
            small_objects_per_s: 500_000.0,
            large_objects_per_s: 100_000.0,
            large_gib_per_s: 80.0,
            large_bytes: super::super::LARGE_BYTES,
            round_trip_us: spread,
            memcpy_gib_per_s: 8.0,
            thread_wake_us: spread,
            process_wake_us: spread,
            file_objects_per_s: 2000.0,
            file_gib_per_s: 1.6,
            processors: 8,
            ratios: BenchRatios {
                large_to_memcpy: 10.0,
                large_to_file: 50.0,
                small_to_process_wake: 0.4,
                round_trip_to_process_wake: 1.0,
            },
        };
        let words = meaning(&figures).join("\n");
        assert!(words.contains("stay where they are") && !words.contains("busy") && !words.contains("noisy"));
        figures.ratios.large_to_memcpy = 0.5;
        figures.ratios.round_trip_to_process_wake = 9.0;
        figures.round_trip_us = LatencySpread { p50: 90.0, p99: 900.0 };
        figures.processors = 2;
        let words = meaning(&figures).join("\n");
        for part in ["0.50 of one copy", "9 times the bare", "2 processors", "noisy"] {
            assert!(words.contains(part), "{words}");
        }
    }
}
