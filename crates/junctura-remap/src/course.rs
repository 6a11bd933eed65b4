//! The steps of one model that make a field at a time of another.

use std::collections::VecDeque;

use junctura_model::{Code, Error, Result};

use crate::STEPS_MAX;

/// The composition of a field at a requested time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimeMethod {
    /// The nearest step; of two, the earlier.
    Nearest,
    /// Linear interpolation between the steps before and after. No extrapolation before the first or after the last.
    Linear,
    /// The mean of the steps of a window of this length, which ends with the requested time and excludes its start.
    Mean(i64),
    /// Their sum.
    Sum(i64),
}

/// The composition of a field: the weighted sum of these steps, in this order, divided at last.
#[derive(Clone, Debug, PartialEq)]
pub struct StepUses {
    /// The numbers of the steps, the first being 0, with their weights.
    pub steps: Vec<(u64, f64)>,
    /// The divisor of the sum.
    pub divisor: f64,
}

/// The state of a requested time.
#[derive(Clone, Debug, PartialEq)]
pub enum CourseAnswer {
    /// A future step may matter.
    NotYet,
    /// The composition.
    Made(StepUses),
}

/// The steps so far, for requested times that never decrease.
///
/// ```
/// use junctura_remap::{CourseAnswer, TimeCourse, TimeMethod};
///
/// # fn main() -> junctura_model::Result<()> {
/// let mut course = TimeCourse::new(TimeMethod::Linear, 0)?;
/// course.push(0)?;
/// assert_eq!(course.ask(4)?, CourseAnswer::NotYet);
/// course.push(8)?;
/// let CourseAnswer::Made(uses) = course.ask(4)? else { panic!("both steps are there") };
/// assert_eq!(uses.steps, [(0, 0.5), (1, 0.5)]);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct TimeCourse {
    method: TimeMethod,
    lag: i64,
    times: VecDeque<i64>,
    /// Steps that are no longer needed, before the first of `times`.
    gone: u64,
    /// The last step, forgotten or not.
    last: Option<i64>,
    wanted: Option<i64>,
    has_ended: bool,
}

impl TimeCourse {
    /// Makes a course: a requested time `t` is the source's time `t - lag`.
    ///
    /// # Errors
    /// `InvalidArgument` for a window that is not positive.
    pub fn new(method: TimeMethod, lag: i64) -> Result<Self> {
        if let TimeMethod::Mean(window) | TimeMethod::Sum(window) = method
            && window <= 0
        {
            return Err(invalid(format!("a window of {window} has no steps")));
        }
        Ok(Self {
            method,
            lag,
            times: VecDeque::new(),
            gone: 0,
            last: None,
            wanted: None,
            has_ended: false,
        })
    }

    /// Adds a step. Returns its number.
    ///
    /// # Errors
    /// `InvalidArgument` unless it is later than those before; `LimitExceeded` when too many are remembered.
    pub fn push(&mut self, time: i64) -> Result<u64> {
        if let Some(last) = self.last
            && time <= last
        {
            return Err(invalid(format!("a step of time {time} follows one of {last}")));
        }
        if self.times.len() >= STEPS_MAX {
            let cause = format!("more than {STEPS_MAX} steps are remembered");
            return Err(Error::new(Code::LimitExceeded, "times", cause));
        }
        self.times.push_back(time);
        self.last = Some(time);
        Ok(self.gone + self.times.len() as u64 - 1)
    }

    /// Declares that no more steps will arrive.
    pub fn end(&mut self) {
        self.has_ended = true;
    }

    /// Returns the composition of a field at this time.
    ///
    /// # Errors
    /// `NotFound` when the necessary steps are missing and will not arrive; `InvalidArgument` for a time before one that
    /// was requested, or one that exceeds 64 bits.
    pub fn ask(&mut self, wanted: i64) -> Result<CourseAnswer> {
        if self.wanted.is_some_and(|before| wanted < before) {
            return Err(invalid(format!("time {wanted} is requested after a later one")));
        }
        let at = wanted.checked_sub(self.lag).ok_or_else(|| out_of_numbers(wanted))?;
        self.wanted = Some(wanted);
        let is_known = self.has_ended || self.last.is_some_and(|last| last >= at);
        if !is_known {
            return Ok(CourseAnswer::NotYet);
        }
        let behind = self.times.partition_point(|&time| time <= at);
        let uses = match self.method {
            TimeMethod::Nearest => self.nearest(at, behind),
            TimeMethod::Linear => self.linear(at, behind),
            TimeMethod::Mean(window) | TimeMethod::Sum(window) => self.window(at, behind, window),
        };
        uses.map(CourseAnswer::Made).ok_or_else(|| self.nothing(wanted, at))
    }

    /// Forgets the steps that are not needed for this and later requested times. Returns the number of the first
    /// remaining one.
    pub fn forget(&mut self, wanted: i64) -> u64 {
        let at = wanted.saturating_sub(self.lag);
        let first = match self.method {
            TimeMethod::Nearest | TimeMethod::Linear => {
                self.times.partition_point(|&time| time <= at).saturating_sub(1)
            }
            TimeMethod::Mean(window) | TimeMethod::Sum(window) => {
                let start = at.saturating_sub(window);
                self.times.partition_point(|&time| time <= start)
            }
        };
        self.times.drain(..first);
        self.gone += first as u64;
        self.gone
    }

    fn one(&self, at: usize) -> StepUses {
        StepUses {
            steps: vec![(self.gone + at as u64, 1.0)],
            divisor: 1.0,
        }
    }

    fn nearest(&self, at: i64, behind: usize) -> Option<StepUses> {
        let before = behind.checked_sub(1);
        let Some(&next) = self.times.get(behind) else {
            return before.map(|before| self.one(before));
        };
        let Some(before) = before else {
            return Some(self.one(behind));
        };
        let is_next = next.abs_diff(at) < at.abs_diff(self.times[before]);
        Some(self.one(if is_next { behind } else { before }))
    }

    fn linear(&self, at: i64, behind: usize) -> Option<StepUses> {
        let before = behind.checked_sub(1)?;
        let start = self.times[before];
        if start == at {
            return Some(self.one(before));
        }
        let stop = *self.times.get(behind)?;
        let share = at.abs_diff(start) as f64 / stop.abs_diff(start) as f64;
        let first = self.gone + before as u64;
        Some(StepUses {
            steps: vec![(first, 1.0 - share), (first + 1, share)],
            divisor: 1.0,
        })
    }

    fn window(&self, at: i64, behind: usize, window: i64) -> Option<StepUses> {
        let start = at.saturating_sub(window);
        let first = self.times.partition_point(|&time| time <= start);
        let steps: Vec<(u64, f64)> = (first..behind).map(|step| (self.gone + step as u64, 1.0)).collect();
        let divisor = match self.method {
            TimeMethod::Mean(_) => steps.len() as f64,
            _ => 1.0,
        };
        (!steps.is_empty()).then_some(StepUses { steps, divisor })
    }

    fn nothing(&self, wanted: i64, at: i64) -> Error {
        let there = match (self.times.front(), self.last) {
            (_, None) => "there are no steps".to_owned(),
            (_, Some(last)) if at > last => format!("the last step is of {last}"),
            (Some(&first), _) if at < first && self.gone == 0 => format!("the first step is of {first}"),
            _ => "there is none in its window".to_owned(),
        };
        let lag = if self.lag == 0 {
            String::new()
        } else {
            format!(", that is {at} of the source")
        };
        let cause = format!("no steps for it{lag}: {there}");
        Error::new(Code::NotFound, format!("time {wanted}"), cause)
    }
}

fn invalid(cause: impl Into<String>) -> Error {
    Error::new(Code::InvalidArgument, "times", cause)
}

fn out_of_numbers(wanted: i64) -> Error {
    invalid(format!("time {wanted} minus the lag exceeds 64 bits"))
}
