//! Random choices that can be made again.

#![allow(dead_code, unreachable_pub, reason = "each test file is a program of its own that uses a part of it")]

use fastrand::Rng;

/// Takes the seed of a failed run again.
const VARIABLE: &str = "IDEMPOTENT_TEST_SEED";

/// A generator that prints its seed, which a test shows when it fails.
#[allow(clippy::print_stdout, reason = "a failed test shows it")]
pub fn random() -> Rng {
    let given = std::env::var(VARIABLE).ok().map(|seed| seed.parse().expect("a seed is a number"));
    let seed = given.unwrap_or_else(|| fastrand::u64(..));
    println!("{VARIABLE}={seed}");
    Rng::with_seed(seed)
}
