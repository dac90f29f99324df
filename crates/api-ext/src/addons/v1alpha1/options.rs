//! Helm options, credentials and TLS settings: parts of both kinds.

use k8s_openapi::api::core::v1::SecretReference;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::schema;
use crate::addons::values;

/// Options of Helm operations. The fields have the names of Helm's flags.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HelmOptions {
    /// Skips the hooks of the chart (--no-hooks).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disable_hooks: Option<bool>,
    /// Waits until the objects of the release are ready (--wait).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wait: Option<bool>,
    /// With wait, also waits for Jobs to complete (--wait-for-jobs).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wait_for_jobs: Option<bool>,
    /// Updates the dependencies of the chart before the installation (--dependency-update).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dependency_update: Option<bool>,
    /// Timeout of an operation, for example 10m (--timeout).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::timeout")]
    pub timeout: Option<String>,
    /// Skips the CRDs of the chart (--skip-crds).
    #[serde(default, skip_serializing_if = "Option::is_none", rename = "skipCRDs")]
    pub skip_crds: Option<bool>,
    /// Prints the NOTES of subcharts together with those of the chart (--render-subchart-notes).
    #[serde(default, skip_serializing_if = "Option::is_none", rename = "options")]
    pub sub_notes: Option<bool>,
    /// Skips the validation against the OpenAPI schemas of the cluster (--disable-openapi-validation).
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        rename = "disableOpenAPIValidation"
    )]
    pub disable_open_api_validation: Option<bool>,
    /// Rolls back a failed operation (--atomic). Implies wait.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub atomic: Option<bool>,
    /// Adopts existing objects that belong to another release or to none (--take-ownership).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub take_ownership: Option<bool>,
    /// Keeps the connection to the cluster for the next operation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = false))]
    pub enable_client_cache: Option<bool>,
    /// Options of installations.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub install: Option<HelmInstallOptions>,
    /// Options of upgrades.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub upgrade: Option<HelmUpgradeOptions>,
    /// Options of uninstallations.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uninstall: Option<HelmUninstallOptions>,
}

/// Options of installations.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HelmInstallOptions {
    /// Creates the namespace of the release if it does not exist (--create-namespace).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = true))]
    pub create_namespace: Option<bool>,
    /// Includes CRDs in the rendered templates (--include-crds).
    #[serde(default, skip_serializing_if = "Option::is_none", rename = "includeCRDs")]
    pub include_crds: Option<bool>,
}

/// Options of upgrades.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HelmUpgradeOptions {
    /// Replaces objects that cannot be patched (--force).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub force: Option<bool>,
    /// Resets the values to those of the chart before the given values are merged (--reset-values).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reset_values: Option<bool>,
    /// Reuses the values of the last revision and merges the given values (--reuse-values).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reuse_values: Option<bool>,
    /// Starts from the values of the new chart, then merges those of the last revision and the given ones
    /// (--reset-then-reuse-values).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reset_then_reuse_values: Option<bool>,
    /// Restarts the Pods of the release (--recreate-pods).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recreate: Option<bool>,
    /// Maximum number of revisions to keep (--history-max). 0 means no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::max_history")]
    pub max_history: Option<i64>,
    /// Deletes the objects that a failed upgrade has created (--cleanup-on-fail).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cleanup_on_fail: Option<bool>,
}

/// Options of uninstallations.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HelmUninstallOptions {
    /// Keeps the revisions of the release, marked as uninstalled (--keep-history).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub keep_history: Option<bool>,
    /// Description in the record of the uninstallation (--description).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
}

/// Credentials of a registry.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Credentials {
    /// Reference to the Secret.
    #[schemars(schema_with = "schema::secret_reference")]
    pub secret: SecretReference,
    /// Key of the Secret. Its value is a configuration file as docker login writes it.
    pub key: String,
}

/// TLS settings of the repository.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TLSConfig {
    /// Secret with CA certificates under the key ca.crt. They replace the CA certificates of the system.
    #[serde(default, skip_serializing_if = "Option::is_none", rename = "caSecret")]
    #[schemars(schema_with = "schema::secret_reference")]
    pub ca_secret: Option<SecretReference>,
    /// Skips the verification of the repository's certificate.
    #[serde(default, skip_serializing_if = "Option::is_none", rename = "insecureSkipTLSVerify")]
    pub insecure_skip_tls_verify: Option<bool>,
}

impl HelmOptions {
    /// Whether an operation waits. Atomic operations always do.
    pub fn waits(&self) -> bool {
        self.wait == Some(true) || self.atomic == Some(true)
    }

    /// The same options with their defaults filled in.
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

    /// Creates the namespace of the release if it does not exist (--create-namespace).
    pub fn creates_namespace(&self) -> bool {
        self.install
            .as_ref()
            .and_then(|install| install.create_namespace)
            .unwrap_or(true)
    }

    /// Maximum number of revisions to keep (--history-max). 0 means no limit.
    pub fn max_history(&self) -> i64 {
        let upgrade = self.upgrade.as_ref().and_then(|upgrade| upgrade.max_history);
        upgrade.unwrap_or(values::DEFAULT_MAX_HISTORY)
    }
}

impl Credentials {
    /// The effective key of the Secret. Defaults to `config.json`.
    pub fn key(&self) -> &str {
        if self.key.is_empty() {
            values::DEFAULT_CREDENTIALS_KEY
        } else {
            &self.key
        }
    }
}
