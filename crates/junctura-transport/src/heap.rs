//! The heap of a server.

// The C library has no safe interface for it.
#![allow(unsafe_code)]

/// Makes the C library join small blocks of memory as they are freed, instead of very many at once.
///
/// glibc keeps freed blocks of up to 128 bytes apart, and joins them all when a large block is freed. After the end of
/// 100,000 objects this takes 18 to 55 ms, in which a server answers nobody (mallopt(3), `M_MXFAST`). Another C library has
/// no such option, and nothing changes. To be called before the program has other threads.
pub fn join_small_blocks_at_once() {
    keep_no_blocks_apart();
}

/// Returns whether the C library has the option.
fn keep_no_blocks_apart() -> bool {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    {
        // SAFETY: `mallopt` takes two numbers, and refers to no memory of the program; it takes the lock of the heap.
        unsafe { libc::mallopt(libc::M_MXFAST, 0) == 1 }
    }
    #[cfg(not(all(target_os = "linux", target_env = "gnu")))]
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_c_library_takes_the_option() {
        // The heap of AddressSanitizer has no such option.
        let has_option = cfg!(target_env = "gnu") && !cfg!(address_sanitizer);
        assert_eq!(keep_no_blocks_apart(), has_option);
        let small: Vec<Box<[u8; 40]>> = (0..10_000).map(|_| Box::new([1; 40])).collect();
        assert!(small.iter().all(|block| block[39] == 1));
    }
}
