//! Files without a GRIB message: the format that their first bytes show.

use std::path::Path;

use junctura::{Code, Error};

/// How files of GRIB messages are called.
const ENDINGS: [&str; 8] = ["grib", "grib1", "grib2", "grb", "grb1", "grb2", "gb2", "gr2"];

/// First bytes of other formats.
const MARKS: [(&[u8], &str); 20] = [
    (b"\x89HDF", "an HDF5 or netCDF-4 file"),
    (b"CDF", "a netCDF file"),
    (b"BUFR", "a BUFR file"),
    (b"ODB", "an ODB file"),
    (b"\x1f\x8b", "a gzip file; decompress it first"),
    (b"BZh", "a bzip2 file; decompress it first"),
    (b"\xfd7zXZ", "an xz file; decompress it first"),
    (b"\x28\xb5\x2f\xfd", "a zstd file; decompress it first"),
    (b"PK\x03\x04", "a zip archive; unpack it first"),
    (b"\x89PNG", "a PNG image"),
    (b"\xff\xd8\xff", "a JPEG image"),
    (b"GIF8", "a GIF image"),
    (b"%PDF", "a PDF file"),
    (b"II*\0", "a TIFF file"),
    (b"MM\0*", "a TIFF file"),
    (b"PAR1", "a Parquet file"),
    (b"\x93NUMPY", "a NumPy file"),
    (b"version https://git-lfs", "a Git LFS pointer; fetch the file first"),
    (b"\x7fELF", "a program"),
    (b"DICM", "a DICOM file"),
];

/// Whether the name of a file promises GRIB messages.
pub(super) fn is_named_grib(path: &Path) -> bool {
    let ending = path.extension().and_then(|ending| ending.to_str());
    ending.is_some_and(|ending| ENDINGS.iter().any(|known| known.eq_ignore_ascii_case(ending)))
}

/// The error about a file without a GRIB message that begins with these bytes.
pub(super) fn no_message(file: &str, head: &[u8]) -> Error {
    let cause = format!(
        "no GRIB message found: the file {}; --format bytes accepts any file",
        found(head)
    );
    Error::new(Code::Corrupt, file, cause)
}

/// Adds what a file is to an error that it lacks attributes which a header would give.
pub(super) fn hint(error: Error, head: &[u8], is_undescribed: bool) -> Error {
    if error.code() != Code::SchemaMismatch || !is_undescribed {
        return error;
    }
    let cause = format!("{}; no GRIB message found: the file {}", error.cause(), found(head));
    Error::new(error.code(), error.subject(), cause)
}

fn found(head: &[u8]) -> String {
    if head.is_empty() {
        return "is empty".to_owned();
    }
    if let Some((_, what)) = MARKS.iter().find(|(mark, _)| head.starts_with(mark)) {
        return format!("is {what}");
    }
    let text = std::str::from_utf8(head).or_else(|error| std::str::from_utf8(&head[..error.valid_up_to()]));
    let text = text.unwrap_or_default();
    let begins = text.trim_start_matches(['\u{feff}', ' ', '\t', '\r', '\n']);
    let is = |mark: &str| {
        begins
            .get(..mark.len())
            .is_some_and(|begin| begin.eq_ignore_ascii_case(mark))
    };
    let what = if is("<!doctype html") || is("<html") {
        Some("is an HTML page")
    } else if is("<?xml") || is("<") {
        Some("is an XML document")
    } else if is("{") || is("[") {
        Some("is a JSON text")
    } else {
        None
    };
    if let Some(what) = what {
        return what.to_owned();
    }
    let is_text = text.len() + 4 > head.len() && !text.chars().any(|c| c.is_control() && !c.is_whitespace());
    if is_text {
        let begin: String = text.chars().take(24).collect();
        return format!("is a text that begins with {begin:?}");
    }
    if head.iter().all(|byte| *byte == 0) {
        return "begins with zeros".to_owned();
    }
    let bytes: Vec<String> = head.iter().take(8).map(|byte| format!("{byte:02x}")).collect();
    format!("begins with the bytes {}", bytes.join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_file_is_stands_in_the_error() {
        for (head, what) in [
            (&b""[..], "is empty"),
            (b"\n <!DOCTYPE html><html>", "is an HTML page"),
            (b"<HTML><body>", "is an HTML page"),
            (b"<?xml version=\"1.0\"?>", "is an XML document"),
            (b"{\"error\": \"no such file\"}", "is a JSON text"),
            (b"CDF\x01\0\0", "is a netCDF file"),
            (b"\x89HDF\r\n\x1a\n", "is an HDF5 or netCDF-4 file"),
            (b"BUFR\0\0\0\x04", "is a BUFR file"),
            (b"\x1f\x8b\x08", "is a gzip file; decompress it first"),
            (b"404 not found", "is a text that begins with \"404 not found\""),
            (&[0; 20], "begins with zeros"),
            (&[1, 0, 254, 3], "begins with the bytes 01 00 fe 03"),
        ] {
            let error = no_message("x.grib", head).to_string();
            assert!(
                error.contains(&format!("no GRIB message found: the file {what}")),
                "{error}"
            );
        }
        assert!(is_named_grib(Path::new("a/b.GRIB2")) && !is_named_grib(Path::new("grib")));
    }
}
