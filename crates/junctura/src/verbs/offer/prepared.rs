//! Non-blocking offers: first the requests that must be answered before the offer, then memory, then the offer itself.
//!
//! ```text
//!  names of consumers --> key in the store behind the pool? --> wanted? --> memory --> copy --> offer --> acknowledged
//!  '--------------- each only where it is needed ---------------------'
//! ```

use std::sync::Arc;

use junctura_model::{Consumers, IntoGiven, RecordRef, Result};

use super::{OfferOptions, OfferTerms, OfferedPayload};
use crate::connection::PoolConnection;
use crate::pending::Pending;
use crate::verbs::allocation::Allocation;
use crate::verbs::wanted::not_wanted;

/// Makes the result of an offer from its own number and the sequence number of the object.
pub(crate) type FinishOffer<T> = fn(&PoolConnection, u64, u64) -> T;

/// An offer whose attributes have become a record.
pub(crate) struct PreparedOffer {
    connection: Arc<PoolConnection>,
    terms: OfferTerms,
    record: Vec<u8>,
    /// Names that the server must receive first.
    names: Option<Consumers>,
    /// The store behind the pool must be searched for its key.
    looks_behind: bool,
    /// The server must confirm that a consumer wants it, before memory is allocated for it.
    pub(crate) probes: bool,
}

impl PreparedOffer {
    pub(crate) fn new<'a, V: IntoGiven<'a>>(
        connection: &Arc<PoolConnection>,
        attributes: impl IntoIterator<Item = (&'a str, V)>,
        options: OfferOptions<'_>,
    ) -> Result<Self> {
        let probes = options.if_wanted;
        let (terms, names) = connection.known_terms(options)?;
        let mut record = Vec::new();
        connection.record(terms, attributes, &mut record)?;
        Ok(Self {
            connection: Arc::clone(connection),
            terms,
            record,
            names,
            looks_behind: connection.depot_of_rejecting(terms.schema).is_some(),
            probes,
        })
    }

    /// Returns the same offer as a member of a bundle.
    pub(crate) fn within(mut self, bundle: u64) -> Self {
        self.terms = self.terms.within(bundle);
        self.probes = false;
        self
    }

    /// Offers a copy of a payload.
    pub(crate) fn begin_copy<T: Send + 'static>(self, payload: &[u8], finish: FinishOffer<T>) -> Result<Pending<T>> {
        if self.has_questions() {
            let payload = payload.to_vec();
            return self.begin_asking(move |asked| asked.begin_copy(&payload, finish));
        }
        if self.connection.goes_inline(payload.len()) {
            return self.send(OfferedPayload::Inline(payload), finish);
        }
        let is_staged = self.terms.bundle.is_some();
        let mut memory = self.connection.begin_allocate(payload.len(), is_staged);
        if let Some(allocation) = memory.take()? {
            return self.fill(allocation, payload, finish);
        }
        let payload = payload.to_vec();
        Ok(memory.then(move |allocation| self.fill(allocation?, &payload, finish)))
    }

    fn fill<T: 'static>(
        &self,
        mut allocation: Allocation,
        payload: &[u8],
        finish: FinishOffer<T>,
    ) -> Result<Pending<T>> {
        allocation.write(0, payload)?;
        self.send(allocation.into_ready().content(), finish)
    }

    /// Offers memory that was filled in place.
    pub(crate) fn begin_filled<T: Send + 'static>(
        mut self,
        allocation: Allocation,
        finish: FinishOffer<T>,
    ) -> Result<Pending<T>> {
        self.probes = false;
        if self.has_questions() {
            return self.begin_asking(move |asked| asked.begin_filled(allocation, finish));
        }
        self.send(allocation.into_ready().content(), finish)
    }

    /// Returns the same offer for a pipeline: memory is allocated without a request.
    #[cfg(feature = "async")]
    pub(crate) fn for_pipeline(mut self) -> Self {
        self.probes = false;
        self
    }

    /// Sends the requests that must be answered first.
    #[cfg(feature = "async")]
    pub(crate) fn begin_ready(self) -> Result<Pending<Self>> {
        if self.has_questions() {
            return self.begin_asking(Self::begin_ready);
        }
        let connection = Arc::clone(&self.connection);
        Ok(Pending::known(&connection, Ok(self)))
    }

    #[cfg(feature = "async")]
    pub(crate) fn terms(&self) -> OfferTerms {
        self.terms
    }

    #[cfg(feature = "async")]
    pub(crate) fn record(&self) -> &[u8] {
        &self.record
    }

    fn has_questions(&self) -> bool {
        self.names.is_some() || self.looks_behind || self.probes
    }

    /// Sends the first of these requests, then continues with `rest`.
    fn begin_asking<T>(mut self, rest: impl FnOnce(Self) -> Result<Pending<T>> + Send + 'static) -> Result<Pending<T>> {
        if let Some(names) = self.names.take() {
            let number = self.connection.begin_names(names)?;
            return Ok(number.then(move |number| {
                self.terms.releases = number?;
                rest(self)
            }));
        }
        if std::mem::take(&mut self.looks_behind) {
            let connection = Arc::clone(&self.connection);
            let look = move || self.refuse_behind().map(|()| self);
            return Ok(Pending::work(&connection, look, drop).then(|asked| rest(asked?)));
        }
        self.probes = false;
        let wanted = self.connection.begin_wanted(self.terms.schema, &self.record)?;
        Ok(wanted.then(move |wanted| match wanted? {
            0 => Err(not_wanted(&self.connection.key_text(self.terms.schema, &self.record))),
            _ => rest(self),
        }))
    }

    fn refuse_behind(&self) -> Result<()> {
        let Some(depot) = self.connection.depot_of_rejecting(self.terms.schema) else {
            return Ok(());
        };
        let schema = self.connection.schema(self.terms.schema);
        depot.refuse_second(schema, RecordRef::trusted(&self.record))
    }

    fn send<T: 'static>(&self, content: OfferedPayload<'_>, finish: FinishOffer<T>) -> Result<Pending<T>> {
        let connection = &self.connection;
        connection.begin_acknowledged(
            |state, number| connection.append_offer(state, number, self.terms, &self.record, content),
            move |connection, number, sequence| finish(connection, number, sequence),
        )
    }
}
