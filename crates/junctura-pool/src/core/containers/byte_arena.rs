//! Byte strings that are removed roughly in the order in which they were added.
//!
//! They are stored side by side on pages, which a processor reads and writes faster than as many scattered buffers. A
//! page is reused once all its strings have been removed.

use slab::Slab;

/// Bytes of a page of several strings; a longer string has a page to itself.
const PAGE: usize = 4096;
/// The maximum number of empty pages kept for new strings.
const SPARE_MAX: usize = 64;

/// The place of a string.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::core) struct ArenaString {
    page: u32,
    start: u16,
    length: u32,
}

#[derive(Default)]
pub(in crate::core) struct ByteArena {
    table: Slab<ArenaPage>,
    /// The page that is being filled.
    open: Option<u32>,
    spare: Vec<Vec<u8>>,
}

struct ArenaPage {
    bytes: Vec<u8>,
    lines: u32,
}

impl ByteArena {
    pub(in crate::core) fn write(&mut self, bytes: &[u8]) -> ArenaString {
        let page = match self.open {
            Some(open) if self.table[open as usize].has_room_for(bytes.len()) => open,
            _ => self.turn(bytes.len()),
        };
        let open = &mut self.table[page as usize];
        let start = open.bytes.len() as u16;
        open.bytes.extend_from_slice(bytes);
        open.lines += 1;
        ArenaString {
            page,
            start,
            length: bytes.len() as u32,
        }
    }

    pub(in crate::core) fn read(&self, line: ArenaString) -> &[u8] {
        let start = usize::from(line.start);
        &self.table[line.page as usize].bytes[start..start + line.length as usize]
    }

    pub(in crate::core) fn erase(&mut self, line: ArenaString) {
        let page = &mut self.table[line.page as usize];
        page.lines -= 1;
        if page.lines == 0 && self.open != Some(line.page) {
            self.discard(line.page);
        }
    }

    /// Opens another page, with room for so many bytes.
    fn turn(&mut self, length: usize) -> u32 {
        let full = self.open.take();
        if let Some(full) = full.filter(|&full| self.table[full as usize].lines == 0) {
            self.discard(full);
        }
        let mut bytes = self.spare.pop().unwrap_or_else(|| Vec::with_capacity(PAGE));
        bytes.reserve_exact(length);
        let page = self.table.insert(ArenaPage { bytes, lines: 0 }) as u32;
        self.open = Some(page);
        page
    }

    fn discard(&mut self, page: u32) {
        let mut bytes = self.table.remove(page as usize).bytes;
        if bytes.capacity() == PAGE && self.spare.len() < SPARE_MAX {
            bytes.clear();
            self.spare.push(bytes);
        }
    }
}

impl ArenaPage {
    fn has_room_for(&self, length: usize) -> bool {
        self.bytes.len() + length <= PAGE
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(number: usize) -> Vec<u8> {
        vec![number as u8; number * 37 % 700]
    }

    #[test]
    fn strings_are_kept_and_their_pages_used_again() {
        let mut pages = ByteArena::default();
        let mut lines = std::collections::VecDeque::new();
        for number in 0..5000 {
            lines.push_back((number, pages.write(&text(number))));
            if number >= 100 {
                // The third oldest is removed before the others.
                let (gone, line) = lines.remove(2).unwrap();
                assert_eq!(pages.read(line), text(gone));
                pages.erase(line);
            }
        }
        assert!(pages.table.len() < 20, "{}", pages.table.len());
        for (number, line) in lines {
            assert_eq!(pages.read(line), text(number));
            pages.erase(line);
        }
        assert_eq!(pages.table.len(), 1);
    }

    #[test]
    fn a_long_string_has_a_page_of_its_own_that_goes_with_it() {
        let mut pages = ByteArena::default();
        let long = vec![7; 10 * PAGE];
        let (short, line, after) = (pages.write(b"short"), pages.write(&long), pages.write(b"after"));
        assert_eq!(pages.read(line), long);
        pages.erase(line);
        assert_eq!((pages.read(short), pages.read(after)), (&b"short"[..], &b"after"[..]));
        assert_eq!(pages.table.len(), 2);
        assert!(pages.spare.is_empty());
    }
}
