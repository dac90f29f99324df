//! `cargo xtask faults`: the suites of faults, which CI runs once and short, for as long as one has time.

use std::path::Path;

use clap::Args;

use crate::cargo;

/// Packages with the names of their tests that a seed or a long outage changes, and whether these are simulations, of which many run.
const SUITES: [(&str, &str, bool); 5] = [
    ("windlass-controlplane-kubeadm", "simulation::", true),
    ("windlass-controlplane-kubeadm", "sim::", true),
    ("windlass-core-topology", "rotation::", false),
    ("windlass-testkit", "faults::", false),
    ("windlass-testkit", "safety::", false),
];

/// Options of `faults`.
#[derive(Clone, Debug, Args)]
pub(crate) struct Options {
    /// How often the suites run, each time with another seed
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..))]
    rounds: u32,
    /// The seed of the first round; a failure prints the seed that it needs
    #[arg(long, value_name = "SEED")]
    seed: Option<u64>,
    /// Simulations of a control plane in each round
    #[arg(long, value_name = "N", default_value_t = 1000)]
    simulations: u32,
    /// How long the API server of a workload cluster stays away
    #[arg(long, value_name = "SECONDS", default_value_t = 60)]
    outage: u32,
}

/// Runs the suites; false when a test failed. The kind of API server is chosen as for all tests, by `WINDLASS_TEST_SERVER`.
pub(crate) fn run(root: &Path, options: &Options) -> Result<bool, String> {
    let first = options.seed.unwrap_or_else(fresh);
    for round in 0..options.rounds {
        let seed = first.wrapping_add(u64::from(round));
        anstream::println!("round {} of {}, seed {seed}", round + 1, options.rounds);
        for (package, tests, simulates) in SUITES {
            let mut suite = cargo::cargo(root, &["test", "-p", package, "--test", "it", tests]);
            suite.env("WINDLASS_SEED", seed.to_string());
            if simulates {
                suite.env("WINDLASS_SEEDS", options.simulations.to_string());
            }
            suite.env("WINDLASS_OUTAGE", options.outage.to_string());
            if !cargo::run(&mut suite)? {
                anstream::println!("again with: cargo xtask faults --rounds 1 --seed {seed}");
                return Ok(false);
            }
        }
    }
    Ok(true)
}

/// A seed that differs from run to run.
fn fresh() -> u64 {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    now.map_or(1, |since| since.as_secs())
}
