//! Keys of a terminal, from the bytes that it sends (xterm, "Control Sequences").

/// A key that has a meaning here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TerminalKey {
    Char(char),
    Enter,
    Tab,
    Esc,
    Backspace,
    Up,
    Down,
    PageUp,
    PageDown,
    Home,
    End,
    /// Ctrl-C: a terminal in raw mode sends it as a key.
    Interrupt,
}

/// The key at the start of some bytes.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum NextKey {
    /// A key, or a sequence without a meaning, and its length in bytes.
    Complete(Option<TerminalKey>, usize),
    /// The bytes may be the start of a sequence or of a character.
    Incomplete,
}

const ESC: u8 = 0x1b;
/// The length of the longest sequence that is waited for.
const SEQUENCE_MAX: usize = 16;

/// Reads the key at the start of the bytes.
pub(super) fn next_key(bytes: &[u8]) -> NextKey {
    let key = match *bytes {
        [] => return NextKey::Incomplete,
        [ESC, ref rest @ ..] => return after_escape(rest),
        [b'\r' | b'\n', ..] => Some(TerminalKey::Enter),
        [b'\t', ..] => Some(TerminalKey::Tab),
        [0x08 | 0x7f, ..] => Some(TerminalKey::Backspace),
        [0x03, ..] => Some(TerminalKey::Interrupt),
        [0..=0x1f, ..] => None,
        _ => return character(bytes),
    };
    NextKey::Complete(key, 1)
}

fn character(bytes: &[u8]) -> NextKey {
    let start = &bytes[..bytes.len().min(4)];
    let valid = match std::str::from_utf8(start) {
        Ok(text) => text,
        Err(error) if error.valid_up_to() > 0 => std::str::from_utf8(&start[..error.valid_up_to()]).unwrap_or_default(),
        Err(error) if error.error_len().is_none() => return NextKey::Incomplete,
        Err(_) => "",
    };
    let letter = valid.chars().next();
    NextKey::Complete(letter.map(TerminalKey::Char), letter.map_or(1, char::len_utf8))
}

/// Reads what follows an escape: the sequences `ESC [ … letter`, `ESC [ number ~` and `ESC O letter`.
fn after_escape(rest: &[u8]) -> NextKey {
    let Some(&introducer) = rest.first() else {
        return NextKey::Incomplete;
    };
    if introducer != b'[' && introducer != b'O' {
        return NextKey::Complete(Some(TerminalKey::Esc), 1);
    }
    let Some(end) = rest[1..].iter().position(|byte| (0x40..=0x7e).contains(byte)) else {
        return if rest.len() < SEQUENCE_MAX {
            NextKey::Incomplete
        } else {
            NextKey::Complete(None, rest.len() + 1)
        };
    };
    let parameters = &rest[1..=end];
    let key = match (rest[end + 1], parameters) {
        (b'A', _) => Some(TerminalKey::Up),
        (b'B', _) => Some(TerminalKey::Down),
        (b'H', _) | (b'~', b"1" | b"7") => Some(TerminalKey::Home),
        (b'F', _) | (b'~', b"4" | b"8") => Some(TerminalKey::End),
        (b'~', b"5") => Some(TerminalKey::PageUp),
        (b'~', b"6") => Some(TerminalKey::PageDown),
        _ => None,
    };
    NextKey::Complete(key, end + 3)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys(mut bytes: &[u8]) -> Vec<Option<TerminalKey>> {
        let mut found = Vec::new();
        while let NextKey::Complete(key, length) = next_key(bytes) {
            found.push(key);
            bytes = &bytes[length..];
        }
        assert!(bytes.is_empty(), "{bytes:?} are left");
        found
    }

    #[test]
    fn letters_and_controls_are_keys() {
        use TerminalKey::{Backspace, Char, Enter, Interrupt, Tab};
        let read = keys("jä€😀\r\t\x7f\x08\x03\x1a".as_bytes());
        let letters = ['j', 'ä', '€', '😀'].map(|letter| Some(Char(letter)));
        let controls = [Enter, Tab, Backspace, Backspace, Interrupt].map(Some);
        assert_eq!(read[..4], letters);
        assert_eq!(read[4..9], controls);
        assert_eq!(read[9], None);
    }

    #[test]
    fn sequences_are_keys_in_both_modes() {
        use TerminalKey::{Down, End, Home, PageDown, PageUp, Up};
        let read = keys(b"\x1b[A\x1b[B\x1bOA\x1bOB\x1b[5~\x1b[6~\x1b[H\x1b[F\x1b[1~\x1b[4~\x1b[1;5A");
        let expected = [Up, Down, Up, Down, PageUp, PageDown, Home, End, Home, End, Up];
        assert_eq!(read, expected.map(Some));
        assert_eq!(keys(b"\x1b[2~\x1b[15~\x1b[<0;1;1M"), [None, None, None]);
    }

    #[test]
    fn an_escape_alone_is_waited_for() {
        assert_eq!(next_key(b"\x1b"), NextKey::Incomplete);
        assert_eq!(next_key(b"\x1b["), NextKey::Incomplete);
        assert_eq!(next_key(b"\x1b[1;"), NextKey::Incomplete);
        assert_eq!(keys(b"\x1bq"), [Some(TerminalKey::Esc), Some(TerminalKey::Char('q'))]);
    }

    #[test]
    fn any_bytes_are_read_to_their_end() {
        for seed in 0_u32..2000 {
            let bytes: Vec<u8> = (0..24_u32)
                .map(|place| (seed.wrapping_mul(2_654_435_761).rotate_left(place) ^ place) as u8)
                .collect();
            let mut at = 0;
            while let NextKey::Complete(_, length) = next_key(&bytes[at..]) {
                assert!(length > 0);
                at += length;
                assert!(at <= bytes.len());
            }
            assert!(bytes.len() - at <= SEQUENCE_MAX);
        }
    }
}
