//! Compiles the regular expressions of one selector, within common limits.
//!
//! A short text can take long to parse and much memory to compile: `\\w{1000}` has 1,000 copies of a class of 700
//! ranges, and a case-insensitive class visits every code point of its ranges. Therefore texts and classes are counted
//! before anything is compiled, each distinct text is compiled once, also if it fails, and no expression may take more
//! than the remaining budget. At the limits, a selector takes some 30 ms and 2 MiB.

use std::collections::HashMap;
use std::sync::Arc;

use regex_automata::meta;

use super::lexer::invalid;
use super::parser::{self, SelectorSyntax, SyntaxItem, SyntaxTest};
use crate::error::{Code, Error, Result};
use crate::limits::{PATTERN_BYTES_MAX, PATTERN_CLASSES_MAX, PATTERN_TEXT_BYTES_MAX, PATTERNS_BYTES_MAX, PATTERNS_MAX};

/// A class of an expression that ignores case weighs as much as so many others.
const FOLDED_WEIGHT: usize = 16;
/// The same, where it may have a range of very many characters.
const FOLDED_RANGE_WEIGHT: usize = 256;
/// Bytes of texts without classes and repetition that compile quickly together.
const CHEAP_BYTES_MAX: usize = 64;
/// Bytes of memory for the states that matching with one expression has met.
const STATES_BYTES_MAX: usize = 256 * 1024;

/// A compiled regular expression; equal when its text is.
#[derive(Clone, Debug)]
pub(crate) struct RegexPattern(Arc<CompiledPattern>);

#[derive(Debug)]
struct CompiledPattern {
    text: Box<str>,
    regex: meta::Regex,
}

impl RegexPattern {
    pub(crate) fn text(&self) -> &str {
        &self.0.text
    }

    pub(crate) fn is_match(&self, value: &str) -> bool {
        self.0.regex.is_match(value)
    }

    /// Bytes of memory that it takes, with some for the states that matching meets.
    pub(crate) fn bytes(&self) -> usize {
        const STATES_BYTES: usize = 32 * 1024;
        size_of::<CompiledPattern>() + self.text().len() + self.0.regex.memory_usage() + STATES_BYTES
    }
}

impl PartialEq for RegexPattern {
    fn eq(&self, other: &RegexPattern) -> bool {
        self.text() == other.text()
    }
}

/// The expressions of one selector, for all schemas that it is typed by.
#[derive(Default)]
pub(crate) struct PatternCache {
    compiled: HashMap<Box<str>, Result<RegexPattern>>,
    text_bytes: usize,
    classes: usize,
    bytes: usize,
}

impl PatternCache {
    /// The expression of an item, compiled unless it was.
    ///
    /// # Errors
    /// `LimitExceeded` beyond one of the limits, `InvalidSelector` for what is no regular expression.
    pub(crate) fn compile(&mut self, item: &SyntaxItem<'_>) -> Result<RegexPattern> {
        let outcome = if let Some(known) = self.compiled.get(&*item.text) {
            known.clone()
        } else {
            self.count(&item.text).map_err(|error| error.at(item.at))?;
            let outcome = self.compile_new(&item.text);
            self.compiled.insert((&*item.text).into(), outcome.clone());
            outcome
        };
        outcome.map_err(|error| error.at(item.at))
    }

    /// Counts what can be counted before an expression is read.
    fn count(&mut self, text: &str) -> Result<()> {
        let within = |found: usize, limit: usize, of: &str| {
            let cause = format!("{found} {of} regular expressions together, at most {limit}");
            (found <= limit).then_some(()).ok_or_else(|| exceeded(cause))
        };
        within(self.compiled.len() + 1, PATTERNS_MAX, "distinct")?;
        self.text_bytes += text.len();
        within(self.text_bytes, PATTERN_TEXT_BYTES_MAX, "bytes in the text of all")?;
        self.classes += classes_weight(text);
        within(
            self.classes,
            PATTERN_CLASSES_MAX,
            "is the weight of the character classes of all",
        )
    }

    fn compile_new(&mut self, text: &str) -> Result<RegexPattern> {
        let left = PATTERNS_BYTES_MAX.saturating_sub(self.bytes);
        let config = meta::Config::new()
            .nfa_size_limit(Some(left.min(PATTERN_BYTES_MAX)))
            .onepass_size_limit(Some(left.min(PATTERN_BYTES_MAX)))
            .hybrid_cache_capacity(STATES_BYTES_MAX);
        let regex = meta::Builder::new().configure(config).build(text).map_err(|error| {
            if error.size_limit().is_some() {
                // As much was compiled before it was too much.
                self.bytes += left.min(PATTERN_BYTES_MAX);
                return too_large();
            }
            let cause = error
                .syntax_error()
                .map_or_else(|| error.to_string(), ToString::to_string);
            let last = cause.lines().last().unwrap_or_default();
            let last = last.trim().trim_start_matches("error: ");
            invalid(0, format!("{text:?} is not a regular expression: {last}"))
        })?;
        self.bytes += regex.memory_usage();
        if self.bytes > PATTERNS_BYTES_MAX {
            return Err(too_large());
        }
        let text = text.into();
        Ok(RegexPattern(Arc::new(CompiledPattern { text, regex })))
    }
}

/// Whether compiling the regular expressions of a selector may take longer than some 100 µs: they are more than short texts.
#[must_use]
pub fn is_costly(selector: &str) -> bool {
    // An invalid selector is refused before anything is compiled.
    selector.contains('~')
        && parser::parse(selector).is_ok_and(|syntax| cheap_bytes(&syntax, CHEAP_BYTES_MAX).is_none())
}

/// Returns the remainder of this budget after texts that compile quickly; `None` if the budget is exceeded, or a text
/// may compile slowly.
fn cheap_bytes(syntax: &SelectorSyntax<'_>, left: usize) -> Option<usize> {
    match syntax {
        SelectorSyntax::Test {
            ask: SyntaxTest::Like(item),
            ..
        } => {
            let is_cheap = classes_weight(&item.text) == 0 && !item.text.contains(['{', '.']);
            left.checked_sub(item.text.len()).filter(|_| is_cheap)
        }
        SelectorSyntax::All(parts) | SelectorSyntax::Any(parts) => {
            parts.iter().try_fold(left, |left, part| cheap_bytes(part, left))
        }
        SelectorSyntax::Not(part) => cheap_bytes(part, left),
        SelectorSyntax::Everything | SelectorSyntax::Test { .. } => Some(left),
    }
}

fn too_large() -> Error {
    exceeded(format!(
        "the regular expression is too large: compiled, one takes at most {PATTERN_BYTES_MAX} bytes, and those of a selector \
         together {PATTERNS_BYTES_MAX}"
    ))
}

fn exceeded(cause: impl Into<String>) -> Error {
    Error::new(Code::LimitExceeded, "selector", cause)
}

/// About how long the character classes of an expression take to read.
fn classes_weight(text: &str) -> usize {
    let bytes = text.as_bytes();
    let escaped_classes = bytes
        .windows(2)
        .filter(|two| two[0] == b'\\' && b"wWdDsSpPbB".contains(&two[1]));
    let classes = escaped_classes.count() + text.matches('[').count();
    // A bracket may be within a class, so all text after the first one counts as within.
    let bracketed = text.find('[').map_or("", |at| &text[at..]);
    let by_number = ["\\u", "\\U", "\\x"];
    let may_have_long_range = !bracketed.is_ascii() || by_number.iter().any(|escape| bracketed.contains(escape));
    classes
        * match ignores_case(text) {
            false => 1,
            true if may_have_long_range => FOLDED_RANGE_WEIGHT,
            true => FOLDED_WEIGHT,
        }
}

/// Whether a part of an expression may ignore case: one of its groups has the flag `i`, as `(?i)` and `(?x-i:` do.
fn ignores_case(text: &str) -> bool {
    let flags = |group: &str| {
        group
            .bytes()
            .take_while(|byte| !b":)<>".contains(byte))
            .any(|byte| byte == b'i')
    };
    text.split("(?").skip(1).any(flags)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn item(text: &str) -> SyntaxItem<'_> {
        SyntaxItem {
            text: text.into(),
            at: 7,
        }
    }

    #[test]
    fn equal_expressions_are_compiled_once() {
        let mut patterns = PatternCache::default();
        let first = patterns.compile(&item(r"\w{20}")).unwrap();
        let bytes = patterns.bytes;
        let again = patterns.compile(&item(r"\w{20}")).unwrap();
        assert!(Arc::ptr_eq(&first.0, &again.0) && patterns.bytes == bytes);
        let refused = patterns.compile(&item(r"\w{1000}")).unwrap_err();
        let bytes = patterns.bytes;
        assert_eq!(patterns.compile(&item(r"\w{1000}")).unwrap_err(), refused);
        assert_eq!((patterns.bytes, refused.position()), (bytes, Some(7)));
    }

    #[test]
    fn what_expressions_compile_to_is_bounded_together() {
        let mut patterns = PatternCache::default();
        let texts = (10..).map(|n| format!(r"\w{{{n}}}"));
        let refused = texts
            .map(|text| patterns.compile(&item(&text)))
            .find_map(Result::err)
            .unwrap();
        assert_eq!(refused.code(), Code::LimitExceeded, "{refused}");
        let kept: usize = patterns.compiled.values().flatten().map(RegexPattern::bytes).sum();
        assert!(kept < PATTERNS_BYTES_MAX + (PATTERNS_MAX << 16), "{kept}");
    }

    #[test]
    fn only_short_texts_without_classes_are_cheap() {
        let cheap = [
            "class=od",
            "",
            "name~^t",
            "name~\"fc_(a|b)*$\",not type~an",
            "name=\"[~]\"",
            "name~",
        ];
        let costly = [
            "name~\"[a-z]\"",
            "name~\"a.b\"",
            "not (class=od or name~\"x{9}\")",
            r#"name~"\\w""#,
            &format!("name~{},type~{}", "a".repeat(40), "b".repeat(40)),
        ];
        assert_eq!(cheap.map(is_costly), [false; 6]);
        assert_eq!(costly.map(is_costly), [true; 5]);
    }

    #[test]
    fn classes_weigh_by_what_reading_them_takes() {
        assert_eq!(classes_weight(r"^t.*(a|b)$"), 0);
        assert_eq!(classes_weight(r"[a-z]+\d\.\w"), 3);
        assert_eq!(classes_weight(r"(?i)[a-z]"), FOLDED_WEIGHT);
        assert_eq!(classes_weight(r"(?s:a(?x-i:[\u{100}-\u{ffff}]))"), FOLDED_RANGE_WEIGHT);
        assert_eq!(classes_weight(r"(?P<i>[a-z])"), 1);
        assert_eq!(classes_weight(r"(?i)münchen_\d+_[a-z]+"), 2 * FOLDED_WEIGHT);
        assert_eq!(classes_weight(r"(?i)[]\u{100}-\u{ffff}]"), FOLDED_RANGE_WEIGHT);
    }
}
