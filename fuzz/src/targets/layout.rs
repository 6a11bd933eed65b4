//! Layouts as a user might write them, one or two lines: reading never panics, what was read is written so that it reads as the same
//! layout, the shares of all ranks in a plan are the array, and the wanted part of a piece is packed.

use std::sync::Arc;

use crate::{Limits, text_of, within};
use junctura_copy::Pack;
use junctura_layout::{ElementKind, Layout, Plan, PlanSide, draw};

/// `ELEMENTS_MAX` elements that a plan may list one by one, for 64 ranks; each rank visits all slabs in the text.
const LIMITS: Limits = Limits {
    held_bytes: 32 << 20,
    held_bytes_each: 1024,
    steps: 2_000_000,
    steps_each: 1024,
};

/// Larger arrays would take the time of many small ones.
const ELEMENTS_MAX: u64 = 1 << 16;

pub(crate) fn run(bytes: &[u8]) {
    within(LIMITS, bytes, || fuzz(text_of(bytes)));
}

fn fuzz(text: &str) {
    let _ = Layout::from_yaml(text);
    let mut layouts = Vec::new();
    for line in text.lines().take(2) {
        let Ok(layout) = line.parse::<Layout>() else { return };
        let written = layout.to_string();
        assert_eq!(
            written.parse::<Layout>().expect("our own layout reads"),
            layout,
            "{written}"
        );
        layouts.push(Arc::new(layout));
    }
    let [from, to] = &layouts[..] else { return };
    let is_small = |layout: &Layout| {
        let elements: u64 = layout.shape().iter().map(|&extent| extent.max(1)).product();
        elements <= ELEMENTS_MAX && layout.ranks() <= 64
    };
    if !is_small(from) || !is_small(to) || from.shape() != to.shape() {
        return;
    }
    let _ = draw(from, to);
    let is_all = from.check_cover().is_ok() && to.check_cover().is_ok();
    for side in [PlanSide::From, PlanSide::To] {
        let ranks = if side == PlanSide::From {
            from.ranks()
        } else {
            to.ranks()
        };
        let plans = (0..ranks).map(|rank| Plan::whole(from, to, side, rank).expect("it is small"));
        let shared: u64 = plans
            .map(|plan| plan.partners().iter().map(|partner| partner.elements).sum::<u64>())
            .sum();
        assert!(!is_all || shared == from.elements(), "{from}\n{to}");
    }
    (0..from.ranks()).for_each(|rank| pack(from, to, rank));
}

/// The work of a gate for a client that names these layouts.
fn pack(from: &Arc<Layout>, to: &Arc<Layout>, rank: u64) {
    let origin = vec![0; to.shape().len()];
    let Ok(plan) = Plan::limited(from, to, &origin, PlanSide::From, rank, 1 << 12) else {
        return;
    };
    if from.room(rank) > 16 * ELEMENTS_MAX {
        return;
    }
    let piece = vec![0; from.room(rank) as usize];
    for partner in plan.partners() {
        let pack =
            Pack::new(&plan, partner.rank, ElementKind::U8.into(), ElementKind::U8.into()).expect("it is a partner");
        assert_eq!(pack.elements(), partner.elements, "{from}\n{to}");
        let first = partner.elements / 3;
        let mut part = vec![0; (partner.elements - first) as usize];
        pack.run_part(&piece, first, &mut part).expect("it is a part");
    }
}
