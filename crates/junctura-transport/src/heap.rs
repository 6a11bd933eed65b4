//! The heap of a server.

// The C library has no safe interface for it.
#![allow(unsafe_code)]

/// Makes the C library join small blocks of memory as they are freed, instead of very many at once. Returns whether it does.
///
/// glibc keeps freed blocks of up to 128 bytes apart, and joins all of them when a large block is freed. After the end of 100,000 objects this takes
/// 18 to 55 ms, in which a server answers nobody (mallopt(3), `M_MXFAST`). To be called before the program has other threads.
pub fn join_small_blocks_at_once() -> bool {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    {
        // SAFETY: `mallopt` takes two numbers, and refers to no memory of the program. It is safe while no other thread uses the heap, and
        // takes the lock of the heap if one does.
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
        assert_eq!(join_small_blocks_at_once(), has_option);
        let small: Vec<Box<[u8; 40]>> = (0..10_000).map(|_| Box::new([1; 40])).collect();
        assert!(small.iter().all(|block| block[39] == 1));
    }
}
