//! Options of `adopt`.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args as ClapArgs, ValueEnum};

use super::duration;

/// An output format of `adopt`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum AdoptOutput {
    /// Text for a terminal
    Text,
    /// One JSON document
    Json,
    /// One YAML document
    Yaml,
}

/// Options of `adopt`.
#[derive(Clone, Debug, ClapArgs)]
pub(crate) struct AdoptArgs {
    /// Show what the controllers would change: the default
    #[arg(long, conflicts_with_all = ["take_over", "way_back"])]
    pub(crate) check: bool,
    /// Show the steps of the take-over, which of them are done, and the commands of the next one. Stops and starts nothing
    #[arg(long, conflicts_with = "way_back")]
    pub(crate) take_over: bool,
    /// Show the steps back to the managers of Cluster API in the same way
    #[arg(long)]
    pub(crate) way_back: bool,
    /// Controllers to try, by name, separated by commas [default: those of the core, and of the kubeadm providers]
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    pub(crate) controllers: Vec<String>,
    /// Feature gates, as windlass manager will have them: AllAlpha=false gives the defaults of Cluster API
    #[arg(long = "feature-gates", value_name = "GATES")]
    pub(crate) feature_gates: Vec<String>,
    /// How long the controllers may take to come to rest
    #[arg(long, value_name = "DURATION", default_value = "5m", value_parser = duration)]
    pub(crate) timeout: Duration,
    /// Output format: text, json or yaml
    #[arg(short = 'o', long, value_name = "FORMAT", value_enum, hide_possible_values = true, default_value_t = AdoptOutput::Text)]
    pub(crate) output: AdoptOutput,
    /// With --take-over or --way-back: the Service of the webhooks of windlass manager
    #[arg(
        long,
        value_name = "NAMESPACE/NAME[:PORT]",
        default_value = "windlass-system/windlass-webhook"
    )]
    pub(crate) webhook_service: String,
    /// With --take-over or --way-back: the name of the Lease of windlass manager
    #[arg(
        long = "leader-elect-resource-name",
        value_name = "NAME",
        default_value = "windlass-manager"
    )]
    pub(crate) lease_name: String,
    /// With --take-over or --way-back: the namespace of that Lease [default: that of the kubeconfig's context]
    #[arg(long = "leader-elect-resource-namespace", value_name = "NAME")]
    pub(crate) lease_namespace: Option<String>,
    /// Kubeconfig file of the management cluster [default: as kubectl finds it]
    #[arg(long, value_name = "FILE")]
    pub(crate) kubeconfig: Option<PathBuf>,
    /// Context of the kubeconfig [default: its current context]
    #[arg(long, value_name = "NAME")]
    pub(crate) context: Option<String>,
}
