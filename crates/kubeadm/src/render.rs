//! Bootstrap data of a machine, in the format of its specification.

use windlass_api_kubeadm::bootstrap::{ClusterConfiguration, InitConfiguration, JoinConfiguration, KubeadmConfigSpec};
use windlass_api_kubeadm::values::FORMAT_IGNITION;

use crate::convert::{self, ClusterFacts};
use crate::{KubeadmError, KubeadmVersion, Resolved, cloud_config, ignition};

/// Creates the file by which infrastructure providers detect that kubeadm has finished.
pub(crate) const SENTINEL: &str = "echo success > /run/cluster-api/bootstrap-success.complete";

const INIT_FILE: &str = "/run/kubeadm/kubeadm.yaml";
const JOIN_FILE: &str = "/run/kubeadm/kubeadm-join-config.yaml";

/// Bootstrap data in the form of the Secret.
#[derive(Clone, PartialEq, Eq)]
pub struct BootstrapData {
    /// Key `format`.
    pub format: &'static str,
    /// Key `value`.
    pub value: String,
    /// What is doubtful about the specification, with its fields.
    pub warnings: Vec<String>,
}

/// A file that a machine writes. It has no `Debug`: contents may be keys.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct WriteFile {
    /// Absolute path.
    pub path: String,
    /// `user:group`, or empty.
    pub owner: String,
    /// Octal mode, or empty.
    pub permissions: String,
    /// `base64`, `gzip`, `gzip+base64`, or empty.
    pub encoding: String,
    /// Whether to append to an existing file.
    pub append: bool,
    /// The content, already in `encoding`.
    pub content: String,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Format {
    CloudConfig,
    Ignition,
}

/// Data for the machine that creates the cluster: `certificates` first, then the files of the spec.
pub fn render_init(
    spec: &KubeadmConfigSpec,
    facts: &ClusterFacts,
    certificates: &[WriteFile],
    resolved: &Resolved,
) -> Result<BootstrapData, KubeadmError> {
    let format = format_of(spec)?;
    let version = KubeadmVersion::for_kubernetes(&facts.kubernetes_version)?;
    let default_cluster = ClusterConfiguration::default();
    let default_init = InitConfiguration::default();
    let cluster = spec.cluster_configuration.as_ref().unwrap_or(&default_cluster);
    let init = spec.init_configuration.as_ref().unwrap_or(&default_init);
    let documents = [
        convert::cluster_configuration(version, cluster, init, facts),
        "---".to_owned(),
        convert::init_configuration(version, init),
    ]
    .join("\n");
    match format {
        Format::CloudConfig => {
            let file = cloud_config::own_file(INIT_FILE, format!("---\n{documents}"));
            let command = format!("'{} && {SENTINEL}'", command("init", INIT_FILE, spec));
            Ok(cloud_config::render(spec, certificates, resolved, &file, &command))
        }
        Format::Ignition => {
            let command = command("init", ignition::KUBEADM_FILE, spec);
            ignition::render(spec, certificates, resolved, &documents, &command)
        }
    }
}

/// Data for a machine that joins. `join` is the configuration with discovery; `certificates` are for control plane machines only.
pub fn render_join(
    spec: &KubeadmConfigSpec,
    join: &JoinConfiguration,
    facts: &ClusterFacts,
    certificates: &[WriteFile],
    resolved: &Resolved,
) -> Result<BootstrapData, KubeadmError> {
    let format = format_of(spec)?;
    let version = KubeadmVersion::for_kubernetes(&facts.kubernetes_version)?;
    let document = convert::join_configuration(version, join);
    match format {
        Format::CloudConfig => {
            let document = if join.control_plane.is_some() {
                document
            } else {
                format!("---\n{document}")
            };
            let file = cloud_config::own_file(JOIN_FILE, document);
            let command = format!("{} && {SENTINEL}", command("join", JOIN_FILE, spec));
            Ok(cloud_config::render(spec, certificates, resolved, &file, &command))
        }
        Format::Ignition => {
            let command = command("join", ignition::KUBEADM_FILE, spec);
            ignition::render(spec, certificates, resolved, &document, &command)
        }
    }
}

/// Where the machine has the configuration of `kubeadm join`.
pub(crate) fn join_file(spec: &KubeadmConfigSpec) -> Result<&'static str, KubeadmError> {
    Ok(match format_of(spec)? {
        Format::CloudConfig => JOIN_FILE,
        Format::Ignition => ignition::KUBEADM_FILE,
    })
}

fn format_of(spec: &KubeadmConfigSpec) -> Result<Format, KubeadmError> {
    match spec.format.as_deref() {
        None | Some("" | cloud_config::CLOUD_CONFIG) => Ok(Format::CloudConfig),
        Some(FORMAT_IGNITION) => Ok(Format::Ignition),
        Some(other) => Err(KubeadmError::Format(other.to_owned())),
    }
}

fn command(task: &str, file: &str, spec: &KubeadmConfigSpec) -> String {
    let verbosity = spec.verbosity.map(|level| format!("--v {level}")).unwrap_or_default();
    format!("kubeadm {task} --config {file} {verbosity}")
}
