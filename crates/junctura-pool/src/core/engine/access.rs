//! Refuses requests that exceed the rights of a client's token.

use junctura_model::{Code, Error};
use junctura_wire::rights::{AccessRight, NeededRight, needed};
use junctura_wire::{FrameKind, Request};

use crate::core::clients::client::ClientAccess;
use crate::core::interests::requirement::RequirementState;
use crate::core::interests::table::InterestTable;

/// Returns why this client may not send this request; `None`: it may.
pub(super) fn refusal(access: ClientAccess, request: &Request<'_>, interests: &InterestTable) -> Option<Error> {
    let right = needed(request.kind());
    if access.rights.allow(right) || is_its_own(access, request, interests) {
        return None;
    }
    let missing = match right {
        NeededRight::Nothing => return None,
        NeededRight::One(right) | NeededRight::Either(right, _) => right,
    };
    let token = access.token.map(|id| format!(" {id:08x}")).unwrap_or_default();
    let cause = format!(
        "it needs the right {}, and the token{token} of this client has {}; on the server, \
         `junctura token make FOLDER --for NAME --rights {}` makes one that has it",
        right.text(),
        access.rights,
        enough(access, missing)
    );
    Some(Error::new(Code::Denied, action(request.kind()), cause))
}

/// Returns the action of a request, for people.
fn action(kind: FrameKind) -> &'static str {
    match kind {
        FrameKind::Drain => "stop the server",
        FrameKind::Retract => "remove a requirement",
        FrameKind::Require => "make a requirement",
        FrameKind::Withdraw | FrameKind::WithdrawAll => "withdraw objects",
        FrameKind::Forget => "free keys",
        FrameKind::Archived => "report archived objects",
        FrameKind::Stat | FrameKind::Board => "read counters",
        FrameKind::Subscribe => "read events",
        FrameKind::Waits | FrameKind::Explain | FrameKind::Keepers => "ask why requests wait and what keeps memory",
        FrameKind::Wanted => "check whether an object is wanted",
        FrameKind::Demand
        | FrameKind::List
        | FrameKind::Follow
        | FrameKind::Bundles
        | FrameKind::Pack
        | FrameKind::Tally => "read objects",
        _ => "offer objects",
    }
}

/// Whether the request ends a requirement that a client with the same token made.
fn is_its_own(access: ClientAccess, request: &Request<'_>, interests: &InterestTable) -> bool {
    let Request::Retract(retract) = request else {
        return false;
    };
    let named = interests.find_named(&retract.name).ok();
    let state = named.and_then(|id| interests.requirement_ref(id));
    let made_by = state.and_then(RequirementState::named).and_then(|named| named.made_by);
    access.token.is_some() && made_by == access.token
}

/// Returns the rights that a new token needs: those of the old one, and the missing one.
fn enough(access: ClientAccess, missing: AccessRight) -> String {
    match missing {
        AccessRight::Admin => missing.name().to_owned(),
        _ => format!("{},{}", access.rights, missing.name()),
    }
}
