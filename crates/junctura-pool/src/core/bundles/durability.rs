//! Bundles with durable members: every request that waits for one waits until it is archived.
//!
//! ```text
//!   visible --> each durable member is owed to a requirement --> all are archived ------> completed, done
//!                                                          '--> one of them is not ----> ended, failed
//! ```
//! The members are visible all the while; only the requests that have the bundle open, seal it, or complete it by a
//! durable offer are answered later. The first member that cannot be archived is the answer for all of these requests.

use junctura_model::Error;
use junctura_wire::Reply;
use junctura_wire::body::WireFailure;
use junctura_wire::fixed::MemberVersion;

use super::completion::send_completed;
use crate::Effects;
use crate::core::clients::client::PendingAnswer;
use crate::core::clients::requests::ClientRequests;
use crate::core::durability::DurableOffers;
use crate::core::durability::{AwaitedTree, DurabilityWaiter};

impl DurableOffers {
    /// Reports to an opener the visible versions, now or when they are archived.
    pub(in crate::core) fn tell_completed(
        &mut self,
        number: u64,
        opener: (u32, u64),
        (first, objects): (u64, u64),
        versions: &[MemberVersion],
        fx: &mut impl Effects,
    ) {
        match self.lasting_of(number) {
            None => send_completed(opener, first, objects, versions, fx),
            Some((_, lasting)) => lasting.waiting.push(DurabilityWaiter::Opener {
                opener,
                first,
                objects,
                versions: versions.to_vec(),
            }),
        }
    }

    /// Answers a request that completed a bundle, now or when the bundle's objects are archived.
    pub(in crate::core) fn answer_completing(
        &mut self,
        asked: &mut ClientRequests,
        (client, request): (u32, u64),
        number: u64,
        answer: u64,
        fx: &mut impl Effects,
    ) {
        let Some((root, _)) = self.lasting_of(number) else {
            return fx.reply(client, request, &Reply::Done(answer));
        };
        if let Err(error) =
            asked
                .clients
                .add_pending(client, request, PendingAnswer::Durable(AwaitedTree::Bundle(root)))
        {
            return fx.reply(client, request, &Reply::Failed(WireFailure::from(&error)));
        }
        asked.limit_wait(client, request);
        if let Some((_, lasting)) = self.lasting_of(number) {
            let by = (client, request);
            lasting.waiting.push(DurabilityWaiter::Asker { asker: by, answer });
        }
    }

    /// Answers the requests that have waited for bundles.
    pub(in crate::core) fn answer_settled(&mut self, asked: &mut ClientRequests, fx: &mut impl Effects) {
        for root in std::mem::take(&mut self.settled) {
            let Some(lasting) = self.bundles.remove(&root) else {
                continue;
            };
            for waiting in lasting.waiting {
                asked.answer_waiting(waiting, lasting.failure.as_ref(), fx);
            }
        }
    }
}

impl ClientRequests {
    pub(in crate::core) fn answer_waiting(
        &mut self,
        waiting: DurabilityWaiter,
        failure: Option<&Error>,
        fx: &mut impl Effects,
    ) {
        let (client, request) = waiting.who();
        match (waiting, failure) {
            (
                DurabilityWaiter::Opener {
                    opener,
                    first,
                    objects,
                    versions,
                },
                None,
            ) => send_completed(opener, first, objects, &versions, fx),
            (DurabilityWaiter::Opener { .. }, Some(error)) => {
                self.settle(client, request);
                fx.reply(client, request, &Reply::Ended(WireFailure::from(error)));
            }
            (DurabilityWaiter::Asker { answer, .. }, None) => {
                self.settle(client, request);
                fx.reply(client, request, &Reply::Done(answer));
            }
            (DurabilityWaiter::Asker { .. }, Some(error)) => {
                self.settle(client, request);
                fx.reply(client, request, &Reply::Failed(WireFailure::from(error)));
            }
        }
    }
}
