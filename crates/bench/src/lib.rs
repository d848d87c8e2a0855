//! The data generator of the benchmark: a library for `scripts/seed` and the tests.

pub mod seed;
