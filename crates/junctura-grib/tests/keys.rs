//! What hand-made headers say. The wide comparison is with ecCodes, in tests/grib.

use crate::made;
use junctura_grib::{Message, MessageKeys};

fn keys(message: &[u8]) -> MessageKeys {
    Message::new(message)
        .and_then(|message| message.keys())
        .expect("a sound message")
}

fn text(keys: &MessageKeys, name: &str) -> String {
    keys.get(name).map(ToString::to_string).unwrap_or_default()
}

fn mars(keys: &MessageKeys) -> String {
    let mut pairs: Vec<_> = keys.mars().map(|(name, value)| format!("{name}={value}")).collect();
    pairs.sort();
    pairs.join(",")
}

#[test]
fn a_member_of_edition_1() {
    let keys = keys(&made::edition1());
    assert_eq!(
        mars(&keys),
        "class=od,date=20170102,domain=g,expver=0001,levelist=500,levtype=pl,number=7,param=130.128,step=24,stream=enfo,\
         time=1200,type=pf"
    );
    let named: Vec<_> = keys
        .attributes()
        .filter(|(name, _)| name.starts_with("param"))
        .map(|(_, v)| v.to_string())
        .collect();
    assert_eq!(named, ["t", "130"]);
    let expected = [
        ("edition", "1"),
        ("centre", "ecmf"),
        ("units", "K"),
        ("typeOfLevel", "isobaricInhPa"),
        ("gridType", "regular_ll"),
        ("packingType", "grid_simple"),
        ("Ni", "3"),
        ("Nj", "2"),
        ("numberOfDataPoints", "6"),
        ("messageLength", "108"),
        ("fields", "1"),
    ];
    for (name, value) in expected {
        assert_eq!(text(&keys, name), value, "{name}");
    }
}

#[test]
fn a_member_of_edition_2() {
    let keys = keys(&made::edition2(true, &[made::product(1, 105, 137, 6, &[255, 3, 50])]));
    assert_eq!(
        mars(&keys),
        "class=od,date=20170102,domain=g,expver=0001,levelist=137,levtype=ml,number=3,param=130,step=6,stream=enfo,\
         time=0630,type=pf"
    );
}

#[test]
fn an_accumulation_ends_where_its_range_does() {
    let keys = keys(&made::edition2(
        true,
        &[made::product(8, 1, 0, 6, &made::accumulated(24))],
    ));
    assert_eq!(
        (text(&keys, "step"), text(&keys, "stepType")),
        ("30".to_owned(), "accum".to_owned())
    );
    assert_eq!(text(&keys, "levtype"), "sfc");
    assert!(keys.get("levelist").is_none());
}

#[test]
fn pressures_below_one_hectopascal_keep_their_fraction() {
    for (pascal, level) in [(50_000, "500"), (150, "1"), (50, "0.5"), (1, "0.01")] {
        let keys = keys(&made::edition2(false, &[made::product(0, 100, pascal, 0, &[])]));
        assert_eq!(text(&keys, "levelist"), level);
    }
}

#[test]
fn a_message_of_several_fields_has_the_keys_of_its_first() {
    let members = [1, 2].map(|number| made::product(1, 105, 137, 6, &[255, number, 50]));
    let keys = keys(&made::edition2(true, &members));
    assert_eq!(
        (text(&keys, "number"), text(&keys, "fields")),
        ("1".to_owned(), "2".to_owned())
    );
}

#[test]
fn steps_of_edition_1_that_are_no_whole_hours_have_a_unit() {
    let mut message = made::edition1();
    message[8 + 17] = 0;
    message[8 + 18] = 90;
    assert_eq!(text(&keys(&message), "step"), "90m");
}

#[test]
fn a_missing_value_is_no_attribute() {
    let mut message = made::edition1();
    message[8 + 10..8 + 12].copy_from_slice(&[255, 255]);
    let keys = keys(&message);
    assert_eq!(text(&keys, "levelist"), "MISSING");
    assert!(!keys.attributes().any(|(name, _)| name == "levelist"));
}
