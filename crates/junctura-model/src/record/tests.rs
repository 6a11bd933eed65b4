//! Records: input, output, and damaged bytes.

use std::sync::Arc;

use super::*;
use crate::error::{Code, Error};
use crate::limits::VALUE_BYTES_MAX;
use crate::schema::Schema;
use crate::value::Given::{self, Integer as I, List as L, Text as T};

const SMALL: &str = "
name: small
key: {dataset: [a], element: [\"b?\", c]}
attributes:
  a: {type: string, values: [x, y, \"é \"], default: x}
  b: {type: decimal}
  c: {type: integer, range: [0, 99], aliases: [see]}
  tags: {type: list of string}
  sizes: {type: list of integer, range: [1, 9]}
  at: {type: step, range: [0, 24]}
";

fn small() -> Schema {
    Schema::parse_yaml(SMALL).unwrap()
}

fn free() -> Arc<Schema> {
    Schema::builtin("free").unwrap()
}

fn make(schema: &Schema, given: &[(&str, Given<'_>)]) -> Result<Vec<u8>, Error> {
    let mut out = b"old".to_vec();
    let done = schema.record(given.iter().copied(), &mut out);
    assert!(done.is_ok() || out.is_empty());
    done.map(|()| {
        assert_eq!(schema.check(&out).unwrap().as_bytes(), out);
        out
    })
}

fn refused(schema: &Schema, given: &[(&str, Given<'_>)]) -> (Code, String) {
    let error = make(schema, given).unwrap_err();
    (error.code(), error.subject().to_owned())
}

#[test]
fn the_bytes_are_as_pictured() {
    let bytes = make(
        &small(),
        &[("tags", L(&[T("p"), T("")])), ("see", T("+7")), ("b", T("0.50"))],
    )
    .unwrap();
    assert_eq!(bytes, b"\x00\x01\x00x\x01\x03\x000.5\x02\x01\x007\x03\x04\x00p/\"\"");
    let record = RecordRef::trusted(&bytes);
    assert_eq!(record.get(AttrId(1)), Some("0.5"));
    assert_eq!(record.get(AttrId(5)), None);
    assert_eq!(record.key_bytes(3), &bytes[..14]);
    assert_eq!(record.key_bytes(0), b"");
    let texts: Vec<_> = record.iter().map(|(id, name, text)| (id.0, name, text)).collect();
    assert_eq!(
        texts,
        [(0, None, "x"), (1, None, "0.5"), (2, None, "7"), (3, None, "p/\"\"")]
    );
    assert_eq!(record.to_owned().as_ref(), record);
}

#[test]
fn any_order_of_attributes_gives_the_same_bytes() {
    let schema = small();
    let all = [("a", T("y")), ("b", I(5)), ("c", I(1)), ("at", T("6"))];
    let sorted = make(&schema, &all).unwrap();
    for turn in 1..4 {
        let mut turned = all;
        turned.rotate_left(turn);
        assert_eq!(make(&schema, &turned).unwrap(), sorted);
        turned.reverse();
        assert_eq!(make(&schema, &turned).unwrap(), sorted);
    }
}

#[test]
fn what_the_schema_does_not_allow_names_the_attribute() {
    let schema = small();
    let one = ("c", I(1));
    for (given, code, subject) in [
        (&[][..], Code::SchemaMismatch, "c"),
        (&[one, ("see", I(1))], Code::SchemaMismatch, "c"),
        (&[one, ("colour", T("red"))], Code::SchemaMismatch, "colour"),
        (&[("c", I(100))], Code::SchemaMismatch, "c"),
        (&[("c", T("x"))], Code::TypeMismatch, "c"),
        (&[("c", L(&[I(1)]))], Code::TypeMismatch, "c"),
        (&[one, ("a", T("z"))], Code::SchemaMismatch, "a"),
        (&[one, ("a", I(1))], Code::TypeMismatch, "a"),
        (&[one, ("a", T(&"x".repeat(1025)))], Code::TooLarge, "a"),
        (&[one, ("tags", T("p"))], Code::TypeMismatch, "tags"),
        (&[one, ("tags", L(&[L(&[])]))], Code::TypeMismatch, "tags"),
        (&[one, ("sizes", L(&[I(1), I(10)]))], Code::SchemaMismatch, "sizes"),
        (&[one, ("at", T("12-36"))], Code::SchemaMismatch, "at"),
    ] {
        assert_eq!(refused(&schema, given), (code, subject.to_owned()), "{given:?}");
    }
    assert!(make(&schema, &[one, ("at", T("12-24"))]).is_ok());
    let error = make(&schema, &[one, ("tag", T("p"))]).unwrap_err();
    assert!(error.cause().contains("did you mean tags?"), "{error}");
    let colors = "name: c\nkey: {dataset: [a]}\nattributes: {a: {type: string, values: [red, green]}}";
    let error = make(&Schema::parse_yaml(colors).unwrap(), &[("a", T("gren"))]).unwrap_err();
    assert!(error.cause().contains("did you mean green?"), "{error}");
    let error = make(&free(), &[("nme", T("p"))]).unwrap_err();
    assert!(error.cause().contains("nme is given: did you mean name?"), "{error}");
    let error = free().parse_key("{space=default}{}{nme=p}").unwrap_err();
    assert!(error.cause().contains("did you mean name?"), "{error}");
    let error = make(&schema, &[("c", T("abc"))]).unwrap_err();
    assert!(
        error.to_string().contains("TypeMismatch: c: \"abc\" is no integer"),
        "{error}"
    );
}

#[test]
fn limits_hold_at_the_edge() {
    let schema = Schema::parse_yaml("name: n\nkey: {dataset: [a, b, c, d]}\nattributes: {a: {type: string}, b: {type: string}, c: {type: string}, d: {type: string}, l: {type: list of string}}").unwrap();
    let text = |len: usize| "x".repeat(len);
    let (long, rest) = (
        text(VALUE_BYTES_MAX),
        text(4096 - 3 * VALUE_BYTES_MAX - "{a=,b=,c=,d=}{}{}".len()),
    );
    let key = [("a", T(&long)), ("b", T(&long)), ("c", T(&long))];
    let whole = |last: &str| refused_or_len(&schema, &[&key[..], &[("d", T(last))]].concat());
    assert_eq!(whole(&rest), Ok(4096));
    assert_eq!(whole(&format!("{rest}x")), Err(Code::TooLarge));
    // Quotes and escapes count: each of these takes six bytes.
    let (fits, too_long) = ("\u{9f}".repeat(500), "\u{9f}".repeat(512));
    let quoted = |text: &str| {
        refused_or_len(
            &schema,
            &[("a", T(text)), ("b", T("b")), ("c", T("c")), ("d", T(&text[..300]))],
        )
    };
    assert_eq!(quoted(&fits), Ok(17 + 3000 + 900 + 4 + 2));
    assert_eq!(quoted(&too_long), Ok(17 + 3072 + 900 + 4 + 2));
    assert_eq!(
        refused_or_len(
            &schema,
            &[("a", T(&too_long)), ("b", T(&too_long)), ("c", T("c")), ("d", T("d"))]
        ),
        Err(Code::TooLarge)
    );

    let items = vec![T(&long); 16];
    let small_key = [("a", T("1")), ("b", T("1")), ("c", T("1")), ("d", T("1"))];
    let with_list = |items: &[Given<'_>]| refused_or_len(&schema, &[&small_key[..], &[("l", L(items))]].concat());
    assert!(with_list(&items[..15]).is_ok());
    assert_eq!(with_list(&items), Err(Code::TooLarge));
    let names: Vec<String> = (0..128).map(|at| format!("n{at}")).collect();
    let open: Vec<_> = names.iter().map(|name| (name.as_str(), T("v"))).collect();
    let crowd = |count: usize| refused_or_len(&free(), &[&[("name", T("o"))][..], &open[..count]].concat());
    assert!(crowd(126).is_ok());
    assert_eq!(
        crowd(127),
        Err(Code::LimitExceeded),
        "with the default of `space` it is one too many"
    );
    assert_eq!(crowd(128), Err(Code::LimitExceeded));
    let big = text(VALUE_BYTES_MAX);
    let open: Vec<_> = names.iter().map(|name| (name.as_str(), T(&big))).collect();
    assert_eq!(
        refused_or_len(
            &free(),
            &[&[("name", T(&big)), ("space", T(&big))][..], &open[..62]].concat()
        ),
        Err(Code::TooLarge)
    );
}

fn refused_or_len(schema: &Schema, given: &[(&str, Given<'_>)]) -> Result<usize, Code> {
    let bytes = make(schema, given).map_err(|error| error.code())?;
    let mut key = String::new();
    schema.key_of(RecordRef::trusted(&bytes), &mut key);
    Ok(key.len())
}

#[test]
fn an_open_schema_takes_undeclared_strings() {
    let schema = free();
    let bytes = make(&schema, &[("z", T("1")), ("name", T("o")), ("colour", T("dark red"))]).unwrap();
    let record = RecordRef::trusted(&bytes);
    assert_eq!(record.get_open("colour"), Some("dark red"));
    assert_eq!(record.get_open("name"), None);
    assert_eq!(record.get(AttrId::OPEN), None);
    let open: Vec<_> = record
        .iter()
        .filter_map(|(_, name, text)| Some((name?, text)))
        .collect();
    assert_eq!(open, [("colour", "dark red"), ("z", "1")]);

    let name = ("name", T("o"));
    assert_eq!(
        refused(&schema, &[name, ("x", T("1")), ("x", T("2"))]),
        (Code::SchemaMismatch, "x".into())
    );
    assert_eq!(refused(&schema, &[name, ("x", I(1))]), (Code::TypeMismatch, "x".into()));
    assert_eq!(
        refused(&schema, &[name, ("x y", T("1"))]),
        (Code::SchemaMismatch, "x y".into())
    );
    assert_eq!(
        refused(&schema, &[name, ("to", T("1"))]),
        (Code::SchemaMismatch, "to".into())
    );
}

#[test]
fn lists_read_back_item_by_item() {
    let schema = small();
    for items in [&[][..], &[""], &["", ""], &["a/b", "to", "x", "\"/\"", "\\", "é\n"]] {
        let given: Vec<_> = items.iter().map(|item| T(item)).collect();
        let bytes = make(&schema, &[("c", I(1)), ("tags", L(&given))]).unwrap();
        let text = RecordRef::trusted(&bytes).get(AttrId(3)).unwrap();
        assert_eq!(list_items(text).collect::<Vec<_>>(), items, "{text}");
    }
    assert_eq!(
        list_items("1/\"x").collect::<Vec<_>>(),
        ["1", "\"x"],
        "never checked, but no panic"
    );
}

#[test]
fn damaged_bytes_are_refused() {
    let schema = small();
    for (bytes, code) in [
        (&b""[..], Code::SchemaMismatch),
        (b"\x00", Code::Corrupt),
        (b"\x00\x01", Code::Corrupt),
        (b"\x00\x01\x00", Code::Corrupt),
        (b"\x00\x01\x00x\x02\x01\x001\x07\x00\x00", Code::Corrupt),
        (b"\x02\x01\x001\x00\x01\x00x", Code::Corrupt),
        (b"\x00\x01\x00x\x00\x01\x00x\x02\x01\x001", Code::Corrupt),
        (b"\x00\x01\x00x\x02\x01\x001\xff\x01q\x01\x00v", Code::SchemaMismatch),
        (b"\x00\x01\x00\xe9\x02\x01\x001", Code::Corrupt),
        (b"\x02\x01\x001", Code::SchemaMismatch),
        (b"\x00\x01\x00z\x02\x01\x001", Code::SchemaMismatch),
        (b"\x00\x01\x00x\x02\x02\x0001", Code::TypeMismatch),
        (b"\x00\x01\x00x\x02\x03\x00100", Code::SchemaMismatch),
        (b"\x00\x01\x00x\x01\x03\x005.0\x02\x01\x001", Code::TypeMismatch),
    ] {
        assert_eq!(schema.check(bytes).unwrap_err().code(), code, "{bytes:?}");
    }
    for list in [
        "a/",
        "/a",
        "\"a\"",
        "to",
        "a b",
        "\"a b",
        "\"a b\"x",
        "\"\\u{0a}\"",
        "\"\\u{A0}\"",
        "\"\n\"",
    ] {
        let mut bytes = b"\x00\x01\x00x\x02\x01\x001\x03".to_vec();
        bytes.extend_from_slice(&(list.len() as u16).to_le_bytes());
        bytes.extend_from_slice(list.as_bytes());
        assert_eq!(schema.check(&bytes).unwrap_err().code(), Code::TypeMismatch, "{list}");
    }
    let (free, key) = (free(), b"\x00\x01\x00s\x01\x01\x00n");
    for (open, code) in [
        (&b"\xff\x00\x00\x00"[..], Code::Corrupt),
        (b"\xff\x01b\x00\x00\xff\x01a\x00\x00", Code::Corrupt),
        (b"\xff\x01a\x00\x00\xff\x01a\x00\x00", Code::Corrupt),
        (b"\xff\x04name\x00\x00", Code::Corrupt),
        (b"\xff\x01a\x01\x00\xff", Code::Corrupt),
        (b"\xff\x09a", Code::Corrupt),
        (b"\xff\x01a\x00\x00\x02\x01\x00x", Code::Corrupt),
    ] {
        assert_eq!(free.check(&[key, open].concat()).unwrap_err().code(), code, "{open:?}");
    }
    let error = schema.check(b"\x00\x01\x00x\x02\x01\x00?").unwrap_err();
    assert_eq!(error.position(), Some(4), "the position is that of the entry");
}

#[test]
fn a_partial_record_lacks_what_was_not_given() {
    let schema = small();
    let mut out = Vec::new();
    schema.partial_record([("see", T("+7"))], &mut out).unwrap();
    assert_eq!(out, b"\x02\x01\x007");
    assert_eq!(schema.check_partial(&out).unwrap().as_bytes(), out);
    assert_eq!(schema.check(&out).unwrap_err().subject(), "a");
    schema.partial_record([], &mut out).unwrap();
    assert!(out.is_empty() && schema.check_partial(&out).is_ok());
    let refused = schema.partial_record([("see", T("100"))], &mut out).unwrap_err();
    assert_eq!((refused.code(), refused.subject()), (Code::SchemaMismatch, "c"));
    assert_eq!(
        schema.check_partial(b"\x02\x03\x00100").unwrap_err().code(),
        Code::SchemaMismatch
    );
}

/// The same without what was proven before.
fn checked<'a>(schema: &Schema, bytes: &'a [u8]) -> Result<CheckedRecord<'a>, Error> {
    let record = schema.check(bytes)?;
    Ok(CheckedRecord {
        record,
        key_bytes: record.key_bytes(schema.key_len()),
        first_level_bytes: record.key_bytes(schema.level_ends()[0]),
    })
}

#[test]
fn what_a_checker_has_proven_changes_no_answer() {
    let valid = [
        (
            Arc::new(small()),
            vec![
                &b"\x00\x01\x00x\x02\x01\x001"[..],
                b"\x00\x01\x00x\x01\x03\x000.5\x02\x02\x0017\x03\x04\x00p/\"\"\x05\x01\x006",
                "\x00\x03\x00é \x02\x01\x001".as_bytes(),
            ],
        ),
        (
            free(),
            vec![
                &b"\x00\x01\x00s\x01\x01\x00n"[..],
                b"\x00\x01\x00s\x01\x02\x00nm\x02\x01\x00d\xff\x01a\x01\x00v\xff\x01b\x00\x00",
            ],
        ),
    ];
    for (schema, valid) in valid {
        let mut all: Vec<Vec<u8>> = Vec::new();
        for record in valid {
            all.push(record.to_vec());
            all.extend((0..record.len()).map(|end| record[..end].to_vec()));
            for at in 0..record.len() {
                for byte in [0, 1, 2, 5, b'1', b'x', 0x80, 0xe9, 0xff] {
                    let mut changed = record.to_vec();
                    changed[at] = byte;
                    all.push(changed);
                }
            }
        }
        // Steps without a common factor meet all records in different orders.
        let mut checker = RecordChecker::new(Arc::clone(&schema));
        for step in [1, 7, 11, 13, 17, 29, 37, 101] {
            for at in 0..all.len() {
                for bytes in [&all[at * step % all.len()], &all[0], &all[at]] {
                    assert_eq!(checker.check(bytes), checked(&schema, bytes), "{bytes:?}");
                }
            }
        }
    }
}

#[test]
fn a_checker_proves_long_records_and_those_after_them() {
    let schema = free();
    let mut checker = RecordChecker::new(Arc::clone(&schema));
    for length in [1, 500, 1010, 1023, 1024, 3, 1024] {
        for last in ["x", "y"] {
            let name = "n".repeat(length);
            let given = [("name", T(&name)), ("dtype", T(last)), ("other", T(&name))];
            let bytes = make(&schema, &given).unwrap();
            assert_eq!(checker.check(&bytes), checked(&schema, &bytes));
        }
    }
}
