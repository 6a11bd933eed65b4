//! Lists, page by page.

use junctura_model::{Code, Error, Result};
use junctura_wire::body::ListRequest;
use junctura_wire::fixed::{ListedHead, SPILLED};
use junctura_wire::{ListedPage, Reply};
use zerocopy::IntoBytes;

use crate::Effects;
use crate::core::bundles::staged_flag;
use crate::core::clients::client::PendingAnswer;
use crate::core::clients::listing::OpenListing;
use crate::core::clients::table::ClientTable;
use crate::core::deferred::DeferredWork;
use crate::core::engine::Core;
use crate::core::objects::index::{keep_watching, watch_all};
use crate::core::objects::object::PayloadLocation;
use crate::core::objects::table::ObjectTable;

const OBJECTS_PER_PAGE: usize = 256;
const OBJECTS_PER_PAGE_MIN: usize = 32;

impl Core {
    pub(in crate::core) fn list(
        &mut self,
        client: u32,
        request: u64,
        list: &ListRequest<'_>,
        fx: &mut impl Effects,
    ) -> Result<()> {
        if list.after.is_some() {
            let cause = "a list from a position has a limit";
            return Err(Error::new(Code::InvalidArgument, "after", cause));
        }
        let exchange = &mut self.exchange;
        let selectors = exchange.asked.interests.selectors(&list.selector)?;
        let sorting = exchange.objects.sorting(&list.order)?;
        let among = list
            .bundle
            .as_deref()
            .map(|path| exchange.bundles.bundles_under(path))
            .transpose()?;
        exchange.asked.clients.may_ask(client, request)?;
        let sight = exchange.sight();
        let mut found = exchange
            .objects
            .sorted_matches(&mut exchange.asked.clients, sight, &selectors);
        if list.incomplete {
            let staged = exchange.bundles.staged_matches(&exchange.objects, &selectors);
            watch_all(&mut exchange.objects, &staged);
            found.extend(staged);
        }
        if let Some(among) = among {
            keep_watching(&mut exchange.objects, &mut found, |object| {
                among.contains(&object.bundle)
            });
        }
        let bytes = size_of::<OpenListing>() + found.len() * size_of::<u32>();
        if let Err(refusal) = exchange.asked.clients.weigh_asked(client, bytes) {
            exchange.deferred.release_queue(&mut exchange.objects, found.take_all());
            return Err(refusal);
        }
        let listing = OpenListing {
            sorting,
            rest: found,
            bytes,
        };
        exchange
            .asked
            .clients
            .add_pending(client, request, PendingAnswer::List(Box::new(listing)))?;
        fx.reply(client, request, &Reply::Began(exchange.objects.sequence));
        exchange.asked.clients.more(&mut exchange.objects, client, request, fx);
        Ok(())
    }
}

impl ClientTable {
    pub(in crate::core) fn more(
        &mut self,
        objects: &mut ObjectTable,
        client: u32,
        request: u64,
        fx: &mut impl Effects,
    ) {
        if let Some(mut listing) = self.take_listing(client, request) {
            objects.send_page(client, request, &mut listing, fx);
            self.put_listing(client, request, listing);
        }
    }

    /// Ends a list early. Its client's request is the caller's to settle.
    pub(in crate::core) fn drop_list(
        &mut self,
        objects: &mut ObjectTable,
        deferred: &mut DeferredWork,
        client: u32,
        request: u64,
    ) {
        if let Some(mut listing) = self.take_listing(client, request) {
            self.weigh_asked_no_more(client, listing.bytes);
            deferred.release_queue(objects, listing.rest.take_all());
        }
    }
}

impl ObjectTable {
    pub(in crate::core) fn send_page(
        &mut self,
        client: u32,
        request: u64,
        listing: &mut OpenListing,
        fx: &mut impl Effects,
    ) {
        let mut entries = Vec::new();
        // Each object of the first pages is sought among very many runs.
        let most = (OBJECTS_PER_PAGE / (1 + listing.rest.runs() / OBJECTS_PER_PAGE)).max(OBJECTS_PER_PAGE_MIN);
        for _ in 0..most {
            let Some(id) = listing.rest.next(|a, b| self.compare(&listing.sorting, a, b)) else {
                break;
            };
            let object = &self[id];
            let staged = staged_flag(object.sequence);
            let is_in_file = matches!(object.place, PayloadLocation::File { .. });
            let spilled = if is_in_file { SPILLED } else { 0 };
            let head = ListedHead {
                sequence: if staged == 0 { object.sequence } else { object.bundle }.into(),
                schema: object.schema.into(),
                flags: (staged | spilled).into(),
                record_length: (object.record.len() as u32).into(),
                length: object.length.into(),
            };
            entries.extend_from_slice(head.as_bytes());
            entries.extend_from_slice(&object.record);
            self.unwatch(id);
            if entries.len() > junctura_wire::frame::BODY_BYTES_MAX / 2 {
                break;
            }
        }
        fx.reply(
            client,
            request,
            &Reply::Listed(ListedPage {
                last: listing.rest.is_empty(),
                entries: &entries,
            }),
        );
    }
}
