//! Measurements of one process and of all together.

use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};

/// Times in nanoseconds, kept as a histogram that can travel.
#[derive(Clone, Debug)]
pub(crate) struct LatencyHistogram(Histogram<u64>);

const LONGEST_NS: u64 = 600_000_000_000;

impl Default for LatencyHistogram {
    fn default() -> Self {
        Self(Histogram::new_with_bounds(1, LONGEST_NS, 3).unwrap_or_else(|_| unreachable!("the bounds are in order")))
    }
}

impl LatencyHistogram {
    pub(crate) fn record(&mut self, ns: u64) {
        self.0.saturating_record(ns.max(1));
    }

    pub(crate) fn add(&mut self, other: &LatencyHistogram) {
        for value in other.0.iter_recorded() {
            self.0
                .saturating_record_n(value.value_iterated_to(), value.count_at_value());
        }
    }

    fn micros(&self) -> LatencyMicros {
        let at = |q: f64| (self.0.value_at_quantile(q) as f64 / 10.0).round() / 100.0;
        LatencyMicros {
            p50: at(0.5),
            p99: at(0.99),
            p999: at(0.999),
        }
    }
}

impl Serialize for LatencyHistogram {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(
            self.0
                .iter_recorded()
                .map(|v| (v.value_iterated_to(), v.count_at_value())),
        )
    }
}

impl<'de> Deserialize<'de> for LatencyHistogram {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut times = Self::default();
        for (value, count) in Vec::<(u64, u64)>::deserialize(deserializer)? {
            times.0.saturating_record_n(value, count);
        }
        Ok(times)
    }
}

/// The measurements of one process.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct WorkerFigures {
    /// Objects within the measured time.
    pub(crate) measured: u64,
    /// Objects in all; of a producer: by consumer.
    pub(crate) done: Vec<u64>,
    /// Producers: offer to acknowledgement. Consumers: offer to delivery.
    pub(crate) times: LatencyHistogram,
    pub(crate) lost: u64,
    pub(crate) duplicates: u64,
    pub(crate) redelivered: u64,
    pub(crate) gaps: u64,
    pub(crate) damaged: u64,
    pub(crate) events: u64,
}

/// Microseconds at three quantiles.
#[derive(Clone, Copy, Debug, Serialize)]
pub(crate) struct LatencyMicros {
    pub(crate) p50: f64,
    pub(crate) p99: f64,
    pub(crate) p999: f64,
}

/// The server's memory, in MiB.
#[derive(Clone, Copy, Debug, Default, Serialize)]
#[expect(clippy::struct_field_names, reason = "units are suffixes")]
pub(crate) struct ServerMemory {
    /// Of its process; segments of payloads are shared, and count as far as it has looked at them.
    pub(crate) rss_mib: f64,
    /// Of its process alone: its records of objects, names and clients.
    pub(crate) rss_anon_mib: f64,
    /// Of its budget.
    pub(crate) used_mib: f64,
}

/// Samples during the load: at the start of the measured time, in the middle, and at the end.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub(crate) struct LoadTimes {
    pub(crate) begin: ServerMemory,
    pub(crate) middle: ServerMemory,
    pub(crate) end: ServerMemory,
    /// How much more the server's process alone has at the end than in the middle, in MiB.
    pub(crate) growth_mib: f64,
}

/// The measurements of a load; its JSON is the output of `--json`.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct LoadReport {
    pub(crate) objects_per_s: f64,
    pub(crate) gib_per_s: f64,
    pub(crate) offer_us: LatencyMicros,
    pub(crate) delivery_us: LatencyMicros,
    pub(crate) server_cpu_us_per_object: f64,
    pub(crate) peak_rss_mib: f64,
    pub(crate) memory: LoadTimes,
    pub(crate) objects: u64,
    pub(crate) lost: u64,
    pub(crate) duplicates: u64,
    pub(crate) redelivered: u64,
    pub(crate) gaps: u64,
    pub(crate) damaged: u64,
    /// Processes that were killed; fewer than planned where all of their kind had ended before.
    pub(crate) killed: u64,
    pub(crate) events: u64,
    pub(crate) payload_touched: &'static str,
    pub(crate) run: serde_json::Value,
}

impl LoadReport {
    pub(crate) fn fill(
        &mut self,
        producers: &[WorkerFigures],
        consumers: &[WorkerFigures],
        seconds: f64,
        payload_bytes: usize,
    ) {
        let sum = |get: fn(&WorkerFigures) -> u64| producers.iter().chain(consumers).map(get).sum::<u64>();
        let mut offers = LatencyHistogram::default();
        for figures in producers {
            offers.add(&figures.times);
        }
        let mut deliveries = LatencyHistogram::default();
        for figures in consumers {
            deliveries.add(&figures.times);
        }
        let measured: u64 = consumers.iter().map(|figures| figures.measured).sum();
        self.objects = consumers.iter().flat_map(|figures| &figures.done).sum();
        self.objects_per_s = (measured as f64 / seconds).round();
        self.gib_per_s = measured as f64 * payload_bytes as f64 / seconds / f64::from(1 << 30);
        self.offer_us = offers.micros();
        self.delivery_us = deliveries.micros();
        self.lost = sum(|figures| figures.lost);
        self.duplicates = sum(|figures| figures.duplicates);
        self.redelivered = sum(|figures| figures.redelivered);
        self.gaps = sum(|figures| figures.gaps);
        self.damaged = sum(|figures| figures.damaged);
    }

    /// The report as a table for people.
    pub(crate) fn table(&self) -> String {
        let times = |micros: &LatencyMicros| format!("{:>10.1} {:>10.1} {:>10.1}", micros.p50, micros.p99, micros.p999);
        format!(
            "objects per second      {:>12.0}\nGiB per second          {:>12.3}   ({})\n\
             microseconds                   p50        p99      p99.9\n  offer to acknowledged {}\n  offer to delivered    {}\n\
             server CPU per object   {:>12.2} us\nserver peak memory      {:>12.0} MiB\n\
             server memory, private  {:>12.0} MiB at the beginning, {:.0} in the middle, {:.0} at the end\n\
             objects {}, lost {}, duplicates {}, redelivered {}, gaps {}, damaged {}, killed {}",
            self.objects_per_s,
            self.gib_per_s,
            self.payload_touched,
            times(&self.offer_us),
            times(&self.delivery_us),
            self.server_cpu_us_per_object,
            self.peak_rss_mib,
            self.memory.begin.rss_anon_mib,
            self.memory.middle.rss_anon_mib,
            self.memory.end.rss_anon_mib,
            self.objects,
            self.lost,
            self.duplicates,
            self.redelivered,
            self.gaps,
            self.damaged,
            self.killed,
        )
    }
}

impl Default for LoadReport {
    fn default() -> Self {
        let none = LatencyMicros {
            p50: 0.0,
            p99: 0.0,
            p999: 0.0,
        };
        Self {
            objects_per_s: 0.0,
            gib_per_s: 0.0,
            offer_us: none,
            delivery_us: none,
            server_cpu_us_per_object: 0.0,
            peak_rss_mib: 0.0,
            memory: LoadTimes::default(),
            objects: 0,
            lost: 0,
            duplicates: 0,
            redelivered: 0,
            gaps: 0,
            damaged: 0,
            killed: 0,
            events: 0,
            payload_touched: "",
            run: serde_json::Value::Null,
        }
    }
}
