//! Skeleton; being filled in.
