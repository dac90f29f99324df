//! Kubernetes vocabulary: names, object keys, versions, quantities, durations, clocks, and what a request to an API server may cost.
//!
//! No Cluster API word and nothing asynchronous lives here. Time and randomness enter the rest of the workspace
//! through [`Clock`] and [`NameSource`], so that what decides can be tested without either.

pub mod budget;
mod clock;
mod duration;
mod key;
mod names;
pub mod repeats;
mod text;
mod version;

pub use clock::{Clock, FakeClock, Moment, SystemClock};
pub use duration::{GoDuration, ParseDurationError};
pub use key::{GroupKind, GroupResource, GroupVersionKind, ObjectKey};
pub use names::{
    MAX_LABEL_LENGTH, MAX_NAME_LENGTH, NameSource, SUFFIX_ALPHABET, SUFFIX_LENGTH, SeededNames, SystemNames,
    generate_name, label_or_hash, short_hash, truncate_name,
};
pub use text::{beginning, distance};
pub use version::{KubernetesVersion, ParseVersionError, compare_builds};
