//! Options as text: `schema=mars,retention=released:3,if_wanted`.
//!
//! Words are separated by commas; blanks around them have no meaning. A word is a name, or a name and a value. A value in
//! parentheses may contain commas: `retention=(released_by:archive,viewer)`. Text keeps structs out of the ABI, so that
//! options can be added without another ABI.

use std::ffi::c_char;
use std::str::FromStr;
use std::time::Duration;

use junctura::{Durability, Error, OfferOptions, Result};
use junctura_model::Type;
use junctura_model::size::parse_bytes;

use crate::call::argument::{invalid, optional_text};

/// Options that were read, each of which is taken once.
pub(crate) struct OptionWords<'t> {
    words: Vec<(&'t str, Option<&'t str>)>,
    /// The names that the function has, for the error that names them.
    known: Vec<&'static str>,
}

/// The value of a name.
enum WordValue<'t> {
    /// The name does not occur.
    Absent,
    Bare,
    Text(&'t str),
}

impl<'t> OptionWords<'t> {
    /// Reads options; NULL is none.
    ///
    /// # Errors
    /// `InvalidArgument` for a name that is missing or occurs twice, and for parentheses that are not closed.
    ///
    /// # Safety
    /// As [`optional_text`].
    pub(crate) unsafe fn read(text: *const c_char) -> Result<Self> {
        // SAFETY: as the caller guarantees.
        let text = unsafe { optional_text("options", text) }?;
        Self::parse(text.unwrap_or_default())
    }

    fn parse(text: &'t str) -> Result<Self> {
        let mut words: Vec<(&str, Option<&str>)> = Vec::new();
        let mut rest = text;
        while !rest.trim().is_empty() {
            let end = end_of_word(rest)?;
            let (name, value) = match rest[..end].split_once('=') {
                Some((name, value)) => (name.trim(), Some(without_parentheses(value.trim()))),
                None => (rest[..end].trim(), None),
            };
            if name.is_empty() {
                return Err(invalid("options", format!("a name is expected in {text:?}")));
            }
            if words.iter().any(|(other, _)| *other == name) {
                return Err(invalid("options", format!("{name} occurs twice in {text:?}")));
            }
            words.push((name, value));
            rest = rest.get(end + 1..).unwrap_or_default();
        }
        Ok(Self {
            words,
            known: Vec::new(),
        })
    }

    fn take(&mut self, name: &'static str) -> WordValue<'t> {
        self.known.push(name);
        match self.words.iter().position(|(other, _)| *other == name) {
            Some(at) => self.words.remove(at).1.map_or(WordValue::Bare, WordValue::Text),
            None => WordValue::Absent,
        }
    }

    /// Whether a word without a value is there.
    ///
    /// # Errors
    /// `InvalidArgument` where it has a value.
    pub(crate) fn flag(&mut self, name: &'static str) -> Result<bool> {
        match self.take(name) {
            WordValue::Absent => Ok(false),
            WordValue::Bare => Ok(true),
            WordValue::Text(_) => Err(invalid("options", format!("{name} takes no value"))),
        }
    }

    /// The value of a name.
    ///
    /// # Errors
    /// `InvalidArgument` where the value is missing.
    pub(crate) fn text(&mut self, name: &'static str) -> Result<Option<&'t str>> {
        match self.take(name) {
            WordValue::Absent => Ok(None),
            WordValue::Text(value) => Ok(Some(value)),
            WordValue::Bare => Err(invalid("options", format!("{name} lacks a value: {name}=VALUE"))),
        }
    }

    /// A value that has a form of its own.
    ///
    /// # Errors
    /// Those of its form; as [`Self::text`].
    pub(crate) fn parsed<T: FromStr<Err = Error>>(&mut self, name: &'static str) -> Result<Option<T>> {
        self.text(name)?.map(str::parse).transpose()
    }

    /// A whole number.
    ///
    /// # Errors
    /// `InvalidArgument`.
    pub(crate) fn number<T: FromStr>(&mut self, name: &'static str) -> Result<Option<T>> {
        let read = |text: &str| {
            text.parse()
                .map_err(|_| refused(name, text, "a whole number in its range"))
        };
        self.text(name)?.map(read).transpose()
    }

    /// Bytes, such as `4GiB`.
    ///
    /// # Errors
    /// `InvalidArgument`.
    pub(crate) fn size(&mut self, name: &'static str) -> Result<Option<u64>> {
        let read = |text| parse_bytes(text).map_err(|_| refused(name, text, "a size such as 4GiB"));
        self.text(name)?.map(read).transpose()
    }

    /// A length of time, such as `10min` or `1500ms`.
    ///
    /// # Errors
    /// `InvalidArgument`.
    pub(crate) fn time(&mut self, name: &'static str) -> Result<Option<Duration>> {
        let read = |text: &str| {
            let nanoseconds = Type::Duration.order(&text.replace("min", "m"));
            let nanoseconds = nanoseconds.and_then(|nanoseconds| u64::try_from(nanoseconds).ok());
            let time = nanoseconds.map(Duration::from_nanos);
            time.ok_or_else(|| refused(name, text, "a time such as 10min or 1500ms"))
        };
        self.text(name)?.map(read).transpose()
    }

    /// One of some words.
    ///
    /// # Errors
    /// `InvalidArgument`.
    pub(crate) fn one_of<T: Copy>(&mut self, name: &'static str, words: &[(&str, T)]) -> Result<Option<T>> {
        let Some(text) = self.text(name)? else { return Ok(None) };
        let found = words.iter().find(|(word, _)| *word == text);
        let names: Vec<&str> = words.iter().map(|(word, _)| *word).collect();
        found
            .map(|(_, value)| Some(*value))
            .ok_or_else(|| refused(name, text, &names.join(" or ")))
    }

    /// Fails if a word is left that nothing took.
    ///
    /// # Errors
    /// `InvalidArgument`, with the names that there are.
    pub(crate) fn finish(mut self) -> Result<()> {
        let Some((name, _)) = self.words.first() else {
            return Ok(());
        };
        self.known.sort_unstable();
        let known = match &*self.known {
            [] => "this function has none".to_owned(),
            known => format!("there are {}", known.join(", ")),
        };
        Err(invalid("options", format!("unknown option {name:?}; {known}")))
    }
}

/// How an object is offered: `schema`, `retention`, `durability`, `if_wanted`.
///
/// # Errors
/// `InvalidArgument`.
///
/// # Safety
/// As [`optional_text`].
pub(crate) unsafe fn offer_options<'t>(text: *const c_char) -> Result<OfferOptions<'t>> {
    // SAFETY: as the caller guarantees.
    let mut words = unsafe { OptionWords::read(text) }?;
    let options = offer_words(&mut words)?;
    words.finish()?;
    Ok(options)
}

/// As [`offer_options`], of words that may be followed by others.
///
/// # Errors
/// `InvalidArgument`.
pub(crate) fn offer_words<'t>(words: &mut OptionWords<'t>) -> Result<OfferOptions<'t>> {
    let durability = [("memory", Durability::Memory), ("durable", Durability::Durable)];
    Ok(OfferOptions {
        schema: words.text("schema")?,
        retention: words.parsed("retention")?,
        if_wanted: words.flag("if_wanted")?,
        durability: words.one_of("durability", &durability)?,
    })
}

/// The option `schema` alone.
///
/// # Errors
/// `InvalidArgument`.
///
/// # Safety
/// As [`optional_text`].
pub(crate) unsafe fn schema_option<'t>(text: *const c_char) -> Result<Option<&'t str>> {
    // SAFETY: as the caller guarantees.
    let mut words = unsafe { OptionWords::read(text) }?;
    let schema = words.text("schema")?;
    words.finish()?;
    Ok(schema)
}

fn refused(name: &str, text: &str, expected: &str) -> Error {
    invalid("options", format!("{name}: {expected} is expected, not {text:?}"))
}

/// The comma behind the first word, or the end of the text.
fn end_of_word(text: &str) -> Result<usize> {
    let mut depth = 0_usize;
    for (at, letter) in text.char_indices() {
        match letter {
            '(' => depth += 1,
            ')' if depth == 0 => {
                return Err(invalid("options", format!("a parenthesis closes nothing in {text:?}")));
            }
            ')' => depth -= 1,
            ',' if depth == 0 => return Ok(at),
            _ => {}
        }
    }
    if depth > 0 {
        return Err(invalid("options", format!("a parenthesis is not closed in {text:?}")));
    }
    Ok(text.len())
}

/// Strips parentheses that enclose the whole value.
fn without_parentheses(value: &str) -> &str {
    let within = value.strip_prefix('(').and_then(|rest| rest.strip_suffix(')'));
    let encloses = |within: &&str| end_of_word(&within.replace(',', " ")).is_ok();
    within.filter(encloses).unwrap_or(value)
}

#[cfg(test)]
mod tests {
    use junctura::Retention;

    use super::*;

    #[test]
    fn parentheses_are_pairs() {
        assert!(OptionWords::parse("name=a)").is_err() && OptionWords::parse("name=(a").is_err());
        let mut words = OptionWords::parse("name=(a)x(b),group=(a,(b))").unwrap();
        assert_eq!(words.text("name"), Ok(Some("(a)x(b)")));
        assert_eq!(words.text("group"), Ok(Some("a,(b)")));
    }

    #[test]
    fn words_are_taken_by_name() {
        let mut words =
            OptionWords::parse(" schema = mars, retention=(released_by:a,b) ,if_wanted,size=4KiB,t=1h30min").unwrap();
        assert_eq!(words.text("schema"), Ok(Some("mars")));
        assert_eq!(
            words.parsed("retention"),
            "released_by:a,b".parse::<Retention>().map(Some)
        );
        assert_eq!(words.flag("if_wanted"), Ok(true));
        assert_eq!(words.flag("checked"), Ok(false));
        assert_eq!(words.size("size"), Ok(Some(4096)));
        assert_eq!(words.time("t"), Ok(Some(Duration::from_mins(90))));
        assert_eq!(words.number::<u32>("window"), Ok(None));
        assert_eq!(words.finish(), Ok(()));
        OptionWords::parse("").unwrap().finish().unwrap();
    }

    #[test]
    fn invalid_options_are_refused() {
        for text in ["a,a=1", "=1", ",", "a=(b,c"] {
            assert!(OptionWords::parse(text).is_err(), "{text}");
        }
        let words = |text| OptionWords::parse(text).unwrap();
        assert!(words("a=1").flag("a").is_err());
        assert!(words("a").text("a").is_err());
        assert!(words("a=x").number::<u8>("a").is_err());
        assert!(words("a=256").number::<u8>("a").is_err());
        assert!(words("a=x").size("a").is_err());
        assert!(words("a=x").time("a").is_err());
        assert!(words("a=x").one_of("a", &[("y", 1)]).is_err());
        let mut unknown = words("wanted");
        assert_eq!(unknown.flag("if_wanted"), Ok(false));
        let error = unknown.finish().unwrap_err();
        assert_eq!(error.cause(), "unknown option \"wanted\"; there are if_wanted");
        assert!(
            words("a")
                .finish()
                .unwrap_err()
                .cause()
                .contains("this function has none")
        );
    }
}
