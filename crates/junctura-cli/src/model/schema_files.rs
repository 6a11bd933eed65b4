//! Schemas of command lines: the name of a built-in one, or a file.

use std::path::Path;
use std::sync::Arc;

use junctura::{Code, Error, Result, Schema};
use junctura_pool::PoolConfig;
use junctura_transport::read_text;

/// Returns the requested schemas, then the other built-in ones.
pub(crate) fn with_builtin(asked: &[String]) -> Result<Vec<Arc<Schema>>> {
    let mut schemas = Vec::new();
    for name in asked {
        schemas.extend(read(name)?);
    }
    Ok(and_builtin(schemas))
}

/// Returns these schemas, then the other built-in ones.
pub(crate) fn and_builtin(mut schemas: Vec<Arc<Schema>>) -> Vec<Arc<Schema>> {
    for builtin in PoolConfig::default().schemas {
        if schemas.iter().all(|schema| schema.name() != builtin.name()) {
            schemas.push(builtin);
        }
    }
    schemas
}

/// Returns a built-in schema, or those of a file: one, or one for each rule of a file of FDB. An error shows the position in the file.
pub(crate) fn read(name: &str) -> Result<Vec<Arc<Schema>>> {
    if let Some(schema) = Schema::builtin(name) {
        return Ok(vec![schema]);
    }
    let text = read_text(Path::new(name)).map_err(|error| {
        if error.code() == Code::TooLarge {
            return error;
        }
        let cause = format!("{}; {}", error.cause(), Schema::unknown(name).cause());
        Error::new(Code::InvalidArgument, format!("schema {name}"), cause)
    })?;
    parse(&text, name)
}

/// Parses the schemas in a text of a file.
pub(crate) fn parse(text: &str, file: &str) -> Result<Vec<Arc<Schema>>> {
    let schemas = Schema::parse_file(text, file).map_err(|error| with_line(&error, file, text))?;
    Ok(schemas.into_iter().map(Arc::new).collect())
}

/// Returns the error with the line of the file.
fn with_line(error: &Error, file: &str, text: &str) -> Error {
    let number = error
        .subject()
        .rsplit_once("line ")
        .and_then(|(_, place)| place.split(',').next()?.parse::<usize>().ok());
    let line = number.and_then(|number| text.lines().nth(number.checked_sub(1)?));
    let shown = line.map_or(String::new(), |line| {
        format!("\n  {}", line.replace(char::is_control, " "))
    });
    Error::new(
        error.code(),
        format!("{file}: {}", error.subject()),
        format!("{}{shown}", error.cause()),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(name: &str, text: &str) -> (tempfile::TempDir, String) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        (folder, path.display().to_string())
    }

    #[test]
    fn an_error_in_a_file_names_its_line() {
        let text =
            "name: x\nkey:\n  dataset: [a]\n  collocation: []\n  element: [b]\nattributes:\n  a: {type: sting}\n";
        let (_folder, path) = file("x.yaml", text);
        let error = read(&path).unwrap_err().to_string();
        assert!(
            error.contains("line 7") && error.ends_with("\n    a: {type: sting}"),
            "{error}"
        );
        let (_folder, path) = file("x", "# rules\n[ a [ b: Dates [ c ]]]\n");
        let error = read(&path).unwrap_err().to_string();
        assert!(
            error.contains("line 2, column 10") && error.ends_with("\n  [ a [ b: Dates [ c ]]]"),
            "{error}"
        );
        assert!(read("no-such-schema").unwrap_err().to_string().contains("mars"));
    }
}
