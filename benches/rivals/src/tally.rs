//! What a consumer counts.

use std::hint::black_box;

use crate::load::{END, Plan, Touch, now_ns};

/// Objects so far, and how long those took that are measured.
#[derive(Debug)]
pub struct Tally {
    objects: u64,
    measured: u64,
    lost: u64,
    damaged: u64,
    next: u64,
    times_ns: Vec<u32>,
}

impl Tally {
    /// Nothing yet; memory for the times of several seconds is there already.
    #[must_use]
    pub fn new() -> Self {
        Self {
            objects: 0,
            measured: 0,
            lost: 0,
            damaged: 0,
            next: 0,
            times_ns: Vec::with_capacity(1 << 24),
        }
    }

    /// Takes an object in; false when it was the last one.
    pub fn take(&mut self, plan: &Plan, payload: &[u8]) -> bool {
        let word = |at: usize| {
            payload[at..]
                .first_chunk()
                .map_or(0, |bytes| u64::from_le_bytes(*bytes))
        };
        let number = word(0);
        if number == END {
            return false;
        }
        let now = now_ns();
        if plan.touch == Touch::Touched {
            let words = payload.as_chunks::<8>().0.iter();
            black_box(words.fold(0, |sum: u64, word| sum.wrapping_add(u64::from_le_bytes(*word))));
        }
        self.damaged += u64::from(word(plan.bytes - 8) != number || number < self.next);
        self.lost += number.saturating_sub(self.next);
        self.next = number + 1;
        self.objects += 1;
        if (plan.from_ns..plan.to_ns).contains(&now) {
            self.measured += 1;
            if self.times_ns.len() < self.times_ns.capacity() {
                self.times_ns.push((now - word(8)) as u32);
            }
        }
        true
    }

    /// Says to the producer that what was taken so far may be used again.
    pub fn say(&self, plan: &Plan) {
        plan.control.set_taken(self.objects);
    }

    /// The figures, a line of JSON.
    pub fn print(&mut self, plan: &Plan) {
        self.times_ns.sort_unstable();
        let at = |part: f64| {
            let last = self.times_ns.len().saturating_sub(1) as f64;
            self.times_ns
                .get((last * part) as usize)
                .map_or(0.0, |&ns| f64::from(ns) / 1e3)
        };
        let rate = self.measured as f64 * 1e9 / (plan.to_ns - plan.from_ns) as f64;
        println!(
            "{{\"objects_per_s\": {rate:.1}, \"gib_per_s\": {:.4}, \"objects\": {}, \"lost\": {}, \"damaged\": {}, \
             \"delivery_us\": {{\"p50\": {:.2}, \"p99\": {:.2}, \"p999\": {:.2}}}}}",
            rate * plan.bytes as f64 / f64::from(1 << 30),
            self.objects,
            self.lost,
            self.damaged,
            at(0.5),
            at(0.99),
            at(0.999),
        );
    }
}

impl Default for Tally {
    fn default() -> Self {
        Self::new()
    }
}
