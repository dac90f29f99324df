//! How Helm is used, and how repositories are reached: parts of both kinds.

use k8s_openapi::api::core::v1::SecretReference;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::schema;
use crate::addons::values;

/// How Helm is used. The fields are called as Helm calls its flags.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HelmOptions {
    /// Whether the hooks of the chart are left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disable_hooks: Option<bool>,
    /// Whether an operation waits until what it has changed is running.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wait: Option<bool>,
    /// Whether that waits for Jobs to end, too.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wait_for_jobs: Option<bool>,
    /// Whether the dependencies of the chart are updated before the installation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dependency_update: Option<bool>,
    /// How long an operation may wait for anything on the cluster, such as 10m.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::timeout")]
    pub timeout: Option<String>,
    /// Whether the custom resource definitions of the chart are left out.
    #[serde(default, skip_serializing_if = "Option::is_none", rename = "skipCRDs")]
    pub skip_crds: Option<bool>,
    /// Whether the notes of sub-charts are told with those of the chart.
    #[serde(default, skip_serializing_if = "Option::is_none", rename = "options")]
    pub sub_notes: Option<bool>,
    /// Whether objects are not checked against what the cluster says of their kinds.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        rename = "disableOpenAPIValidation"
    )]
    pub disable_open_api_validation: Option<bool>,
    /// Whether what a failed operation has done is taken back. It includes wait.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub atomic: Option<bool>,
    /// Whether objects are taken over that belong to another release or to none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub take_ownership: Option<bool>,
    /// Whether the connection to the cluster is kept for the next operation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = false))]
    pub enable_client_cache: Option<bool>,
    /// What concerns installations only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub install: Option<HelmInstallOptions>,
    /// What concerns upgrades only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub upgrade: Option<HelmUpgradeOptions>,
    /// What concerns uninstallations only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uninstall: Option<HelmUninstallOptions>,
}

/// Options of installations.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HelmInstallOptions {
    /// Whether the namespace of the release is created where it is missing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = true))]
    pub create_namespace: Option<bool>,
    /// Whether custom resource definitions are among what is rendered.
    #[serde(default, skip_serializing_if = "Option::is_none", rename = "includeCRDs")]
    pub include_crds: Option<bool>,
}

/// Options of upgrades.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HelmUpgradeOptions {
    /// Whether objects that cannot be changed are replaced.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub force: Option<bool>,
    /// Whether only the values of the chart and those given here count.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reset_values: Option<bool>,
    /// Whether the values of the last revision count where nothing is given here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reuse_values: Option<bool>,
    /// Whether the values of the new chart, then those of the last revision, then those given here count.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reset_then_reuse_values: Option<bool>,
    /// Whether pods are restarted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recreate: Option<bool>,
    /// How many revisions are kept; 0 for all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::max_history")]
    pub max_history: Option<i64>,
    /// Whether what a failed upgrade has created is deleted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cleanup_on_fail: Option<bool>,
}

/// Options of uninstallations.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HelmUninstallOptions {
    /// Whether the revisions are kept, marked as uninstalled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub keep_history: Option<bool>,
    /// A text for the record of the uninstallation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
}

/// Credentials for a registry.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Credentials {
    /// The Secret that has them.
    #[schemars(schema_with = "schema::secret_reference")]
    pub secret: SecretReference,
    /// The key of the Secret, with the content of a configuration file as docker login writes it.
    pub key: String,
}

/// How the repository is trusted.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TLSConfig {
    /// A Secret with authorities under the key ca.crt, in place of those of the system.
    #[serde(default, skip_serializing_if = "Option::is_none", rename = "caSecret")]
    #[schemars(schema_with = "schema::secret_reference")]
    pub ca_secret: Option<SecretReference>,
    /// Whether any certificate of the repository is accepted.
    #[serde(default, skip_serializing_if = "Option::is_none", rename = "insecureSkipTLSVerify")]
    pub insecure_skip_tls_verify: Option<bool>,
}

impl HelmOptions {
    /// Whether an operation waits: also when it is atomic.
    pub fn waits(&self) -> bool {
        self.wait == Some(true) || self.atomic == Some(true)
    }

    /// The same with what is meant where nothing is said.
    #[must_use]
    pub fn completed(&self) -> Self {
        let mut options = self.clone();
        options.wait = if self.waits() { Some(true) } else { self.wait };
        if options.timeout.as_ref().is_none_or(String::is_empty) {
            options.timeout = Some(values::DEFAULT_TIMEOUT.to_owned());
        }
        options.enable_client_cache.get_or_insert(false);
        if let Some(install) = &mut options.install {
            install.create_namespace.get_or_insert(true);
        }
        if let Some(upgrade) = &mut options.upgrade {
            upgrade.max_history.get_or_insert(values::DEFAULT_MAX_HISTORY);
        }
        options
    }

    /// Whether the namespace of the release is created where it is missing.
    pub fn creates_namespace(&self) -> bool {
        self.install
            .as_ref()
            .and_then(|install| install.create_namespace)
            .unwrap_or(true)
    }

    /// How many revisions are kept; 0 for all.
    pub fn max_history(&self) -> i64 {
        let upgrade = self.upgrade.as_ref().and_then(|upgrade| upgrade.max_history);
        upgrade.unwrap_or(values::DEFAULT_MAX_HISTORY)
    }
}

impl Credentials {
    /// The key of the Secret; `config.json` where nothing is said.
    pub fn key(&self) -> &str {
        if self.key.is_empty() {
            values::DEFAULT_CREDENTIALS_KEY
        } else {
            &self.key
        }
    }
}
