//! Checks whether an object store is reliable: tests conditional puts in every way that takes only a moment.
//!
//! The probe detects servers without conditional puts, whether they report that or not, and usually those that check
//! first and write afterwards. It cannot detect a server that fails rarely, or only across several of its machines, or
//! that loses data after a failure.

use std::io;

use junctura_model::{Code, Error, Result};

use super::{S3Disk, runtime};
use crate::storage::{StorageDisk, refused};
use object_store::{ObjectStore, ObjectStoreExt, PutMode, PutPayload};

/// Number of concurrent writers of one name, and of rounds.
const RACERS: u8 = 16;
const ROUNDS: usize = 4;
const BYTES_MAX: u64 = 1024;
/// The error text of a server that does not support the request (`NotImplemented`).
const NOT_KNOWN: &str = "status code: 501";

/// # Errors
/// `Unsupported` when a name is given twice; what the server refuses.
pub(super) fn probe(disk: &S3Disk, bucket: &str, is_exclusive: bool) -> Result<()> {
    let id = crate::hex(&crate::random()?);
    let mut names = vec![format!("probe-{id}-twice")];
    names.extend((0..if is_exclusive { ROUNDS } else { 0 }).map(|round| format!("probe-{id}-race-{round}")));
    // A server that lacks this does not gain it later: it is probed once.
    let asked_once = disk.once()?;
    let probed = if is_exclusive {
        twice(disk, &asked_once, &names[0]).and_then(|()| names[1..].iter().try_for_each(|name| race(disk, name)))
    } else {
        once(disk, &names[0])
    };
    for name in &names {
        let _ = disk.remove(name);
    }
    probed.map_err(|error| match error.kind() {
        io::ErrorKind::Unsupported => Error::new(Code::Unsupported, bucket, error.to_string()),
        io::ErrorKind::NotFound => Error::new(Code::NotFound, bucket, format!("there is no such bucket: {error}")),
        _ => refused(bucket, "cannot be used", &error),
    })
}

fn unfit(cause: &str) -> io::Error {
    let text = format!("{cause}: commits would be lost on this object store, which cannot have a catalogue");
    io::Error::new(io::ErrorKind::Unsupported, text)
}

/// Whether it can be written and read at all.
fn once(disk: &S3Disk, name: &str) -> io::Result<()> {
    let path = disk.path(name)?;
    let asked = path.clone();
    disk.wait(|store| async move { store.put(&asked, PutPayload::from_static(b"one")).await })?;
    disk.get(&path, BYTES_MAX)?;
    Ok(())
}

/// One after the other.
fn twice(disk: &S3Disk, asked_once: &S3Disk, name: &str) -> io::Result<()> {
    let path = disk.path(name)?;
    match asked_once.put_new(&path, b"one") {
        Ok(()) => {}
        Err(error) if error.to_string().contains(NOT_KNOWN) => {
            return Err(unfit("it does not support creating an object only if its name is free"));
        }
        // It may be busy, and may have done it all the same.
        Err(_) => match disk.put_new(&path, b"one") {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
            _ => {}
        },
    }
    match disk.put_new(&path, b"another") {
        Ok(()) => return Err(unfit("it replaces an object when its name is taken")),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
        Err(error) => return Err(error),
    }
    if disk.get(&path, BYTES_MAX)? != b"one" {
        return Err(unfit("it refuses to replace an object, and replaces it"));
    }
    Ok(())
}

/// Many at once.
fn race(disk: &S3Disk, name: &str) -> io::Result<()> {
    let path = disk.path(name)?;
    let begin = |racer: u8| {
        let (store, path) = (std::sync::Arc::clone(&disk.store), path.clone());
        runtime::begin(async move {
            let payload = PutPayload::from(vec![racer]);
            store.put_opts(&path, payload, PutMode::Create.into()).await
        })
    };
    let racing: io::Result<Vec<_>> = (0..RACERS).map(begin).collect();
    let mut winners = Vec::new();
    for (racer, racing) in (0..RACERS).zip(racing?) {
        match racing.wait()?.map_err(|error| super::refused(&error)) {
            Ok(_) => winners.push(racer),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
    }
    // `None` if the winner's response was lost and its retry found that the name is taken.
    let found = disk.get(&path, BYTES_MAX)?;
    match winners[..] {
        [] => Ok(()),
        [winner] if found == [winner] => Ok(()),
        _ => Err(unfit(
            "of several clients that create one object at once, more than one gets success",
        )),
    }
}
