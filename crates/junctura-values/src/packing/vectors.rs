//! Runs one piece of work compiled for each level of vector instructions.

#![allow(
    unsafe_code,
    reason = "functions compiled for instructions of some processors are called where the processor has them"
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
