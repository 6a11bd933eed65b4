//! Opening and leaving bundles.

use junctura_model::Result;
use junctura_wire::Reply;
use junctura_wire::body;

use super::path;
use crate::Effects;
use crate::core::clients::client::PendingAnswer;
use crate::core::engine::Core;
use crate::core::exchange::ObjectExchange;

impl Core {
    /// Opens a bundle, or joins the clients that have it open.
    pub(in crate::core) fn open_bundle(
        &mut self,
        client: u32,
        request: u64,
        asked: &body::BundleRequest<'_>,
        fx: &mut impl Effects,
    ) -> Result<()> {
        let terms = self.exchange.bundles.bundle_terms(asked)?;
        if let Some(path) = &asked.path {
            path::check_path(path, &self.config.limits)?;
        }
        let standing = asked
            .path
            .as_deref()
            .and_then(|path| self.exchange.bundles.paths.get(path).copied());
        let number = match standing {
            Some(number) => {
                let agreed = self.exchange.bundles.agree_on_bundle(number, &terms)?;
                self.exchange
                    .asked
                    .clients
                    .add_pending(client, request, PendingAnswer::Bundle(number))?;
                if let Some(bundle) = self.exchange.bundles.table.get_mut(&number) {
                    bundle.terms = agreed;
                }
                number
            }
            None => self.exchange.bundles.make_bundle(
                &mut self.exchange.asked.clients,
                client,
                request,
                asked.path.as_deref(),
                terms,
            )?,
        };
        if let Some(bundle) = self.exchange.bundles.table.get_mut(&number) {
            bundle.openers.insert((client, request));
        }
        self.exchange
            .bundles
            .count_openers(&mut self.exchange.asked.timers, number, 1);
        fx.reply(client, request, &Reply::Began(self.exchange.objects.sequence));
        self.exchange.complete_if_whole(number, Some(client), fx);
        Ok(())
    }
}

impl ObjectExchange {
    /// Ends the opening of a bundle by a client. The caller settles its request.
    pub(in crate::core) fn leave_bundle(&mut self, client: u32, request: u64, number: u64, fx: &mut impl Effects) {
        self.durability.forget_opener(client, request);
        let Some(bundle) = self.bundles.table.get_mut(&number) else {
            return;
        };
        if !bundle.openers.remove(&(client, request)) {
            return;
        }
        if bundle.path.is_none() {
            return self.abort_bundle(number, None, "its producer has left it", fx);
        }
        self.bundles.count_openers(&mut self.asked.timers, number, -1);
    }
}
