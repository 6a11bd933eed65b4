//! Arrays with labels after their bytes, as the Python package offers those of xarray.
//!
//! ```text
//!   array | coordinates, labels | bytes of the array: u64 | bytes of the labels: u64 | "junctura-labels1"
//! ```

const MAGIC: &[u8; 16] = b"junctura-labels1";

/// Returns the bytes of the array: the whole payload if it has no labels.
pub(super) fn without(payload: &[u8]) -> &[u8] {
    bytes_of_array(payload).map_or(payload, |length| &payload[..length])
}

fn bytes_of_array(payload: &[u8]) -> Option<usize> {
    let rest = payload.strip_suffix(MAGIC)?;
    let (rest, labels) = rest.split_last_chunk()?;
    let (rest, array) = rest.split_last_chunk()?;
    let array = usize::try_from(u64::from_le_bytes(*array)).ok()?;
    let labels = usize::try_from(u64::from_le_bytes(*labels)).ok()?;
    (array.checked_add(labels)? <= rest.len()).then_some(array)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn payload(array: u64, labels: u64) -> Vec<u8> {
        let mut bytes = b"abcdefgh{}".to_vec();
        bytes.extend(array.to_le_bytes());
        bytes.extend(labels.to_le_bytes());
        bytes.extend(MAGIC);
        bytes
    }

    #[test]
    fn labels_are_left_out() {
        assert_eq!(without(&payload(8, 2)), b"abcdefgh");
        assert_eq!(without(&payload(0, 10)), b"");
        for bytes in [
            payload(9, 2),
            payload(u64::MAX, 2),
            payload(8, u64::MAX),
            MAGIC.to_vec(),
            vec![],
        ] {
            assert_eq!(without(&bytes), bytes);
        }
    }
}
