//! Compares the values of objects whose bytes differ. Python decodes them (`python/junctura/_store/compare_values.py`): it knows what fields
//! and arrays mean.
//!
//! The Python program is started before the comparison, so a missing package is reported immediately.

use std::ffi::OsString;
use std::io::{self, BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Stdio};

use clap::Args;
use junctura::{Code, Error, Result};
use junctura_store::StoredObject;
use junctura_terminal::program::{ProgramWords, no_python};
use serde_json::{Value, json};

const MODULE: &str = "junctura._store.compare_values";

/// Whether values are compared, and the tolerance.
#[derive(Args, Debug)]
pub(crate) struct ValuesArguments {
    /// If bytes differ, compare values: of GRIB messages, and of arrays with a dtype. This needs Python with the package and its
    /// extra `grib`
    #[arg(long)]
    values: bool,
    /// Values are equal if they differ by at most X (with --rtol Y: X + Y * abs(second)); implies --values
    #[arg(long, value_name = "X", value_parser = tolerance)]
    atol: Option<f64>,
    /// Values are equal if they differ by at most this part of the second one; implies --values
    #[arg(long, value_name = "Y", value_parser = tolerance)]
    rtol: Option<f64>,
    /// The Python that has the package, for --values (default: the one that runs this command, else python3)
    #[arg(long, value_name = "PROGRAM")]
    python: Option<OsString>,
}

fn tolerance(text: &str) -> std::result::Result<f64, String> {
    let number: f64 = text.parse().map_err(|_| "a number is expected".to_owned())?;
    if number.is_finite() && number >= 0.0 {
        return Ok(number);
    }
    Err("a number from 0 on is expected".to_owned())
}

impl ValuesArguments {
    /// Starts the comparison of values, if requested.
    ///
    /// # Errors
    /// `Unsupported` without Python or the package.
    pub(crate) fn begin(&self, program: &ProgramWords) -> Result<Option<ValueDecoder>> {
        if !self.values && self.atol.is_none() && self.rtol.is_none() {
            return match &self.python {
                Some(_) => Err(Error::new(
                    Code::InvalidArgument,
                    "--python",
                    "it needs --values, --atol or --rtol",
                )),
                None => Ok(None),
            };
        }
        let mut command = program.module(MODULE, self.python.as_ref());
        for tolerance in [self.rtol, self.atol] {
            command.arg(tolerance.unwrap_or(0.0).to_string());
        }
        let spawned = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
        let mut child = spawned.map_err(|error| no_python(&error, &command))?;
        let (Some(pairs), Some(told)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(Error::new(Code::Io, "python", "it has no input and output"));
        };
        let mut values = ValueDecoder {
            child,
            pairs: Some(pairs),
            told: BufReader::new(told),
        };
        if values.told().is_ok_and(|line| line == "ready") {
            return Ok(Some(values));
        }
        let cause = "it lacks the package junctura or its extra `grib`: pip install 'PATH[grib]', PATH being a wheel or a clone of \
                     Junctura; or --python selects the Python that has them";
        let python = command.get_program().display().to_string();
        Err(Error::new(Code::Unsupported, format!("{python} -m {MODULE}"), cause))
    }
}

/// A program that decodes values.
pub(crate) struct ValueDecoder {
    child: Child,
    pairs: Option<ChildStdin>,
    told: BufReader<ChildStdout>,
}

impl ValueDecoder {
    /// Returns the difference of the values of two objects: 0 within the tolerance, infinite if their numbers differ or there are none.
    ///
    /// # Errors
    /// Those of [`StoredObject::read`]; `Unsupported` if Python cannot decode them.
    pub(crate) fn apart(&mut self, first: &StoredObject<'_>, second: &StoredObject<'_>) -> Result<f64> {
        let payloads = [first.read()?, second.read()?];
        let pair = json!([said(first), said(second)]);
        let told = self.ask(&pair, &payloads).map_err(|error| broken(&error.to_string()))?;
        let answer: Value = serde_json::from_str(&told).map_err(|_| broken("it has died"))?;
        if let Some(missing) = answer["missing"].as_str() {
            return Err(Error::new(Code::Unsupported, first.key(), missing));
        }
        Ok(answer["apart"].as_f64().unwrap_or(f64::INFINITY))
    }

    fn ask(&mut self, pair: &Value, payloads: &[Vec<u8>; 2]) -> io::Result<String> {
        if let Some(pairs) = &mut self.pairs {
            writeln!(pairs, "{pair}")?;
            for payload in payloads {
                pairs.write_all(payload)?;
            }
        }
        self.told()
    }

    fn told(&mut self) -> io::Result<String> {
        let mut line = String::new();
        self.told.read_line(&mut line)?;
        Ok(line.trim_end().to_owned())
    }
}

impl Drop for ValueDecoder {
    fn drop(&mut self) {
        // The process may have ended by itself.
        self.pairs = None;
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Returns the attributes that describe an array.
fn said(object: &StoredObject<'_>) -> Value {
    let described = object.describe();
    json!({"nbytes": object.bytes(), "dtype": described.get("dtype"), "shape": described.get("shape")})
}

fn broken(cause: &str) -> Error {
    Error::new(Code::Io, MODULE, format!("the program that decodes values: {cause}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tolerance_is_a_number_from_0_on() {
        assert_eq!((tolerance("0"), tolerance("1e-3")), (Ok(0.0), Ok(1e-3)));
        for wrong in ["", "-1", "nan", "inf", "little"] {
            assert!(tolerance(wrong).is_err(), "{wrong}");
        }
    }
}
