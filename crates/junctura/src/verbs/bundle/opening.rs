//! Opens a bundle and stages its first members in one round trip: the requests that stage them name the request that opens it.

use std::collections::VecDeque;
use std::sync::Arc;

use junctura_model::{IntoGiven, Result};
use junctura_wire::Request;

use super::{Bundle, BundleOptions, asked};
use crate::connection::in_flight::{ExchangeKind, ServerMessage};
use crate::connection::state::{ConnectionState, StreamStop};
use crate::connection::{PoolConnection, ThreadWait, unexpected};
use crate::verbs::offer::{OfferTerms, OfferedPayload};

/// A member that is staged when its bundle is opened.
pub(crate) struct FirstMember<'a> {
    pub(crate) terms: OfferTerms,
    pub(crate) record: &'a [u8],
    pub(crate) content: OfferedPayload<'a>,
}

/// The answers of the server: for the bundle, and for each member.
pub(crate) struct OpenedBundle {
    pub(crate) bundle: Result<Bundle>,
    pub(crate) staged: VecDeque<Result<u64>>,
}

/// Opens the bundle at a path, or joins the producers that have it open, and stages members in it. Blocks until all is
/// answered. The memory of members that are not staged is freed.
///
/// # Errors
/// Those of attributes that the schema does not accept, and of the connection.
pub(crate) fn open_path_with<'a, V: IntoGiven<'a>>(
    connection: &Arc<PoolConnection>,
    path: &str,
    attributes: impl IntoIterator<Item = (&'a str, V)>,
    options: BundleOptions<'_>,
    members: &[FirstMember<'_>],
) -> Result<OpenedBundle> {
    let request = asked(connection, path, attributes, options).map(Request::Bundle);
    let mut state = connection.lock()?;
    let mut left = members.iter();
    let begun = request.and_then(|request| begin(connection, &mut state, &request, &mut left));
    let (opening, offers) = match begun {
        Ok(begun) => begun,
        Err(error) => {
            left.filter_map(|member| member.content.slot())
                .for_each(|slot| state.free_slot(slot));
            state.rouse_for_slots();
            drop(connection.wake_tasks(state));
            return Err(error);
        }
    };
    let (mut answer, mut staged, mut acks) = (None, VecDeque::new(), VecDeque::new());
    let take = |state: &mut ConnectionState| {
        if answer.is_none() {
            answer = state.mail.get(opening)?.take();
        }
        state.mail.get(offers)?.take_acks(&mut acks);
        staged.append(&mut acks);
        (answer.is_some() && staged.len() == members.len()).then_some(())
    };
    let what = [opening, offers];
    let (mut state, waited) = connection.wait_keeping(state, ThreadWait::letters_until(&what, None), take);
    if let Err(error) = waited {
        state.abandon_now(opening, StreamStop::End);
        state.abandon_now(offers, StreamStop::Silently);
        return Err(error);
    }
    state.mail.close(offers);
    let bundle = match answer {
        Some(ServerMessage::Began(_)) => Ok(Bundle::began(connection, Some(path.to_owned()), opening)),
        Some(ServerMessage::Failed(error) | ServerMessage::Ended(error)) => {
            state.mail.close(opening);
            Err(error)
        }
        _ => {
            state.abandon_now(opening, StreamStop::End);
            Err(unexpected("no beginning"))
        }
    };
    Ok(OpenedBundle { bundle, staged })
}

/// Appends all requests; returns the conversation of the bundle and that of its members.
fn begin<'m>(
    connection: &PoolConnection,
    state: &mut ConnectionState,
    request: &Request<'_>,
    members: &mut impl Iterator<Item = &'m FirstMember<'m>>,
) -> Result<(u64, u64)> {
    let opening = state.mail.open(ExchangeKind::Stream)?;
    if let Err(error) = state.append(opening, request) {
        state.mail.close(opening);
        return Err(error);
    }
    match stage(connection, state, opening, members) {
        Ok(offers) => Ok((opening, offers)),
        Err(error) => {
            state.abandon(opening, StreamStop::End)?;
            Err(error)
        }
    }
}

fn stage<'m>(
    connection: &PoolConnection,
    state: &mut ConnectionState,
    opening: u64,
    members: &mut impl Iterator<Item = &'m FirstMember<'m>>,
) -> Result<u64> {
    let offers = state.mail.open(ExchangeKind::Offers)?;
    let mut number = offers;
    for member in members {
        let terms = member.terms.within(opening);
        if let Err(error) = connection.append_offer(state, number, terms, member.record, member.content) {
            state.abandon(offers, StreamStop::Silently)?;
            return Err(error);
        }
        number = state.mail.next(offers);
    }
    Ok(offers)
}
