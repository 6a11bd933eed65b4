//! Whether this process is the one that made something, or its forked child.
//!
//! A child inherits connections that it must not use. Each request looks, and `getpid` is a system call. So a page is kept
//! that is empty in each forked child (`MADV_WIPEONFORK`, see `madvise(2)`).

use std::ptr::{null_mut, without_provenance_mut};
use std::sync::atomic::{AtomicPtr, AtomicU64, Ordering};

use rustix::mm::{Advice, MapFlags, ProtFlags};

use crate::classes::PAGE_BYTES;

/// The word at the start of the page; null before the first use, [`NO_PAGE`] where the system has no such pages.
static PAGE: AtomicPtr<AtomicU64> = AtomicPtr::new(null_mut());
const NO_PAGE: *mut AtomicU64 = without_provenance_mut(1);

/// The last number that this process or an ancestor has taken.
static LAST: AtomicU64 = AtomicU64::new(0);

/// Identifies the process that made it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProcessMark(u64);

impl ProcessMark {
    /// Returns the mark of this process.
    #[must_use]
    pub fn here() -> Self {
        let Some(word) = word() else {
            return Self(u64::from(std::process::id()));
        };
        match word.load(Ordering::Relaxed) {
            0 => {
                let new = LAST.fetch_add(1, Ordering::Relaxed) + 1;
                let made = word.compare_exchange(0, new, Ordering::Relaxed, Ordering::Relaxed);
                Self(made.map_or_else(|other| other, |_| new))
            }
            number => Self(number),
        }
    }

    /// Whether this process made the mark. False in a forked child of it.
    #[must_use]
    pub fn is_here(self) -> bool {
        match word() {
            Some(word) => word.load(Ordering::Relaxed) == self.0,
            None => u64::from(std::process::id()) == self.0,
        }
    }
}

/// The word of the page, which the first call maps. Without a lock, which a forked child could find taken.
fn word() -> Option<&'static AtomicU64> {
    let mut page = PAGE.load(Ordering::Acquire);
    if page.is_null() {
        let new = map_page().unwrap_or(NO_PAGE);
        match PAGE.compare_exchange(null_mut(), new, Ordering::AcqRel, Ordering::Acquire) {
            Ok(_) => page = new,
            Err(other) => {
                unmap_page(new);
                page = other;
            }
        }
    }
    // SAFETY: it is a page of zeros that was mapped for reading and writing, aligned, and is never unmapped; a fork leaves
    // the map to the child. It is only accessed as an atomic number.
    (page != NO_PAGE).then(|| unsafe { &*page })
}

fn map_page() -> Option<*mut AtomicU64> {
    let (length, protection) = (PAGE_BYTES as usize, ProtFlags::READ | ProtFlags::WRITE);
    // SAFETY: the system chooses the address, so no memory in use is replaced.
    let page = unsafe { rustix::mm::mmap_anonymous(null_mut(), length, protection, MapFlags::PRIVATE) }.ok()?;
    let page: *mut AtomicU64 = page.cast();
    // SAFETY: the range is the whole map of this call, which nothing else refers to yet.
    let wiped = unsafe { rustix::mm::madvise(page.cast(), length, Advice::LinuxWipeOnFork) };
    if wiped.is_err() {
        unmap_page(page);
    }
    wiped.ok().map(|()| page)
}

/// Unmaps a page that no other thread has seen.
fn unmap_page(page: *mut AtomicU64) {
    if page != NO_PAGE {
        // SAFETY: the map is of `map_page`, and no reference to it was made.
        let done = unsafe { rustix::mm::munmap(page.cast(), PAGE_BYTES as usize) };
        debug_assert!(done.is_ok(), "it is a map of this process");
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::CommandExt;
    use std::process::Command;

    use super::*;

    /// Runs a check in a forked child; whether it held.
    fn holds_in_child(check: impl FnMut() -> bool + Send + Sync + 'static) -> bool {
        let mut check = check;
        let mut command = Command::new("true");
        let refused = || std::io::Error::from(std::io::ErrorKind::Other);
        // SAFETY: the check only reads and changes atomic numbers.
        unsafe { command.pre_exec(move || if check() { Ok(()) } else { Err(refused()) }) };
        command.status().is_ok_and(|status| status.success())
    }

    #[test]
    fn a_forked_child_is_another_process() {
        let mark = ProcessMark::here();
        assert!(mark.is_here());
        assert_eq!(ProcessMark::here(), mark);
        assert!(holds_in_child(move || !mark.is_here()));
        assert!(holds_in_child(move || {
            let own = ProcessMark::here();
            own != mark && own.is_here() && own == ProcessMark::here() && !mark.is_here()
        }));
        assert!(mark.is_here());
    }

    #[test]
    fn threads_of_a_process_have_one_mark() {
        let marks: Vec<_> = (0..8).map(|_| std::thread::spawn(ProcessMark::here)).collect();
        for mark in marks {
            assert_eq!(mark.join().unwrap(), ProcessMark::here());
        }
    }
}
