//! The beginning of a requirement that is owed very many objects: it is done in parts.

/// The objects that a requirement has yet to be owed.
pub(in crate::core) struct RequirementStart {
    /// In the order of the index, the next last.
    pub(in crate::core) left: Vec<u32>,
    /// The newest version at that time: objects with a higher number became visible later.
    pub(in crate::core) newest: u64,
    /// The requests that are answered at its end.
    pub(in crate::core) askers: Vec<WaitingAsker>,
}

/// A request that uses a requirement and waits until the requirement has begun.
pub(in crate::core) struct WaitingAsker {
    pub(in crate::core) client: u32,
    pub(in crate::core) request: u64,
    /// It becomes a member then: its window, and whether it ends when it has caught up.
    pub(in crate::core) joins: Option<(u32, bool)>,
}

impl RequirementStart {
    pub(in crate::core) fn new(left: Vec<u32>, newest: u64) -> Self {
        Self {
            left,
            newest,
            askers: Vec::new(),
        }
    }

    pub(in crate::core) fn len(&self) -> usize {
        self.left.len()
    }
}
