//! Texts as Go and Kubernetes write and read them.
//!
//! - [`duration`]: `1m30s`, as `time.ParseDuration` reads and `time.Duration` prints it.
//! - [`quote`]: what `%q` prints.
//! - [`quantity`]: amounts of resources such as `500m` and `2Gi`, exact.
//! - [`regexp`]: patterns of the package `regexp`, for another engine.
//! - [`yaml`]: YAML as `sigs.k8s.io/yaml` prints it, and the one parser of YAML.
//!
//! Clients compare these texts, so there is one implementation of each. Pure; knows no kind.

pub mod duration;
pub mod quantity;
pub mod quote;
pub mod regexp;
pub mod yaml;
