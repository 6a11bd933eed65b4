//! Words for clients, requirements, bundles, causes and times.

use junctura::reasons::{BundleReference, ClientReference, ReasonReference, RequirementReference, WaitingRequest};
use junctura_terminal::size;

/// A time that is given in milliseconds.
pub(super) fn time(ms: u64) -> String {
    let seconds = ms as f64 / 1000.0;
    match seconds {
        _ if ms < 1000 => format!("{ms} ms"),
        _ if seconds < 120.0 => format!("{seconds:.0} s"),
        _ if seconds < 7200.0 => format!("{:.0} min", seconds / 60.0),
        _ if seconds < 172_800.0 => format!("{:.0} h", seconds / 3600.0),
        _ => format!("{:.0} d", seconds / 86_400.0),
    }
}

pub(super) fn client(client: &ClientReference) -> String {
    if client.name.is_empty() && client.pid == 0 {
        return format!("client {} (disconnected)", client.client);
    }
    format!("{} (pid {})", client.name, client.pid)
}

/// The name of a requirement, or its selector.
pub(super) fn requirement_name(requirement: &RequirementReference) -> String {
    let kind = if requirement.is_group { "group" } else { "requirement" };
    if requirement.name.is_empty() {
        format!("{kind} of {:?}", requirement.selector)
    } else {
        format!("{kind} {}", requirement.name)
    }
}

pub(super) fn requirement(one: &RequirementReference) -> String {
    let (owed, bytes) = (count(one.owed, "object"), size::bytes(one.owed_bytes));
    let mut parts = vec![format!("{}: owed {owed}, {bytes}", requirement_name(one)), readers(one)];
    if one.in_flight > 0 {
        parts.push(format!("{} delivered and not released", one.in_flight));
    }
    if one.is_broken {
        parts.push("it is broken".to_owned());
    }
    parts.extend(one.idle_ms.map(|idle| format!("no release for {}", time(idle))));
    parts.extend(
        one.breaks_in_ms
            .map(|breaks| format!("it is broken in {}", time(breaks))),
    );
    parts.join("; ")
}

fn readers(one: &RequirementReference) -> String {
    let readers: Vec<String> = one.readers.iter().map(client).collect();
    if one.is_group {
        return match (readers.as_slice(), one.is_read) {
            ([], _) => "it has no members".to_owned(),
            (names, false) => format!("{} made it, and it has no members", names.join(", ")),
            ([one], true) => format!("its member is {one}"),
            (names, true) => format!("its members are {}", names.join(", ")),
        };
    }
    let verb = if readers.len() == 1 { "reads" } else { "read" };
    match (readers.join(", "), one.is_read) {
        (names, true) => format!("{names} {verb} it"),
        (names, false) if names.is_empty() => "no client reads it".to_owned(),
        (names, false) => format!("{names} made it, and no follow reads it"),
    }
}

pub(super) fn bundle_name(bundle: &BundleReference) -> String {
    if bundle.path.is_empty() {
        format!("bundle {}", bundle.number)
    } else {
        format!("bundle {}", bundle.path)
    }
}

pub(super) fn bundle(one: &BundleReference) -> String {
    let members = match one.declared {
        Some(declared) => format!("{} of {declared} members", one.members),
        None => format!("{}, not sealed", count(one.members, "member")),
    };
    let openers: Vec<String> = one.openers.iter().map(client).collect();
    let open = match (openers.join(", "), one.ends_in_ms) {
        (names, _) if !names.is_empty() => format!("; open in {names}"),
        (_, Some(ends)) => format!("; no client has it open: it is aborted in {}", time(ends)),
        _ => "; no client has it open".to_owned(),
    };
    format!("{}: {members}{open}", bundle_name(one))
}

/// The thing that a request waits for.
pub(super) fn reference(one: &ReasonReference) -> String {
    match (&one.requirement, &one.bundle, &one.client) {
        (Some(one), _, _) => requirement(one),
        (None, Some(one), _) => bundle(one),
        (None, None, Some(one)) => client(one),
        (None, None, None) => String::new(),
    }
}

/// Why a request waits.
pub(super) fn cause(request: &WaitingRequest) -> &'static str {
    match request.because.as_str() {
        "nothing_matches" => "nothing matches",
        "staged" => "a matching object is in a bundle that is not visible",
        "offer_waits" => "a matching offer waits itself",
        "memory" => "memory is full",
        "behind" => "the first allocation that waits may not be passed now",
        "records" => "there is no room for attributes",
        "owed_limit" => "requirements are owed as much as they may be",
        "working" => "the server makes room, or removes many objects",
        "owed" if has_only_groups(request) => "members of groups have yet to receive and release objects",
        "owed" => "requirements are owed objects",
        "offers" => "earlier offers of the client wait",
        "unarchived" => "it is not archived yet",
        "members" => "the bundle lacks members",
        "unsealed" => "the bundle is not sealed",
        "nested" => "a nested bundle is not complete",
        "enclosing" => "the bundle is complete, and the one around it is not",
        "followers" => "follows have yet to receive objects",
        _ => "not known",
    }
}

fn has_only_groups(request: &WaitingRequest) -> bool {
    let is_group = |one: &ReasonReference| one.requirement.as_ref().is_some_and(|one| one.is_group);
    !request.on.is_empty() && request.on_more == 0 && request.on.iter().all(is_group)
}

pub(super) fn count(number: u64, what: &str) -> String {
    if number == 1 {
        format!("1 {what}")
    } else {
        format!("{number} {what}s")
    }
}

#[cfg(test)]
mod tests {
    use junctura::reasons::WAIT_CAUSES;

    use super::*;

    #[test]
    fn every_cause_has_words() {
        for because in WAIT_CAUSES {
            let request = WaitingRequest {
                because: because.to_owned(),
                ..WaitingRequest::default()
            };
            assert_ne!(cause(&request), "not known", "{because}");
        }
    }

    #[test]
    fn times_have_a_unit() {
        let times = [7, 1_500, 119_400, 150_000, 7_200_000, 200_000_000].map(time);
        assert_eq!(times, ["7 ms", "2 s", "119 s", "2 min", "2 h", "2 d"]);
    }
}
