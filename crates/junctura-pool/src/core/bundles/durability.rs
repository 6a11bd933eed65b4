//! Bundles with durable members: everyone who waits for one waits until it is archived.
//!
//! ```text
//!   visible --> each durable member is owed to a requirement --> all are archived ------> completed, done
//!                                                          '--> one of them is not ----> ended, failed
//! ```
//! The members are visible all the while; only those who have the bundle open, who sealed it, or whose durable offer completed it are
//! answered later. The first member that will not be archived is the answer for all of them.

use junctura_model::{Code, Error};
use junctura_wire::Reply;
use junctura_wire::body::Failure;
use junctura_wire::fixed::MemberVersion;

use super::Member;
use super::completion::send_completed;
use crate::Effects;
use crate::core::clients::client::Pending;
use crate::core::durability::{Awaits, NOTHING_REQUIRES, Waits};
use crate::core::engine::Core;

/// A tree of bundles that is visible, and not archived.
pub(in crate::core) struct Lasting {
    /// The numbers of its bundles.
    tree: Vec<u64>,
    /// How many durable members are not archived.
    left: u64,
    failure: Option<Error>,
    waiting: Vec<Waiting>,
}

/// Who is answered when a tree is archived, or will not be.
enum Waiting {
    /// Who has one of its bundles open.
    Opener {
        opener: (u32, u64),
        first: u64,
        objects: u64,
        versions: Vec<MemberVersion>,
    },
    /// Whose request completed it, with the answer.
    Asker { asker: (u32, u64), answer: u64 },
}

impl Waiting {
    fn who(&self) -> (u32, u64) {
        match self {
            Self::Opener { opener: who, .. } | Self::Asker { asker: who, .. } => *who,
        }
    }
}

impl Lasting {
    pub(in crate::core) fn forget(&mut self, client: u32, request: u64) {
        self.waiting.retain(|waiting| waiting.who() != (client, request));
    }

    /// Nothing more is awaited: all is archived, or it is known that something will not be.
    fn is_settled(&self) -> bool {
        self.left == 0 || self.failure.is_some()
    }
}

impl Core {
    /// A tree has just become visible: if some of its members are to be durable, they are waited for from here on.
    pub(super) fn await_members(&mut self, root: u64, tree: &[u64], members: &[(u128, Member)]) {
        let durable = members.iter().filter(|(_, member)| member.is_durable);
        let mut lasting = Lasting {
            tree: tree.to_vec(),
            left: 0,
            failure: None,
            waiting: Vec::new(),
        };
        for (_, member) in durable {
            lasting.left += 1;
            if self.objects[member.object].owed == 0 {
                lasting.failure = Some(not_archived(NOTHING_REQUIRES));
            } else {
                self.durable.waiting.insert(member.object, Waits::Bundle(root));
            }
        }
        if lasting.left == 0 {
            return;
        }
        if lasting.is_settled() {
            self.durable.settled.push(root);
        }
        self.durable.bundles.insert(root, lasting);
    }

    /// Tells an opener what became visible, now or when that is archived.
    pub(super) fn tell_completed(
        &mut self,
        number: u64,
        opener: (u32, u64),
        (first, objects): (u64, u64),
        versions: &[MemberVersion],
        fx: &mut impl Effects,
    ) {
        match self.lasting_of(number) {
            None => send_completed(opener, first, objects, versions, fx),
            Some((_, lasting)) => lasting.waiting.push(Waiting::Opener {
                opener,
                first,
                objects,
                versions: versions.to_vec(),
            }),
        }
    }

    /// Answers a request that completed a bundle, now or when what it made visible is archived.
    pub(in crate::core) fn answer_completing(
        &mut self,
        (client, request): (u32, u64),
        number: u64,
        answer: u64,
        fx: &mut impl Effects,
    ) {
        let Some((root, _)) = self.lasting_of(number) else {
            return fx.reply(client, request, &Reply::Done(answer));
        };
        if let Err(error) = self
            .clients
            .add_pending(client, request, Pending::Durable(Awaits::Bundle(root)))
        {
            return fx.reply(client, request, &Reply::Failed(Failure::from(&error)));
        }
        self.limit_wait(client, request);
        if let Some((_, lasting)) = self.lasting_of(number) {
            let asker = (client, request);
            lasting.waiting.push(Waiting::Asker { asker, answer });
        }
    }

    fn lasting_of(&mut self, number: u64) -> Option<(u64, &mut Lasting)> {
        let mut all = self.durable.bundles.iter_mut();
        all.find(|(_, lasting)| lasting.tree.contains(&number))
            .map(|(&root, lasting)| (root, lasting))
    }

    /// A durable member is archived, or will not be, and why.
    pub(in crate::core) fn note_member(&mut self, root: u64, failure: Option<&str>) {
        let Some(lasting) = self.durable.bundles.get_mut(&root) else {
            return;
        };
        // It is answered soon already.
        if lasting.is_settled() {
            return;
        }
        match failure {
            None => lasting.left -= 1,
            Some(why) => lasting.failure = Some(not_archived(why)),
        }
        if lasting.is_settled() {
            self.durable.settled.push(root);
        }
    }

    /// Answers those who have waited for bundles.
    pub(in crate::core) fn answer_settled(&mut self, fx: &mut impl Effects) {
        for root in std::mem::take(&mut self.durable.settled) {
            let Some(lasting) = self.durable.bundles.remove(&root) else {
                continue;
            };
            for waiting in lasting.waiting {
                self.answer_waiting(waiting, lasting.failure.as_ref(), fx);
            }
        }
    }

    fn answer_waiting(&mut self, waiting: Waiting, failure: Option<&Error>, fx: &mut impl Effects) {
        let (client, request) = waiting.who();
        match (waiting, failure) {
            (
                Waiting::Opener {
                    opener,
                    first,
                    objects,
                    versions,
                },
                None,
            ) => send_completed(opener, first, objects, &versions, fx),
            (Waiting::Opener { .. }, Some(error)) => {
                self.clients.settle_pending(&mut self.timers, client, request);
                fx.reply(client, request, &Reply::Ended(Failure::from(error)));
            }
            (Waiting::Asker { answer, .. }, None) => {
                self.clients.settle_pending(&mut self.timers, client, request);
                fx.reply(client, request, &Reply::Done(answer));
            }
            (Waiting::Asker { .. }, Some(error)) => {
                self.clients.settle_pending(&mut self.timers, client, request);
                fx.reply(client, request, &Reply::Failed(Failure::from(error)));
            }
        }
    }
}

fn not_archived(why: &str) -> Error {
    let cause = format!("the bundle is visible, and a member of it is not archived: {why}");
    Error::new(Code::Io, "durability", cause)
}
