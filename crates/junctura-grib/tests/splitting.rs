//! Finding messages in bytes: whole, padded, cut, damaged, several fields, very long.

use crate::made;
use junctura_grib::{GribError, Message, MessageFault, Messages};

fn found(bytes: &[u8]) -> Vec<Result<(u64, usize), GribError>> {
    Messages::new(bytes)
        .map(|found| found.map(|message| (message.offset(), message.bytes().len())))
        .collect()
}

fn fault(bytes: &[u8]) -> GribError {
    Message::new(bytes).expect_err("a fault")
}

#[test]
fn nothing_gives_nothing() {
    assert!(found(b"").is_empty());
    assert!(found(b"no message here, GRI").is_empty());
}

#[test]
fn messages_come_one_after_the_other() {
    let messages = made::some();
    let bytes = messages.concat();
    let mut offset = 0;
    for (at, (found, made)) in Messages::new(&bytes).zip(&messages).enumerate() {
        let message = found.unwrap();
        assert_eq!((message.number(), message.offset()), (at as u64 + 1, offset));
        assert_eq!(message.bytes(), made);
        offset += made.len() as u64;
    }
    assert_eq!(Messages::new(&bytes).count(), messages.len());
}

#[test]
fn what_stands_between_messages_is_passed_over() {
    let one = made::edition1();
    let bytes = [b"\r\n0123 ZCZC\r\n", &one[..], b"\0\0\0", &one, b"NNNN"].concat();
    assert_eq!(
        found(&bytes),
        [Ok((13, one.len())), Ok((16 + one.len() as u64, one.len()))]
    );
}

#[test]
fn a_cut_message_says_what_is_missing() {
    let one = made::edition1();
    let needed = one.len() as u64;
    for present in [8, 40, one.len() - 1] {
        let error = fault(&one[..present]);
        assert!(matches!(error.fault, MessageFault::Truncated { .. }), "{error}");
    }
    let cut = one.len() - 1;
    assert_eq!(
        fault(&one[..cut]).fault,
        MessageFault::Truncated {
            needed,
            present: cut as u64
        }
    );
    let two = made::edition2(false, &[made::product(0, 100, 50_000, 0, &[])]);
    assert_eq!(
        fault(&two[..60]).fault,
        MessageFault::Truncated {
            needed: two.len() as u64,
            present: 60
        }
    );
}

#[test]
fn an_error_names_message_and_byte_and_the_next_sound_message_follows() {
    let good = made::edition1();
    let mut bad = good.clone();
    let last = bad.len() - 1;
    bad[last] = b'8';
    let bytes = [&good[..], &bad, &good].concat();
    let length = good.len() as u64;
    let error = GribError {
        message: 2,
        start: length,
        offset: 2 * length - 4,
        fault: MessageFault::EndMark,
    };
    assert_eq!(
        found(&bytes),
        [Ok((0, good.len())), Err(error), Ok((2 * length, good.len()))]
    );
    let text = error.to_string();
    assert!(
        text.starts_with("GRIB message 2 at byte 108: ") && text.ends_with("(byte 212)"),
        "{text}"
    );
}

#[test]
fn a_false_start_inside_a_damaged_message_is_not_reported_again() {
    let good = made::edition1();
    let mut bad = good.clone();
    bad[7] = 9;
    bad[60..64].copy_from_slice(b"GRIB");
    let bytes = [&bad[..], &good].concat();
    let error = GribError {
        message: 1,
        start: 0,
        offset: 7,
        fault: MessageFault::Edition(9),
    };
    assert_eq!(found(&bytes), [Err(error), Ok((bad.len() as u64, good.len()))]);
}

#[test]
fn lengths_that_cannot_be_are_named() {
    let mut short = made::edition1();
    short[4..7].copy_from_slice(&[0, 0, 20]);
    assert_eq!(fault(&short).fault, MessageFault::Length(20));
    let mut long = made::edition2(false, &[made::product(0, 100, 50_000, 0, &[])]);
    long[8..16].copy_from_slice(&u64::MAX.to_be_bytes());
    assert!(matches!(
        fault(&long).fault,
        MessageFault::Truncated { needed: u64::MAX, .. }
    ));
    let mut section = made::edition1();
    section[8..11].copy_from_slice(&[0, 0, 27]);
    assert_eq!(
        (fault(&section).fault, fault(&section).offset),
        (MessageFault::Section { section: 1, length: 27 }, 8)
    );
    let mut section = made::edition2(false, &[made::product(0, 100, 50_000, 0, &[])]);
    section[16..20].copy_from_slice(&u32::MAX.to_be_bytes());
    let length = u64::from(u32::MAX);
    assert_eq!(fault(&section).fault, MessageFault::Section { section: 1, length });
}

#[test]
fn sections_stand_in_order() {
    let mut message = made::edition2(false, &[made::product(0, 100, 50_000, 0, &[])]);
    message[16 + 21 + 4] = 5;
    assert_eq!(fault(&message).fault, MessageFault::Order { section: 5 });
    let without_data = made::edition2(false, &[]);
    assert_eq!(fault(&without_data).fault, MessageFault::Order { section: 4 });
}

#[test]
fn a_section_too_short_for_keys_is_an_error_of_the_keys() {
    let message = made::edition2(false, &[vec![0, 0, 0, 7, 4, 0, 0]]);
    let error = Message::new(&message).unwrap().keys().unwrap_err();
    assert_eq!(error.fault, MessageFault::Section { section: 4, length: 7 });
}

#[test]
fn fields_of_one_message_are_counted() {
    let field = made::product(0, 100, 50_000, 0, &[]);
    for fields in [1, 2, 5] {
        let message = made::edition2(false, &vec![field.clone(); fields]);
        assert_eq!(Message::new(&message).unwrap().fields(), fields as u32);
    }
    let many = made::edition2(false, &vec![field; 6000]);
    assert_eq!(fault(&many).fault, MessageFault::TooManySections);
}

#[test]
fn long_messages_of_edition_1_have_their_length_in_units() {
    for data in [9 << 20, (9 << 20) + 1, (9 << 20) + 119] {
        let large = made::edition1_large(data);
        let bytes = [&large[..], &made::edition1()].concat();
        let found = found(&bytes);
        assert_eq!(found, [Ok((0, large.len())), Ok((large.len() as u64, 108))]);
    }
}

#[test]
fn each_field_becomes_a_message_with_the_same_keys_and_values() {
    let levels = [850_u32, 700, 500];
    let products: Vec<_> = levels
        .iter()
        .map(|level| made::product(0, 100, level * 100, 6, &[]))
        .collect();
    let several = made::edition2(true, &products);
    let message = Message::new(&several).unwrap();
    assert_eq!(message.fields(), 3);
    let split: Vec<_> = message.split().unwrap().collect();
    for (level, (bytes, product)) in levels.iter().zip(split.iter().zip(&products)) {
        assert_eq!(bytes, &made::edition2(true, std::slice::from_ref(product)));
        let field = Message::new(bytes).unwrap();
        assert_eq!((field.bytes().len(), field.fields()), (bytes.len(), 1));
        assert_eq!(
            field.keys().unwrap().get("levelist").unwrap().to_string(),
            level.to_string()
        );
    }
    assert_eq!(split.len(), 3);
}

#[test]
fn short_fields_over_a_long_section_are_not_split() {
    let products = vec![made::product(0, 100, 50_000, 6, &[]); 200];
    let several = made::edition2(true, &products);
    let message = Message::new(&several).unwrap();
    assert_eq!(message.split().unwrap().count(), 200);
    // A grid section of 64 KiB, in front of 200 fields.
    let at = message.sections().find(|(number, _)| *number == 3).unwrap().1;
    let mut long = several.clone();
    long.splice(at + 72..at + 72, vec![0; 64 << 10]);
    long[at..at + 4].copy_from_slice(&(72_u32 + (64 << 10)).to_be_bytes());
    let length = long.len() as u64;
    long[8..16].copy_from_slice(&length.to_be_bytes());
    let error = Message::new(&long).unwrap().split().unwrap_err();
    assert!(matches!(error.fault, MessageFault::Split { .. }), "{error}");
}
