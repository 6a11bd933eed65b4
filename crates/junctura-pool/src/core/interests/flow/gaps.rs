//! Gaps: reports of objects that a requirement will not receive.

use junctura_wire::Reply;
use junctura_wire::body::GapBody;

use crate::Effects;
use crate::core::clients::requests::ClientRequests;
use crate::core::interests::flow::follow::send_gap;
use crate::core::interests::gaps::LostObject;
use crate::core::objects::table::ObjectTable;

impl ClientRequests {
    /// Reports objects that a requirement will not receive.
    pub(in crate::core) fn disappoint(
        &mut self,
        objects: &ObjectTable,
        id: u32,
        lost: &[u32],
        reason: &'static str,
        fx: &mut impl Effects,
    ) {
        match self
            .interests
            .requirement_ref(id)
            .and_then(|requirement| self.interests.hearer(requirement))
        {
            Some((client, request)) => {
                let names = lost.iter().map(|&object| objects[object].name());
                send_gap(&mut self.count, client, request, names, reason, fx);
            }
            None => self.interests.keep_gaps(objects, id, lost, reason),
        }
    }

    /// Sends stored gaps to the reader, if there is one.
    pub(in crate::core) fn tell_lost(&mut self, id: u32, fx: &mut impl Effects) {
        let Some((client, request)) = self
            .interests
            .requirement_ref(id)
            .and_then(|requirement| self.interests.hearer(requirement))
        else {
            return;
        };
        let Some(lost) = self
            .interests
            .requirement_mut(id)
            .map(|requirement| std::mem::take(&mut requirement.lost))
        else {
            return;
        };
        self.interests.forget_lost(&lost);
        for same in lost.items.chunk_by(|one, next| one.reason == next.reason) {
            let names = same.iter().map(LostObject::name);
            send_gap(&mut self.count, client, request, names, same[0].reason, fx);
        }
        let mut unnamed = lost.unnamed;
        unnamed.sort_unstable();
        for (reason, unnamed) in unnamed {
            self.count.gaps += unnamed;
            let gap = GapBody {
                items: Vec::new(),
                reason: reason.into(),
                unnamed: Some(unnamed),
            };
            fx.reply(client, request, &Reply::Gap(gap));
        }
    }
}
