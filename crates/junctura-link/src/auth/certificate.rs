//! The times of certificates (RFC 5280, section 4.1.2.5), for checks of a server's files.
//!
//! A certificate is DER: nested values, each with a tag and a length. Only what leads to the times is read.

use std::path::Path;

use junctura_model::{Code, Error, Result};

use crate::auth::tls::certificates;

const INTEGER: u8 = 0x02;
const UTC_TIME: u8 = 0x17;
const GENERALIZED_TIME: u8 = 0x18;
const SEQUENCE: u8 = 0x30;
/// The version of a certificate, which may be missing.
const VERSION: u8 = 0xa0;

/// When a certificate is valid, in seconds since the Unix epoch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CertificateTimes {
    /// The first second.
    pub from: u64,
    /// The last second.
    pub until: u64,
}

impl CertificateTimes {
    /// Reads the times of the certificates in a file, in its order.
    ///
    /// # Errors
    /// `NotFound` or `Io` when the file cannot be read, `InvalidArgument` when it has no certificate, or one that cannot be read.
    pub fn read(path: &Path) -> Result<Vec<Self>> {
        let found = certificates(path)?;
        let times = found.iter().map(|certificate| {
            times(certificate).ok_or_else(|| {
                let cause = "it has a certificate with unreadable times";
                Error::new(Code::InvalidArgument, path.display().to_string(), cause)
            })
        });
        times.collect()
    }
}

fn times(certificate: &[u8]) -> Option<CertificateTimes> {
    let (content, _) = value(certificate, SEQUENCE)?;
    let (content, _) = value(content, SEQUENCE)?;
    let content = value(content, VERSION).map_or(content, |(_, rest)| rest);
    let (_serial, content) = value(content, INTEGER)?;
    let (_algorithm, content) = value(content, SEQUENCE)?;
    let (_issuer, content) = value(content, SEQUENCE)?;
    let (validity, _) = value(content, SEQUENCE)?;
    let (from, rest) = time(validity)?;
    let (until, _) = time(rest)?;
    Some(CertificateTimes { from, until })
}

/// The content of the value in front, which must have this tag, and what follows it.
fn value(bytes: &[u8], tag: u8) -> Option<(&[u8], &[u8])> {
    let (&[found, length], rest) = bytes.split_first_chunk()?;
    if found != tag {
        return None;
    }
    if length < 0x80 {
        return rest.split_at_checked(usize::from(length));
    }
    let (digits, rest) = rest
        .split_at_checked(usize::from(length & 0x7f))
        .filter(|(digits, _)| digits.len() <= 4)?;
    let length = digits.iter().fold(0, |length, &digit| length << 8 | usize::from(digit));
    rest.split_at_checked(length)
}

/// A time in seconds since the Unix epoch (0 before it), and what follows it.
fn time(bytes: &[u8]) -> Option<(u64, &[u8])> {
    let ((text, rest), has_century) = match value(bytes, UTC_TIME) {
        Some(found) => (found, false),
        None => (value(bytes, GENERALIZED_TIME)?, true),
    };
    let digits = text.strip_suffix(b"Z")?;
    if !digits.iter().all(u8::is_ascii_digit) || digits.len() != if has_century { 14 } else { 12 } {
        return None;
    }
    let pairs: Vec<i64> = digits
        .chunks(2)
        .map(|pair| i64::from((pair[0] - b'0') * 10 + pair[1] - b'0'))
        .collect();
    let (year, pairs) = match (has_century, pairs.as_slice()) {
        (true, [century, year, rest @ ..]) => (century * 100 + year, rest),
        (false, [year, rest @ ..]) => (if *year < 50 { 2000 + year } else { 1900 + year }, rest),
        _ => return None,
    };
    let &[month, day, hour, minute, second] = pairs else {
        return None;
    };
    if !(1..=12).contains(&month) || !(1..=31).contains(&day) || hour > 23 || minute > 59 || second > 60 {
        return None;
    }
    let seconds = days(year, month, day) * 86_400 + hour * 3600 + minute * 60 + second;
    Some((u64::try_from(seconds).unwrap_or_default(), rest))
}

/// The days of a date since 1970-01-01, in the Gregorian calendar: years of 400 that begin in March.
fn days(year: i64, month: i64, day: i64) -> i64 {
    let (year, month) = if month > 2 {
        (year, month - 3)
    } else {
        (year - 1, month + 9)
    };
    let (era, of_era) = (year.div_euclid(400), year.rem_euclid(400));
    let day_of_year = (153 * month + 2) / 5 + day - 1;
    era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + day_of_year - 719_468
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use rcgen::{CertificateParams, KeyPair, date_time_ymd};

    use super::*;

    fn certificate(from: (i32, u8, u8), until: (i32, u8, u8)) -> Vec<u8> {
        let mut parameters = CertificateParams::new(["localhost".to_owned()]).unwrap();
        parameters.not_before = date_time_ymd(from.0, from.1, from.2);
        parameters.not_after = date_time_ymd(until.0, until.1, until.2);
        let key = KeyPair::generate().unwrap();
        parameters.self_signed(&key).unwrap().der().to_vec()
    }

    #[test]
    fn times_of_both_forms_are_read() {
        let found = times(&certificate((2000, 2, 29), (2049, 12, 31))).unwrap();
        assert_eq!((found.from, found.until), (951_782_400, 2_524_521_600));
        let found = times(&certificate((1975, 1, 1), (4096, 3, 1))).unwrap();
        assert_eq!((found.from, found.until), (157_766_400, 67_095_302_400));
    }

    #[test]
    fn a_file_has_one_or_several() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("server.pem");
        let key = KeyPair::generate().unwrap();
        let text = CertificateParams::new(["localhost".to_owned()])
            .unwrap()
            .self_signed(&key)
            .unwrap()
            .pem();
        std::fs::write(&path, format!("{text}{text}")).unwrap();
        assert_eq!(CertificateTimes::read(&path).unwrap().len(), 2);
        std::fs::write(&path, "nonsense").unwrap();
        assert_eq!(CertificateTimes::read(&path).unwrap_err().code(), Code::InvalidArgument);
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn changed_certificates_are_read_or_refused(at in any::<prop::sample::Index>(), byte: u8, end in any::<prop::sample::Index>()) {
            let mut bytes = certificate((2020, 1, 1), (2030, 1, 1));
            let (at, end) = (at.index(bytes.len()), end.index(bytes.len()));
            bytes[at] = byte;
            let _ = times(&bytes);
            let _ = times(&bytes[..end]);
        }
    }
}
