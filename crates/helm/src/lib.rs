//! Helm, by the real `helm` program.
//!
//! [`Engine`] is the interface of controllers: find and fetch a [`Chart`], install, upgrade, roll back and uninstall a release in
//! the cluster of a [`Target`]. Every [`HelmError`] has Helm's message and a [`Kind`], and each kind has a different remedy.
//!
//! The actual releases of a cluster are read without Helm: [`release`] decodes the Secrets in which Helm stores releases. Only
//! Helm itself writes them.
//!
//! [`Helm`] is the engine. It runs the program in separate processes, with private files that are removed with the call, their
//! own environment, and no secrets on command lines. Concurrent requests of a fleet for the same chart share one fetch.
//!
//! [`values`] parses the values of a chart as Helm does, so that they can be compared as data.

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
pub use engine::{BoxFuture, Engine, Freshness, MARK, Marker, Stop, Summary, Target};
pub use error::{HelmError, Kind};
pub use helm::{GRACE, Helm, Settings};
pub use options::{Install, Options, Uninstall, Upgrade};
pub use release::{Release, Status};
pub use secret::Secret;
pub use source::{ChartSource, Credentials, Tls};
