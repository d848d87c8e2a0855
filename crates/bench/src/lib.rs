//! The data generator of the benchmark, as a library for `scripts/seed` and the tests.

pub mod seed;
