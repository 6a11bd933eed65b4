//! Every type: accepted values, refused values, order.

#![expect(
    clippy::excessive_precision,
    reason = "a user may write more digits than a float holds"
)]

use super::*;

fn canonical(kind: Type, given: Given<'_>) -> Option<String> {
    let mut out = "kept ".to_owned();
    let done = kind.canonical(given, &mut out);
    if let Err(why) = done {
        assert_eq!(out, "kept ", "nothing is appended on an error");
        assert!(why.contains(kind.name()), "{why}");
        return None;
    }
    let text = out.split_off(5);
    assert!(kind.is_canonical(&text), "{kind} {text}");
    let mut again = String::new();
    kind.canonical(Given::Text(&text), &mut again).unwrap();
    assert_eq!(again, text, "canonical texts stay as they are");
    Some(text)
}

fn takes(kind: Type, cases: &[(Given<'_>, &str)]) {
    for &(given, expected) in cases {
        assert_eq!(canonical(kind, given).as_deref(), Some(expected), "{kind} of {given:?}");
        if let Given::Text(text) = given {
            assert_eq!(kind.is_canonical(text), text == expected, "{kind} {text}");
        }
    }
}

fn refuses(kind: Type, texts: &[&str]) {
    for text in texts {
        assert_eq!(canonical(kind, Given::Text(text)), None, "{kind} of {text:?}");
        assert!(!kind.is_canonical(text), "{kind} {text:?}");
    }
}

use Given::{Bool, Float as F, Integer as I, Text as T};

#[test]
fn strings_stay_as_they_are() {
    takes(
        Type::String,
        &[(T("0001"), "0001"), (T(""), ""), (T("日本\0"), "日本\0")],
    );
    assert_eq!(canonical(Type::String, I(1)), None);
    assert_eq!(canonical(Type::String, Bool(true)), None);
    assert_eq!(canonical(Type::String, Given::List(&[])), None);
    assert_eq!(Type::String.order("a"), None);
}

#[test]
fn integers() {
    takes(
        Type::Integer,
        &[
            (I(-3), "-3"),
            (T("007"), "7"),
            (T("+7"), "7"),
            (T("-0"), "0"),
            (I(i64::MIN), "-9223372036854775808"),
        ],
    );
    takes(
        Type::Integer,
        &[
            (T("9223372036854775807"), "9223372036854775807"),
            (T("-9223372036854775808"), "-9223372036854775808"),
        ],
    );
    refuses(
        Type::Integer,
        &[
            "",
            "-",
            "+",
            "7.0",
            "0x10",
            "9223372036854775808",
            "1 ",
            "1_0",
            "--1",
            "٣",
        ],
    );
    assert_eq!(canonical(Type::Integer, F(7.0)), None);
    assert_eq!(canonical(Type::Integer, Bool(true)), None);
    assert!(Type::Integer.order("-3") < Type::Integer.order("2"));
}

#[test]
fn decimals_are_exact() {
    takes(
        Type::Decimal,
        &[
            (T("500.0"), "500"),
            (I(500), "500"),
            (T("0.50"), "0.5"),
            (F(0.5), "0.5"),
            (T("-0.0"), "0"),
            (T("+5"), "5"),
        ],
    );
    takes(
        Type::Decimal,
        &[
            (T("-12.50"), "-12.5"),
            (T("0.000000000000000001"), "0.000000000000000001"),
            (F(1e15), "1000000000000000"),
        ],
    );
    takes(
        Type::Decimal,
        &[
            (T("123456789012345678"), "123456789012345678"),
            (T("1.1000000000000000000000"), "1.1"),
            (T("00.10"), "0.1"),
        ],
    );
    refuses(
        Type::Decimal,
        &[
            "",
            "1e3",
            ".5",
            "5.",
            "abc",
            "-",
            "1.2.3",
            "1234567890123456789",
            "123456789012345678.5",
            "1,5",
            "+-5",
        ],
    );
    refuses(Type::Decimal, &["0.0000000000000000001"]);
    for not in [F(1e16), F(1e-5), F(f64::NAN), F(f64::INFINITY), Bool(true), I(i64::MAX)] {
        assert_eq!(canonical(Type::Decimal, not), None, "{not:?}");
    }
    for (exact, text) in [
        (0.123_456_789_012_345, "0.123456789012345"),
        (1e15 + 1.0, "1000000000000001"),
    ] {
        assert_eq!(canonical(Type::Decimal, F(exact)).as_deref(), Some(text));
    }
    for inexact in [0.1 * 3.0, 1.0 / 3.0, -0.7 - 0.1, 1_234.567_890_123_456_7] {
        let mut out = String::new();
        let refused = Type::Decimal.canonical(F(inexact), &mut out).unwrap_err();
        assert!(
            refused.contains("more than the 15 digits that a float keeps"),
            "{refused}"
        );
        // A text is taken as it is.
        let text = format!("{inexact:?}");
        assert_eq!(canonical(Type::Decimal, T(&text)).as_deref(), Some(text.as_str()));
    }
    let ordered = [
        "-123456789012345678",
        "-12.5",
        "-12",
        "0",
        "0.000000000000000001",
        "0.5",
        "5",
        "123456789012345678",
    ];
    assert!(ordered.is_sorted_by(|a, b| Type::Decimal.order(a) < Type::Decimal.order(b)));
    assert_eq!(Type::Decimal.order("0.5"), Some(500_000_000_000_000_000));
    assert_eq!(Type::Decimal.order("3"), Type::Integer.order("3"));
}

#[test]
fn bools() {
    takes(Type::Bool, &[(Bool(true), "true"), (T("false"), "false")]);
    refuses(Type::Bool, &["True", "yes", "1", ""]);
    assert_eq!(canonical(Type::Bool, I(1)), None);
}

#[test]
fn days_of_the_calendar() {
    takes(
        Type::Date,
        &[
            (T("2026-11-20"), "20261120"),
            (I(20_261_120), "20261120"),
            (T("2024-02-29"), "20240229"),
            (T("00010101"), "00010101"),
        ],
    );
    takes(
        Type::Date,
        &[
            (T("20000229"), "20000229"),
            (T("9999-12-31"), "99991231"),
            (T("19700101"), "19700101"),
        ],
    );
    refuses(
        Type::Date,
        &[
            "20260230",
            "2026-1120",
            "202611-20",
            "-1",
            "1900-02-29",
            "261120",
            "00000101",
            "20261301",
            "20260100",
            "2026/11/20",
            "",
        ],
    );
    assert_eq!(canonical(Type::Date, I(-20_261_120)), None);
    assert_eq!(Type::Date.order("19700101"), Some(0));
    assert_eq!(Type::Date.order("20000301"), Some(11017));
    // Every day of four hundred years and more prints as what it was read from.
    let mut before = Type::Date.order("15991231").unwrap();
    for year in 1600..=2001 {
        for month in 1..=12 {
            for day in 1..=31 {
                let text = format!("{year}{month:02}{day:02}");
                let Some(order) = Type::Date.order(&text) else { continue };
                assert_eq!(order, before + 1, "{text}");
                let dashed = format!("{year}-{month:02}-{day:02}");
                assert_eq!(canonical(Type::Date, T(&dashed)), Some(text));
                before = order;
            }
        }
    }
}

#[test]
fn times_of_day() {
    takes(
        Type::Time,
        &[
            (T("0"), "0000"),
            (T("12"), "1200"),
            (T("600"), "0600"),
            (T("6:00"), "0600"),
            (T("12:00"), "1200"),
            (I(0), "0000"),
        ],
    );
    takes(
        Type::Time,
        &[
            (I(1830), "1830"),
            (I(6), "0600"),
            (T("0001"), "0001"),
            (T("2359"), "2359"),
            (I(123), "0123"),
        ],
    );
    refuses(
        Type::Time,
        &["2400", "12:60", "123456", "", ":00", "6:0", "1:", "12-00", "-1"],
    );
    assert_eq!(canonical(Type::Time, I(24)), None);
    assert_eq!(Type::Time.order("0130"), Some(90));
}

#[test]
fn steps_and_ranges_of_steps() {
    takes(
        Type::Step,
        &[
            (T("6h"), "6"),
            (T("1d"), "24"),
            (T("120m"), "2"),
            (T("3600s"), "1"),
            (T("0-1d"), "0-24"),
            (T("0-90m"), "0m-90m"),
            (I(6), "6"),
        ],
    );
    takes(
        Type::Step,
        &[
            (T("90s"), "90s"),
            (T("6-6"), "6-6"),
            (T("60s-90s"), "60s-90s"),
            (T("1d-36h"), "24-36"),
            (T("0s"), "0"),
            (T("007"), "7"),
            (T("1h30m"), "90m"),
            (T("1d6h"), "30"),
            (T("0h1m30s"), "90s"),
            (T("-6"), "-6"),
            (T("-90m"), "-90m"),
            (T("-6-0"), "-6-0"),
            (T("-12--6"), "-12--6"),
            (T("-1h30m-0"), "-90m-0m"),
            (T("-0"), "0"),
            (I(-6), "-6"),
        ],
    );
    assert!(Type::Step.order("-6") < Type::Step.order("-90m") && Type::Step.order("-90m") < Type::Step.order("0"));
    refuses(
        Type::Step,
        &[
            "24-0",
            "0-24-48",
            "0--6",
            "--6",
            "6h30",
            "1h-",
            "6 h",
            "",
            "-",
            "6-",
            "h",
            "6x",
            "1.5",
            "99999999999999999999",
            "9999999999999999999d",
        ],
    );
    assert_eq!(Type::Step.order("90m"), Some(5400));
    assert_eq!(Type::Step.order("0-24"), None);
}

#[test]
fn points_in_time() {
    takes(
        Type::Timestamp,
        &[
            (T("2026-11-20T12:00:00Z"), "2026-11-20T12:00:00Z"),
            (T("2026-11-20t12:00:00.500+01:00"), "2026-11-20T11:00:00.5Z"),
        ],
    );
    takes(
        Type::Timestamp,
        &[
            (T("2026-12-31T23:30:00-01:00"), "2027-01-01T00:30:00Z"),
            (T("1969-12-31T23:59:59.000000001z"), "1969-12-31T23:59:59.000000001Z"),
        ],
    );
    refuses(
        Type::Timestamp,
        &[
            "2026-11-20 12:00:00Z",
            "2026-11-20T12:00:00",
            "2026-02-30T00:00:00Z",
            "2026-11-20T24:00:00Z",
            "20261120T12:00:00Z",
        ],
    );
    refuses(
        Type::Timestamp,
        &[
            "2026-11-20T12:00:00.Z",
            "2026-11-20T12:00:00.1234567890Z",
            "0001-01-01T00:00:00+01:00",
            "2026-11-20T12:00:00+24:00",
            "é",
            "",
        ],
    );
    assert_eq!(canonical(Type::Timestamp, I(20_261_120)), None);
    assert_eq!(Type::Timestamp.order("1970-01-01T00:00:01.5Z"), Some(1_500_000_000));
    assert_eq!(Type::Timestamp.order("1969-12-31T23:59:59.5Z"), Some(-500_000_000));
}

#[test]
fn lengths_of_time() {
    takes(
        Type::Duration,
        &[
            (T("1h30m"), "90m"),
            (T("24h"), "1d"),
            (T("1500ms"), "1500ms"),
            (T("0h"), "0s"),
            (T("1s1s"), "2s"),
            (T("1us500ns"), "1500ns"),
        ],
    );
    refuses(
        Type::Duration,
        &[
            "",
            "5",
            "1.5s",
            "s",
            "-1s",
            "1s ",
            "1w",
            "1é",
            "99999999999999999999s",
            "9999ms9999999999999900m",
        ],
    );
    assert_eq!(Type::Duration.order("90m"), Some(5_400_000_000_000));
}

#[test]
fn floats_print_as_pythons_repr() {
    takes(
        Type::Float,
        &[
            (F(0.5), "0.5"),
            (I(1), "1.0"),
            (T("0.50"), "0.5"),
            (F(-0.0), "0.0"),
            (F(1e16), "1e+16"),
            (F(1e15), "1000000000000000.0"),
        ],
    );
    takes(
        Type::Float,
        &[
            (F(1e-4), "0.0001"),
            (F(1e-5), "1e-05"),
            (F(1.5e-7), "1.5e-07"),
            (F(1e100), "1e+100"),
            (F(5e-324), "5e-324"),
        ],
    );
    takes(
        Type::Float,
        &[
            (F(f64::MAX), "1.7976931348623157e+308"),
            (F(123.456), "123.456"),
            (T(" 1_0.5 "), "10.5"),
            (T(".5"), "0.5"),
            (F(-1234.0), "-1234.0"),
        ],
    );
    // Halfway between two shortest texts: the even one.
    takes(
        Type::Float,
        &[
            (F(647_087_035_018_986.25), "647087035018986.2"),
            (F(1_921_900_521_103_200.25), "1921900521103200.2"),
        ],
    );
    refuses(
        Type::Float,
        &["nan", "inf", "-Infinity", "x", "", "1e400", "_1", "1__0", "1_", "0x1p3"],
    );
    let ordered = ["-1e+300", "-1.5", "-1e-05", "0.0", "5e-324", "1e-05", "0.5", "1e+16"];
    assert!(ordered.is_sorted_by(|a, b| Type::Float.order(a) < Type::Float.order(b)));
}

#[test]
fn kinds_are_named_as_in_schemas() {
    for scalar in Type::ALL {
        for kind in [Kind::one(scalar), Kind::list_of(scalar)] {
            assert_eq!(Kind::from_name(&kind.to_string()), Some(kind));
        }
    }
    assert_eq!(Kind::list_of(Type::Decimal).to_string(), "list of decimal");
    assert_eq!(Kind::from_name("list of list of string"), None);
    assert_eq!(Kind::from_name("text"), None);
}

#[test]
fn a_long_value_is_cut_in_messages() {
    let mut out = String::new();
    let why = Type::Integer.canonical(T(&"é".repeat(1000)), &mut out).unwrap_err();
    assert!(why.len() < 250 && why.contains("2000 bytes"), "{why}");
}
