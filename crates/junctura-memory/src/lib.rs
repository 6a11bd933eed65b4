//! Shared memory: sealed segments, maps, size classes and who holds which slot.
