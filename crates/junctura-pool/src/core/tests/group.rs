//! Consumer groups: shares of members, redelivery after a crash, and that each version is completed once.

use junctura_wire::body::{DemandRequest, GroupTerms, TargetBody};
use junctura_wire::{Request, fixed};

use super::World;

/// Follows as a member of a group that is made if need be.
fn share(world: &mut World, client: u32, number: u64, name: &str, selector: &str, window: u32) {
    let (name, selector) = (name.to_owned(), selector.to_owned());
    world.follow(client, number, |follow| {
        follow.selector = selector.into();
        follow.group = Some(name.into());
        follow.group_terms = Some(GroupTerms::default());
        follow.window = window;
    });
}

/// Follows as a member of an existing group.
fn join(world: &mut World, client: u32, number: u64, name: &str, window: u32) {
    let name = name.to_owned();
    world.follow(client, number, |follow| {
        follow.group = Some(name.into());
        follow.window = window;
    });
}

fn offer_all(world: &mut World, client: u32, names: &str) {
    for name in names.chars() {
        world.offer(client, 1, &name.to_string(), "", 0);
    }
}

/// Returns a client's replies except beginnings and marks.
fn got(world: &mut World, client: u32) -> Vec<String> {
    let mut heard = world.heard(client);
    heard.retain(|line| line.contains("got") || line.contains("gap"));
    heard
}

#[test]
fn members_share_and_who_has_least_in_hand_is_next() {
    let mut world = World::new();
    let (p, c, d) = (world.join("p"), world.join("c"), world.join("d"));
    share(&mut world, c, 1, "g", "", 2);
    join(&mut world, d, 1, "g", 3);
    assert_eq!(world.heard(c), ["1: began v0", "1: live"]);
    assert_eq!(world.heard(d), ["1: began v0", "1: live"]);
    offer_all(&mut world, p, "abcdef");
    assert_eq!(world.heard(c), ["1: got a v1 ", "1: got c v3 "]);
    assert_eq!(world.heard(d), ["1: got b v2 ", "1: got d v4 ", "1: got e v5 "]);
    assert_eq!(
        world.core.stat().named_requirements[0].group.as_ref().unwrap().waiting,
        1
    );
    world.release(d, 4);
    assert_eq!(world.heard(d), ["1: got f v6 "]);
    for sequence in [2, 5, 6] {
        world.release(d, sequence);
    }
    offer_all(&mut world, p, "gh");
    assert!(world.heard(c).is_empty(), "it has its window full");
    assert_eq!(world.heard(d), ["1: got g v7 ", "1: got h v8 "]);
}

#[test]
fn what_is_released_and_still_read_is_done_and_keeps_its_memory() {
    let mut world = World::new();
    let (p, c) = (world.join("p"), world.join("c"));
    share(&mut world, c, 1, "g", "", 1);
    for name in ["a", "b"] {
        world.offer(p, 1, name, "payload", 1);
    }
    assert_eq!(got(&mut world, c), ["1: got a v1 payload"]);
    world.release_mapped(c, 1, 0);
    assert_eq!(got(&mut world, c), ["1: got b v2 payload"], "its window has room");
    let stat = world.core.stat();
    let figures = |world: &World| {
        let stat = world.core.stat();
        (stat.objects.held, stat.objects.kept, stat.totals.released)
    };
    assert_eq!(
        figures(&world),
        (2, 1, 1),
        "its retention is over, and its payload is kept"
    );
    assert_eq!(stat.named_requirements[0].owed, 1);
    // A second release of this kind is wrong; the next one ends it.
    world.release_mapped(c, 1, 0);
    assert!(world.heard(c)[0].contains("Expired"));
    world.core.drain(world.now, None, &mut world.fx);
    world.release_mapped(c, 2, 0);
    assert!(world.core.ending().is_some(), "nothing is owed");
    world.release(c, 1);
    assert_eq!(figures(&world), (1, 1, 2));
    world.leave(c);
    assert_eq!(figures(&world), (0, 0, 2));
}

#[test]
fn what_is_given_back_and_still_read_goes_to_another() {
    let mut world = World::new();
    let (p, c, d) = (world.join("p"), world.join("c"), world.join("d"));
    share(&mut world, c, 1, "g", "", 1);
    world.offer(p, 1, "a", "", 1);
    got(&mut world, c);
    join(&mut world, d, 1, "g", 1);
    world.ask(c, 2, Request::Stop(1));
    world.release_mapped(c, 1, fixed::UNDONE);
    assert_eq!(got(&mut world, d), ["1: got a v1  again"]);
    world.release(d, 1);
    assert_eq!(world.core.stat().objects.kept, 1, "it is still read");
    world.release(c, 1);
    assert_eq!(world.core.stat().objects.kept, 0);
}

#[test]
fn sixty_members_get_equal_shares_and_a_slow_one_gets_less() {
    let mut world = World::new();
    let p = world.join("p");
    let members: Vec<u32> = (0..60).map(|number| world.join(&format!("m{number}"))).collect();
    for &member in &members {
        share(&mut world, member, 1, "g", "", 2);
        world.heard(member);
    }
    let mut counts = vec![0; members.len()];
    for round in 0..10 {
        for number in 0..60 {
            world.offer(p, 1, &format!("{round}-{number}"), "", 0);
        }
        for (at, &member) in members.iter().enumerate() {
            counts[at] += got(&mut world, member).len();
            let held: Vec<u64> = world
                .fx
                .holdings
                .range((member, 0)..(member + 1, 0))
                .map(|(&(_, one), _)| one)
                .collect();
            // The first never releases anything.
            for sequence in held.into_iter().filter(|_| at > 0) {
                world.release(member, sequence);
            }
        }
    }
    assert_eq!(counts[0], 2);
    assert!(
        counts[1..].iter().all(|&count| (10..=12).contains(&count)),
        "{counts:?}"
    );
    assert_eq!(counts.iter().sum::<usize>(), 600);
}

#[test]
fn different_groups_each_get_all() {
    let mut world = World::new();
    let (p, c, d) = (world.join("p"), world.join("c"), world.join("d"));
    share(&mut world, c, 1, "g", "", 9);
    share(&mut world, d, 1, "h", "", 9);
    world.offer(p, 1, "a", "", 1);
    world.release(c, 1);
    assert_eq!(world.core.stat().objects.visible, 1, "the other group is owed it");
    world.release(d, 1);
    assert_eq!(world.core.stat().objects.visible, 0);
}

#[test]
fn what_a_dead_member_had_goes_to_another_marked_and_before_what_waits() {
    let mut world = World::new();
    let (p, c, d) = (world.join("p"), world.join("c"), world.join("d"));
    share(&mut world, c, 1, "g", "", 2);
    offer_all(&mut world, p, "abcd");
    join(&mut world, d, 1, "g", 1);
    world.release(c, 1);
    assert_eq!(got(&mut world, d), ["1: got c v3  first"]);
    assert_eq!(world.heard(c).last().unwrap(), "1: got d v4 ");
    world.leave(c);
    assert!(world.heard(d).is_empty(), "its window is full");
    world.release(d, 3);
    assert_eq!(world.heard(d), ["1: got b v2  again"]);
    world.release(d, 2);
    assert_eq!(world.heard(d), ["1: got d v4  again"]);
    world.release(d, 4);
    assert_eq!(world.core.stat().named_requirements[0].owed, 0);
}

#[test]
fn it_stands_without_members_and_the_next_is_given_what_waits() {
    let mut world = World::new();
    let (p, c) = (world.join("p"), world.join("c"));
    share(&mut world, c, 1, "g", "", 9);
    world.offer(p, 1, "a", "one", 1);
    world.offer(p, 2, "a", "two", 1);
    world.leave(c);
    let d = world.join("d");
    join(&mut world, d, 1, "g", 9);
    assert_eq!(
        world.heard(d),
        [
            "1: began v2",
            "1: got a v1 one first again",
            "1: got a v2 two first again",
            "1: live"
        ]
    );
    world.release(d, 1);
    world.release(d, 2);
    assert_eq!(world.core.stat().objects.visible, 0);
    world.retract(d, 2, "g");
    for client in [p, d] {
        world.leave(client);
    }
    world.assert_empty();
}

#[test]
fn a_release_by_one_given_up_completes_nothing() {
    let mut world = World::new();
    let (p, c, d) = (world.join("p"), world.join("c"), world.join("d"));
    share(&mut world, c, 1, "g", "", 9);
    offer_all(&mut world, p, "a");
    join(&mut world, d, 1, "g", 9);
    world.leave(c);
    assert_eq!(got(&mut world, d), ["1: got a v1  again"]);
    world.heard(c);
    world.release(c, 1);
    assert!(world.heard(c).is_empty(), "no member is left");
    assert_eq!(world.core.stat().named_requirements[0].owed, 1);
    let holding = world.fx.holdings[&(d, 1)];
    world.release(d, 1);
    assert_eq!(world.core.stat().named_requirements[0].owed, 0);
    world.fx.holdings.insert((d, 1), holding);
    world.release(d, 1);
    assert_eq!(world.heard(d), ["0: Expired this client does not hold it"]);
    assert_eq!(world.core.stat().totals.released, 1);
}

#[test]
fn one_that_stops_keeps_what_it_has_and_gives_back_what_it_has_not_seen() {
    let mut world = World::new();
    let (p, c, d) = (world.join("p"), world.join("c"), world.join("d"));
    share(&mut world, c, 1, "g", "", 9);
    offer_all(&mut world, p, "abc");
    join(&mut world, d, 1, "g", 9);
    world.heard(d);
    world.ask(c, 2, Request::Stop(1));
    world.give_back_unread(c, 2);
    world.give_back_unread(c, 3);
    assert_eq!(
        world.heard(d),
        ["1: got b v2 ", "1: got c v3 "],
        "no member has seen them"
    );
    world.release(c, 1);
    assert_eq!(world.core.stat().named_requirements[0].owed, 2);
    world.leave(c);
    assert!(world.heard(d).is_empty());
}

#[test]
fn what_is_given_back_undone_goes_out_again_marked() {
    let mut world = World::new();
    let (p, c, d) = (world.join("p"), world.join("c"), world.join("d"));
    share(&mut world, c, 1, "g", "", 1);
    join(&mut world, d, 1, "g", 1);
    offer_all(&mut world, p, "abc");
    got(&mut world, c);
    world.give_back_undone(c, 1);
    assert_eq!(
        world.heard(c),
        ["1: got a v1  again"],
        "it is the oldest, and c has room"
    );
    world.release(d, 2);
    world.release(d, 3);
    world.give_back_undone(c, 1);
    world.give_back_undone(c, 1);
    assert_eq!(world.core.stat().named_requirements[0].owed, 1);
}

#[test]
fn room_that_comes_of_what_is_not_wanted_again_is_used() {
    let mut world = World::new();
    let (p, c) = (world.join("p"), world.join("c"));
    world.follow(c, 1, |follow| {
        follow.group = Some("g".into());
        follow.group_terms = Some(GroupTerms {
            newest_only: true,
            time_to_live_ms: None,
        });
        follow.window = 1;
    });
    offer_all(&mut world, p, "aa");
    world.give_back_undone(c, 1);
    assert_eq!(got(&mut world, c), ["1: got a v1 ", "1: got a v2 "]);
}

#[test]
fn what_a_reader_gives_back_unread_is_owed_again_and_what_a_look_gives_back_so_was_not_released() {
    let mut world = World::new();
    let (p, c) = (world.join("p"), world.join("c"));
    world.require(c, 1, "", false);
    offer_all(&mut world, p, "ab");
    world.follow(c, 2, |follow| follow.requirement = Some(1));
    world.follow(c, 3, |_| {});
    world.ask(c, 4, Request::Stop(2));
    let held_by_the_look = world.fx.holdings.clone();
    assert_eq!(world.core.stat().objects.held, 4);
    world.fx.holdings.insert((c, 1), 0);
    world.fx.holdings.insert((c, 2), 1);
    world.give_back_unread(c, 1);
    world.give_back_unread(c, 2);
    world.heard(c);
    world.follow(c, 5, |follow| follow.requirement = Some(1));
    assert_eq!(
        world.heard(c),
        ["5: began v2", "5: got a v1  first", "5: got b v2  first", "5: live"]
    );
    world.fx.holdings = held_by_the_look;
    world.give_back_unread(c, 1);
    assert_eq!(world.core.stat().totals.released, 0);
}

#[test]
fn an_object_that_is_to_be_released_once_stays_when_a_look_has_not_seen_it() {
    let mut world = World::new();
    let (p, c) = (world.join("p"), world.join("c"));
    world.offer(p, 1, "a", "", 1);
    world.follow(c, 2, |_| {});
    world.ask(c, 3, Request::Stop(2));
    world.give_back_unread(c, 1);
    assert_eq!(world.core.stat().objects.visible, 1);
    world.demand(c, 4, "name=a", None);
    world.give_back_undone(c, 1);
    assert_eq!(world.core.stat().objects.visible, 1, "it was seen, and not completed");
    world.demand(c, 5, "name=a", None);
    world.release(c, 1);
    assert_eq!(world.core.stat().objects.visible, 0);
}

#[test]
fn the_terms_of_a_group_are_agreed_on_and_names_are_one_space() {
    let mut world = World::new();
    let (c, d) = (world.join("c"), world.join("d"));
    share(&mut world, c, 1, "g", "name=a/b", 9);
    world.require_named(c, 2, "plain", "name=a", 0);
    world.heard(c);
    share(&mut world, d, 1, "g", "name=a", 9);
    world.require_named(d, 2, "g", "name=a/b", 0);
    share(&mut world, d, 3, "plain", "name=a", 9);
    join(&mut world, d, 4, "plain", 9);
    join(&mut world, d, 5, "none", 9);
    world.follow(d, 6, |follow| follow.requirement_name = Some("g".into()));
    world.follow(d, 7, |follow| {
        follow.group = Some("g".into());
        follow.requirement_name = Some("g".into());
    });
    world.require_with(d, 8, "", |require| require.group = true);
    world.require_with(d, 9, "name=a/b", |require| {
        require.name = Some("g".into());
        require.group = true;
    });
    assert_eq!(
        world.heard(d),
        [
            "1: Conflict it stands for \"name=a/b\", not \"name=a\": choose another name, or retract that requirement",
            "2: Conflict it is a group, not a requirement for one reader",
            "3: Conflict it is a requirement for one reader, not a group",
            "4: Conflict it is no group: one follow reads it at a time",
            "5: NotFound no requirement or group has this name; `junctura pool stat` lists them; a follow with this group and a selector creates it",
            "6: Conflict it is a group, whose members share: follow it as a group",
            "7: InvalidArgument a follow receives through a group or through a requirement, not both",
            "8: InvalidArgument a group has a name",
            "9: began v0",
        ]
    );
    assert_eq!(world.core.stat().interests.requirements, 2);
}

#[test]
fn who_stands_by_a_group_joins_it_by_the_number_and_nobody_demands_through_it() {
    let mut world = World::new();
    let (p, c) = (world.join("p"), world.join("c"));
    world.require_with(c, 1, "", |require| {
        require.name = Some("g".into());
        require.group = true;
    });
    offer_all(&mut world, p, "ab");
    for number in [2, 3] {
        world.follow(c, number, |follow| {
            follow.requirement = Some(1);
            follow.window = 1;
        });
    }
    let demand = DemandRequest {
        incomplete: false,
        target: TargetBody::selector(""),
        timeout_ms: None,
        requirement: None,
        requirement_name: Some("g".into()),
    };
    world.ask(c, 4, Request::Demand(demand));
    assert_eq!(
        world.heard(c),
        [
            "1: began v0",
            "2: began v2",
            "2: got a v1  first",
            "3: began v2",
            "3: got b v2  first",
            "2: live",
            "3: live",
            "4: Unsupported the group decides which member receives an object; follow the group",
        ]
    );
}

#[test]
fn one_gap_is_told_once_to_the_eldest_member_or_to_the_next() {
    let mut world = World::new();
    let (p, c, d) = (world.join("p"), world.join("c"), world.join("d"));
    share(&mut world, c, 1, "g", "", 1);
    join(&mut world, d, 1, "g", 1);
    offer_all(&mut world, p, "abcd");
    world.withdraw(p, 2, "c", None, true);
    assert_eq!(got(&mut world, c), ["1: got a v1 ", "1: gap withdrawn c v3"]);
    assert_eq!(got(&mut world, d), ["1: got b v2 "]);
    world.withdraw(p, 3, "b", None, true);
    world.leave(d);
    assert_eq!(got(&mut world, c), ["1: gap withdrawn b v2"]);
    world.leave(c);
    world.withdraw(p, 4, "d", None, true);
    let e = world.join("e");
    join(&mut world, e, 1, "g", 1);
    assert_eq!(
        got(&mut world, e),
        ["1: gap withdrawn d v4", "1: got a v1  first again"]
    );
}

#[test]
fn withdraw_waits_for_the_group_and_says_who_it_is() {
    let mut world = World::new();
    let (p, c, d) = (world.join("p"), world.join("c"), world.join("d"));
    share(&mut world, c, 1, "g", "name=a", 9);
    world.offer(p, 1, "a", "", 0);
    world.withdraw(p, 2, "a", Some(0), false);
    join(&mut world, d, 1, "g", 9);
    world.withdraw(p, 3, "a", None, false);
    world.leave(c);
    let wanted = "2: Timeout still offered, since it is wanted: group g (\"name=a\"), which has 1 member; 0 withdrawn";
    assert_eq!(world.heard(p), ["1: offered v1", wanted]);
    world.release(d, 1);
    assert_eq!(world.heard(p), ["3: done 1"]);
}

#[test]
fn live_is_said_when_what_was_there_has_been_given_to_somebody() {
    let mut world = World::new();
    let (p, c, d) = (world.join("p"), world.join("c"), world.join("d"));
    share(&mut world, c, 1, "g", "", 1);
    offer_all(&mut world, p, "abc");
    world.follow(d, 1, |follow| {
        follow.group = Some("g".into());
        follow.window = 1;
        follow.until_live = true;
    });
    assert_eq!(world.heard(d), ["1: began v3", "1: got b v2  first"]);
    world.release(c, 1);
    assert_eq!(world.heard(d), ["1: live", "1: Closed it was asked to end here"]);
    offer_all(&mut world, p, "d");
    world.release(d, 2);
    assert_eq!(
        world.core.stat().named_requirements[0].owed,
        2,
        "it completes its objects in flight"
    );
    let e = world.join("e");
    world.follow(e, 1, |follow| {
        follow.group = Some("g".into());
        follow.until_live = true;
        follow.window = 1;
    });
    assert_eq!(
        world.heard(e),
        [
            "1: began v4",
            "1: got d v4  first",
            "1: live",
            "1: Closed it was asked to end here"
        ]
    );
}

#[test]
fn what_goes_unseen_may_make_a_member_live() {
    let mut world = World::new();
    let (p, c, d) = (world.join("p"), world.join("c"), world.join("d"));
    share(&mut world, c, 1, "g", "", 1);
    offer_all(&mut world, p, "abc");
    join(&mut world, d, 1, "g", 1);
    assert_eq!(world.heard(d), ["1: began v3", "1: got b v2  first"]);
    world.withdraw(p, 2, "c", None, true);
    assert_eq!(world.heard(d), ["1: live"]);
}

#[test]
fn one_whose_client_holds_as_much_as_it_may_steps_aside() {
    let mut world = World::with(|config| config.limits.held_per_client = 1);
    let (p, c, d) = (world.join("p"), world.join("c"), world.join("d"));
    world.offer(p, 1, "x", "", 0);
    world.demand(c, 9, "name=x", None);
    share(&mut world, c, 1, "g", "name!=x", 9);
    join(&mut world, d, 1, "g", 9);
    offer_all(&mut world, p, "ab");
    assert!(got(&mut world, c).iter().all(|line| line.contains("got x")));
    assert_eq!(got(&mut world, d), ["1: got a v2 "]);
    world.release(c, 1);
    assert_eq!(got(&mut world, c), ["1: got b v3 "]);
}

#[test]
fn newest_only_gives_up_what_waits_and_what_comes_back() {
    let mut world = World::new();
    let (p, c) = (world.join("p"), world.join("c"));
    world.follow(c, 1, |follow| {
        follow.group = Some("g".into());
        follow.group_terms = Some(GroupTerms {
            newest_only: true,
            time_to_live_ms: None,
        });
        follow.window = 1;
    });
    for payload in ["1", "2", "3"] {
        world.offer(p, 1, "a", payload, 0);
    }
    world.leave(c);
    let d = world.join("d");
    join(&mut world, d, 1, "g", 9);
    assert_eq!(got(&mut world, d), ["1: got a v3 3 first"]);
    assert_eq!(world.core.stat().objects.kept, 0);
}

#[test]
fn its_time_to_live_counts_from_the_last_member_and_its_end_is_told_to_all() {
    let mut world = World::new();
    let (p, c, d) = (world.join("p"), world.join("c"), world.join("d"));
    let terms = GroupTerms {
        newest_only: false,
        time_to_live_ms: Some(10),
    };
    for client in [c, d] {
        world.follow(client, 1, |follow| {
            follow.group = Some("g".into());
            follow.group_terms = Some(terms.clone());
        });
    }
    world.leave(c);
    world.pass(100);
    world.ask(d, 2, Request::Stop(1));
    world.pass(9);
    assert_eq!(world.core.stat().interests.named, 1);
    world.pass(1);
    assert_eq!(world.core.stat().interests.named, 0);
    for client in [d, p] {
        share(&mut world, client, 3, "g", "", 9);
    }
    offer_all(&mut world, p, "a");
    world.heard(d);
    world.retract(p, 4, "g");
    assert_eq!(world.heard(d), ["3: Closed its requirement was retracted"]);
    assert_eq!(world.heard(p).last().unwrap(), "4: done 1");
    world.release(d, 1);
    assert_eq!(world.core.stat().objects.visible, 1);
}

#[test]
fn while_it_drains_members_join_what_stands_and_nothing_new_is_made() {
    let mut world = World::new();
    let (p, c) = (world.join("p"), world.join("c"));
    share(&mut world, c, 1, "g", "", 9);
    offer_all(&mut world, p, "a");
    world.ask(
        p,
        2,
        Request::Drain(junctura_wire::body::DrainRequest { timeout_ms: None }),
    );
    world.leave(c);
    share(&mut world, p, 3, "h", "", 9);
    share(&mut world, p, 4, "g", "", 9);
    world.release(p, 1);
    let heard = world.heard(p);
    assert!(heard[1].starts_with("3: Closed draining"));
    assert_eq!(
        heard[2..],
        ["4: began v1", "4: got a v1  first again", "4: live", "2: done 0"]
    );
}

#[test]
fn a_refused_member_leaves_no_group_behind() {
    let mut world = World::with(|config| {
        config.limits.requests_per_client = 1;
        config.limits.named_requirements = 1;
    });
    let (c, d) = (world.join("c"), world.join("d"));
    world.subscribe(c, 1, "", junctura_wire::body::events::OFFERED);
    share(&mut world, c, 2, "g", "", 9);
    share(&mut world, d, 1, "h", "", 0);
    share(&mut world, d, 2, "-h", "", 1);
    assert_eq!(world.core.stat().interests.named, 0);
    share(&mut world, d, 3, "h", "", 1);
    let e = world.join("e");
    share(&mut world, e, 1, "i", "", 1);
    assert_eq!(world.heard(e), ["1: LimitExceeded the pool keeps 1 with a name"]);
}

#[test]
fn stat_shows_lag_and_members() {
    let mut world = World::new();
    let (p, c, d) = (world.join("p"), world.join("c"), world.join("d"));
    share(&mut world, c, 1, "g", "name=a/b/c", 1);
    join(&mut world, d, 1, "g", 2);
    for name in ["a", "b", "c"] {
        world.offer(p, 1, name, "12", 0);
        world.pass(1000);
    }
    world.release(c, 1);
    world.pass(500);
    let stat = world.core.stat();
    let one = &stat.named_requirements[0];
    assert_eq!((one.owed, one.owed_bytes, one.in_flight), (2, 4, 2));
    assert_eq!((one.oldest_owed, one.oldest_owed_age_s), (Some(2), Some(2.5)));
    assert_eq!((one.last_release_age_s, one.reader.is_none()), (Some(0.5), true));
    let group = one.group.as_ref().unwrap();
    assert_eq!((group.waiting, group.member_count), (0, 2));
    let members: Vec<_> = group
        .members
        .iter()
        .map(|member| (member.name.as_str(), member.pid, member.in_flight, member.window))
        .collect();
    assert_eq!(members, [("c", 1, 0, 1), ("d", 1, 2, 2)]);
}

#[test]
fn a_plain_requirement_marks_what_it_owes_again() {
    let mut world = World::new();
    let (p, c, d) = (world.join("p"), world.join("c"), world.join("d"));
    world.require_named(p, 1, "n", "", 0);
    offer_all(&mut world, p, "ab");
    world.follow(c, 1, |follow| {
        follow.requirement_name = Some("n".into());
        follow.window = 1;
    });
    world.leave(c);
    world.follow(d, 1, |follow| follow.requirement_name = Some("n".into()));
    assert_eq!(got(&mut world, d), ["1: got a v1  first again", "1: got b v2  first"]);
}

#[test]
fn a_follow_that_is_refused_makes_no_group() {
    let mut world = World::with(|config| config.limits.selector_bytes_per_client = 1000);
    let c = world.join("c");
    world.demand(c, 1, "name=a", None);
    share(&mut world, c, 3, "g", "", 1);
    let heard = world.heard(c);
    assert!(heard[0].starts_with("3: LimitExceeded standing selectors"), "{heard:?}");
    assert!(world.core.stat().named_requirements.is_empty());
    assert_eq!(world.core.stat().interests.standing, 1);
}

#[test]
fn a_member_that_is_refused_beside_its_new_group_takes_that_with_it() {
    let mut world = World::new();
    let (p, c) = (world.join("p"), world.join("c"));
    world.offer(p, 1, "a", "", 0);
    let value = "x".repeat(900);
    let bytes = |world: &World| world.core.stat().interests.selector_bytes;
    // So much that the client is served no more when all together are at their limit.
    for number in 1.. {
        world.demand(c, number, &format!("name={value}{number}"), None);
        if bytes(&world) > 1 << 20 {
            break;
        }
    }
    let before = bytes(&world);
    share(&mut world, p, 2, "h", "name=a", 1);
    let of_both = bytes(&world) - before;
    world.retract(p, 3, "h");
    assert_eq!(bytes(&world), before);
    world.heard(c);
    // There is room for the group, or its member.
    world
        .core
        .change_config(|config| config.limits.selector_bytes = (before + of_both - 1) as usize);
    share(&mut world, c, 900_000, "g", "name=a", 1);
    let heard = world.heard(c);
    assert!(
        heard.len() == 1 && heard[0].starts_with("900000: LimitExceeded standing selectors of all"),
        "{heard:?}"
    );
    let stat = world.core.stat();
    assert_eq!(
        (stat.interests.named, stat.interests.owed, bytes(&world)),
        (0, 0, before)
    );
}
