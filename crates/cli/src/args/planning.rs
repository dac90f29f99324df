//! Options of `plan`.

use std::path::PathBuf;

use clap::{Args as ClapArgs, ValueEnum};

/// An output format of `plan`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum PlanOutput {
    /// Text for a terminal
    Text,
    /// One JSON document
    Json,
    /// One YAML document
    Yaml,
    /// Markdown for a comment on a pull request
    Markdown,
}

/// Options of `plan`.
#[derive(Clone, Debug, ClapArgs)]
pub(crate) struct PlanArgs {
    /// File or folder with changed objects: classes, templates, Clusters; - is standard input; may be repeated
    #[arg(short = 'f', long = "filename", value_name = "FILE")]
    pub(crate) filename: Vec<PathBuf>,
    /// ClusterClass that --set changes
    #[arg(long, value_name = "[NAMESPACE/]NAME", requires = "set")]
    pub(crate) class: Option<String>,
    /// Field of the class and its new value (YAML), such as 'spec.variables[name=cpu].schema.openAPIV3Schema.default=4'; may be repeated
    #[arg(long, value_name = "PATH=VALUE", requires = "class")]
    pub(crate) set: Vec<String>,
    /// Moves a Cluster to another class; may be repeated
    #[arg(long, value_name = "CLUSTER=CLASS")]
    pub(crate) rebase: Vec<String>,
    /// File or folder with the objects of a management cluster, and with the CustomResourceDefinitions of its providers, to use instead of
    /// a management cluster; may be repeated
    #[arg(long, value_name = "DIR", conflicts_with_all = ["kubeconfig", "context"])]
    pub(crate) offline: Vec<PathBuf>,
    /// Output format: text, json, yaml or markdown
    #[arg(short = 'o', long, value_name = "FORMAT", value_enum, hide_possible_values = true, default_value_t = PlanOutput::Text)]
    pub(crate) output: PlanOutput,
    /// Namespace of what names none [default: that of the kubeconfig's context]
    #[arg(short = 'n', long, value_name = "NAME")]
    pub(crate) namespace: Option<String>,
    /// Field manager with which the change will be applied
    #[arg(long, value_name = "NAME", default_value = "kubectl")]
    pub(crate) field_manager: String,
    /// Kubeconfig file of the management cluster [default: as kubectl finds it]
    #[arg(long, value_name = "FILE")]
    pub(crate) kubeconfig: Option<PathBuf>,
    /// Context of the kubeconfig [default: its current context]
    #[arg(long, value_name = "NAME")]
    pub(crate) context: Option<String>,
}

impl PlanArgs {
    /// Whether no change is named.
    pub(crate) fn is_empty(&self) -> bool {
        self.filename.is_empty() && self.class.is_none() && self.rebase.is_empty()
    }
}
