//! Schema files of FDB's: read, refused, and what their values become.

use proptest::prelude::*;

use super::*;
use crate::record::RecordRef;
use crate::schema::{LEVELS, SameKey};
use crate::value::{Given, Type};

const FIELDS: &str = "\
# What all rules share.
date: Date; time:Time;
step : Step;   levelist: Double;
number: Integer;

[ class=od/rd, expver, stream=enfo/efov, date, time, domain?g

    [ type=tu, levtype, grid-, reference: First3
        [ step, levelist?, param ]]     # the first

    [ type, levtype=!dp/ml
        [ step, number?, levelist?, param ]
        [ step, latitude:Double, param ]]
]
[ class, expver, stream [ type=cl [ date: ClimateMonthly, time, param ]] [type [date: Month?, time:Default, param]]]
";

fn read(text: &str) -> Vec<Schema> {
    Schema::parse_fdb(text, "fields").unwrap()
}

fn key(schema: &Schema, given: &[(&str, &str)]) -> Result<String> {
    let mut record = Vec::new();
    schema.record(given.iter().map(|&(name, text)| (name, Given::Text(text))), &mut record)?;
    let mut key = String::new();
    schema.key_of(RecordRef::trusted(&record), &mut key);
    Ok(key)
}

fn names(schema: &Schema, level: usize) -> String {
    let of_level = schema.attributes().iter().filter(|a| a.level == Some(level));
    let names = of_level.map(|a| format!("{}{}", a.name, if a.optional { "?" } else { "" }));
    names.collect::<Vec<_>>().join(" ")
}

#[test]
fn each_way_through_the_rules_is_a_schema() {
    let schemas = read(FIELDS);
    let levels: Vec<[String; 3]> = schemas
        .iter()
        .map(|schema| [0, 1, 2].map(|level| names(schema, level)))
        .collect();
    let dataset = "class expver stream date time domain?";
    assert_eq!(
        levels,
        [
            [dataset, "type levtype reference", "step levelist? param"],
            [dataset, "type levtype", "step number? levelist? param"],
            [dataset, "type levtype", "step latitude param"],
            ["class expver stream", "type", "date time param"],
            ["class expver stream", "type", "month? time param"],
        ]
        .map(|rule| rule.map(str::to_owned))
    );
    let called: Vec<&str> = schemas.iter().map(Schema::name).collect();
    assert_eq!(called, ["fields-1", "fields-2", "fields-3", "fields-4", "fields-5"]);
    assert_eq!(
        schemas[0].doc(),
        "The rule in line 9 of a schema of FDB's: class=od/rd, stream=enfo/efov, type=tu"
    );
    assert!(
        schemas
            .iter()
            .all(|schema| schema.on_same_key() == SameKey::Supersede && !schema.is_open())
    );
    assert_eq!(read("[ a [ b [ c ]]]")[0].name(), "fields");
}

#[test]
fn white_space_and_comments_stand_anywhere() {
    let spread = "#=# a\r\nstep\t:\tStep ;\n[ class = od / rd ,\n expver [ type , grid- # consumed\n , origin:First3\n [ step , \
                  levelist ?\n , param ?x ] # end\n ]\n]#";
    let dense = "step:Step;[class=od/rd,expver[type,grid-,origin:First3[step,levelist?,param?x]]]";
    let keys = |text: &str| {
        read(text)
            .iter()
            .map(|schema| [0, 1, 2].map(|level| names(schema, level)))
            .collect::<Vec<_>>()
    };
    assert_eq!(keys(spread), keys(dense));
    assert_eq!(
        keys(dense),
        [["class expver", "type origin", "step levelist? param?"].map(str::to_owned)]
    );
}

#[test]
fn types_come_from_the_rule_or_else_from_the_head() {
    let schemas = read(FIELDS);
    let kind = |at: usize, name: &str| {
        let schema: &Schema = &schemas[at];
        schema.attribute(schema.find(name).unwrap()).kind.scalar
    };
    for (at, name, expected) in [
        (0, "date", Type::Date),
        (0, "time", Type::Time),
        (0, "step", Type::Step),
        (1, "levelist", Type::Decimal),
        (1, "number", Type::Integer),
        (2, "latitude", Type::Decimal),
        (0, "param", Type::String),
        (0, "reference", Type::String),
        (3, "date", Type::String),
        (3, "time", Type::Time),
        (4, "month", Type::String),
        (4, "time", Type::String),
    ] {
        assert_eq!(kind(at, name), expected, "{name} of rule {}", at + 1);
    }
}

#[test]
fn what_a_rule_takes_its_schema_takes() {
    let schemas = read(FIELDS);
    let mut given = vec![
        ("class", "od"),
        ("expver", "0001"),
        ("stream", "efov"),
        ("date", "20260101"),
        ("time", "0000"),
        ("type", "tu"),
        ("levtype", "sfc"),
        ("reference", "abc"),
        ("step", "0-24"),
        ("param", "130"),
        ("grid", "f640"),
    ];
    let expected = "{class=od,expver=0001,stream=efov,date=20260101,time=0000}{type=tu,levtype=sfc,reference=abc}{step=0-24,param=130}";
    // `grid` is taken and no part of the key; `domain` may be left out.
    assert_eq!(key(&schemas[0], &given).unwrap(), expected);
    given[2].1 = "oper";
    assert_eq!(key(&schemas[0], &given).unwrap_err().code(), Code::SchemaMismatch);
    let levtype = schemas[1].attribute(schemas[1].find("levtype").unwrap());
    assert!(levtype.values.is_empty() && levtype.doc == "FDB: none of dp, ml");
    let domain = schemas[0].attribute(schemas[0].find("domain").unwrap());
    assert_eq!(
        (domain.default.as_deref(), domain.doc.as_str()),
        (None, "FDB: g where it is not given")
    );
}

#[test]
fn they_are_printed_as_files_of_ours() {
    for schema in read(FIELDS) {
        assert_eq!(
            Schema::parse_yaml(&schema.to_yaml()).unwrap(),
            schema,
            "{}",
            schema.to_yaml()
        );
    }
}

#[test]
fn a_file_is_told_by_its_beginning() {
    for fdb in [
        "[a[b[c]]]",
        "# x\n\n [a[b[c]]]",
        "a:Date;[a[b[c]]]",
        "a : Date ; b: X",
        "[",
        "[]",
    ] {
        assert!(is_fdb(fdb), "{fdb}");
    }
    for ours in [
        "",
        "name: x\n",
        "{name: x}",
        "# [a\nname: x",
        "name: x # ;\nkey: {}",
        "a:",
        "---\n[a]",
    ] {
        assert!(!is_fdb(ours), "{ours}");
    }
    for name in Schema::BUILTIN_NAMES {
        let schema = Schema::builtin(name).unwrap();
        assert_eq!(Schema::parse_file(&schema.to_yaml(), "x").unwrap(), [(*schema).clone()]);
    }
    assert_eq!(Schema::parse_file(FIELDS, "fields").unwrap(), read(FIELDS));
    for (file, called) in [
        ("/x/enfo.fdb", "enfo"),
        ("/x/schema", "fdb"),
        ("", "fdb"),
        ("9", "fdb"),
        ("a b", "fdb"),
    ] {
        assert_eq!(Schema::parse_file("[a[b[c]]]", file).unwrap()[0].name(), called);
    }
}

#[test]
fn a_bad_file_is_refused_with_its_place_and_what_stands_there() {
    for (text, place, says) in [
        (
            "",
            "1, column 1",
            "expected a rule, which begins with '[', found the end",
        ),
        ("a: Date;\n", "2, column 1", "expected a rule"),
        ("a: Date", "1, column 8", "expected ';', found the end"),
        ("a Date;", "1, column 3", "expected ':', found 'D'"),
        ("a: Date; a: Time; [a[b[c]]]", "1, column 10", "a has a type already"),
        (
            "a: Dates;\n[b[c[\n a]]]",
            "1, column 4",
            "a: \"Dates\" is not a known type (Date, ",
        ),
        ("[b[c[\n  a :X]]]", "2, column 6", "\"X\" is not a known type"),
        ("[a[b[c]]] x: Date;", "1, column 11", "expected a rule"),
        ("[a[b[c[d]]]]", "1, column 7", "this is a fourth"),
        ("[a[b]]", "1, column 3", "there is no element inside this"),
        ("[a]", "1, column 1", "there is no collocation inside this"),
        ("[ ]", "1, column 1", "there is no collocation"),
        ("[[[]]]", "1, column 3", "no attribute of this rule is part of the key"),
        ("[a[b[c-]]", "1, column 10", "expected a name, found the end"),
        ("[a b[c[d]]]", "1, column 4", "expected ',', '[' or ']', found 'b'"),
        ("[a,[b[c]]]", "1, column 4", "expected a name, found '['"),
        ("[a=[b[c]]]", "1, column 4", "expected a value, found '['"),
        ("[a=x/[b[c]]]", "1, column 6", "expected a value"),
        ("[a[b[c,\n\n a]]]", "3, column 2", "a occurs twice in one rule"),
        ("[a[b[c,step:Step=0/x]]]", "1, column 20", "step: \"x\" is no step"),
        ("[a[b[c,9]]]", "1, column 8", "\"9\" is not a valid attribute name"),
        ("[a[b[c,to]]]", "1, column 8", "\"to\" is not a valid attribute name"),
        ("[a[b[é:Datum]]]", "1, column 8", "é: \"Datum\" is not a known type"),
        ("[a[b[c=\u{7}]]]", "1, column 8", "control character"),
    ] {
        let error = Schema::parse_fdb(text, "x").expect_err(text);
        assert_eq!(error.code(), Code::InvalidArgument, "{text}: {error}");
        assert_eq!(error.subject(), format!("schema line {place}"), "{text}: {error}");
        assert!(error.cause().contains(says), "{text}: {error}");
    }
    assert!(Schema::parse_fdb("[a[b[c]]]", "no name").is_err());
}

#[test]
fn limits_hold() {
    let cause = |text: &str| Schema::parse_fdb(text, "x").unwrap_err().cause().to_owned();
    let attributes = |count: usize| (0..count).map(|at| format!("a{at}")).collect::<Vec<_>>().join(",");
    assert_eq!(read(&format!("[b[c[{}]]]", attributes(126)))[0].key_len(), 128);
    assert!(cause(&format!("[b[c[{}]]]", attributes(127))).contains("more than 128 attributes in one rule"));
    assert!(cause(&format!("[b[c[{}]]]", attributes(129))).contains("more than 128 attributes"));
    let rules = |count: usize| format!("[a{}]", "[b[c]]".repeat(count));
    assert_eq!(read(&rules(1024)).len(), 1024);
    assert!(cause(&rules(1025)).contains("1024 rules"));
    assert!(cause(&"[a[b[c]]]".repeat(1025)).contains("more than 1024 rules"));
    assert!(cause(&format!("[a[b[c={}]]]", vec!["x"; 4097].join("/"))).contains("more than 4096 values"));
    assert!(cause(&format!("[a[b[c={}]]]", "x".repeat(1025))).contains("more than 1024 bytes"));
    let long = vec!["x".repeat(1000); 100].join("/");
    assert!(cause(&format!("[a={long}{}]", "[b[c]]".repeat(100))).contains("when expanded"));
    // Ten thousand bytes would become 35 MB.
    let short = vec!["1"; 1000].join("/");
    assert!(cause(&format!("[a={short}{}]", "[b[c]]".repeat(1000))).contains("when expanded"));
    let values = vec!["od"; 60].join("/");
    assert_eq!(read(&format!("[a={values}{}]", "[b[c]]".repeat(1000))).len(), 1000);
    let types: Vec<String> = (0..1025).map(|at| format!("a{at}:Date;")).collect();
    assert!(cause(&types.concat()).contains("more than 1024 types"));
    let huge = " ".repeat(SCHEMA_BYTES_MAX + 1);
    assert_eq!(Schema::parse_fdb(&huge, "x").unwrap_err().code(), Code::TooLarge);
    // The depth of the reader is limited, whatever the depth of the brackets.
    assert!(cause(&"[".repeat(100_000)).contains("a fourth"));
}

#[test]
fn steps_and_numbers_of_fdb() {
    let canonical = |kind: Type, text: &str| {
        let mut out = String::new();
        kind.canonical(Given::Text(&fdb_value(kind, text)), &mut out)
            .map(|()| out)
    };
    for (fdb, ours) in [
        ("6", "6"),
        ("0-24", "0-24"),
        ("30m", "30m"),
        ("1h30m", "90m"),
        ("0-1h30m", "0m-90m"),
        ("1h30m-3", "90m-180m"),
        ("30m-1", "30m-60m"),
        ("1h1s", "3601s"),
        ("25h30m10s", "91810s"),
    ] {
        assert_eq!(canonical(Type::Step, fdb).unwrap(), ours);
        let schema = &read("step: Step; [a[b[step]]]")[0];
        assert_eq!(fdb_key(schema, [("step", ours)]), format!("{{}}{{}}{{step={fdb}}}"));
    }
    for bad in [
        "",
        "x",
        "1h30",
        "h",
        "6-",
        "3-1",
        "1x",
        "99999999999999999999",
        "+6",
        "18446744073709551615h",
    ] {
        assert!(canonical(Type::Step, bad).is_err(), "{bad}");
    }
    assert_eq!(canonical(Type::Decimal, "1e-05").unwrap(), "0.00001");
    assert_eq!(canonical(Type::Decimal, "1.23457e+08").unwrap(), "123457000");
    assert_eq!(canonical(Type::Decimal, "0.5").unwrap(), "0.5");
    assert!(canonical(Type::Decimal, "1e+20").is_err() && canonical(Type::Decimal, "e").is_err());
}

/// A typical rule: with different names for each level, so that no name is repeated.
fn written_rule() -> impl Strategy<Value = String> {
    let takes = prop_oneof![
        Just(String::new()),
        Just("?".to_owned()),
        Just("?none".to_owned()),
        Just("-".to_owned()),
        Just(":Grid".to_owned()),
        Just(": Integer?".to_owned()),
        "=[a-z0-9.!-]{1,8}(/[a-z0-9.-]{1,8}){0,3}",
    ];
    let level = |letter: &'static str| {
        let takes = takes.clone();
        prop::collection::vec(takes, 0..6).prop_map(move |all| {
            let conditions = all.iter().enumerate().map(|(at, takes)| format!("{letter}{at}{takes}"));
            conditions.collect::<Vec<_>>().join(" ,\n")
        })
    };
    (level("a"), level("b"), level("c")).prop_map(|(a, b, c)| {
        format!(
            "[ always{}{a} [{b}[{c}] # end\n] ]",
            if a.is_empty() { "" } else { ", " }
        )
    })
}

proptest! {
    #[test]
    fn whatever_stands_there_nothing_panics(text in "[\\[\\]a-c:;,=/?! #\n-]{0,60}|\\PC{0,40}") {
        let _ = Schema::parse_file(&text, "x");
    }

    #[test]
    fn every_value_reads_or_is_refused(text in "[0-9hmsde.+-]{0,12}|\\PC{0,8}") {
        for kind in Type::ALL {
            let mut out = String::new();
            let _ = kind.canonical(Given::Text(&fdb_value(kind, &text)), &mut out);
        }
    }

    #[test]
    fn rules_as_people_write_them_read(rules in prop::collection::vec(written_rule(), 1..5)) {
        let schemas = read(&rules.concat());
        prop_assert_eq!(schemas.len(), rules.len());
        for (schema, rule) in schemas.iter().zip(&rules) {
            for level in 0..LEVELS.len() {
                prop_assert!(schema.attributes().iter().filter(|a| a.level == Some(level)).count() <= 7);
            }
            prop_assert_eq!(&Schema::parse_yaml(&schema.to_yaml()).unwrap(), schema, "{}", rule);
        }
    }

    #[test]
    fn steps_come_back_as_they_were(first in 0u64..1_000_000, more in prop::option::of(0u64..1_000_000)) {
        let given = more.map_or_else(|| format!("{first}s"), |more| format!("{first}s-{}s", first + more));
        let mut ours = String::new();
        Type::Step.canonical(Given::Text(&given), &mut ours).unwrap();
        let schema = &read("step: Step; [a[b[step]]]")[0];
        let listed = fdb_key(schema, [("step", ours.as_str())]);
        let fdb = listed.strip_prefix("{}{}{step=").and_then(|rest| rest.strip_suffix('}')).unwrap();
        let mut back = String::new();
        Type::Step.canonical(Given::Text(&fdb_value(Type::Step, fdb)), &mut back).unwrap();
        prop_assert_eq!(back, ours);
    }
}
