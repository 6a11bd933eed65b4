//! What layouts are written as, and what is said of those that are wrong.

use std::sync::Arc;

use crate::limits::cost_of;
use junctura_layout::{Layout, Plan, PlanSide, Slab};

#[test]
fn texts_read_back() {
    for (text, canonical) in [
        ("shape=8192x8192 grid=4x2 block=256x256 order=C", ""),
        ("shape=10", "shape=10 grid=1 block=10 order=C"),
        ("grid=3 shape=10", "shape=10 grid=3 block=4 order=C"),
        (
            "shape=100x60 cuts=0,30,100x* grid=2x3 block=1x4 offset=0x2 ranks=F order=column storage=packed",
            "shape=100x60 grid=2x3 block=1x4 offset=0x2 cuts=0,30,100x* ranks=F order=F storage=packed",
        ),
        ("shape=10x10 slabs=0:5x0:10;;5:10x0:4,5:10x4:10 order=F", ""),
        ("shape=0x3 grid=2x1", "shape=0x3 grid=2x1 block=1x3 order=C"),
        ("shape=4x4 grid=2x1 block=2x4 order=C strides=8x1", ""),
    ] {
        let layout: Layout = text.parse().unwrap();
        let canonical = if canonical.is_empty() { text } else { canonical };
        assert_eq!(layout.to_string(), canonical);
        assert_eq!(canonical.parse::<Layout>().unwrap(), layout);
    }
}

#[test]
fn files_say_the_same() {
    for (file, text) in [
        (
            "shape: [8192, 8192]\ngrid: [4, 2]\nblock: 256x256\n",
            "shape=8192x8192 grid=4x2 block=256x256",
        ),
        (
            "shape: [100, 60]\ncuts: [[0, 30, 100], '*']\ngrid: [2, 3]\nstorage: packed\norder: F\n",
            "shape=100x60 cuts=0,30,100x* grid=2x3 storage=packed order=F",
        ),
        (
            "shape: [10, 10]\nslabs:\n  - [0:5x0:10]\n  - []\n  - [[[5, 10], [0, 4]], 5:10x4:10]\n",
            "shape=10x10 slabs=0:5x0:10;;5:10x0:4,5:10x4:10",
        ),
    ] {
        assert_eq!(Layout::from_yaml(file).unwrap(), text.parse().unwrap(), "{file}");
    }
    for (file, said) in [
        ("shape: [1]\nblocks: [1]", "layout line 2"),
        ("shape: {x: 1}", "layout line 1"),
        ("", "layout line 1"),
        ("shape: [[1]]", "layout line 1"),
    ] {
        let error = Layout::from_yaml(file).unwrap_err().to_string();
        assert!(error.contains(said), "{error}");
    }
}

#[test]
fn what_is_wrong_is_named() {
    let huge = format!("shape={}", "9".repeat(30));
    for (text, subject, cause) in [
        ("", "shape", "missing"),
        ("shape", "layout", "NAME=VALUE"),
        ("shape=4 shape=4", "layout", "twice"),
        ("shape=4 blok=2", "layout", "block"),
        ("shape=-4", "shape", "negative"),
        ("shape=4.5", "shape", "not a whole number"),
        (&huge, "shape", "too large"),
        ("shape=1000000x1000000x1000000x1000000", "shape", "more than"),
        ("shape=1x1x1x1x1x1x1x1x1", "shape", "dimensions"),
        ("shape=4x4 grid=2", "grid", "1 for 2"),
        ("shape=4 grid=0", "grid", "without ranks"),
        ("shape=4 block=0", "block", "at least one"),
        ("shape=4 grid=2 block=2 offset=4", "offset", "first cycle"),
        ("shape=4 grid=200000000000x1", "grid", "2 for 1"),
        ("shape=4 grid=200000000000", "grid", "ranks"),
        (
            "shape=4 grid=288230376151711744 block=288230376151711744",
            "block",
            "too many",
        ),
        ("shape=4 cuts=0,5", "cuts", "rise from 0 to 4"),
        ("shape=4 cuts=1,4", "cuts", "rise"),
        ("shape=4 cuts=0,3,2,4", "cuts", "rise"),
        ("shape=4 cuts=4", "cuts", "rise"),
        ("shape=4 cuts=0,4 grid=2", "cuts", "1 parts"),
        ("shape=4 order=X", "order", "row-major"),
        ("shape=4 storage=loose", "storage", "packed"),
        ("shape=4x4 strides=2x1", "strides", "overlap"),
        ("shape=4x4 strides=1x1", "strides", "overlap"),
        ("shape=4x4 strides=0x1", "strides", "overlap"),
        ("shape=4x4 strides=4", "strides", "1 for 2"),
        ("shape=4 strides=288230376151711744", "strides", "too many"),
        ("shape=4 storage=packed strides=2", "strides", "packed"),
        (
            "shape=2x2x2 block=1048576x1048576x1048576 storage=packed",
            "block",
            "take up",
        ),
        ("shape=4 slabs=0:5", "slabs", "not within"),
        ("shape=4 slabs=3:1", "slab", "before it ends"),
        ("shape=4 slabs=0:1x0:1", "slabs", "not within"),
        ("shape=4 slabs=0-1", "slabs", "FROM:TO"),
        ("shape=4 slabs=0:4 grid=1", "grid", "slabs have none"),
        ("shape=4 slabs=0:4 storage=packed", "storage", "contiguously"),
    ] {
        let error = text.parse::<Layout>().unwrap_err();
        assert!(
            error.subject() == subject && error.to_string().contains(cause),
            "{text}: {error}"
        );
    }
}

#[test]
fn gaps_and_overlaps_are_named() {
    let cover = |text: &str| {
        text.parse::<Layout>()
            .unwrap()
            .check_cover()
            .map_err(|error| error.to_string())
    };
    assert_eq!(cover("shape=4x4 slabs=0:2x0:4;2:4x0:4"), Ok(()));
    let gap = cover("shape=9x9 slabs=0:3x0:9;3:9x0:4,3:7x4:9").unwrap_err();
    assert!(gap.contains("no rank has 7:9x4:9"), "{gap}");
    let overlap = cover("shape=4x4 slabs=0:2x0:4;1:4x0:4").unwrap_err();
    assert!(overlap.contains("0:2x0:4 of rank 0 and 1:4x0:4 of rank 1"), "{overlap}");
    // As many elements as the array has.
    assert!(cover("shape=4 slabs=0:2,1:3").unwrap_err().contains("overlap"));
    assert!(cover("shape=4 slabs=0:2;2:2;2:4").is_ok());
    let hole = cover("shape=10x10x10 slabs=0:10x0:10x0:5,0:10x0:5x5:10,0:5x5:10x5:10,5:10x6:10x5:10,5:10x5:6x5:9")
        .unwrap_err();
    assert!(hole.contains("5:10x5:6x9:10"), "{hole}");
    assert!(Slab::new([0, 5], [3, 5]).unwrap().is_empty());
}

#[test]
fn plans_of_layouts_from_outside_have_limits() {
    let layout = |text: &str| Arc::new(text.parse::<Layout>().unwrap());
    let cut = layout("shape=1000x4 slabs=0:1000x0:2;0:1000x2:4");
    let lines: Vec<String> = (0..1000).map(|line| format!("{line}:{}x0:4", line + 1)).collect();
    let lines = layout(&format!("shape=1000x4 slabs={}", lines.join(",")));
    let rows = layout("shape=1000x4 grid=2x1 block=1x4");
    for (from, to) in [(&cut, &lines), (&rows, &cut), (&lines, &rows)] {
        let limited = |runs_max| Plan::limited(from, to, &[0, 0], PlanSide::From, 0, runs_max);
        let listed = Plan::whole(from, to, PlanSide::From, 0).unwrap().listed();
        let error = limited(listed - 1).unwrap_err();
        assert_eq!(error.code(), junctura_model::Code::LimitExceeded);
        assert_eq!(limited(listed).unwrap().listed(), listed);
    }
}

/// Boxes beside a diagonal meet none of its slabs, and half of them in each dimension.
#[test]
fn slabs_that_are_looked_at_in_vain_count() {
    let layout = |slabs: Vec<String>| Arc::new(format!("shape=4096x4096 slabs={}", slabs.join(",")).parse().unwrap());
    let boxes: Arc<Layout> = layout(vec!["0:2048x2048:4096".to_owned(); 1000]);
    let diagonal = layout((0..4096).map(|at| format!("{at}:{0}x{at}:{0}", at + 1)).collect());
    let limited = |runs_max| {
        let plan = Plan::limited(&boxes, &diagonal, &[0, 0], PlanSide::From, 0, runs_max);
        plan.map(|plan| plan.listed()).map_err(|error| error.code())
    };
    assert_eq!(limited(1000), Err(junctura_model::Code::LimitExceeded));
    assert_eq!(limited(1 << 20), Ok(0));
}

/// Most of the array is missing: what is named is found without going through all slabs again and again.
#[test]
fn a_gap_is_found_in_few_steps() {
    let steps = [1 << 10, 1 << 12].map(|count| {
        let slabs: Vec<String> = (0..count).map(|at| format!("{at}:{0}x{at}:{0}", at + 1)).collect();
        let text = format!("shape={count}x{count} slabs={}", slabs.join(","));
        let layout: Layout = text.parse().unwrap();
        let (covered, cost) = cost_of(|| layout.check_cover());
        assert!(covered.unwrap_err().to_string().contains("no rank has"));
        cost.steps
    });
    assert!(steps[1] <= 6 * steps[0], "{steps:?}");
}
