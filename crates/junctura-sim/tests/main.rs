//! Integration tests of the core: seeded simulations, and every order of its races.

mod fixed_seeds;
mod races;
mod reasons;
