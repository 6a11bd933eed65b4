//! The messages of a GRIB file for others than the command: each with what its header gives.

use std::path::Path;
use std::sync::Arc;

use junctura::{Code, Error, Given, Result, Schema};
use junctura_grib::Message;

use super::feed::Place;
use super::grib::{Next, Splitter};
use super::input::Input;
use super::{corrupt, header};
use crate::attributes::Pair;
use crate::interrupt::Interrupt;

/// What a message is, and its bytes.
type Take<'a> = &'a mut dyn FnMut(&[(&str, Given<'_>)], &[u8]) -> Result<()>;

/// Hands over each message of a GRIB file, from front to back: the attributes that its header gives, as far as the schema knows
/// them, those of `set` before them, and its bytes. Says how many there were. Reads the file, with bounded memory but for messages that are large
/// themselves; from a pipe it waits.
///
/// # Errors
/// `Corrupt` for the first message that is damaged, by its number, and for a file without any; what `take` says, with the file and the
/// number of the message; what the system refuses.
pub fn each_message(path: &Path, schema: &Schema, set: &[(String, String)], take: Take<'_>) -> Result<u64> {
    let set: Vec<Pair> = set
        .iter()
        .map(|(name, value)| Pair {
            name: name.clone(),
            value: value.clone(),
        })
        .collect();
    let mut splitter = Splitter::new(Input::open(path, &Interrupt::never())?);
    let file: Arc<str> = splitter.input().name().into();
    let mut count = 0;
    loop {
        let next = splitter.next(&mut || Ok(()), &mut room)?;
        let place = Place {
            file: Arc::clone(&file),
            message: Some(splitter.number()),
        };
        let mut hand_over = |message: Message<'_>| {
            let keys = message
                .keys()
                .map_err(|error| corrupt(&file, &splitter.numbered(error)))?;
            let attributes = header::attributes(&message, &keys, schema, &set);
            take(&header::given(&attributes), message.bytes()).map_err(|error| place.error(&error))
        };
        match next {
            Next::End => break,
            Next::Buffered(bytes) => {
                hand_over(splitter.message(bytes).map_err(|error| corrupt(&file, &error))?)?;
                splitter.take(bytes);
            }
            Next::Placed(bytes) => {
                let message = Message::new(&bytes);
                hand_over(message.map_err(|error| corrupt(&file, &splitter.numbered(error)))?)?;
            }
            Next::Damaged(error) => return Err(corrupt(&file, &error)),
        }
        count += 1;
    }
    if count == 0 {
        return Err(Error::new(Code::Corrupt, &*file, "there is no GRIB message in it"));
    }
    Ok(count)
}

fn room(bytes: u64) -> Result<Vec<u8>> {
    let too_large = || {
        Error::new(
            Code::TooLarge,
            "message",
            format!("{bytes} bytes do not fit into memory"),
        )
    };
    let length = usize::try_from(bytes).map_err(|_| too_large())?;
    let mut room = Vec::new();
    room.try_reserve_exact(length).map_err(|_| too_large())?;
    room.resize(length, 0);
    Ok(room)
}
