//! What a message claims of its values, against what it has.

use junctura_grib::{Message, MessageFault};

use crate::made;

/// Octets of a section at their places, counted from 1 as the manual does; the section's length and number are not among them.
fn octets(length: usize, set: &[(usize, &[u8])]) -> Vec<u8> {
    let mut body = vec![0; length - 5];
    for (at, bytes) in set {
        body[at - 6..at - 6 + bytes.len()].copy_from_slice(bytes);
    }
    body
}

/// Section 3 with points in no rows.
fn grid(points: u32) -> Vec<u8> {
    octets(72, &[(7, &points.to_be_bytes()), (13, &101_u16.to_be_bytes())])[1..].to_vec()
}

/// Section 5 of a template: values, bits of each, and what else is set.
fn packing(values: u32, template: u16, bits: u8, more: &[(usize, &[u8])]) -> Vec<u8> {
    let (values, template) = (values.to_be_bytes(), template.to_be_bytes());
    let mut set: Vec<(usize, &[u8])> = vec![(6, &values), (10, &template)];
    let bits = [bits];
    set.push((20, &bits));
    set.extend(more);
    octets(60, &set)
}

/// Points, values, and whether these are in the message for certain.
type Counts = (u64, u64, bool);

fn packed(message: &[u8]) -> Result<Counts, MessageFault> {
    let found = Message::new(message).and_then(|message| message.packed());
    found
        .map(|packed| (packed.points, packed.values, packed.is_proven))
        .map_err(|error| error.fault)
}

#[expect(clippy::unnecessary_wraps, reason = "it is compared with what may be refused")]
fn proven(points: u64, values: u64) -> Result<Counts, MessageFault> {
    Ok((points, values, true))
}

fn short(section: u8, needed: u64, present: u64) -> Result<Counts, MessageFault> {
    Err(MessageFault::Values {
        section,
        needed,
        present,
    })
}

#[test]
fn simple_packing_needs_its_bits() {
    for template in [0, 61] {
        let of = |bytes| made::field(&grid(6), &packing(6, template, 12, &[]), &[255], &vec![0; bytes]);
        assert_eq!(packed(&of(9)), proven(6, 6));
        assert_eq!(packed(&of(8)), short(7, 9, 8));
    }
    let constant = made::field(&grid(u32::MAX), &packing(u32::MAX, 0, 0, &[]), &[255], &[]);
    assert_eq!(packed(&constant), proven(u64::from(u32::MAX), u64::from(u32::MAX)));
    let wide = made::field(&grid(6), &packing(6, 0, 65, &[]), &[255], &[0; 100]);
    assert_eq!(packed(&wide), Err(MessageFault::Bits(65)));
}

#[test]
fn a_bitmap_has_all_points_and_as_many_ones_as_values() {
    let of = |values, bitmap: &[u8]| made::field(&grid(10), &packing(values, 0, 8, &[]), bitmap, &[0; 10]);
    assert_eq!(packed(&of(5, &[0, 0b1010_1010, 0b0111_1111])), proven(10, 5));
    assert_eq!(packed(&of(5, &[0, 0b1010_1010])), short(6, 2, 1));
    let fault = MessageFault::Count { values: 6, present: 5 };
    assert_eq!(packed(&of(6, &[0, 0b1010_1010, 0b0111_1111])), Err(fault));
    assert_eq!(packed(&of(5, &[254])), Err(MessageFault::Bitmap(254)));
}

#[test]
fn rows_of_different_lengths_are_summed() {
    let of = |points: u32, rows: u32, lengths: &[u16]| {
        let mut grid = octets(
            72,
            &[
                (7, &points.to_be_bytes()),
                (11, &[2]),
                (13, &40_u16.to_be_bytes()),
                (35, &rows.to_be_bytes()),
                (68, &1_u32.to_be_bytes()),
            ],
        );
        grid.extend(lengths.iter().flat_map(|length| length.to_be_bytes()));
        made::field(&grid[1..], &packing(9, 0, 8, &[]), &[255], &[0; 9])
    };
    assert_eq!(packed(&of(9, 2, &[4, 5])), proven(9, 9));
    assert_eq!(packed(&of(9, 2, &[4, 6])), Ok((9, 9, false)), "an area of a grid");
    assert_eq!(
        packed(&of(9, 2, &[4, 4])),
        Err(MessageFault::Points { points: 9, present: 8 })
    );
    assert_eq!(packed(&of(9, u32::MAX, &[4, 5])), short(3, 8_589_934_590, 4));
}

#[test]
fn rows_and_columns_make_the_points() {
    let of = |columns: u32, rows: u32, template: u16| {
        let grid = octets(
            96,
            &[
                (7, &9_u32.to_be_bytes()),
                (13, &template.to_be_bytes()),
                (31, &columns.to_be_bytes()),
                (35, &rows.to_be_bytes()),
                (68, &1_u32.to_be_bytes()),
            ],
        );
        packed(&made::field(&grid[1..], &packing(9, 0, 8, &[]), &[255], &[0; 9]))
    };
    for template in [0, 1, 10, 20, 30, 40, 90, 140] {
        assert_eq!(of(3, 3, template), proven(9, 9));
        assert_eq!(of(u32::MAX, 1, template), proven(9, 9), "not stated");
        assert_eq!(of(3, 4, template), Err(MessageFault::Points { points: 9, present: 12 }));
        assert!(matches!(
            of(u32::MAX - 1, u32::MAX - 1, template),
            Err(MessageFault::Points { .. })
        ));
    }
    assert_eq!(of(3, 4, 101), proven(9, 9), "no rows");
}

#[test]
fn parallels_of_a_gaussian_grid_are_limited() {
    let of = |parallels: u32| {
        let set: [(usize, &[u8]); 3] = [
            (7, &9_u32.to_be_bytes()),
            (13, &40_u16.to_be_bytes()),
            (68, &parallels.to_be_bytes()),
        ];
        let mut grid = octets(72, &set);
        grid[25..33].copy_from_slice(&[0, 0, 0, 3, 0, 0, 0, 3]);
        packed(&made::field(&grid[1..], &packing(9, 0, 8, &[]), &[255], &[0; 9]))
    };
    assert_eq!(of(8000), proven(9, 9));
    for parallels in [0, 8001] {
        assert_eq!(of(parallels), Err(MessageFault::Parallels(parallels.into())));
    }
    let mut message = made::edition1();
    let section2 = 8 + 52;
    message[section2 + 5] = 4;
    message[section2 + 25..section2 + 27].copy_from_slice(&8001_u16.to_be_bytes());
    assert_eq!(packed(&message), Err(MessageFault::Parallels(8001)));
}

/// Two groups: references of 8 bits; widths 3 + 4 bits, lengths 2 + 8 bits; the second group has 4 values.
fn complex(values: u32, template: u16) -> Vec<u8> {
    let more: &[(usize, &[u8])] = &[
        (32, &2_u32.to_be_bytes()),
        (36, &[3, 4]),
        (38, &2_u32.to_be_bytes()),
        (42, &[1]),
        (43, &4_u32.to_be_bytes()),
        (47, &[8]),
        (48, &[2, 2]),
    ];
    packing(values, template, 8, more)
}

#[test]
fn groups_are_summed() {
    // References; widths 3 and 5; lengths 5 and (by section 5) 4; then 5 x 3 + 4 x 5 bits.
    let data = [&[7, 9, 0x02, 3, 0][..], &[0; 5]].concat();
    let of = |values, data: &[u8]| made::field(&grid(9), &complex(values, 2), &[255], data);
    assert_eq!(packed(&of(9, &data)), proven(9, 9));
    assert_eq!(packed(&of(9, &data[..9])), short(7, 5, 4));
    assert_eq!(
        packed(&of(8, &data)),
        Err(MessageFault::Count { values: 8, present: 9 })
    );
    assert_eq!(packed(&of(9, &data[..3])), short(7, 5, 3));
    // Differences of second order begin with three numbers of two octets.
    let differences = [&[0; 6][..], &data].concat();
    let of = |data: &[u8]| made::field(&grid(9), &complex(9, 3), &[255], data);
    assert_eq!(packed(&of(&differences)), proven(9, 9));
    assert_eq!(packed(&of(&differences[..15])), short(7, 5, 4));
}

#[test]
fn numbers_as_they_are_need_their_octets() {
    for (precision, octets) in [(1, 4), (2, 8), (3, 16)] {
        let of = |bytes| {
            made::field(
                &grid(3),
                &packing(3, 4, 0, &[(12, &[precision])]),
                &[255],
                &vec![0; bytes],
            )
        };
        assert_eq!(packed(&of(3 * octets)), proven(3, 3));
        assert_eq!(
            packed(&of(3 * octets - 1)),
            short(7, 3 * octets as u64, 3 * octets as u64 - 1)
        );
    }
    let none = made::field(&grid(3), &packing(3, 4, 0, &[(12, &[9])]), &[255], &[0; 99]);
    assert_eq!(packed(&none), Err(MessageFault::Bits(9)));
}

#[test]
fn coefficients_are_counted_by_their_truncation() {
    let truncation = |j: u32| {
        let j = j.to_be_bytes();
        octets(72, &[(7, &[0, 0, 0, 0]), (13, &[0, 50]), (15, &j), (19, &j), (23, &j)])[1..].to_vec()
    };
    // T2: 12 numbers; the inner T1 has 6 of 4 octets, the rest 8 bits each.
    let inner: &[(usize, &[u8])] = &[(25, &[0, 1, 0, 1, 0, 1]), (31, &6_u32.to_be_bytes()), (35, &[1])];
    let of = |values, bytes| made::field(&truncation(2), &packing(values, 51, 8, inner), &[255], &vec![0; bytes]);
    assert_eq!(packed(&of(12, 30)), proven(0, 12));
    assert_eq!(packed(&of(12, 29)), short(7, 30, 29));
    assert_eq!(
        packed(&of(20, 100)),
        Err(MessageFault::Count {
            values: 20,
            present: 12
        })
    );
    let simple = |bytes| made::field(&truncation(2), &packing(12, 50, 8, &[]), &[255], &vec![0; bytes]);
    assert_eq!(packed(&simple(11)), proven(0, 12));
    assert_eq!(packed(&simple(10)), short(7, 11, 10));
}

#[test]
fn ccsds_streams_are_counted() {
    // Blocks of 8, intervals of 4 blocks: an option of four bits, no pairs, and how many zero blocks.
    let of = |values, data: &[u8]| {
        let layout: &[(usize, &[u8])] = &[(22, &[0]), (23, &[8]), (24, &4_u16.to_be_bytes())];
        made::field(&grid(values), &packing(values, 42, 12, layout), &[255], data)
    };
    let two_intervals = [0b0000_0000, 0b0100_0000, 0b0001_0000];
    assert_eq!(packed(&of(64, &two_intervals)), proven(64, 64));
    let fault = |values, present| Err(MessageFault::Count { values, present });
    assert_eq!(packed(&of(65, &two_intervals)), fault(65, 64));
    assert_eq!(packed(&of(u32::MAX, &[])), fault(u64::from(u32::MAX), 0));
}

#[test]
fn run_lengths_are_summed() {
    // Levels up to 2 in symbols of 4 bits: 1 once, 2 five times (once, and 4 more), 0 once.
    let of = |values| {
        made::field(
            &grid(values),
            &packing(values, 200, 0, &[(12, &[4, 0, 2])]),
            &[255],
            &[0x12, 0x70],
        )
    };
    assert_eq!(packed(&of(7)), proven(7, 7));
    assert_eq!(packed(&of(8)), Err(MessageFault::Count { values: 8, present: 7 }));
}

#[test]
fn sections_shorter_than_their_templates_prove_nothing() {
    let of = |grid_octets: usize, product: &[u8], packing_octets: usize| {
        let (grid, packing) = (grid(6), packing(6, 0, 8, &[]));
        packed(&made::field_of(
            &grid[..grid_octets - 6],
            product,
            &packing[..packing_octets - 5],
            &[255],
            &[0; 6],
        ))
        .unwrap()
        .2
    };
    let whole = &made::product(0, 100, 500, 6, &[])[5..];
    assert!(of(72, whole, 60) && of(35, whole, 21));
    assert!(!of(34, whole, 60) && !of(72, whole, 20));
    assert!(!of(72, &whole[..whole.len() - 1], 60));
    // One value of vertical coordinates is announced.
    let coordinates = [&[0, 1], &whole[2..]].concat();
    assert!(!of(72, &coordinates, 60) && of(72, &[&coordinates[..], &[0; 4]].concat(), 60));
    // Two time ranges are announced.
    let ranges = &made::product(8, 100, 500, 6, &[&[0; 7][..], &[2], &[0; 16]].concat())[5..];
    assert!(!of(72, ranges, 60) && of(72, &[ranges, &[0; 12]].concat(), 60));
}

#[test]
fn regular_grids_and_coefficients_have_simple_places() {
    let of = |template: u8, octets_of_lengths: u8, scanning: u8| {
        let set: [(usize, &[u8]); 7] = [
            (7, &[0, 0, 0, 9]),
            (11, &[octets_of_lengths]),
            (13, &[0, template]),
            (31, &[0, 0, 0, 3]),
            (35, &[0, 0, 0, 3]),
            (68, &[0, 0, 0, 1]),
            (72, &[scanning]),
        ];
        let mut grid = octets(72, &set);
        grid.extend([3; 3].repeat(octets_of_lengths.into()));
        let message = made::field(&grid[1..], &packing(9, 0, 8, &[]), &[255], &[0; 9]);
        Message::new(&message).unwrap().packed().unwrap().is_regular
    };
    assert!(of(0, 0, 0) && of(40, 0, 0x60) && of(50, 0, 0));
    assert!(!of(0, 0, 0x10), "rows in turns");
    assert!(!of(40, 1, 0), "rows of different lengths");
    assert!(!of(20, 0, 0) && !of(101, 0, 0));
}

#[test]
fn what_only_a_decoder_knows_is_said() {
    for template in [1, 40, 41, 50_001, 65_535] {
        let message = made::field(&grid(6), &packing(6, template, 8, &[]), &[255], &[]);
        assert!(!packed(&message).unwrap().2, "{template}");
    }
}

#[test]
fn edition_1_is_measured_by_its_grid() {
    let whole = made::edition1();
    assert_eq!(packed(&whole), proven(6, 6));
    // 3 x 2 points of 16 bits, and two bytes of data.
    let mut claims = whole.clone();
    let data = whole.len() - 4 - 12;
    claims[data + 10] = 16;
    assert_eq!(packed(&claims), short(4, 12, 1));
    // Second-order packing has many forms.
    claims[data + 3] |= 0x40;
    assert!(!packed(&claims).unwrap().2);
}

#[test]
fn edition_1_is_proven_only_where_decoders_count_the_same() {
    let whole = made::edition1();
    let is_proven = |change: &dyn Fn(&mut Vec<u8>)| {
        let mut message = whole.clone();
        change(&mut message);
        packed(&message).unwrap().2
    };
    let (grid, data) = (8 + 52, 8 + 52 + 32);
    // The length of section 4 is its own, or that of a large message.
    for length in [0, 1, 11, 13, 255] {
        assert!(!is_proven(&|message| message[data + 2] = length), "{length}");
    }
    assert_eq!(packed(&made::edition1_large(9_000_000)), proven(6, 6));
    // Without bits, unused ones are in its last octet; 8 are all that there are.
    assert!(is_proven(&|message| message[data + 3] = 8));
    assert!(!is_proven(&|message| message[data + 3] = 9));
    // A binary scale factor of -32767 stands for no packing.
    assert!(is_proven(&|message| message[data + 4..data + 6].fill(0x7f)));
    assert!(!is_proven(&|message| message[data + 4..data + 6].fill(0xff)));
    // Octets behind the grid are taken for lengths of rows.
    let grown = |more: usize| {
        move |message: &mut Vec<u8>| {
            message.splice(data..data, vec![1; more]);
            message[grid + 2] += more as u8;
            message[6] += more as u8;
        }
    };
    assert!(is_proven(&grown(3)) && !is_proven(&grown(4)));
    let reduced = |rows: [u8; 2], place: u8| {
        move |message: &mut Vec<u8>| {
            grown(4)(message);
            message[grid + 4..grid + 8].copy_from_slice(&[place, 0, 255, 255]);
            message[data..data + 4].copy_from_slice(&[0, rows[0], 0, rows[1]]);
        }
    };
    assert!(is_proven(&reduced([2, 4], 33)));
    assert!(!is_proven(&reduced([1, 5], 33)) && !is_proven(&reduced([5, 0], 33)));
    assert!(!is_proven(&reduced([2, 4], 31)));
}
