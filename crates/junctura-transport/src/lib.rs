//! Carries frames and descriptors between processes.
