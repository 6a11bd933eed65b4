//! The text format `OpenMetrics`, version 1.0.

use std::fmt::Write;

/// The kind of a family.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MetricKind {
    Counter,
    Gauge,
    Histogram,
    Info,
}

/// A family of metrics. Names and labels are an interface: `docs/guide/monitoring.md` lists them.
#[derive(Debug)]
pub(crate) struct MetricFamily {
    /// Without the suffix of its samples.
    pub(crate) name: &'static str,
    pub(crate) kind: MetricKind,
    pub(crate) labels: &'static [&'static str],
    pub(crate) help: &'static str,
}

impl MetricKind {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Counter => "counter",
            Self::Gauge => "gauge",
            Self::Histogram => "histogram",
            Self::Info => "info",
        }
    }

    fn suffix(self) -> &'static str {
        match self {
            Self::Counter => "_total",
            Self::Info => "_info",
            Self::Gauge | Self::Histogram => "",
        }
    }
}

impl MetricFamily {
    fn unit(&self) -> Option<&'static str> {
        ["seconds", "bytes"]
            .into_iter()
            .find(|unit| self.name.strip_suffix(unit).is_some_and(|rest| rest.ends_with('_')))
    }
}

/// Text that is being written.
#[derive(Debug, Default)]
pub(crate) struct MetricText(String);

impl MetricText {
    /// Begins a family: its samples follow.
    pub(crate) fn family(&mut self, family: &MetricFamily) {
        let name = family.name;
        let _ = writeln!(self.0, "# TYPE {name} {}", family.kind.name());
        if let Some(unit) = family.unit() {
            let _ = writeln!(self.0, "# UNIT {name} {unit}");
        }
        let _ = writeln!(self.0, "# HELP {name} {}.", family.help);
    }

    /// Adds a sample with the values of the family's labels; without values, it has no labels.
    pub(crate) fn sample(&mut self, family: &MetricFamily, labels: &[&str], value: impl std::fmt::Display) {
        let pairs: Vec<_> = family.labels.iter().copied().zip(labels.iter().copied()).collect();
        self.line(family.name, family.kind.suffix(), &pairs, value);
    }

    /// Adds a histogram: how many values are not greater than each bound, and the sum of all values.
    pub(crate) fn histogram(&mut self, family: &MetricFamily, bounds: &[(f64, u64)], count: u64, sum: f64) {
        for (bound, below) in bounds {
            self.line(family.name, "_bucket", &[("le", &decimal(*bound))], below);
        }
        self.line(family.name, "_bucket", &[("le", "+Inf")], count);
        self.line(family.name, "_count", &[], count);
        self.line(family.name, "_sum", &[], sum);
    }

    /// Returns the whole text.
    pub(crate) fn finish(mut self) -> String {
        self.0.push_str("# EOF\n");
        self.0
    }

    fn line(&mut self, name: &str, suffix: &str, labels: &[(&str, &str)], value: impl std::fmt::Display) {
        self.0.push_str(name);
        self.0.push_str(suffix);
        for (at, (label, text)) in labels.iter().enumerate() {
            let _ = write!(self.0, "{}{label}=\"", if at == 0 { '{' } else { ',' });
            for letter in text.chars() {
                match letter {
                    '\\' => self.0.push_str("\\\\"),
                    '"' => self.0.push_str("\\\""),
                    '\n' => self.0.push_str("\\n"),
                    other => self.0.push(other),
                }
            }
            self.0.push('"');
        }
        let close = if labels.is_empty() { "" } else { "}" };
        let _ = writeln!(self.0, "{close} {value}");
    }
}

/// A bound with a point, as the format requires.
fn decimal(bound: f64) -> String {
    format!("{bound:?}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_has_units_suffixes_and_escapes() {
        let family = MetricFamily {
            name: "junctura_offered_bytes",
            kind: MetricKind::Counter,
            labels: &["component"],
            help: "Bytes offered",
        };
        let mut text = MetricText::default();
        text.family(&family);
        text.sample(&family, &["a\"b\\c\nd"], 7);
        let expected = "# TYPE junctura_offered_bytes counter\n# UNIT junctura_offered_bytes bytes\n\
                        # HELP junctura_offered_bytes Bytes offered.\n\
                        junctura_offered_bytes_total{component=\"a\\\"b\\\\c\\nd\"} 7\n# EOF\n";
        assert_eq!(text.finish(), expected);
    }

    #[test]
    fn a_histogram_ends_with_all_values() {
        let family = MetricFamily {
            name: "x_seconds",
            kind: MetricKind::Histogram,
            labels: &[],
            help: "X",
        };
        let mut text = MetricText::default();
        text.histogram(&family, &[(1.0, 2), (4.0, 3)], 5, 1.5);
        let expected = "x_seconds_bucket{le=\"1.0\"} 2\nx_seconds_bucket{le=\"4.0\"} 3\nx_seconds_bucket{le=\"+Inf\"} 5\n\
                        x_seconds_count 5\nx_seconds_sum 1.5\n# EOF\n";
        assert_eq!(text.finish(), expected);
    }
}
