//! The programs of a command line, and whether the dynamic linker starts them.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::Read;
use std::os::unix::fs::{FileExt, PermissionsExt};
use std::path::{Path, PathBuf};

use junctura::{Code, Error, Result};

use super::libraries::linked_family;

/// At most so many words are looked at: a program is among the first.
const WORDS_MAX: usize = 64;
/// At most so many program headers are read.
const HEADERS_MAX: u64 = 256;
/// Files are searched in blocks of this size.
const BLOCK_BYTES: usize = 1 << 20;
/// The type of the program header that names the dynamic linker.
const PT_INTERP: u32 = 3;

/// Returns the executable files among the words of a command: the first word, which is searched for in PATH, and each later word
/// that is one: of `mpirun -n 4 ./model`, both.
pub(super) fn programs_of(words: &[OsString]) -> Vec<PathBuf> {
    let first = words.first().and_then(|word| in_path(word));
    let later = words.iter().skip(1).take(WORDS_MAX).map(PathBuf::from);
    first.into_iter().chain(later.filter(|path| is_program(path))).collect()
}

fn in_path(word: &OsStr) -> Option<PathBuf> {
    let path = Path::new(word);
    if path.components().count() > 1 {
        return is_program(path).then(|| path.to_owned());
    }
    let folders = std::env::var_os("PATH")?;
    std::env::split_paths(&folders)
        .map(|folder| folder.join(word))
        .find(|path| is_program(path))
}

fn is_program(path: &Path) -> bool {
    path.metadata()
        .is_ok_and(|about| about.is_file() && about.permissions().mode() & 0o111 != 0)
}

/// Refuses programs that are statically linked: the dynamic linker does not load anything into them.
pub(super) fn refuse_static(programs: &[PathBuf]) -> Result<()> {
    for program in programs {
        if is_static(program) == Some(true) {
            let cause = "statically linked: no library can be loaded before its own: link it dynamically";
            return Err(Error::new(Code::Unsupported, program.display().to_string(), cause));
        }
    }
    Ok(())
}

/// Refuses programs that contain MPI itself: they call its functions without the dynamic linker.
pub(super) fn refuse_static_mpi(programs: &[PathBuf]) -> Result<()> {
    for program in programs {
        if is_static(program) == Some(false) && contains(program, b"MPI_File_open") && linked_family(program).is_none()
        {
            let cause = "MPI is statically linked into it, so that its calls cannot be intercepted: link it with the shared \
                         library of MPI";
            return Err(Error::new(Code::Unsupported, program.display().to_string(), cause));
        }
    }
    Ok(())
}

/// Whether a file contains these bytes: the name of a function that a program imports or, also without symbols, has in its messages.
fn contains(path: &Path, wanted: &[u8]) -> bool {
    let Ok(mut file) = File::open(path) else { return false };
    let mut bytes = vec![0; BLOCK_BYTES];
    let mut kept = 0;
    loop {
        let Ok(got @ 1..) = file.read(&mut bytes[kept..]) else {
            return false;
        };
        let filled = kept + got;
        if bytes[..filled].windows(wanted.len()).any(|window| window == wanted) {
            return true;
        }
        // The end may be the beginning of the name.
        kept = filled.min(wanted.len() - 1);
        bytes.copy_within(filled - kept..filled, 0);
    }
}

/// Whether a file is a program without a dynamic linker; `None` for what is no program of this kind of machine, such as a script.
fn is_static(path: &Path) -> Option<bool> {
    let mut file = File::open(path).ok()?;
    // The head of a 64-bit little-endian ELF file: e_phoff at 32, e_phentsize at 54, e_phnum at 56.
    let mut head = [0; 64];
    file.read_exact(&mut head).ok()?;
    if head[..6] != *b"\x7fELF\x02\x01" {
        return None;
    }
    let number = |at: usize| u64::from(u16::from_le_bytes([head[at], head[at + 1]]));
    let (start, size, count) = (
        u64::from_le_bytes(head[32..40].try_into().ok()?),
        number(54),
        number(56),
    );
    for at in 0..count.min(HEADERS_MAX) {
        let mut kind = [0; 4];
        file.read_exact_at(&mut kind, start.checked_add(at * size)?).ok()?;
        if u32::from_le_bytes(kind) == PT_INTERP {
            return Some(false);
        }
    }
    Some(true)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_are_found_in_path_and_among_later_words() {
        let words: Vec<OsString> = ["sh", "-n", "4", "/bin/sh", "/etc/passwd"].map(OsString::from).to_vec();
        let found = programs_of(&words);
        assert_eq!(found.len(), 2);
        assert!(found[0].ends_with("sh"));
        assert_eq!(found[1], Path::new("/bin/sh"));
        assert_eq!(programs_of(&[]), Vec::<PathBuf>::new());
    }

    #[test]
    fn bytes_are_found_across_blocks() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("model");
        let mut bytes = vec![0; BLOCK_BYTES - 5];
        bytes.extend(b"MPI_File_open");
        std::fs::write(&path, &bytes).unwrap();
        assert!(contains(&path, b"MPI_File_open") && !contains(&path, b"MPI_File_close"));
        refuse_static_mpi(&[path, PathBuf::from("/bin/sh"), PathBuf::from("/missing")]).unwrap();
    }

    #[test]
    fn a_program_without_a_dynamic_linker_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("model");
        let mut bytes = vec![0_u8; 64 + 2 * 56];
        bytes[..6].copy_from_slice(b"\x7fELF\x02\x01");
        bytes[32] = 64;
        bytes[54] = 56;
        bytes[56] = 2;
        std::fs::write(&path, &bytes).unwrap();
        assert_eq!(is_static(&path), Some(true));
        let error = refuse_static(std::slice::from_ref(&path)).unwrap_err();
        assert_eq!(error.code(), Code::Unsupported);
        bytes[64 + 56] = PT_INTERP as u8;
        std::fs::write(&path, &bytes).unwrap();
        assert_eq!(is_static(&path), Some(false));
        std::fs::write(&path, "#!/bin/sh\n").unwrap();
        assert_eq!(is_static(&path), None);
        // A head that promises more than there is.
        std::fs::write(&path, &bytes[..80]).unwrap();
        assert_eq!(is_static(&path), None);
        assert_eq!(is_static(Path::new("/bin/sh")), Some(false));
    }
}
