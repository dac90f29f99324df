//! Seeds of simulations: fixed ones, and others from the environment (`WINDLASS_SEED`), so that different runs try different
//! schedules.

use std::ops::Range;

/// The variable with the base of additional seeds. Bases that are closer than [`COUNT`] share some.
pub const SEED: &str = "WINDLASS_SEED";

/// The variable with the number of additional seeds of each simulation, which has a small number of its own otherwise.
pub const COUNT: &str = "WINDLASS_SEEDS";

/// The variable with a seed of a failure, to run it alone.
pub const ONLY: &str = "WINDLASS_ONLY";

/// The base from the environment.
pub fn given() -> Option<u64> {
    number(SEED)
}

fn number(variable: &str) -> Option<u64> {
    let text = std::env::var(variable).ok().filter(|text| !text.is_empty())?;
    let number = text.parse();
    Some(number.unwrap_or_else(|_| panic!("{variable} is \"{text}\": a number")))
}

/// Runs a simulation with each fixed seed, and with some more that are derived from [`SEED`] if it is set. A failure shows its
/// seed.
pub fn simulate(fixed: Range<u64>, more: u64, mut simulation: impl FnMut(u64)) {
    if let Some(seed) = number(ONLY) {
        let _shown = Shown(seed);
        return simulation(seed);
    }
    for seed in fixed {
        let _shown = Shown(seed);
        simulation(seed);
    }
    let Some(base) = given() else {
        return;
    };
    for nth in 0..number(COUNT).unwrap_or(more) {
        // Far apart from each other and from the fixed ones.
        let seed = base.wrapping_add(nth).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 1;
        let _shown = Shown(seed);
        simulation(seed);
    }
}

/// Prints a seed if a test fails with it.
#[derive(Debug)]
pub struct Shown(pub u64);

impl Drop for Shown {
    fn drop(&mut self) {
        if std::thread::panicking() {
            #[expect(clippy::print_stderr, reason = "the test harness shows it with the test that fails")]
            {
                eprintln!("failed with seed {seed}; {ONLY}={seed} runs it alone", seed = self.0);
            }
        }
    }
}
