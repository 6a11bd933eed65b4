//! Runs one piece of work compiled for each level of vector instructions.

#![allow(
    unsafe_code,
    reason = "functions compiled for instructions of some processors are called where the processor has them; a conversion \
              whose limits are checked before is one instruction"
)]
#![allow(
    clippy::inline_always,
    reason = "the code is compiled for each level of instructions where it is inlined"
)]

use junctura_model::InstructionSet;

/// Work that the compiler turns into vector instructions. `run` is inlined everywhere, so that it is compiled for each level.
pub(super) trait VectorWork {
    type Made;

    fn run(self) -> Self::Made;
}

/// Runs work with the instructions of a level, or with those that this processor has.
pub(super) fn vectorized<W: VectorWork>(set: InstructionSet, work: W) -> W::Made {
    match set.min(InstructionSet::of_this_machine()) {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: this processor has the instructions of the level.
        InstructionSet::Avx512 => unsafe { with_avx512(work) },
        #[cfg(target_arch = "x86_64")]
        // SAFETY: as above.
        InstructionSet::Avx2 => unsafe { with_avx2(work) },
        _ => work.run(),
    }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,bmi2")]
fn with_avx512<W: VectorWork>(work: W) -> W::Made {
    work.run()
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn with_avx2<W: VectorWork>(work: W) -> W::Made {
    work.run()
}

/// The whole number that is not above a value, of those from 0 to `integer_max`, at most 2^31 - 1; 0 for NaN.
#[inline(always)]
pub(super) fn whole(wanted: f64, integer_max: f64) -> u32 {
    // The same for all values of a packing: computed once.
    let most = integer_max.clamp(0.0, f64::from(i32::MAX)).min(f64::from(i32::MAX));
    // Each comparison is one instruction, `max` and `min` with their rule for NaN are several.
    let wanted = if wanted > 0.0 { wanted } else { 0.0 };
    let wanted = if wanted < most { wanted } else { most };
    // SAFETY: it is a number from 0 to 2^31 - 1: `min` makes a number of NaN, and so do both comparisons.
    unsafe { wanted.to_int_unchecked::<i32>() as u32 }
}
