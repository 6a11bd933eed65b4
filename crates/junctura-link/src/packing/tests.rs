//! What clients ask for is weighed before anything of it is read.

use super::*;

fn pack<'a>(from: &'a str, to: &'a str, pieces: u64) -> body::Pack<'a> {
    let piece = |rank| body::PieceName {
        rank,
        target: body::Target::Selector("name=real".into()),
    };
    body::Pack {
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
        ..LinkPacking::default()
    }
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
    let (mut packing, link) = (Packing::default(), fresh_link());
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
    // What nobody waits for any more weighs nothing.
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
        let mut client = Packing::default();
        match (0..8).try_for_each(|request| client.ask(request, &pack("shape=8", &to, 0), &link)) {
            Ok(()) => clients.push(client),
            Err(error) => break error,
        }
    };
    assert!(limit(Err(refused)).contains("all clients of this link"));
    assert_eq!(clients.len(), LINK_ASKED_BYTES_MAX / (8 * to.len()));
    // A client that leaves gives back what it took.
    clients.pop();
    let mut client = Packing::default();
    client.ask(1, &pack("shape=8", &to, 0), &link).unwrap();
    clients.clear();
    drop(client);
    assert_eq!(link.asked_bytes.load(Ordering::Relaxed), 0);
}

#[test]
fn a_layout_that_is_none_is_refused_when_its_turn_comes() {
    let (mut packing, mut link) = (Packing::default(), fresh_link());
    packing.ask(1, &pack("shape=8", "shape=eight", 1), &link).unwrap();
    packing.ask(2, &pack("shape=8", "shape=8", 1), &link).unwrap();
    packing.ask(3, &pack("", "shape=8", 0), &link).unwrap();
    let Step::Failed(1, error, None) = packing.step(&mut link) else {
        panic!("the first one is refused");
    };
    assert_eq!(error.code(), Code::InvalidArgument, "{error}");
    assert!(matches!(packing.step(&mut link), Step::Ask(_)));
    assert!(packing.expects(2) && packing.failed());
    assert!(matches!(packing.step(&mut link), Step::Failed(3, ..)));
    assert!(matches!(packing.step(&mut link), Step::Nothing));
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
    let [one, two, _] = large.each_ref().map(|text| link.layout(text).unwrap());
    assert_eq!(link.layouts.len(), 2);
    assert!(Arc::ptr_eq(&two, &link.layout(&large[1]).unwrap()));
    assert!(!Arc::ptr_eq(&one, &link.layout(&large[0]).unwrap()));
    for number in 1..1000 {
        link.layout(&format!("shape={number}")).unwrap();
    }
    assert_eq!(link.layouts.len(), LAYOUTS_MAX);
}

#[test]
fn plans_at_work_are_weighed_together() {
    let link = fresh_link();
    let mut held: Vec<_> = std::iter::from_fn(|| Reserved::take(&link.listed, LISTED_MAX, LINK_LISTED_MAX)).collect();
    assert_eq!(held.len(), LINK_LISTED_MAX / LISTED_MAX);
    assert!(Reserved::take(&link.listed, 1, LINK_LISTED_MAX).is_none());
    assert!(Reserved::take(&link.listed, usize::MAX, LINK_LISTED_MAX).is_none());
    held.pop();
    assert!(Reserved::take(&link.listed, LISTED_MAX, LINK_LISTED_MAX).is_some());
}

#[test]
fn links_together_keep_layouts_of_so_many_bytes() {
    let kept = Arc::<AtomicUsize>::default();
    let mut links: Vec<_> = (0..12)
        .map(|_| LinkPacking {
            layout_bytes: Arc::clone(&kept),
            ..LinkPacking::default()
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
