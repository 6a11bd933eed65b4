//! Layouts from outside: a text costs what its bytes cost to read, whatever sizes it claims.

use std::sync::Arc;

use crate::limits::Limits;
use junctura_layout::{Layout, Plan, PlanSide};
use proptest::prelude::*;

/// Reading: each number of the text takes eight bytes, some of them several times.
const READING: Limits = Limits {
    held_bytes: 8 << 10,
    held_bytes_each: 128,
    steps: 200,
    steps_each: 8,
};
/// Runs that a plan may list.
const LISTED_MAX: usize = 1 << 10;
/// A plan: what it lists, and what each rank that it names takes.
const PLANNING: Limits = Limits {
    held_bytes: 256 << 10,
    held_bytes_each: 512,
    steps: 5000,
    steps_each: 64,
};

fn number() -> impl Strategy<Value = String> {
    let numbers = prop_oneof![0_u64..20, 0_u64..1 << 33, Just(1 << 32), Just(1 << 58), any::<u64>()];
    numbers.prop_map(|number| number.to_string())
}

fn numbers() -> impl Strategy<Value = String> {
    prop::collection::vec(number(), 1..3).prop_map(|numbers| numbers.join("x"))
}

fn words() -> impl Strategy<Value = String> {
    let named = prop::sample::select(vec!["grid", "block", "offset", "strides"]);
    let word = prop_oneof![
        4 => (named, numbers()).prop_map(|(name, numbers)| format!("{name}={numbers}")),
        1 => (number(), number()).prop_map(|(from, to)| format!("slabs={from}:{to};{to}:{from}")),
        1 => prop::collection::vec(number(), 1..9).prop_map(|cuts| format!("cuts={}", cuts.join(","))),
        2 => prop::sample::select(vec!["order=F", "ranks=F", "storage=packed"]).prop_map(str::to_owned),
    ];
    prop::collection::vec(word, 0..3).prop_map(|words| words.join(" "))
}

/// Two texts that nearly are layouts of one array, with claims of any size, and texts of any kind.
fn texts() -> impl Strategy<Value = [String; 2]> {
    let layouts = (numbers(), words(), words())
        .prop_map(|(shape, from, to)| [from, to].map(|words| format!("shape={shape} {words}")));
    let others = || prop_oneof!["[a-z=0-9x:;, ]{0,60}", any::<String>()];
    prop_oneof![3 => layouts, 1 => [others(), others()]]
}

fn read(text: &str) -> Option<Arc<Layout>> {
    READING.hold(text.len(), || {
        let _ = Layout::from_yaml(text);
        let layout = text.parse::<Layout>().ok()?;
        let written = layout.to_string();
        assert_eq!(written.parse::<Layout>().as_ref(), Ok(&layout), "{written}");
        Some(Arc::new(layout))
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_claim_costs_what_its_text_costs([from, to] in texts()) {
        let bytes = from.len() + to.len();
        let (Some(from), Some(to)) = (read(&from), read(&to)) else { return Ok(()) };
        let origin = vec![0; to.shape().len()];
        for side in [PlanSide::From, PlanSide::To] {
            PLANNING.hold(bytes, || drop(Plan::limited(&from, &to, &origin, side, 0, LISTED_MAX)));
        }
        PLANNING.hold(bytes, || drop((from.check_cover(), to.check_cover())));
    }
}
