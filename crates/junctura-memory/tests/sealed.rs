//! What a peer can and cannot do with the descriptors of a segment.

#![allow(unsafe_code, reason = "tries what must fail: writable maps of read-only descriptors")]

use std::ffi::c_void;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::ptr::null_mut;
use std::sync::Arc;

use junctura_memory::{SealedSegment, SegmentDraft, SegmentMapping, WritableMapping};
use junctura_model::Code;
use rustix::fs::{FallocateFlags, MemfdFlags, Mode, OFlags, SealFlags};
use rustix::io::Errno;
use rustix::mm::{MapFlags, MprotectFlags, ProtFlags};

const BYTES: u64 = 64 << 10;

fn copy(fd: BorrowedFd<'_>) -> OwnedFd {
    fd.try_clone_to_owned().unwrap()
}

fn readonly(segment: &SealedSegment) -> Arc<SegmentMapping> {
    Arc::new(SegmentMapping::readonly(copy(segment.readonly()), segment.bytes()).unwrap())
}

fn writable(segment: &SealedSegment, slot_bytes: u64) -> Arc<WritableMapping> {
    Arc::new(SegmentMapping::writable(copy(segment.writable()), segment.bytes(), slot_bytes).unwrap())
}

/// Maps the descriptor as the kernel allows, without any check of ours.
fn map(fd: BorrowedFd<'_>, rights: ProtFlags) -> Result<*mut c_void, Errno> {
    // SAFETY: a new map at an address that the system chooses; it is not turned into a reference.
    unsafe { rustix::mm::mmap(null_mut(), BYTES as usize, rights, MapFlags::SHARED, fd, 0) }
}

#[test]
fn what_a_producer_writes_a_consumer_reads() {
    let segment = SealedSegment::create(BYTES).unwrap();
    let (writer, reader) = (writable(&segment, 4096), readonly(&segment));
    let mut slot = writer.take(3, 5).unwrap();
    slot.copy_from_slice(b"field");
    assert_eq!(&*slot, b"field");
    drop(slot);
    assert_eq!(reader.slice(3 * 4096, 5).unwrap(), b"field");
    drop((segment, writer));
    assert_eq!(reader.slice(3 * 4096, 5).unwrap(), b"field");
}

#[test]
fn a_draft_becomes_a_segment_of_any_size_that_reads_as_zeros() {
    for (made, bytes) in [(BYTES, BYTES), (BYTES, BYTES / 4), (BYTES, 2 * BYTES)] {
        let draft = SegmentDraft::create(made).unwrap();
        assert_eq!(draft.bytes(), made);
        let segment = draft.seal(bytes).unwrap();
        assert_eq!(segment.bytes(), bytes);
        assert_eq!(segment.resident_bytes().unwrap(), made.min(bytes));
        let reader = readonly(&segment);
        assert!(reader.slice(0, bytes).unwrap().iter().all(|&byte| byte == 0));
        assert_eq!(
            rustix::fs::ftruncate(segment.writable(), BYTES / 2),
            Err(Errno::PERM),
            "it is sealed"
        );
        let mut slot = writable(&segment, 4096).take(1, 4096).unwrap();
        slot.write(0, &[7; 4096]).unwrap();
        assert_eq!(reader.slice(4096, 4096).unwrap(), [7; 4096]);
    }
    for wrong in [0, 4095] {
        assert_eq!(SegmentDraft::create(wrong).unwrap_err().code(), Code::InvalidArgument);
        let draft = SegmentDraft::create(4096).unwrap();
        assert_eq!(draft.seal(wrong).unwrap_err().code(), Code::InvalidArgument);
    }
}

#[test]
fn the_readonly_descriptor_gives_no_right_to_write() {
    let segment = SealedSegment::create(BYTES).unwrap();
    let fd = segment.readonly();
    assert_eq!(map(fd, ProtFlags::READ | ProtFlags::WRITE), Err(Errno::ACCESS));
    let start = map(fd, ProtFlags::READ).unwrap();
    let writing = MprotectFlags::READ | MprotectFlags::WRITE;
    // SAFETY: the range is exactly the map made above, to which no reference exists.
    assert_eq!(
        unsafe { rustix::mm::mprotect(start, BYTES as usize, writing) },
        Err(Errno::ACCESS)
    );
    // SAFETY: as above; it is not used afterwards.
    unsafe { rustix::mm::munmap(start, BYTES as usize) }.unwrap();
    let refused = [Errno::BADF, Errno::INVAL, Errno::PERM];
    assert!(refused.contains(&rustix::fs::ftruncate(fd, 0).unwrap_err()));
    assert!(refused.contains(&rustix::io::write(fd, b"x").unwrap_err()));
    let hole = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
    assert!(refused.contains(&rustix::fs::fallocate(fd, hole, 0, 4096).unwrap_err()));
    let error = WritableMapping::new(copy(fd), BYTES, 4096).unwrap_err();
    assert_eq!(error.code(), Code::Denied);
}

#[test]
fn nobody_can_change_the_size_or_the_seals() {
    let segment = SealedSegment::create(BYTES).unwrap();
    let fd = segment.writable();
    for size in [0, BYTES - 4096, BYTES + 4096] {
        assert_eq!(rustix::fs::ftruncate(fd, size), Err(Errno::PERM));
    }
    assert_eq!(
        rustix::fs::fallocate(fd, FallocateFlags::empty(), 0, 2 * BYTES),
        Err(Errno::PERM)
    );
    for seal in [SealFlags::WRITE, SealFlags::FUTURE_WRITE] {
        assert_eq!(rustix::fs::fcntl_add_seals(fd, seal), Err(Errno::PERM));
    }
    assert_eq!(rustix::fs::fstat(fd).unwrap().st_size as u64, BYTES);
}

#[test]
fn descriptors_are_close_on_exec() {
    let segment = SealedSegment::create(BYTES).unwrap();
    for fd in [segment.readonly(), segment.writable()] {
        assert!(
            rustix::io::fcntl_getfd(fd)
                .unwrap()
                .contains(rustix::io::FdFlags::CLOEXEC)
        );
    }
    assert_eq!(rustix::fs::fstat(segment.readonly()).unwrap().st_mode & 0o777, 0o400);
}

/// Opens the file behind the descriptor anew, as the user nobody if we are root.
fn reopen_as_another(fd: BorrowedFd<'_>, how: OFlags) -> Result<(), Errno> {
    std::thread::scope(|scope| {
        let attempt = scope.spawn(|| {
            if rustix::process::getuid().is_root() {
                let nobody = rustix::process::Uid::from_raw(65534);
                rustix::thread::set_thread_res_uid(nobody, nobody, nobody).unwrap();
            }
            let path = format!("/proc/thread-self/fd/{}", fd.as_raw_fd());
            rustix::fs::open(path, how | OFlags::CLOEXEC, Mode::empty()).map(drop)
        });
        attempt.join().unwrap()
    })
}

#[test]
fn another_user_cannot_open_it_for_writing() {
    let open = rustix::fs::memfd_create("open", MemfdFlags::CLOEXEC).unwrap();
    rustix::fs::fchmod(&open, Mode::from_raw_mode(0o666)).unwrap();
    assert_eq!(
        reopen_as_another(open.as_fd(), OFlags::RDWR),
        Ok(()),
        "the mode decides, nothing else"
    );
    let segment = SealedSegment::create(BYTES).unwrap();
    for fd in [segment.readonly(), segment.writable()] {
        assert_eq!(reopen_as_another(fd, OFlags::RDWR), Err(Errno::ACCESS));
        assert_eq!(reopen_as_another(fd, OFlags::WRONLY), Err(Errno::ACCESS));
    }
}

#[test]
fn hostile_descriptors_are_not_mapped() {
    let unsealed = rustix::fs::memfd_create("x", MemfdFlags::ALLOW_SEALING).unwrap();
    rustix::fs::ftruncate(&unsealed, BYTES).unwrap();
    let unsealable = rustix::fs::memfd_create("x", MemfdFlags::empty()).unwrap();
    rustix::fs::ftruncate(&unsealable, BYTES).unwrap();
    let half = rustix::fs::memfd_create("x", MemfdFlags::ALLOW_SEALING).unwrap();
    rustix::fs::ftruncate(&half, BYTES).unwrap();
    rustix::fs::fcntl_add_seals(&half, SealFlags::GROW | SealFlags::SEAL).unwrap();
    let (pipe, _other_end) = rustix::pipe::pipe().unwrap();
    let file = std::fs::File::open("/proc/self/exe").unwrap().into();
    let null = std::fs::File::open("/dev/null").unwrap().into();
    let folder = std::fs::File::open("/").unwrap().into();
    for fd in [unsealed, unsealable, half, pipe, file, null, folder] {
        for error in [
            SegmentMapping::readonly(copy(fd.as_fd()), BYTES).unwrap_err(),
            WritableMapping::new(copy(fd.as_fd()), BYTES, 4096).unwrap_err(),
        ] {
            assert_eq!(error.code(), Code::Corrupt, "{error}");
        }
    }
}

#[test]
fn a_size_that_differs_is_not_mapped() {
    let segment = SealedSegment::create(BYTES).unwrap();
    for bytes in [0, 1, BYTES - 1, BYTES - 4096, BYTES + 1, BYTES + 4096, u64::MAX] {
        let error = SegmentMapping::readonly(copy(segment.readonly()), bytes).unwrap_err();
        assert_eq!(error.code(), Code::Corrupt, "{error}");
        assert!(WritableMapping::new(copy(segment.writable()), bytes, 64).is_err());
    }
    for slot_bytes in [0, BYTES + 1, u64::MAX] {
        let error = WritableMapping::new(copy(segment.writable()), BYTES, slot_bytes).unwrap_err();
        assert_eq!(error.code(), Code::Corrupt, "{error}");
    }
}

#[test]
fn segments_are_whole_pages() {
    for bytes in [0, 1, 4095, 4097, u64::MAX, 1 << 63] {
        assert_eq!(SealedSegment::create(bytes).unwrap_err().code(), Code::InvalidArgument);
    }
}

#[test]
fn a_slot_has_one_owner() {
    let segment = SealedSegment::create(BYTES).unwrap();
    let writer = writable(&segment, 4096);
    assert_eq!((writer.slots(), writer.slot_bytes(), writer.bytes()), (16, 4096, BYTES));
    let mut first = writer.take(0, 10).unwrap();
    assert_eq!(writer.take(0, 1).unwrap_err().code(), Code::Conflict);
    let second = writer.take(15, 4096).unwrap();
    assert_eq!((second.slot(), second.len()), (15, 4096));
    assert_eq!(writer.take(16, 1).unwrap_err().code(), Code::InvalidArgument);
    assert_eq!(writer.take(1, 4097).unwrap_err().code(), Code::InvalidArgument);
    first.truncate(4);
    first.truncate(9);
    assert_eq!(first.len(), 4);
    assert_eq!(first.as_mut_ptr().addr() % 4096, 0);
    drop(first);
    assert_eq!(writer.take(0, 0).unwrap().len(), 0);
    let mapping = Arc::downgrade(second.mapping());
    drop(writer);
    assert!(mapping.upgrade().is_some(), "a slot keeps its map");
    drop(second);
    assert!(mapping.upgrade().is_none());
}

#[test]
fn parts_of_a_slot_are_written_at_once_and_keep_it_until_the_last() {
    let segment = SealedSegment::create(BYTES).unwrap();
    let (writer, reader) = (writable(&segment, 4096), readonly(&segment));
    writer.take(2, 5).unwrap().copy_from_slice(b"first");
    let mut parts = writer.take(2, 3000).unwrap().divide(5, 1000);
    assert_eq!(
        parts.iter().map(|part| part.len()).collect::<Vec<_>>(),
        [1000, 1000, 995]
    );
    std::thread::scope(|scope| {
        for (number, part) in (1..).zip(&mut parts) {
            scope.spawn(move || part.fill(number));
        }
    });
    let expected = [&b"first"[..], &[1; 1000], &[2; 1000], &[3; 995], &[0; 1096]].concat();
    assert_eq!(reader.slice(2 * 4096, 4096).unwrap(), expected);
    assert_eq!(parts[1][0], 2);
    let last = parts.pop().unwrap();
    drop(parts);
    assert_eq!(writer.take(2, 0).unwrap_err().code(), Code::Conflict);
    let mapping = Arc::downgrade(&writer);
    drop(writer);
    assert!(mapping.upgrade().is_some(), "a part keeps its map");
    drop(last);
    assert!(mapping.upgrade().is_none());
}

#[test]
fn what_has_no_bytes_has_no_parts() {
    let segment = SealedSegment::create(4096).unwrap();
    let writer = writable(&segment, 4096);
    for (length, from, part_bytes) in [(0, 0, 10), (10, 10, 10), (10, usize::MAX, 10), (10, 0, 0)] {
        assert_eq!(writer.take(0, length).unwrap().divide(from, part_bytes).len(), 0);
    }
    let whole = writer.take(0, 4096).unwrap().divide(0, usize::MAX);
    assert_eq!((whole.len(), whole[0].len()), (1, 4096));
    drop(whole);
    assert!(writer.take(0, 4096).is_ok());
}

#[test]
fn threads_race_for_a_slot_and_one_wins_each_time() {
    let segment = SealedSegment::create(4096).unwrap();
    let writer = writable(&segment, 4096);
    std::thread::scope(|scope| {
        for thread in 1..=2_u8 {
            let writer = Arc::clone(&writer);
            scope.spawn(move || {
                for _ in 0..5000 {
                    if let Ok(mut slot) = writer.take(0, 64) {
                        slot.fill(thread);
                        assert!(slot.iter().all(|&byte| byte == thread));
                    }
                }
            });
        }
    });
}

#[test]
fn punching_gives_memory_back() {
    let segment = SealedSegment::create(BYTES).unwrap();
    assert_eq!(segment.resident_bytes().unwrap(), 0);
    let writer = writable(&segment, BYTES);
    writer.take(0, BYTES).unwrap().fill(7);
    assert_eq!(segment.resident_bytes().unwrap(), BYTES);
    let reader = readonly(&segment);
    segment.punch(1, 3 * 4096 + 4095).unwrap();
    assert_eq!(
        segment.resident_bytes().unwrap(),
        BYTES - 3 * 4096,
        "only whole pages go"
    );
    assert_eq!(reader.slice(0, 4096).unwrap(), [7; 4096]);
    assert_eq!(reader.slice(4 * 4096, 1).unwrap(), [7]);
    segment.punch(5000, 100).unwrap();
    segment.punch(u64::MAX, u64::MAX).unwrap();
    segment.punch(BYTES, 0).unwrap();
    segment.punch(0, 0).unwrap();
    assert_eq!(segment.resident_bytes().unwrap(), BYTES - 3 * 4096);
    segment.punch(BYTES - 4096, u64::MAX).unwrap();
    assert_eq!(segment.resident_bytes().unwrap(), BYTES - 4 * 4096);
    segment.punch_all().unwrap();
    assert_eq!(segment.resident_bytes().unwrap(), 0);
    assert_eq!(reader.slice(0, BYTES).unwrap(), vec![0; BYTES as usize]);
}

#[test]
fn prefaulting_takes_the_memory_now() {
    let segment = SealedSegment::create(BYTES).unwrap();
    writable(&segment, 4096).prefault().unwrap();
    assert_eq!(segment.resident_bytes().unwrap(), BYTES);
    readonly(&segment).prefault().unwrap();
}

#[test]
fn more_than_four_gibibytes() {
    let bytes = 5 << 30;
    let segment = SealedSegment::create(bytes).unwrap();
    let writer = writable(&segment, bytes);
    let mut slot = writer.take(0, bytes).unwrap();
    slot[0] = 1;
    slot[bytes as usize - 1] = 2;
    drop(slot);
    let reader = readonly(&segment);
    let all = reader.slice(0, bytes).unwrap();
    assert_eq!(
        (all.len() as u64, all[0], all[4096], all[bytes as usize - 1]),
        (bytes, 1, 0, 2)
    );
    assert_eq!(reader.slice(bytes - 1, 1).unwrap(), [2]);
    assert!(reader.slice(bytes - 1, 2).is_err());
    assert!(
        segment.resident_bytes().unwrap() < 1 << 20,
        "untouched pages take no memory"
    );
}

#[test]
fn a_forked_child_inherits_the_map() {
    let segment = SealedSegment::create(BYTES).unwrap();
    let (writer, reader) = (writable(&segment, 64), readonly(&segment));
    writer.take(0, 64).unwrap().fill(1);
    let (child_writer, child_reader) = (Arc::clone(&writer), Arc::clone(&reader));
    let mut command = Command::new("/bin/true");
    let in_child = move || {
        let seen = child_reader
            .slice(0, 64)
            .is_ok_and(|bytes| bytes.iter().all(|&byte| byte == 1));
        let slot = child_writer.take(1, 64).map(|mut slot| slot.fill(2));
        if seen && slot.is_ok() {
            Ok(())
        } else {
            Err(std::io::ErrorKind::Other.into())
        }
    };
    // SAFETY: between fork and exec the closure neither allocates nor locks while all goes well; it reads and writes
    // the inherited maps.
    unsafe { command.pre_exec(in_child) };
    assert!(command.status().unwrap().success());
    assert_eq!(reader.slice(64, 64).unwrap(), [2; 64]);
    drop((command, reader));
    assert_eq!(
        &*writer.take(0, 64).unwrap(),
        [1; 64],
        "the child's end left our map alone"
    );
}

#[test]
fn maps_close_their_descriptor_and_go_with_their_owner() {
    let segment = SealedSegment::create(BYTES).unwrap();
    let given = segment.readonly().try_clone_to_owned().unwrap();
    let number = given.as_raw_fd();
    let inode = rustix::fs::fstat(&given).unwrap().st_ino;
    let reader = SegmentMapping::readonly(given, BYTES).unwrap();
    // Another test may have got the number since, but never for this file.
    let now = std::fs::metadata(format!("/proc/self/fd/{number}"));
    assert!(now.is_err() || now.is_ok_and(|meta| std::os::unix::fs::MetadataExt::ino(&meta) != inode));
    let mapped = || {
        let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
        maps.lines()
            .any(|line| line.contains("memfd:junctura") && line.contains(&format!(" {inode} ")))
    };
    assert!(mapped());
    drop(reader);
    assert!(!mapped());
}
