//! Which instructions of the processor the fast paths may use: copies and checksums ask here.

/// A level of vector instructions. A level includes those before it.
///
/// ```
/// use junctura_model::InstructionSet;
///
/// let here = InstructionSet::of_this_machine();
/// assert_eq!(here.at_most(Some("portable")), InstructionSet::Portable);
/// assert!(here.at_most(Some("avx2")) <= InstructionSet::Avx2);
/// assert_eq!(here.at_most(None), here);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum InstructionSet {
    /// The instructions of every processor of the architecture.
    Portable,
    /// AVX2 of x86-64.
    Avx2,
    /// AVX-512 of x86-64 with byte masks (F, BW, DQ, VL), and BMI2.
    Avx512,
}

impl InstructionSet {
    /// The highest level that this processor has.
    #[must_use]
    pub fn of_this_machine() -> Self {
        #[cfg(target_arch = "x86_64")]
        {
            use std::is_x86_feature_detected as has;
            if has!("avx512f") && has!("avx512bw") && has!("avx512dq") && has!("avx512vl") && has!("bmi2") {
                return Self::Avx512;
            }
            if has!("avx2") {
                return Self::Avx2;
            }
        }
        Self::Portable
    }

    /// Whether this processor multiplies polynomials in vectors of 512 bits (`vpclmulqdq`), beside [`InstructionSet::Avx512`].
    #[must_use]
    pub fn multiplies_wide() -> bool {
        #[cfg(target_arch = "x86_64")]
        return std::is_x86_feature_detected!("vpclmulqdq");
        #[cfg(not(target_arch = "x86_64"))]
        false
    }

    /// This level, or the one that `limit` names (`portable`, `avx2`, `avx512`) if that is lower. Another text, or none, is no limit.
    #[must_use]
    pub fn at_most(self, limit: Option<&str>) -> Self {
        match limit {
            Some("portable") => Self::Portable,
            Some("avx2") => self.min(Self::Avx2),
            _ => self,
        }
    }
}
