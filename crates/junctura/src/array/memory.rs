//! The destination memory of an array part.

use junctura_model::{Code, Error, Result};

/// New memory is allocated only after its sources have been found: an array may claim to be larger than any memory.
pub(super) enum ArrayMemory<'m> {
    Mine(&'m mut [u8]),
    New { bytes: usize, into: &'m mut Vec<u8> },
}

impl ArrayMemory<'_> {
    /// # Errors
    /// `InvalidArgument` for memory of another length than `wanted` bytes.
    pub(super) fn check(&self, wanted: usize) -> Result<()> {
        match self {
            Self::Mine(mine) if mine.len() != wanted => {
                let cause = format!("this part has {wanted} bytes; {} bytes were given", mine.len());
                Err(Error::new(Code::InvalidArgument, "length", cause))
            }
            _ => Ok(()),
        }
    }

    /// # Errors
    /// `TooLarge` if memory is insufficient.
    pub(super) fn get(&mut self) -> Result<&mut [u8]> {
        match self {
            Self::Mine(mine) => Ok(mine),
            Self::New { bytes, into } => {
                grow(into, *bytes)?;
                Ok(into)
            }
        }
    }
}

fn grow(memory: &mut Vec<u8>, bytes: usize) -> Result<()> {
    let more = bytes - memory.len();
    memory.try_reserve_exact(more).map_err(|_| {
        let cause = format!("there is no memory for {bytes} bytes");
        Error::new(Code::TooLarge, "part of an array", cause)
    })?;
    memory.resize(bytes, 0);
    Ok(())
}
