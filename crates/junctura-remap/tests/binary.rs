//! Weights as bytes: what was written is read, and what was not written is refused.

use junctura_model::Code;
use junctura_remap::{GridCells, HEADER_BYTES, WeightLink, Weights};
use proptest::prelude::*;

use crate::random::{Case, cases};

fn cells(points: u64, (has_areas, has_fractions, has_mask): (bool, bool, bool)) -> GridCells {
    let numbers = |is_there: bool, step: f64| -> Vec<f64> {
        (0..if is_there { points } else { 0 })
            .map(|at| at as f64 * step)
            .collect()
    };
    GridCells {
        areas: numbers(has_areas, 0.5),
        fractions: numbers(has_fractions, 0.01),
        mask: (0..if has_mask { points } else { 0 }).map(|at| at % 3 != 1).collect(),
    }
}

fn weights() -> impl Strategy<Value = Weights> {
    type Lists = (bool, bool, bool);
    let made = |((sources, targets, links), lists, by_fraction): (Case, [Lists; 2], bool)| {
        let weights = Weights::new(&links, &[sources, 1], &[targets]).unwrap();
        let [source, target] = [cells(sources, lists[0]), cells(targets, lists[1])];
        weights.with_cells(source, target).unwrap().by_fraction(by_fraction)
    };
    (cases(), any::<[Lists; 2]>(), any::<bool>()).prop_map(made)
}

fn small() -> Weights {
    let links = [(0, 1, 0.25), (1, 0, 0.5), (1, 2, 0.5)];
    let links = links.map(|(target, source, weight)| WeightLink { target, source, weight });
    Weights::new(&links, &[3], &[2])
        .unwrap()
        .with_cells(cells(3, (true, false, true)), cells(2, (false, false, false)))
        .unwrap()
}

proptest! {
    #[test]
    fn what_is_written_is_read(weights in weights()) {
        let bytes = weights.encode();
        prop_assert_eq!(Weights::encoded_length(&bytes).unwrap(), bytes.len() as u64);
        let read = Weights::decode(&bytes).unwrap();
        prop_assert_eq!(&read, &weights);
        prop_assert_eq!(read.encode(), bytes);
    }

    #[test]
    fn a_changed_byte_is_refused(weights in weights(), at in any::<prop::sample::Index>(), change in 1_u8..) {
        let mut bytes = weights.encode();
        let at = at.index(bytes.len());
        bytes[at] ^= change;
        prop_assert!(Weights::decode(&bytes).is_err(), "byte {}", at);
    }

    #[test]
    fn bytes_that_nothing_wrote_are_refused(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        prop_assert!(Weights::decode(&bytes).is_err());
    }
}

#[test]
fn a_part_of_a_file_is_refused() {
    let bytes = small().encode();
    for length in 0..bytes.len() {
        assert_eq!(
            Weights::decode(&bytes[..length]).unwrap_err().code(),
            Code::Corrupt,
            "{length}"
        );
    }
    let longer = [bytes.as_slice(), &[0; 8]].concat();
    assert_eq!(Weights::decode(&longer).unwrap_err().code(), Code::Corrupt);
}

#[test]
fn the_bytes_are_those_that_the_format_states() {
    let bytes = small().encode();
    let mut expected = b"JCTWGHTS".to_vec();
    expected.extend(1_u32.to_le_bytes());
    expected.extend(0b1010_u32.to_le_bytes());
    expected.extend((bytes.len() as u64).to_le_bytes());
    expected.extend(&bytes[24..32]);
    // The link of source 1 is of a cell that the mask leaves out.
    expected.extend(2_u64.to_le_bytes());
    expected.extend([1_u32, 1].map(u32::to_le_bytes).concat());
    expected.extend([3_u64, 0, 0, 0, 0, 0, 0, 0].map(u64::to_le_bytes).concat());
    expected.extend([2_u64, 0, 0, 0, 0, 0, 0, 0].map(u64::to_le_bytes).concat());
    assert_eq!(expected.len(), HEADER_BYTES);
    expected.extend([0_u32, 2].map(u32::to_le_bytes).concat());
    expected.extend([0_u32, 2].map(u32::to_le_bytes).concat());
    expected.extend([0.5_f64, 0.5].map(f64::to_le_bytes).concat());
    expected.extend([0.0_f64, 0.5, 1.0].map(f64::to_le_bytes).concat());
    expected.extend([1, 0, 1, 0, 0, 0, 0, 0]);
    assert_eq!(bytes, expected);
}

#[test]
fn a_header_that_states_too_much_is_refused_without_the_rest() {
    let with = |at: usize, number: u64| {
        let mut header = small().encode();
        header[at..at + 8].copy_from_slice(&number.to_le_bytes());
        Weights::encoded_length(&header[..HEADER_BYTES]).unwrap_err().code()
    };
    assert_eq!(with(32, 1 << 40), Code::LimitExceeded, "links");
    assert_eq!(with(48, 1 << 40), Code::LimitExceeded, "points");
    assert_eq!(with(16, 1 << 40), Code::Corrupt, "length");
    assert_eq!(with(40, 9), Code::Corrupt, "dimensions");
    assert_eq!(with(8, 2), Code::Unsupported, "version");
}
