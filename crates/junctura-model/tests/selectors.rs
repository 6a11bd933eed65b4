//! Selectors against the vectors of an independent implementation, where its folder is at hand, and against our own, always;
//! and random ones against themselves: what is printed reads back equal and means the same.

#![allow(
    clippy::disallowed_methods,
    reason = "the vectors are files; the crate itself stays pure"
)]

use std::path::{Path, PathBuf};
use std::sync::Arc;

use junctura_model::selector::testing::{TestRandom, random_record, random_selector};
use junctura_model::selector::{SelectorContext, explain_error};
use junctura_model::{Code, Given, Record, Schema, Selector, SelectorSet, mars};
use proptest::prelude::*;
use serde_json::Value;

use crate::limits::Limits;

/// A selector, its text again and a picture of an error. Few bytes make a large regular expression, up to the limit of one.
const LIMITS: Limits = Limits {
    held_bytes: 8 << 20,
    held_bytes_each: 512,
    steps: 400_000,
    steps_each: 64,
};

fn workspace() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn given<'a>(value: &'a Value, items: &'a [Given<'a>]) -> Given<'a> {
    match value {
        Value::String(text) => Given::Text(text),
        Value::Bool(truth) => Given::Bool(*truth),
        Value::Number(number) => number
            .as_i64()
            .map_or_else(|| Given::Float(number.as_f64().unwrap()), Given::Integer),
        Value::Array(_) => Given::List(items),
        other => panic!("{other} is no value"),
    }
}

fn record(schema: &Schema, attributes: &Value) -> Record {
    let attributes = attributes.as_object().unwrap();
    let lists: Vec<Vec<Given<'_>>> = attributes
        .values()
        .map(|value| {
            value
                .as_array()
                .map_or_else(Vec::new, |items| items.iter().map(|item| given(item, &[])).collect())
        })
        .collect();
    let all = attributes
        .iter()
        .zip(&lists)
        .map(|((name, value), items)| (name.as_str(), given(value, items)));
    let mut bytes = Vec::new();
    schema
        .record(all, &mut bytes)
        .unwrap_or_else(|error| panic!("{attributes:?}: {error}"));
    Record::trusted(bytes)
}

fn matches(selector: &Selector, records: &[Record]) -> Vec<usize> {
    (0..records.len())
        .filter(|&at| selector.matches(records[at].as_ref()))
        .collect()
}

/// Printing gives a text that reads back to an equal selector, and is itself what that prints.
fn assert_round_trip(selector: &Selector, schema: &Schema, text: &str) {
    let printed = selector.to_string();
    let again =
        Selector::parse(&printed, schema).unwrap_or_else(|error| panic!("{text:?} printed {printed:?}: {error}"));
    assert_eq!(again, *selector, "{text:?} printed {printed:?}");
    assert_eq!(again.to_string(), printed, "{text:?}");
}

#[test]
fn the_independent_vectors() {
    let folder = workspace().join("../shared/vectors/model");
    let (Ok(schema), Ok(cases)) = (
        std::fs::read_to_string(folder.join("schema.yaml")),
        std::fs::read_to_string(folder.join("selectors.json")),
    ) else {
        println!("skipped: no vectors in {}", folder.display());
        return;
    };
    let schema = Schema::parse_yaml(&schema).unwrap();
    let cases: Value = serde_json::from_str(&cases).unwrap();
    let records: Vec<Record> = cases["objects"]
        .as_array()
        .unwrap()
        .iter()
        .map(|object| record(&schema, object))
        .collect();
    let selectors = cases["selectors"].as_array().unwrap();
    for case in selectors {
        check_case(case, &schema, &records);
    }
    println!("{} selectors over {} objects", selectors.len(), records.len());
}

fn check_case(case: &Value, schema: &Schema, records: &[Record]) {
    let text = case["selector"].as_str().unwrap();
    match (Selector::parse(text, schema), case["matches"].as_array()) {
        (Ok(selector), Some(expected)) => {
            let expected: Vec<usize> = expected.iter().map(|at| at.as_u64().unwrap() as usize).collect();
            assert_eq!(matches(&selector, records), expected, "{text:?}, read as {selector}");
            assert_round_trip(&selector, schema, text);
            if let Some(printed) = case["printed"].as_str() {
                assert_eq!(selector.to_string(), printed, "{text:?}");
            }
            if let Some(explained) = case["explained"].as_str() {
                assert_eq!(selector.explain(), explained, "{text:?}");
            }
        }
        (Err(error), None) => {
            assert_eq!(
                error.code().name(),
                case["error"].as_str().unwrap(),
                "{text:?}: {error}"
            );
            assert!(error.position().is_some_and(|at| at <= text.len()), "{text:?}: {error}");
            if let Some(at) = case["at"].as_u64() {
                assert_eq!(error.position(), Some(at as usize), "{text:?}: {error}");
            }
        }
        (Ok(selector), None) => panic!("{text:?} was read as {selector}"),
        (Err(error), Some(_)) => panic!("{}", explain_error(text, &error)),
    }
}

#[test]
fn our_own_vectors() {
    let path = workspace().join("docs/formats/selector-vectors.json");
    let vectors: Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    for set in vectors["sets"].as_array().unwrap() {
        let schema = match &set["schema"] {
            Value::String(name) => Schema::builtin(name).unwrap(),
            lines => {
                let lines: Vec<&str> = lines
                    .as_array()
                    .unwrap()
                    .iter()
                    .map(|line| line.as_str().unwrap())
                    .collect();
                Arc::new(Schema::parse_yaml(&lines.join("\n")).unwrap())
            }
        };
        let records: Vec<Record> = set["objects"]
            .as_array()
            .unwrap()
            .iter()
            .map(|object| record(&schema, object))
            .collect();
        for case in set["selectors"].as_array().unwrap() {
            check_case(case, &schema, &records);
        }
        for case in set["requests"].as_array().into_iter().flatten() {
            let text = case["request"].as_str().unwrap();
            let today = case["today"].as_u64().map(|today| today as u32);
            match (mars::to_selector_text(text, &schema, today), case["selector"].as_str()) {
                (Ok(read), Some(expected)) => assert_eq!(read, expected, "{text}"),
                (Err(error), None) => {
                    assert_eq!(error.code().name(), case["error"].as_str().unwrap(), "{text}: {error}");
                    assert_eq!(
                        error.position(),
                        case["at"].as_u64().map(|at| at as usize),
                        "{text}: {error}"
                    );
                }
                (read, expected) => panic!("{text}: {read:?}, expected {expected:?}"),
            }
        }
    }
}

/// Every type, optional attributes, aliases, allowed values, lists.
const SCHEMA: &str = "
name: tests
key:
  dataset: [class, expver, date, time]
  collocation: [type]
  element: [step, \"number?\", \"levelist?\", param]
attributes:
  class: {type: string}
  expver: {type: string, default: \"0001\"}
  date: {type: date}
  time: {type: time}
  type: {type: string, values: [an, fc, pf]}
  step: {type: step}
  number: {type: integer}
  levelist: {type: decimal, aliases: [level, levels]}
  param: {type: string}
  note: {type: string}
  quality: {type: float}
  tags: {type: list of string}
  sizes: {type: list of integer}
  made: {type: timestamp}
  lasted: {type: duration}
  final: {type: bool}
";

fn schemas() -> Vec<Arc<Schema>> {
    let mut schemas = vec![Arc::new(Schema::parse_yaml(SCHEMA).unwrap())];
    schemas.extend(["mars", "free"].map(|name| Schema::builtin(name).unwrap()));
    schemas
}

fn round_trips(seed: u64, count: usize) {
    let schemas = schemas();
    let mut random = TestRandom(seed);
    let records: Vec<Vec<Record>> = schemas
        .iter()
        .map(|schema| (0..16).map(|_| random_record(&mut random, schema)).collect())
        .collect();
    for n in 0..count {
        let which = if n % 4 == 0 { 1 + random.below(2) } else { 0 };
        let schema = &schemas[which];
        let text = random_selector(&mut random, schema);
        let selector =
            Selector::parse(&text, schema).unwrap_or_else(|error| panic!("{}", explain_error(&text, &error)));
        assert_round_trip(&selector, schema, &text);
        let again = Selector::parse(&selector.to_string(), schema).unwrap();
        let record = &records[which][random.below(16)];
        assert_eq!(
            selector.matches(record.as_ref()),
            again.matches(record.as_ref()),
            "{text:?}"
        );
    }
}

fn seed() -> u64 {
    let seed = std::env::var("JUNCTURA_SEED")
        .ok()
        .and_then(|seed| seed.parse().ok())
        .unwrap_or(20_261_120);
    println!("JUNCTURA_SEED={seed}");
    seed
}

#[test]
fn what_is_printed_reads_back_equal() {
    round_trips(seed(), 5_000);
}

#[test]
#[ignore = "a million; make soak"]
fn soak_million_round_trips() {
    round_trips(seed(), 1_000_000);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_seed_round_trips(seed: u64) {
        round_trips(seed, 20);
    }

    #[test]
    fn no_text_makes_the_parser_panic(text in "[a-z=!<>~/,()*\"\\\\ \u{e9}0-9]{0,60}|retrieve,[a-z=/,\"* 0-9-]{0,40}") {
        for schema in schemas() {
            LIMITS.hold(text.len(), || match Selector::parse_with(&text, &schema, &SelectorContext { today: Some(20_261_120) }) {
                Ok(selector) => assert_round_trip(&selector, &schema, &text),
                Err(error) => { let _ = explain_error(&text, &error); }
            });
        }
    }

    #[test]
    fn selectors_cut_anywhere_are_errors_or_selectors(seed: u64, cut: prop::sample::Index) {
        let schema = &schemas()[0];
        let text = random_selector(&mut TestRandom(seed), schema);
        let at = (0..=text.len()).filter(|&at| text.is_char_boundary(at)).nth(cut.index(text.chars().count() + 1)).unwrap();
        if let Err(error) = LIMITS.hold(at, || Selector::parse(&text[..at], schema)) {
            prop_assert!(error.position().is_some_and(|place| place <= at), "{error}");
        }
    }
}

#[test]
fn limits_are_named() {
    let schema = &schemas()[0];
    let code = |text: &str| Selector::parse(text, schema).map(|_| ()).map_err(|error| error.code());
    assert_eq!(code(&format!("{}class=od{}", "(".repeat(64), ")".repeat(64))), Ok(()));
    assert_eq!(
        code(&format!("{}class=od{}", "(".repeat(65), ")".repeat(65))),
        Err(Code::LimitExceeded)
    );
    assert_eq!(code(&format!("{}class=od", "not ".repeat(64))), Ok(()));
    assert_eq!(code(&"not ".repeat(16_000)), Err(Code::LimitExceeded));
    assert_eq!(code(&format!("param={}", vec!["t"; 10_000].join("/"))), Ok(()));
    assert_eq!(
        code(&format!("param={}", vec!["t"; 10_001].join("/"))),
        Err(Code::LimitExceeded)
    );
    assert_eq!(code(&" ".repeat(64 * 1024 + 1)), Err(Code::LimitExceeded));
    assert_eq!(code(&format!("param={}", "x".repeat(1025))), Err(Code::InvalidSelector));
    assert_eq!(code("param~\"(a{1000}){1000}\""), Err(Code::LimitExceeded));
    let likes = |texts: &mut dyn Iterator<Item = String>| {
        let likes: Vec<_> = texts.map(|text| format!("param~\"{text}\"")).collect();
        likes.join(" or ")
    };
    assert_eq!(code(&likes(&mut (0..2000).map(|_| r"\\w{20}".to_owned()))), Ok(()));
    assert_eq!(code(&likes(&mut (0..32).map(|n| format!("^t{n}")))), Ok(()));
    for too_many in [
        likes(&mut (0..33).map(|n| format!("^t{n}"))),
        likes(&mut (0..30).map(|n| format!("^t{n}{}", "x".repeat(300)))),
        likes(&mut (0..4).map(|n| format!(r"\\w{{{}}}", n + 20))),
        likes(&mut (0..2).map(|n| format!("{}{n}", "[ab]".repeat(300)))),
        likes(&mut (0..2).map(|n| format!(r"(?i){}{n}", r"[\\x00-\\u{10ffff}]".repeat(4)))),
    ] {
        let error = Selector::parse(&too_many, schema).unwrap_err();
        assert_eq!(error.code(), Code::LimitExceeded, "{error}");
        assert!(error.cause().contains("together"), "{error}");
    }
    let wide = vec!["class=od"; 7_000].join(" or ");
    let selector = Selector::parse(&wide, schema).unwrap_err();
    assert_eq!(selector.code(), Code::LimitExceeded);
    assert_round_trip(
        &Selector::parse(&wide[..5_000 * 12 + 8], schema).unwrap(),
        schema,
        "wide",
    );
}

#[test]
fn an_exact_key_matches_its_object_alone() {
    let mut random = TestRandom(1);
    for schema in &schemas()[..2] {
        let records: Vec<Record> = (0..200).map(|_| random_record(&mut random, schema)).collect();
        for record in &records {
            let selector = Selector::exact_key(record.as_ref(), schema);
            for other in &records {
                let len = schema.key_len();
                let same = record.as_ref().key_bytes(len) == other.as_ref().key_bytes(len);
                assert_eq!(selector.matches(other.as_ref()), same);
            }
            // A parameter by number reads back as a question, which its identifier answers, too.
            let printed = selector.to_string();
            let mut params = printed.split(',').filter_map(|part| part.strip_prefix("param="));
            let is_number = |param: &str| param.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
            if !params.any(is_number) {
                assert_round_trip(&selector, schema, "exact key");
            }
        }
    }
    assert!(Selector::parse(" * ", &schemas()[0]).unwrap().is_everything());
    assert_eq!(Selector::everything(), Selector::parse("", &schemas()[0]).unwrap());
}

#[test]
fn attributes_that_no_schema_declares_are_named() {
    let of = |names: &[&str], text: &str| {
        let schemas: Vec<_> = names.iter().map(|name| Schema::builtin(name).unwrap()).collect();
        let set = SelectorSet::parse(text, &schemas).unwrap();
        set.undeclared(&schemas)
            .into_iter()
            .map(str::to_owned)
            .collect::<Vec<_>>()
    };
    let both = ["mars", "free"];
    assert!(of(&both, "").is_empty() && of(&both, "param=t,step=6").is_empty());
    assert!(of(&both, "name=x,space=y").is_empty());
    assert_eq!(of(&both, "parm=t"), ["parm"]);
    assert_eq!(of(&both, "name=x,(b=1 or not exists(a) or b=2),param=t"), ["a", "b"]);
    // Aliases are names.
    assert!(of(&both, "leadtime=6").is_empty() == Schema::builtin("mars").unwrap().find("leadtime").is_some());
    assert_eq!(of(&["free"], "param=t"), ["param"]);
}

#[test]
fn a_set_is_typed_by_each_schema_that_can() {
    let schemas = schemas();
    let set = SelectorSet::parse("class=od,note=x", &schemas).unwrap();
    assert!(set.of(0).is_some() && set.of(1).is_none() && set.of(2).is_some() && set.of(3).is_none());
    assert_eq!(set.text(), "class=od,note=x");
    assert!(SelectorSet::parse("", &schemas).unwrap().of(1).unwrap().is_everything());
    let error = SelectorSet::parse("class=od,notes=x", &schemas[..2]).unwrap_err();
    assert_eq!((error.code(), error.position()), (Code::InvalidSelector, Some(9)));
    assert!(error.cause().contains("did you mean note?"), "{error}");
    assert!(SelectorSet::parse("*", &[]).is_err());
    // The schema that declares most of the attributes is the one that is meant, wherever the others fail.
    let both = ["mars", "free"].map(|name| Schema::builtin(name).unwrap());
    for text in ["parm=t,levelist>=500", "levelist>=500,parm=t"] {
        let error = SelectorSet::parse(text, &both).unwrap_err();
        assert_eq!(error.position(), text.find("parm"), "{error}");
        assert!(error.cause().contains("schema mars; did you mean param?"), "{error}");
    }
    let request = SelectorSet::parse("RETRIEVE, Class=OD, Parameter=T", &schemas).unwrap();
    assert_eq!(request.of(1).unwrap().to_string(), "class=od,param=t");
    assert!(request.of(0).is_none());
}

#[test]
fn a_range_of_an_undeclared_attribute_is_a_list_of_whole_numbers() {
    let free = Schema::builtin("free").unwrap();
    let record = |step: &str| {
        let mut bytes = Vec::new();
        let given = [("name", "a"), ("step", step)].map(|(name, value)| (name, Given::Text(value)));
        free.record(given, &mut bytes).unwrap();
        Record::trusted(bytes)
    };
    let steps = ["0", "5", "10", "20", "010", "10.0", "x"];
    let records = steps.map(record);
    for (text, canonical, matched) in [
        ("step=0/to/20/by/10", "step=0/10/20", vec![0, 2, 3]),
        ("step=20/to/0/by/10", "step=20/10/0", vec![0, 2, 3]),
        ("step=4/to/6", "step=4/5/6", vec![1]),
        ("step=10/to/10", "step=10", vec![2]),
        ("step!=0/to/10/by/5", "step!=0/5/10", vec![3, 4, 5, 6]),
    ] {
        let selector = Selector::parse(text, &free).unwrap();
        assert_eq!(selector.to_string(), canonical);
        assert_eq!(matches(&selector, &records), matched, "{text}");
    }
    for (text, at, cause) in [
        ("step=0/to/1000", 5, "has at most 1000 values"),
        ("step=0.5/to/3", 5, "only whole numbers have ranges"),
        ("step=0/to/010", 10, "only whole numbers have ranges"),
        ("step=a/to/z", 5, "declare it as a number in a schema of your own"),
        ("step=0/to/9/by/0", 15, "must be greater than 0"),
        ("step>=5", 4, "declare it as a number in a schema of your own"),
        ("name=0/to/9", 5, "a string has no ranges; write a list"),
    ] {
        let error = Selector::parse(text, &free).unwrap_err();
        assert_eq!(error.position(), Some(at), "{error}");
        assert!(error.cause().contains(cause), "{error}");
    }
}

#[test]
fn a_range_of_another_language_gets_the_right_form() {
    let schema = Schema::builtin("mars").unwrap();
    for (text, form) in [
        ("levelist=500..850", "; a range is written 500/to/850"),
        ("levelist=500-850", "; a range is written 500/to/850"),
        ("number=1:10", "; a range is written 1/to/10"),
        (
            "date=2026-01-01..2026-01-31",
            "; a range is written 2026-01-01/to/2026-01-31",
        ),
    ] {
        let error = Selector::parse(text, &schema).unwrap_err();
        assert!(error.cause().ends_with(form), "{error}");
    }
    for (text, form) in [
        ("param==t", "; equality is written with one `=`"),
        ("param in (t, u)", "; a list is written name=a/b"),
        ("param not in t", "; all other values are written name!=a/b"),
        ("param like \"t\"", "; a pattern is written name~\"a.*\""),
        ("step between 0", "; a range is written step=0/to/6"),
        (
            "0<=step<6",
            "; a comparison has one bound: write two, such as t>=0,t<10",
        ),
        (
            "(step>0<6)",
            "; a comparison has one bound: write two, such as t>=0,t<10",
        ),
        ("param=a=b", "; put a value with this character in double quotes"),
        ("param=t & step=6", "; conditions are joined by `,` or `and`"),
        ("param=t || step=6", "; alternatives are joined by `or`"),
        ("param=t; step=6", "; conditions are joined by `,`"),
        ("!param=t", "; a condition is negated by `not`, an equality by `!=`"),
        ("param=[t,u]", "; a list is written name=a/b"),
    ] {
        let error = Selector::parse(text, &schema).unwrap_err();
        assert!(error.cause().ends_with(form), "{error}");
    }
    for text in ["levelist=high-low", "levelist=5-", "number=x:1"] {
        let error = Selector::parse(text, &schema).unwrap_err();
        assert!(!error.cause().contains("a range is written"), "{error}");
    }
}

#[test]
fn errors_have_a_picture() {
    let schema = &schemas()[0];
    let picture = |text: &str| explain_error(text, &Selector::parse(text, schema).unwrap_err());
    assert_eq!(
        picture("class=od,param="),
        "InvalidSelector: selector: expected a value or `*`, found the end (at byte 15)\n  class=od,param=\n                 ^"
    );
    assert_eq!(
        picture("note=日本,colour=red"),
        "InvalidSelector: selector: '日' is not allowed here; put a value with this character in double quotes \
         (at byte 5)\n  note=日本,colour=red\n       ^"
    );
    let long = format!("{} or class=\"\\x\"", vec!["class=od"; 20].join(" or "));
    let lines = picture(&long);
    let lines: Vec<&str> = lines.lines().collect();
    assert!(
        lines[1].starts_with("  …") && lines[1].chars().count() < 90,
        "{lines:?}"
    );
    assert_eq!(lines[1].chars().nth(lines[2].len() - 1), Some('\\'));
}

#[test]
fn the_pictures_of_the_page_are_real() {
    let page = std::fs::read_to_string(workspace().join("docs/formats/selector.md")).unwrap();
    let schema = Schema::builtin("mars").unwrap();
    let lines: Vec<&str> = page.lines().collect();
    let pictures: Vec<_> = lines
        .windows(3)
        .filter(|lines| lines[0].starts_with("InvalidSelector: "))
        .collect();
    assert!(pictures.len() >= 6);
    for picture in pictures {
        let text = picture[1].trim_start();
        let error = Selector::parse(text, &schema).unwrap_err();
        assert_eq!(explain_error(text, &error), picture.join("\n"));
    }
}

#[test]
fn a_key_is_a_selector_of_its_object_alone() {
    let schemas = [Schema::builtin("free").unwrap(), Schema::builtin("mars").unwrap()];
    let mars = &schemas[1];
    let field = |number: Option<&str>| {
        let common = "class=od,expver=0001,stream=enfo,date=20261120,time=0000,type=pf,levtype=sfc,step=6,param=2t";
        let pairs = common.split(',').filter_map(|pair| pair.split_once('='));
        let given = pairs.chain(number.map(|number| ("number", number)));
        let mut bytes = Vec::new();
        mars.record(given.map(|(name, value)| (name, Given::Text(value))), &mut bytes)
            .unwrap();
        Record::trusted(bytes)
    };
    let records = [field(Some("1")), field(None), field(Some("2"))];
    for (at, record) in records.iter().enumerate() {
        let mut key = String::new();
        mars.key_of(record.as_ref(), &mut key);
        let set = SelectorSet::parse(&format!("{key} "), &schemas).unwrap();
        assert!(set.of(0).is_none(), "no other schema can read {key}");
        let selector = set.of(1).unwrap();
        assert_eq!(matches(selector, &records), [at], "{key}");
        assert_eq!(selector, &Selector::parse(&selector.to_string(), mars).unwrap());
    }
    for wrong in ["{", "{}", "{colour=red}", "{name=a}{", "{class=od}{}{}"] {
        let error = SelectorSet::parse(wrong, &schemas).unwrap_err();
        assert_eq!(error.code(), Code::InvalidSelector, "{wrong}");
    }
}
