//! Helm, as the real `helm` program.
//!
//! [`Engine`] is what a controller asks: find and fetch a [`Chart`], install, upgrade, roll back and uninstall a release in the
//! cluster that a [`Target`] names. Every [`HelmError`] has a [`Kind`] that stands for something else that a person can do, and
//! Helm's own words.
//!
//! What a cluster really has is read without Helm: [`release`] decodes the Secrets that Helm stores releases in. They are Helm's own
//! and are never written here.
//!
//! [`Helm`] is the engine. It runs the program in processes of their own, with private files that are removed with the
//! call, an environment of its own, and nothing secret on a command line. What others of a fleet ask for at the same time is fetched once.
//!
//! [`values`] reads the values of a chart as Helm does, so that they can be compared as data.

mod address;
mod blame;
mod chart;
mod charts;
mod counters;
mod engine;
mod error;
mod flags;
mod helm;
mod home;
mod kubeconfig;
mod options;
mod probe;
mod process;
pub mod release;
mod secret;
mod source;
pub mod values;
mod version;
mod words;

pub use chart::Chart;
pub use counters::{Count, Counted, Counters};
pub use engine::{BoxFuture, Engine, Freshness, MARK, Marker, Summary, Target};
pub use error::{HelmError, Kind};
pub use helm::{Helm, Settings};
pub use options::{Install, Options, Uninstall, Upgrade};
pub use release::{Release, Status};
pub use secret::Secret;
pub use source::{ChartSource, Credentials, Tls};
