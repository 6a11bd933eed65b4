//! Offers a piece in one round trip: its bundle is opened, and the piece and the description of the array are staged, by requests
//! that are sent together.

use junctura_model::{Code, Result};

use super::{About, PieceOffer, is_second, unless_complete};
use crate::connection::unexpected;
use crate::verbs::allocation::{Allocation, FinishedPayload};
use crate::verbs::bundle::{FirstMember, OpenedBundle, open_path_with};
use crate::verbs::offer::OfferedPayload;

impl PieceOffer<'_> {
    /// Offers a copy of a piece of an array whose bundle is not open here. `None`: other requests, or memory, are needed first.
    pub(super) fn offer_at_once(&self, about: &About, mine: &[u8]) -> Option<Result<()>> {
        let connection = &self.scope.connection;
        let asks_store = connection.depot_of_rejecting(self.terms.schema()).is_some();
        if self.scope.within.is_some() || asks_store {
            return None;
        }
        self.open_and_stage(about, mine).transpose()
    }

    fn open_and_stage(&self, about: &About, mine: &[u8]) -> Result<Option<()>> {
        let connection = &self.scope.connection;
        let (path, own) = (self.path()?, self.own_object());
        let piece = self.has_elements().then(|| self.as_object()).transpose()?;
        let mut members = Vec::with_capacity(2);
        let ready;
        if let Some((terms, record)) = &piece {
            let Some(copy) = self.ready_copy(mine)? else {
                return Ok(None);
            };
            ready = copy;
            members.push(FirstMember {
                terms: *terms,
                record,
                content: ready.content(),
            });
        }
        if let Some((terms, record, text)) = &own
            && connection.goes_inline(text.len())
        {
            members.push(FirstMember {
                // A piece that is refused must not change the description that is staged already.
                terms: terms.once(),
                record,
                content: OfferedPayload::Inline(text.as_bytes()),
            });
        }
        let attributes = about.iter().map(|(name, value)| (*name, value.as_str()));
        let opened = open_path_with(connection, &path, attributes, self.bundle_options(), &members)?;
        self.accept(opened, about, piece.is_some(), mine).map(Some)
    }

    fn accept(&self, opened: OpenedBundle, about: &About, has_piece: bool, mine: &[u8]) -> Result<()> {
        let OpenedBundle { bundle, mut staged } = opened;
        let bundle = match bundle {
            Ok(bundle) => self.keep(bundle, about.clone())?,
            Err(error) => return self.come_late(error, mine),
        };
        if has_piece {
            match staged.pop_front() {
                Some(Err(error)) if is_second(&error) => self.must_be_the_same(mine)?,
                Some(staged) => drop(staged?),
                None => return Err(unexpected("no acknowledgement")),
            }
        }
        match staged.pop_front() {
            None => self.stage_head(&bundle),
            Some(Err(error)) if error.code() == Code::AlreadyExists => self.stage_head(&bundle),
            Some(staged) => unless_complete(staged.map(drop)),
        }
    }

    /// Returns a copy of the piece; `None`: there is no memory at hand.
    fn ready_copy(&self, mine: &[u8]) -> Result<Option<FinishedPayload>> {
        let connection = &self.scope.connection;
        if connection.goes_inline(mine.len()) {
            return Ok(Some(FinishedPayload::Heap(mine.to_vec())));
        }
        let Some(mut allocation) = Allocation::at_hand(connection, mine.len())? else {
            return Ok(None);
        };
        allocation.write(0, mine)?;
        Ok(Some(allocation.into_ready()))
    }
}
