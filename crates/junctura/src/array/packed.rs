//! Transfers parts of pieces from another machine: the gate there packs the requested elements, and only these are
//! transferred.

use std::collections::VecDeque;
use std::sync::Arc;

use junctura_copy::Unpack;
use junctura_model::{Code, Error, Result};
use junctura_wire::{Request, body};

use super::demanded::{DemandedArray, PieceIdentity};
use super::memory::ArrayMemory;
use super::plans::WantedPart;
use crate::connection::in_flight::{ExchangeKind, ServerMessage};
use crate::connection::stream::ServerStream;
use crate::connection::{PoolConnection, unexpected};

/// Number of pieces in one request.
const TOGETHER_MAX: usize = 128;
/// Maximum length of a layout's text in bytes; a longer one is not sent repeatedly.
const TEXT_BYTES_MAX: usize = 256 << 10;
/// Number of requests that are sent ahead, to hide the round trip.
const AHEAD_MAX: usize = 2;

/// Copies the requested part into `mine`. False: the pieces are on this machine, or all elements are requested, or the
/// other side cannot pack; the pieces are then to be transferred whole.
///
/// # Errors
/// As [`DemandedArray::take_into`].
pub(super) fn take(
    array: &DemandedArray,
    wanted: &WantedPart<'_>,
    of: (&str, Option<i64>),
    mine: &mut ArrayMemory<'_>,
) -> Result<bool> {
    let connection = array.pool().connection()?;
    if !connection.greeting.packs {
        return Ok(false);
    }
    // The smaller element type is transferred; the reader converts.
    let (lies, is_to_be) = wanted.elements;
    let travels = if is_to_be.kind.bytes() < lies.kind.bytes() {
        is_to_be
    } else {
        lies
    };
    let texts = (wanted.from.to_string(), wanted.to.to_string());
    if texts.0.len() + texts.1.len() > TEXT_BYTES_MAX {
        return Ok(false);
    }
    let by_messages = WantedPart {
        elements: (travels, is_to_be),
        ..*wanted
    };
    let check = || array.check_pieces((wanted.from, lies), of);
    let messages = array.pool().plans().messages(&by_messages, check)?;
    let whole = |(rank, _): &(u64, Unpack)| wanted.from.room(*rank) * lies.kind.bytes() as u64;
    let bytes = |(_, unpack): &(u64, Unpack)| unpack.elements() * travels.kind.bytes() as u64;
    if messages.iter().map(bytes).sum::<u64>() >= messages.iter().map(whole).sum::<u64>() {
        return Ok(false);
    }
    let asking = PackQuery {
        connection,
        body: body::PackBody {
            from: texts.0.into(),
            to: texts.1.into(),
            origin: wanted.origin.to_vec(),
            rank: wanted.rank,
            element: lies.to_string().into(),
            travels: travels.to_string().into(),
            pieces: Vec::new(),
        },
        of,
    };
    match asking.take(&messages, travels.kind.bytes(), mine) {
        Ok(()) => Ok(true),
        Err(error) if matches!(error.code(), Code::LimitExceeded | Code::Unsupported) => {
            tracing::debug!(%error, "pieces are taken whole");
            Ok(false)
        }
        Err(error) => Err(array.gone(error)),
    }
}

struct PackQuery<'a> {
    connection: Arc<PoolConnection>,
    /// Without the pieces.
    body: body::PackBody<'a>,
    of: (&'a str, Option<i64>),
}

impl PackQuery<'_> {
    fn take(&self, messages: &[(u64, Unpack)], width: usize, mine: &mut ArrayMemory<'_>) -> Result<()> {
        let mut asked = VecDeque::new();
        let mut left = messages.chunks(TOGETHER_MAX);
        loop {
            while asked.len() < AHEAD_MAX
                && let Some(chunk) = left.next()
            {
                asked.push_back((chunk, self.ask(chunk)?));
            }
            let Some((chunk, mut stream)) = asked.pop_front() else {
                return Ok(());
            };
            for (_, unpack) in chunk {
                one(&mut stream, unpack, width, mine)?;
            }
            if !stream.is_over() {
                return Err(unexpected("more than was wanted of an array"));
            }
        }
    }

    fn ask(&self, chunk: &[(u64, Unpack)]) -> Result<ServerStream> {
        let names: Vec<_> = chunk
            .iter()
            .map(|(rank, _)| PieceIdentity::new(self.of.0, self.of.1, *rank))
            .collect();
        let targets: Vec<_> = names.iter().map(PieceIdentity::target).collect();
        let piece = |((rank, _), target): (&(u64, Unpack), _)| {
            let target = self.connection.resolve(target)?;
            Ok(body::PieceName { rank: *rank, target })
        };
        let pieces = chunk.iter().zip(&targets).map(piece).collect::<Result<_>>()?;
        let request = Request::Pack(body::PackBody {
            pieces,
            ..self.body.clone()
        });
        let number = self.connection.post(ExchangeKind::Stream, &request)?;
        Ok(ServerStream::began(&self.connection, number))
    }
}

/// Unpacks the elements of one piece.
fn one(stream: &mut ServerStream, unpack: &Unpack, width: usize, mine: &mut ArrayMemory<'_>) -> Result<()> {
    let mut first = 0;
    while first < unpack.elements() {
        let letter = if stream.is_over() { None } else { stream.next(None)? };
        match letter {
            Some(ServerMessage::Packed { checksum, bytes, .. }) => {
                let count = (bytes.len() / width) as u64;
                if count == 0 || count > unpack.elements() - first {
                    return Err(unexpected("a part of an array that is none"));
                }
                if checksum.is_some_and(|checksum| crc32c::crc32c(&bytes) != checksum) {
                    return Err(Error::new(Code::Corrupt, "piece", "a part was changed in transit"));
                }
                unpack.run_part(&bytes, first, mine.get()?)?;
                first += count;
            }
            Some(ServerMessage::Failed(error) | ServerMessage::Ended(error)) => return Err(error),
            _ => return Err(unexpected("no part of an array")),
        }
    }
    Ok(())
}
