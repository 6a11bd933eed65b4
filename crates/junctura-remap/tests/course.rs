//! Which steps a field at a wanted time is made of.

#![allow(clippy::float_cmp, reason = "tests")]

use junctura_model::Code;
use junctura_remap::{CourseAnswer, TimeCourse, TimeMethod};
use proptest::prelude::*;

fn course(method: TimeMethod, lag: i64, times: &[i64]) -> TimeCourse {
    let mut course = TimeCourse::new(method, lag).unwrap();
    for (number, &time) in times.iter().enumerate() {
        assert_eq!(course.push(time).unwrap(), number as u64);
    }
    course
}

fn made(course: &mut TimeCourse, wanted: i64) -> (Vec<(u64, f64)>, f64) {
    match course.ask(wanted).unwrap() {
        CourseAnswer::Made(uses) => (uses.steps, uses.divisor),
        CourseAnswer::NotYet => panic!("{wanted} is not known yet"),
    }
}

#[test]
fn nearest_takes_one_and_of_two_the_earlier() {
    let mut course = course(TimeMethod::Nearest, 0, &[0, 6, 12]);
    for (wanted, number) in [(-5, 0), (0, 0), (3, 0), (4, 1), (6, 1), (9, 1), (10, 2), (12, 2)] {
        assert_eq!(made(&mut course, wanted), (vec![(number, 1.0)], 1.0), "{wanted}");
    }
    assert_eq!(course.ask(13).unwrap(), CourseAnswer::NotYet);
    course.end();
    assert_eq!(made(&mut course, 13).0, [(2, 1.0)]);
}

#[test]
fn linear_is_a_step_itself_at_its_time() {
    let mut course = course(TimeMethod::Linear, 0, &[0, 6, 12]);
    assert_eq!(made(&mut course, 0).0, [(0, 1.0)]);
    assert_eq!(made(&mut course, 3).0, [(0, 0.5), (1, 0.5)]);
    assert_eq!(made(&mut course, 6).0, [(1, 1.0)]);
    assert_eq!(made(&mut course, 9).0, [(1, 0.5), (2, 0.5)]);
    assert_eq!(made(&mut course, 12).0, [(2, 1.0)]);
    assert_eq!(course.ask(13).unwrap(), CourseAnswer::NotYet);
    course.end();
    assert_eq!(course.ask(13).unwrap_err().code(), Code::NotFound);
}

#[test]
fn nothing_is_made_up_before_the_first() {
    let error = course(TimeMethod::Linear, 0, &[6, 12]).ask(5).unwrap_err();
    assert_eq!(error.code(), Code::NotFound);
    assert!(error.to_string().contains("the first step is of 6"), "{error}");
}

#[test]
fn a_window_ends_with_the_wanted_time() {
    let mut mean = course(TimeMethod::Mean(6), 0, &[0, 2, 4, 6, 8]);
    assert_eq!(made(&mut mean, 6), (vec![(1, 1.0), (2, 1.0), (3, 1.0)], 3.0));
    let mut sum = course(TimeMethod::Sum(6), 0, &[0, 2, 4, 6, 8]);
    assert_eq!(made(&mut sum, 7), (vec![(1, 1.0), (2, 1.0), (3, 1.0)], 1.0));
    assert_eq!(sum.ask(9).unwrap(), CourseAnswer::NotYet);
    sum.end();
    assert_eq!(made(&mut sum, 12), (vec![(4, 1.0)], 1.0));
    let error = sum.ask(14).unwrap_err();
    assert_eq!(error.code(), Code::NotFound);
    assert!(error.to_string().contains("the last step is of 8"), "{error}");
    let error = course(TimeMethod::Mean(2), 0, &[0, 6]).ask(5).unwrap_err();
    assert!(error.to_string().contains("there is none in its window"), "{error}");
}

#[test]
fn a_lag_looks_back() {
    let mut course = course(TimeMethod::Linear, 6, &[0, 6, 12]);
    assert_eq!(made(&mut course, 6).0, [(0, 1.0)]);
    assert_eq!(made(&mut course, 15).0, [(1, 0.5), (2, 0.5)]);
    course.end();
    let error = course.ask(19).unwrap_err();
    assert!(error.to_string().contains("that is 13 of the source"), "{error}");
}

#[test]
fn what_is_wrong_is_named() {
    assert!(
        TimeCourse::new(TimeMethod::Mean(0), 0)
            .unwrap_err()
            .to_string()
            .contains("window of 0")
    );
    let mut course = course(TimeMethod::Nearest, i64::MAX, &[3]);
    assert_eq!(course.push(3).unwrap_err().code(), Code::InvalidArgument);
    assert_eq!(course.ask(-3).unwrap_err().code(), Code::InvalidArgument);
    course.end();
    made(&mut course, 5);
    assert!(course.ask(4).unwrap_err().to_string().contains("after a later one"));
    let mut empty = TimeCourse::new(TimeMethod::Nearest, 0).unwrap();
    empty.end();
    assert!(empty.ask(0).unwrap_err().to_string().contains("there are no steps"));
}

proptest! {
    /// Steps that come one by one, and are forgotten as early as may be, give what all of them at once give.
    #[test]
    fn what_is_forgotten_is_not_missed(
        gaps in prop::collection::vec(1_i64..9, 1..30),
        wants in prop::collection::vec(0_i64..9, 1..30),
        kind in 0_usize..4,
        lag in -5_i64..5,
    ) {
        let sum = |gaps: &[i64]| gaps.iter().scan(0, |time, gap| { *time += gap; Some(*time) }).collect::<Vec<_>>();
        let (times, wanted) = (sum(&gaps), sum(&wants));
        let method = [TimeMethod::Nearest, TimeMethod::Linear, TimeMethod::Mean(7), TimeMethod::Sum(3)][kind];
        let mut all = course(method, lag, &times);
        all.end();
        let mut some = TimeCourse::new(method, lag).unwrap();
        let (mut coming, mut first) = (times.iter(), 0);
        for wanted in wanted {
            let found = loop {
                match some.ask(wanted) {
                    Ok(CourseAnswer::NotYet) => match coming.next() {
                        Some(&time) => { some.push(time).unwrap(); }
                        None => some.end(),
                    },
                    found => break found,
                }
            };
            let expected = all.ask(wanted);
            match (found, expected) {
                (Ok(CourseAnswer::Made(found)), Ok(CourseAnswer::Made(expected))) => {
                    prop_assert_eq!(&found, &expected);
                    prop_assert!(found.steps.iter().all(|(number, _)| *number >= first));
                    if method == TimeMethod::Linear {
                        let total: f64 = found.steps.iter().map(|(_, part)| part).sum();
                        prop_assert!((total - 1.0).abs() < 1e-15);
                    }
                }
                (Err(found), Err(expected)) => prop_assert_eq!(found.code(), expected.code()),
                (found, expected) => prop_assert!(false, "{found:?} {expected:?}"),
            }
            first = some.forget(wanted);
        }
    }
}
