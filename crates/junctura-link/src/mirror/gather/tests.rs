//! Requests of clients are weighed before any of their pieces is read.

use super::*;
use limits::cost_of;

#[path = "../../../../../fuzz/src/limits.rs"]
mod limits;

fn pack<'a>(from: &'a str, to: &'a str, pieces: u64) -> body::PackBody<'a> {
    let piece = |rank| body::PieceName {
        rank,
        target: body::TargetBody::Selector("name=real".into()),
    };
    body::PackBody {
        from: from.into(),
        to: to.into(),
        origin: vec![0],
        rank: 0,
        element: "<f8".into(),
        travels: "<f8".into(),
        pieces: (0..pieces).map(piece).collect(),
    }
}

/// A link that shares its limits with no other test.
fn fresh_link() -> LinkPacking {
    LinkPacking {
        layout_bytes: Arc::default(),
        planning: with_others(&Arc::default()),
        ..LinkPacking::default()
    }
}

/// The planning of a link, which has a part of what all links may take.
fn with_others(all: &Arc<AtomicUsize>) -> PlanAccount {
    PlanAccount {
        link: Arc::default(),
        all: Arc::clone(all),
    }
}

fn planned(link: &LinkPacking) -> (usize, usize) {
    let of = |taken: &Arc<AtomicUsize>| taken.load(Ordering::Relaxed);
    (of(&link.planning.link), of(&link.planning.all))
}

/// Makes the packing of the first rank's piece, for the first rank that demands it, as for a received piece.
fn make(from: &str, to: &str, link: &mut LinkPacking) -> Result<Arc<MadePack>> {
    let ask = PackRequest::new(1, &pack(from, to, 0))?;
    let (from, to) = ask.layouts(link)?;
    let plans = || ask.plan(0, (&from.layout, &to.layout), link);
    link.plans.get(ask.fingerprint.clone(), plans)
}

/// A layout of one rank's slabs, of one index each.
fn boxes(count: usize) -> String {
    format!("shape=8 slabs={}", vec!["0:1"; count].join(","))
}

/// A layout of so many slabs.
fn slabs(count: usize) -> String {
    format!("shape=8 slabs={}", vec!["0:1"; count].join(";"))
}

fn limit(asked: Result<()>) -> String {
    let error = asked.unwrap_err();
    assert_eq!(error.code(), Code::LimitExceeded, "{error}");
    error.cause().to_owned()
}

#[test]
fn what_one_client_asks_for_is_weighed_with_its_layouts_and_not_read() {
    let (mut packing, link) = (ChannelPacking::default(), fresh_link());
    let to = slabs(240_000);
    let fit = ASKED_BYTES_MAX / to.len();
    for request in 0..fit as u64 {
        packing.ask(request, &pack("shape=8 grid=2", &to, 2), &link).unwrap();
    }
    for request in 100..164 {
        limit(packing.ask(request, &pack("shape=8 grid=2", &to, 2), &link));
    }
    assert!(link.layouts.is_empty());
    assert_eq!(packing.asked_bytes, link.asked_bytes.load(Ordering::Relaxed));
    assert!(packing.asked_bytes <= ASKED_BYTES_MAX);
    // A cancelled request weighs nothing.
    for request in 0..fit as u64 {
        assert!(packing.stop(request).is_some());
    }
    assert_eq!((packing.asked_bytes, link.asked_bytes.load(Ordering::Relaxed)), (0, 0));
    // Small ones are counted.
    for request in 0..ASKS_MAX as u64 {
        packing.ask(request, &pack("shape=8", "shape=8", 1), &link).unwrap();
    }
    limit(packing.ask(1000, &pack("shape=8", "shape=8", 1), &link));
}

#[test]
fn what_the_clients_of_a_link_ask_for_is_weighed_together() {
    let link = fresh_link();
    let to = slabs(240_000);
    let mut clients = Vec::new();
    let refused = loop {
        let mut client = ChannelPacking::default();
        match (0..8).try_for_each(|request| client.ask(request, &pack("shape=8", &to, 0), &link)) {
            Ok(()) => clients.push(client),
            Err(error) => break error,
        }
    };
    assert!(limit(Err(refused)).contains("all clients of this link"));
    assert_eq!(clients.len(), LINK_ASKED_BYTES_MAX / (8 * to.len()));
    // A client that leaves gives back what it took.
    clients.pop();
    let mut client = ChannelPacking::default();
    client.ask(1, &pack("shape=8", &to, 0), &link).unwrap();
    clients.clear();
    drop(client);
    assert_eq!(link.asked_bytes.load(Ordering::Relaxed), 0);
}

#[test]
fn a_layout_that_is_none_is_refused_when_its_turn_comes() {
    let (mut packing, mut link) = (ChannelPacking::default(), fresh_link());
    packing.ask(1, &pack("shape=8", "shape=eight", 1), &link).unwrap();
    packing.ask(2, &pack("shape=8", "shape=8", 1), &link).unwrap();
    packing.ask(3, &pack("", "shape=8", 0), &link).unwrap();
    let PackStep::Failed(1, error, None) = packing.step(&mut link) else {
        panic!("the first one is refused");
    };
    assert_eq!(error.code(), Code::InvalidArgument, "{error}");
    assert!(matches!(packing.step(&mut link), PackStep::Ask(_)));
    assert!(packing.expects(2) && packing.failed());
    assert!(matches!(packing.step(&mut link), PackStep::Failed(3, ..)));
    assert!(matches!(packing.step(&mut link), PackStep::Nothing));
    assert_eq!(link.asked_bytes.load(Ordering::Relaxed), 0);
    let mut strange = pack("shape=8", "shape=8", 0);
    strange.origin = vec![0; 1000];
    assert_eq!(
        packing.ask(4, &strange, &link).unwrap_err().code(),
        Code::InvalidArgument
    );
}

#[test]
fn of_layouts_that_were_read_few_are_kept() {
    let mut link = fresh_link();
    let large = [slabs(200_000), slabs(200_001), slabs(200_002)];
    let [one, two, _] = large
        .each_ref()
        .map(|text| Arc::clone(&link.layout(text).unwrap().layout));
    assert_eq!(link.layouts.len(), 2);
    assert!(Arc::ptr_eq(&two, &link.layout(&large[1]).unwrap().layout));
    assert!(!Arc::ptr_eq(&one, &link.layout(&large[0]).unwrap().layout));
    for number in 1..1000 {
        link.layout(&format!("shape={number}")).unwrap();
    }
    assert_eq!(link.layouts.len(), LAYOUTS_MAX);
}

#[test]
fn reading_and_making_take_no_more_than_is_reserved_for_them() {
    let texts = [
        slabs(50_000),
        boxes(50_000),
        format!("shape=100000 cuts={}", numbers(50_000)),
    ];
    for text in &texts {
        let (layout, cost) = cost_of(|| text.parse::<Layout>().map(Arc::new));
        assert!(
            layout.is_ok() && cost.held_bytes <= READING_BYTES_EACH * text.len(),
            "{cost:?}"
        );
    }
    let listed = 5000;
    let cases = [
        ("shape=8".to_owned(), boxes(listed)),
        (boxes(listed), "shape=8".to_owned()),
        (
            "shape=10000".to_owned(),
            format!("shape=10000 cuts={}", numbers(listed)),
        ),
        (
            "shape=100000000 grid=3 block=1".to_owned(),
            format!("shape=100000000 grid={listed} block=1"),
        ),
    ];
    for (from, to) in cases {
        let mut link = fresh_link();
        let ask = PackRequest::new(1, &pack(&from, &to, 0)).unwrap();
        let (from, to) = ask.layouts(&mut link).unwrap();
        let before = planned(&link).0;
        let layouts = (&from.layout, &to.layout);
        let (made, cost) = cost_of(|| ask.plan_listing(listed, 0, layouts, &link).unwrap());
        assert!(cost.held_bytes <= listed * MAKING_BYTES_EACH, "{cost:?}");
        let stated = planned(&link).0 - before;
        assert!(
            cost.kept_bytes <= stated && stated <= cost.kept_bytes + ask.layout_bytes() + 1000,
            "{cost:?}"
        );
        drop(made);
        assert_eq!(planned(&link).0, before);
    }
}

/// Numbers that rise by two from 0.
fn numbers(count: usize) -> String {
    let all: Vec<String> = (0..=count).map(|number| (2 * number).to_string()).collect();
    all.join(",")
}

#[test]
fn a_plan_reserves_what_it_needs_and_one_that_lists_too_much_is_refused() {
    let mut link = fresh_link();
    for (count, is_made) in [
        (1, true),
        (LISTED_STEPS[0] + 1, true),
        (LISTED_STEPS[1] + 1, true),
        (LISTED_MAX + 1, false),
    ] {
        let (made, cost) = cost_of(|| make("shape=8", &boxes(count), &mut link));
        assert_eq!(made.is_ok(), is_made, "{count}: {cost:?}");
        assert!(made.is_ok() || made.is_err_and(|error| error.code() == Code::LimitExceeded));
    }
    // The shares of 10,000 ranks with as many are far below that, also where one rank has everything.
    for (from, to) in [
        ("shape=100000000 grid=10000", "shape=100000000 grid=9999 block=7"),
        (
            "shape=100000000 grid=10000 block=16",
            "shape=100000000 grid=9999 block=16",
        ),
        ("shape=100000000", "shape=100000000 grid=10000"),
    ] {
        assert!(make(from, to, &mut link).is_ok(), "{from} {to}");
    }
    let (of_link, of_all) = planned(&link);
    assert!(of_link == of_all && of_link < KEPT_BYTES_MAX + READING_BYTES_EACH * LAYOUT_BYTES_MAX);
    let layouts: Vec<_> = link.layouts.drain(..).collect();
    link.plans.clear();
    drop(layouts);
    assert_eq!(planned(&link), (0, 0));
}

#[test]
fn a_plan_with_a_peer_lists_no_slabs_of_others() {
    let mut link = fresh_link();
    let ranks = slabs(2 * LISTED_MAX);
    let ask = PackRequest::new(1, &pack("shape=8", &ranks, 0)).unwrap();
    let layouts = ask.layouts(&mut link).unwrap();
    let made = ask.plan_listing(LISTED_MAX, 0, (&layouts.0.layout, &layouts.1.layout), &link);
    assert_eq!(made.unwrap().pack.elements(), 1);
}

#[test]
fn layouts_and_plans_of_a_link_and_of_all_links_take_so_much() {
    let all = Arc::default();
    let [one, two, three] = [(); 3].map(|()| LinkPacking {
        planning: with_others(&all),
        ..fresh_link()
    });
    let half = LINK_PLANNING_BYTES_MAX / 2;
    let refused = |link: &LinkPacking, bytes| {
        let error = link.take(bytes).unwrap_err();
        assert_eq!(error.code(), Code::LimitExceeded, "{error}");
        error.cause().to_owned()
    };
    let mut taken = vec![one.take(half).unwrap(), one.take(half).unwrap()];
    assert!(refused(&one, 1).contains("of a link"));
    assert!(refused(&two, usize::MAX).contains("of a link"));
    taken.extend([two.take(half).unwrap(), two.take(half).unwrap()]);
    // A link that takes little is served also when all take as much as they may.
    assert!(refused(&three, FAIR_PLANNING_BYTES + 1).contains("all links"));
    taken.push(three.take(FAIR_PLANNING_BYTES).unwrap());
    assert!(refused(&three, 1).contains("all links"));
    taken.truncate(1);
    taken[0].keep(10);
    assert_eq!(planned(&one), (10, 10));
    drop(taken);
    assert_eq!(
        (planned(&one), planned(&two), planned(&three)),
        ((0, 0), (0, 0), (0, 0))
    );
}

#[test]
fn plans_that_are_kept_make_room_and_are_not_kept_while_memory_is_short() {
    let mut link = fresh_link();
    let made = make("shape=8", "shape=8 grid=2", &mut link).unwrap();
    assert!(Arc::ptr_eq(
        &made,
        &make("shape=8", "shape=8 grid=2", &mut link).unwrap()
    ));
    let much = link.take(LINK_PLANNING_BYTES_MAX - planned(&link).0).unwrap();
    assert!(make("shape=8", "shape=8 grid=2", &mut link).is_ok(), "it is kept still");
    assert!(make("shape=8", "shape=8 grid=3", &mut link).is_err());
    drop(much);
    let again = make("shape=8", "shape=8 grid=2", &mut link).unwrap();
    assert!(!Arc::ptr_eq(&made, &again), "it has made room");
    let _short = PlanReservation::take(&link.planning.all, ALL_PLANNING_BYTES_MAX / 2, usize::MAX).unwrap();
    let plans = [(); 2].map(|()| make("shape=8", "shape=8 grid=4", &mut link).unwrap());
    assert!(!Arc::ptr_eq(&plans[0], &plans[1]));
}

#[test]
fn links_together_keep_layouts_of_so_many_bytes() {
    let kept = Arc::<AtomicUsize>::default();
    let mut links: Vec<_> = (0..12)
        .map(|_| LinkPacking {
            layout_bytes: Arc::clone(&kept),
            ..fresh_link()
        })
        .collect();
    let large = [slabs(100_000), slabs(100_001)];
    for link in &mut links {
        for text in &large {
            link.layout(text).unwrap();
        }
    }
    let bytes = kept.load(Ordering::Relaxed);
    let of_links: usize = links
        .iter()
        .flat_map(|link| &link.layouts)
        .map(|one| one.text.len())
        .sum();
    assert!(bytes == of_links && bytes <= ALL_LAYOUT_BYTES_MAX && bytes > ALL_LAYOUT_BYTES_MAX / 2);
    // One that keeps none reads them again, and keeps what there is room for.
    assert!(links.last_mut().unwrap().layout("shape=8").is_ok());
    drop(links);
    assert_eq!(kept.load(Ordering::Relaxed), 0);
}
