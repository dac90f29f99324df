//! HelmReleaseProxies, with workload clusters on loopback and Helm as it is played.

mod borders;
mod deletion;
mod env;
mod fake;
mod faults;
mod inputs;
mod life;
mod recovery;
mod restored;
mod whole;
