//! Pieces of a repeated exchange, requested together with their array: the pieces that the last array needed are expected again.
//!
//! ```text
//!   without: array ──► its layout ──► pieces       with: array and pieces ──► copy
//! ```
//! An expectation is a guess. Pieces that have not arrived with the array are requested again, and pieces that are not needed are
//! given back.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use junctura_model::{RecordRef, Result};
use junctura_wire::body::TargetBody;

use super::demanded::PieceIdentity;
use super::head::piece_of;
use crate::object::Object;
use crate::pending::Pending;
use crate::pool::Pool;
use crate::target::Target;
use crate::verbs::demand::{DemandThrough, begin_with_next};

/// An array with more pieces has fewer requested with it: each waits in the server as long as the array does.
const EXPECTED_MAX: usize = 64;

/// The ranks of the pieces that the last array needed.
#[derive(Debug, Default)]
pub(super) struct ExpectedPieces(Mutex<Vec<u64>>);

/// Requests for pieces, by rank.
#[derive(Debug, Default)]
pub(super) struct RequestedPieces(Vec<(u64, Pending<Object>)>);

impl ExpectedPieces {
    /// Requests the expected pieces of the array with this key, with the next request.
    ///
    /// # Errors
    /// Those of a key that the schema does not accept, and of the connection.
    pub(super) fn request(
        &self,
        pool: &Pool,
        target: &Target<'_>,
        timeout: Option<Duration>,
    ) -> Result<RequestedPieces> {
        let ranks = self.lock().clone();
        let connection = pool.connection()?;
        // A network would carry whole pieces, and a store has none.
        if ranks.is_empty() || connection.is_network() || pool.depot().is_some() {
            return Ok(RequestedPieces::default());
        }
        let TargetBody::Key { schema, record } = connection.resolve(target)? else {
            return Ok(RequestedPieces::default());
        };
        let schema = connection.schema(schema);
        let key = schema.key_text(RecordRef::trusted(&record));
        let Ok(piece_of) = piece_of(schema.name(), &key) else {
            return Ok(RequestedPieces::default());
        };
        let request = |rank| {
            let name = PieceIdentity::new(&piece_of, None, rank);
            let piece = begin_with_next(&connection, &name.target(), timeout, &DemandThrough::Nothing)?;
            Ok((rank, piece))
        };
        ranks
            .into_iter()
            .map(request)
            .collect::<Result<_>>()
            .map(RequestedPieces)
    }

    /// Expects these pieces of the next array.
    pub(super) fn expect(&self, ranks: &[u64]) {
        let mut expected = self.lock();
        expected.clear();
        expected.extend(ranks.iter().take(EXPECTED_MAX));
    }

    fn lock(&self) -> MutexGuard<'_, Vec<u64>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl RequestedPieces {
    /// Takes a piece if it has arrived.
    pub(super) fn take(&mut self, rank: u64) -> Option<Object> {
        let at = self.0.iter().position(|(of, _)| *of == rank)?;
        // A failed request is repeated: it may have failed because the array was not there yet.
        self.0.swap_remove(at).1.take().ok().flatten()
    }
}
