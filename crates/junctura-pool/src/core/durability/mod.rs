//! Objects that an archiver puts into a store, and offers that are answered when that is done.
//!
//! ```text
//!   offer, durable --> visible, acknowledged --> owed to a requirement --> its reader archives it, and reports it --> done
//!                                                          '--> released, lost, retracted; or its reader could not --> failed
//! ```
//! The pool writes nothing itself: an archiver is a client that receives through a named requirement, and releases an
//! object when it is durable. So an object to be archived stays until it is, even if the archiver crashes, and a slow
//! disk is a slow reader.

mod archived;

use std::collections::BTreeMap;

use junctura_model::{Code, Error};
use junctura_wire::fixed::MemberVersion;

use crate::core::objects::table::ObjectTable;

pub(in crate::core) const NOTHING_REQUIRES: &str = "no requirement of an archiver matches it";
pub(in crate::core) const UNARCHIVED: &str = "it was received and released, or withdrawn, before it was archived";

/// Offers that wait until their objects are archived.
#[derive(Default)]
pub(in crate::core) struct DurableOffers {
    /// By object: the request that waits for it.
    pub(in crate::core) waiting: BTreeMap<u32, ArchiveWaiter>,
    /// Offers whose objects no requirement is owed any longer, since this event.
    pub(in crate::core) forsaken: Vec<(u32, u64)>,
    /// By the number of its root: a tree of bundles with durable members, and the requests that are answered with it.
    pub(in crate::core) bundles: BTreeMap<u64, UnarchivedTree>,
    pub(in crate::core) settled: Vec<u64>,
}

/// A request that waits until an object is archived.
#[derive(Clone, Copy)]
pub(in crate::core) enum ArchiveWaiter {
    /// A client and its offer.
    Offer(u32, u64),
    /// The requests that wait for a tree of bundles.
    Bundle(u64),
}

/// The bundles that a request waits for.
#[derive(Clone, Copy)]
pub(in crate::core) enum AwaitedTree {
    Object(u32),
    /// A tree of bundles, by the number of its root.
    Bundle(u64),
}

/// A tree of bundles that is visible, but not archived.
pub(in crate::core) struct UnarchivedTree {
    /// The numbers of its bundles.
    pub(in crate::core) tree: Vec<u64>,
    /// The number of durable members that are not archived.
    pub(in crate::core) left: u64,
    pub(in crate::core) failure: Option<Error>,
    pub(in crate::core) waiting: Vec<DurabilityWaiter>,
}

/// A request to be answered when a tree is archived, or cannot be.
pub(in crate::core) enum DurabilityWaiter {
    /// A client that has one of its bundles open.
    Opener {
        opener: (u32, u64),
        first: u64,
        objects: u64,
        versions: Vec<MemberVersion>,
    },
    /// The request that completed it, with its answer.
    Asker { asker: (u32, u64), answer: u64 },
}

impl DurabilityWaiter {
    pub(in crate::core) fn who(&self) -> (u32, u64) {
        match self {
            Self::Opener { opener: who, .. } | Self::Asker { asker: who, .. } => *who,
        }
    }
}

impl UnarchivedTree {
    pub(in crate::core) fn forget(&mut self, client: u32, request: u64) {
        self.waiting.retain(|waiting| waiting.who() != (client, request));
    }

    /// Whether the result is known: all members are archived, or one cannot be.
    pub(in crate::core) fn is_settled(&self) -> bool {
        self.left == 0 || self.failure.is_some()
    }
}

impl DurableOffers {
    /// Removes a waiting request.
    pub(in crate::core) fn forget(&mut self, client: u32, request: u64, awaits: AwaitedTree) {
        match awaits {
            AwaitedTree::Object(object) => _ = self.waiting.remove(&object),
            AwaitedTree::Bundle(root) => {
                if let Some(lasting) = self.bundles.get_mut(&root) {
                    lasting.forget(client, request);
                }
            }
        }
    }

    /// Removes a client that no longer has a bundle open.
    pub(in crate::core) fn forget_opener(&mut self, client: u32, request: u64) {
        self.bundles
            .values_mut()
            .for_each(|lasting| lasting.forget(client, request));
    }

    pub(in crate::core) fn has_news(&self) -> bool {
        !self.forsaken.is_empty() || !self.settled.is_empty()
    }
}

impl DurableOffers {
    /// Records that no requirement is owed an object any longer: if its offer still waits, no archiver will store it.
    pub(in crate::core) fn note_unrequired(&mut self, object: u32) {
        match self.waiting.remove(&object) {
            None => {}
            Some(ArchiveWaiter::Offer(client, number)) => self.forsaken.push((client, number)),
            Some(ArchiveWaiter::Bundle(root)) => self.note_member(root, Some(UNARCHIVED)),
        }
    }

    /// Records that a durable member is archived, or why it cannot be.
    pub(in crate::core) fn note_member(&mut self, root: u64, failure: Option<&str>) {
        let Some(lasting) = self.bundles.get_mut(&root) else {
            return;
        };
        // It is to be answered already.
        if lasting.is_settled() {
            return;
        }
        match failure {
            None => lasting.left -= 1,
            Some(why) => lasting.failure = Some(bundle_not_archived(why)),
        }
        if lasting.is_settled() {
            self.settled.push(root);
        }
    }

    pub(in crate::core) fn lasting_of(&mut self, number: u64) -> Option<(u64, &mut UnarchivedTree)> {
        let mut all = self.bundles.iter_mut();
        all.find(|(_, lasting)| lasting.tree.contains(&number))
            .map(|(&root, lasting)| (root, lasting))
    }

    /// The root of the tree that a bundle is of, while members of it are to be archived.
    pub(in crate::core) fn root_of(&self, number: u64) -> Option<u64> {
        let mut all = self.bundles.iter();
        all.find(|(_, lasting)| lasting.tree.contains(&number))
            .map(|(&root, _)| root)
    }

    /// Starts to wait for the durable members of a tree that has just become visible.
    pub(in crate::core) fn await_members(
        &mut self,
        objects: &ObjectTable,
        root: u64,
        tree: &[u64],
        durable: impl IntoIterator<Item = u32>,
    ) {
        let mut lasting = UnarchivedTree {
            tree: tree.to_vec(),
            left: 0,
            failure: None,
            waiting: Vec::new(),
        };
        for object in durable {
            lasting.left += 1;
            if objects[object].owed == 0 {
                lasting.failure = Some(bundle_not_archived(NOTHING_REQUIRES));
            } else {
                self.waiting.insert(object, ArchiveWaiter::Bundle(root));
            }
        }
        if lasting.left == 0 {
            return;
        }
        if lasting.is_settled() {
            self.settled.push(root);
        }
        self.bundles.insert(root, lasting);
    }
}

fn bundle_not_archived(why: &str) -> Error {
    let cause = format!("the bundle is visible, but a member is not archived: {why}");
    Error::new(Code::Io, "durability", cause)
}
