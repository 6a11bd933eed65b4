//! File names from attributes: `{param}_{levelist}_{step}{ext}`.
//!
//! Attributes are set by other users and can have any text; in a name they can neither leave the folder nor hide the
//! file: `/`, control characters, `%` and a leading dot become `%XX`. Only the template itself creates folders.

use std::fmt::Write;

use junctura::{Code, Error, Result};

use super::got::ReceivedObject;

/// A name that differs for all objects.
pub(crate) const DEFAULT: &str = "{key}{ext}";
/// A name that also differs for all versions.
pub(crate) const OF_VERSIONS: &str = "{key},version={version}{ext}";
/// Maximum length of a file name.
const NAME_BYTES_MAX: usize = 255;

/// A parsed template.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct NameTemplate(Vec<TemplatePart>);

#[derive(Clone, Debug, PartialEq, Eq)]
enum TemplatePart {
    Text(String),
    Attribute(String),
}

impl NameTemplate {
    /// Parses a template; `{{` and `}}` are literal braces.
    pub(crate) fn parse(text: &str) -> std::result::Result<NameTemplate, String> {
        let mut parts = Vec::new();
        let mut plain = String::new();
        let mut rest = text;
        while let Some(at) = rest.find(['{', '}']) {
            plain.push_str(&rest[..at]);
            let after = &rest[at + 1..];
            if after.starts_with(&rest[at..=at]) {
                plain.push_str(&rest[at..=at]);
                rest = &after[1..];
                continue;
            }
            let end = after.find('}').filter(|_| rest[at..].starts_with('{'));
            let end = end.ok_or_else(|| {
                format!(
                    "a brace without its other half at byte {}",
                    text.len() - rest.len() + at
                )
            })?;
            parts.push(TemplatePart::Text(std::mem::take(&mut plain)));
            parts.push(TemplatePart::Attribute(after[..end].to_owned()));
            rest = &after[end + 1..];
        }
        plain.push_str(rest);
        parts.push(TemplatePart::Text(plain));
        let is_path = parts
            .iter()
            .any(|part| matches!(part, TemplatePart::Text(text) if text.split('/').any(|name| name == "..")));
        if is_path || text.starts_with('/') || text.is_empty() {
            return Err("a name below the folder is expected".to_owned());
        }
        Ok(NameTemplate(parts))
    }

    /// Returns the name of an object. A missing attribute becomes an empty text.
    ///
    /// # Errors
    /// `InvalidArgument` for an attribute that the object's schema does not have.
    pub(crate) fn name(&self, object: &impl ReceivedObject) -> Result<String> {
        self.render(&mut |name, out| value_of(object, name, out))
    }

    fn render(&self, value: &mut dyn FnMut(&str, &mut String) -> Result<()>) -> Result<String> {
        let mut out = String::new();
        for part in &self.0 {
            match part {
                TemplatePart::Text(text) => out.push_str(text),
                TemplatePart::Attribute(name) => value(name, &mut out)?,
            }
        }
        if out.is_empty() || out.ends_with('/') {
            return Err(Error::new(
                Code::InvalidArgument,
                "template",
                "it makes an empty name for this object",
            ));
        }
        Ok(out)
    }
}

fn value_of(object: &impl ReceivedObject, name: &str, out: &mut String) -> Result<()> {
    match name {
        "key" => append_key(object, out),
        "hash" => out.push_str(&object.schema().key_hash(object.key()).to_string()),
        "version" => out.push_str(&object.version()),
        "ext" => out.push_str(extension(object.payload())),
        _ => match object.get(name) {
            Some(text) => escape(text, &[], out),
            None if object.schema().is_open() || object.schema().find(name).is_some() => {}
            None => {
                let cause = format!("the schema {} has no {name}", object.schema().name());
                return Err(Error::new(Code::InvalidArgument, "template", cause));
            }
        },
    }
    Ok(())
}

/// Returns the attributes of the key as one name, or the hash of the key if that is too long.
fn append_key(object: &impl ReceivedObject, out: &mut String) {
    let schema = object.schema();
    let in_key = |name: &str| schema.find(name).is_some_and(|id| id.index() < schema.key_len());
    let mut key = String::new();
    for (name, text) in object.attributes().filter(|(name, _)| in_key(name)) {
        if !key.is_empty() {
            key.push(',');
        }
        key.push_str(name);
        key.push('=');
        escape(text, &[',', '='], &mut key);
    }
    if key.len() + 16 > NAME_BYTES_MAX {
        key = schema.key_hash(object.key()).to_string();
    }
    out.push_str(&key);
}

fn extension(payload: &[u8]) -> &'static str {
    if payload.starts_with(b"GRIB") { ".grib" } else { "" }
}

/// Appends a value; characters that a file system or a reader could misinterpret become `%XX`.
fn escape(text: &str, more: &[char], out: &mut String) {
    for letter in text.chars() {
        let hides = letter == '.' && (out.is_empty() || out.ends_with('/'));
        if hides || matches!(letter, '/' | '\\' | '%') || letter.is_control() || more.contains(&letter) {
            for byte in letter.encode_utf8(&mut [0; 4]).bytes() {
                let _ = write!(out, "%{byte:02X}");
            }
        } else {
            out.push(letter);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(template: &str, values: &[(&str, &str)]) -> Result<String> {
        NameTemplate::parse(template).unwrap().render(&mut |name, out| {
            escape(
                values
                    .iter()
                    .find(|(known, _)| *known == name)
                    .map_or("", |(_, value)| value),
                &[],
                out,
            );
            Ok(())
        })
    }

    #[test]
    fn names_are_made_of_attributes() {
        let values = [("param", "t"), ("step", "6")];
        assert_eq!(name("{param}_{step}.grib", &values).unwrap(), "t_6.grib");
        assert_eq!(name("{param}/{{{step}}}", &values).unwrap(), "t/{6}");
        assert_eq!(name("{number}x", &values).unwrap(), "x");
        assert!(name("{number}", &values).is_err());
        assert!(name("{param}/", &values).is_err());
    }

    #[test]
    fn a_value_neither_leaves_the_folder_nor_hides_the_file() {
        for (value, expected) in [
            ("../../etc/x", "%2E.%2F..%2Fetc%2Fx"),
            (".bashrc", "%2Ebashrc"),
            ("a\nb", "a%0Ab"),
            ("a%2Fb", "a%252Fb"),
        ] {
            assert_eq!(name("{name}", &[("name", value)]).unwrap(), expected);
            assert_eq!(name("d/{name}", &[("name", value)]).unwrap(), format!("d/{expected}"));
        }
    }

    #[test]
    fn wrong_templates_are_refused() {
        for wrong in ["{param", "param}", "/etc/x", "../x", "a/../b", ""] {
            assert!(NameTemplate::parse(wrong).is_err(), "{wrong}");
        }
    }
}
