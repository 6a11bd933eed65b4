//! Keys: printed, hashed, read by hand.

use super::*;
use crate::error::Code;
use crate::value::Given::Text as T;

fn key_of(schema: &Schema, record: &Record) -> String {
    let mut out = String::new();
    schema.key_of(record.as_ref(), &mut out);
    out
}

#[test]
fn empty_levels_print_as_braces() {
    let free = Schema::builtin("free").unwrap();
    let mut bytes = Vec::new();
    free.record([("name", T("a b"))], &mut bytes).unwrap();
    let record = Record::trusted(bytes);
    assert_eq!(key_of(&free, &record), "{space=default}{}{name=\"a b\"}");
    let mut dataset = "in ".to_owned();
    free.dataset_of(record.as_ref(), &mut dataset);
    assert_eq!(dataset, "in {space=default}");
    let rowcol = Schema::builtin("rowcol").unwrap();
    assert_eq!(
        key_of(&rowcol, &rowcol.parse_key("{}{row=1}{col=2}").unwrap()),
        "{}{row=1}{column=2}"
    );
}

#[test]
fn a_key_written_by_hand_reads_as_the_canonical_one() {
    let mars = Schema::builtin("mars").unwrap();
    let canonical = "{class=od,expver=0001,stream=enfo,date=20261120,time=1200}{type=pf,levtype=pl}{step=6,number=12,levelist=500,param=t}";
    let by_hand = "{ time = 12, date=2026-11-20, class=\"od\", stream=enfo }{levtype=pl,type=pf} {level=\"500.0\" ,param=t,step=6h,member=+12} ";
    assert_eq!(key_of(&mars, &mars.parse_key(by_hand).unwrap()), canonical);
    assert_eq!(key_of(&mars, &mars.parse_key(canonical).unwrap()), canonical);
}

#[test]
fn what_is_no_key_is_pointed_at() {
    let free = Schema::builtin("free").unwrap();
    for (text, code, at) in [
        ("", Code::InvalidArgument, Some(0)),
        ("{", Code::InvalidArgument, Some(1)),
        ("{}{}{name=a", Code::InvalidArgument, Some(11)),
        ("{}{}{name=a}x", Code::InvalidArgument, Some(12)),
        ("{}{}{name}", Code::InvalidArgument, Some(9)),
        ("{}{}{name=}", Code::InvalidArgument, Some(10)),
        ("{}{}{name=é}", Code::InvalidArgument, Some(10)),
        ("{}{}{name=\"a}", Code::InvalidArgument, Some(13)),
        ("{}{}{name=\"\\x\"}", Code::InvalidArgument, Some(11)),
        ("{}{}{name=a,}", Code::InvalidArgument, Some(12)),
        ("{name=a}{}{}", Code::SchemaMismatch, Some(1)),
        ("{}{}{name=a,dtype=f4}", Code::SchemaMismatch, Some(12)),
        ("{}{}{name=a,colour=red}", Code::SchemaMismatch, Some(12)),
        ("{}{}{name=a,name=b}", Code::SchemaMismatch, None),
        ("{}{}{}", Code::SchemaMismatch, None),
    ] {
        let error = free.parse_key(text).unwrap_err();
        assert_eq!((error.code(), error.position()), (code, at), "{text}: {error}");
    }
    assert_eq!(free.parse_key(&" ".repeat(40_000)).unwrap_err().code(), Code::TooLarge);
    let crowd = format!("{{}}{{}}{{{}}}", vec!["name=a"; 200].join(","));
    assert_eq!(free.parse_key(&crowd).unwrap_err().code(), Code::LimitExceeded);
}

#[test]
fn the_hash_knows_schema_and_generation() {
    let of = |name: &str, generation: u32, text: &str| {
        let yaml = format!(
            "name: {name}\ngeneration: {generation}\nkey: {{dataset: [a]}}\nattributes: {{a: {{type: string}}}}"
        );
        Schema::parse_yaml(&yaml).unwrap().key_hash(text)
    };
    let hash = of("n", 1, "{a=x}{}{}");
    assert_eq!(hash, of("n", 1, "{a=x}{}{}"));
    for other in [
        of("m", 1, "{a=x}{}{}"),
        of("n", 2, "{a=x}{}{}"),
        of("n", 1, "{a=y}{}{}"),
    ] {
        assert_ne!(hash, other);
    }
    // A text that exceeds the short buffer has the same hash.
    for len in [490, 500, 501, 502, 503, 600, 4000] {
        let text = "k".repeat(len);
        let whole = format!("xxh3-128/1\0n\x001\0{text}");
        assert_eq!(of("n", 1, &text), KeyHash(xxh3_128(whole.as_bytes())));
    }
    assert_eq!(KeyHash(10).to_string(), "0000000000000000000000000000000a");
}
