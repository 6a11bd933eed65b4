//! The format and version of a JSON file are checked before the rest, which a later version may define differently.

use junctura_model::{Code, Error, Result};
use serde::Deserialize;

#[derive(Deserialize)]
struct FileVersion {
    format: String,
    version: u32,
}

/// Checks that a file has this format, in this version.
///
/// # Errors
/// `Unsupported` for another version; `Corrupt` for another format, and for a missing one.
pub(crate) fn check(path: &str, text: &[u8], format: &str, version: u32) -> Result<()> {
    let corrupt = |cause: String| Error::new(Code::Corrupt, path, cause);
    let said: FileVersion = serde_json::from_slice(text).map_err(|error| corrupt(error.to_string()))?;
    if said.format != format {
        return Err(corrupt(format!("its format is {:?}, and not {format:?}", said.format)));
    }
    if said.version != version {
        let cause = format!("it is of version {}, and this is for version {version}", said.version);
        return Err(Error::new(Code::Unsupported, path, cause));
    }
    Ok(())
}
