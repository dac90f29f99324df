//! The handlers of extensions, as their ExtensionConfigs list them: pure.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::Arc;
use std::time::Duration;

use windlass_api::Condition;
use windlass_api::conditions::DISCOVERED;
use windlass_api::meta::MetaExt as _;
use windlass_api::runtime::{ExtensionConfig, ExtensionHandler};
use windlass_contract::Selector;
use windlass_runtime_hooks::{DEFAULT_TIMEOUT_SECONDS, GROUP, VERSION};

/// A handler of an extension.
#[derive(Clone, Debug)]
pub struct Handler {
    /// The ExtensionConfig.
    pub(crate) config: Arc<ExtensionConfig>,
    /// The name of the handler, a dot, and the name of the ExtensionConfig.
    pub(crate) name: String,
    /// The name of the hook.
    pub(crate) hook: String,
    /// How long an answer is waited for, in seconds.
    pub(crate) timeout_seconds: i32,
    /// Whether it does not matter when there is no answer.
    pub(crate) is_ignored: bool,
}

impl Handler {
    /// The name of the handler, a dot, and the name of the ExtensionConfig.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The name that the extension knows.
    pub(crate) fn own_name(&self) -> &str {
        let suffix = self.config.metadata.name();
        let own = self.name.strip_suffix(suffix).and_then(|name| name.strip_suffix('.'));
        own.unwrap_or(&self.name)
    }

    pub(crate) fn timeout(&self) -> Duration {
        Duration::from_secs(u64::try_from(self.timeout_seconds).unwrap_or_default())
    }

    fn of(config: &Arc<ExtensionConfig>, handler: &ExtensionHandler) -> Option<Self> {
        let (group, version) = handler.request_hook.api_version.split_once('/')?;
        // This program speaks one version.
        (group == GROUP && version == VERSION).then(|| Self {
            config: config.clone(),
            name: handler.name.clone(),
            hook: handler.request_hook.hook.clone(),
            timeout_seconds: handler
                .timeout_seconds
                .filter(|s| *s > 0)
                .unwrap_or(DEFAULT_TIMEOUT_SECONDS),
            is_ignored: handler.failure_policy.as_deref() == Some("Ignore"),
        })
    }
}

/// The handlers of all ExtensionConfigs, ordered by name. One that is being deleted has none.
pub(crate) fn all(configs: &[Arc<ExtensionConfig>]) -> Vec<Handler> {
    let mut found: Vec<Handler> = configs
        .iter()
        .filter(|config| !config.metadata.is_deleting())
        .flat_map(|config| {
            let status = config.status.iter();
            status
                .flat_map(|status| &status.handlers)
                .filter_map(|handler| Handler::of(config, handler))
        })
        .collect();
    found.sort_by(|a, b| a.name.cmp(&b.name));
    found
}

/// ExtensionConfigs as they were last discovered, by uid. An address, settings or a selector that was never discovered, or was changed while the
/// object is paused, counts only once it is discovered, as in Cluster API. After a restart the present spec counts.
#[derive(Debug, Default)]
pub(crate) struct Discovered(HashMap<String, Arc<ExtensionConfig>>);

impl Discovered {
    /// Learns from a change.
    pub(crate) fn see(&mut self, old: Option<&Arc<ExtensionConfig>>, new: Option<&Arc<ExtensionConfig>>) {
        match (old, new) {
            (_, Some(config)) if is_current(config) => {
                self.0.insert(config.metadata.uid().to_owned(), config.clone());
            }
            (Some(gone), None) => {
                self.0.remove(gone.metadata.uid());
            }
            _ => {}
        }
    }

    /// The ExtensionConfigs, each as it was last discovered, if it was.
    pub(crate) fn usable(&self, configs: Vec<Arc<ExtensionConfig>>) -> Vec<Arc<ExtensionConfig>> {
        let usable = |config: Arc<ExtensionConfig>| {
            let last = self
                .0
                .get(config.metadata.uid())
                .filter(|_| !config.metadata.is_deleting());
            last.cloned().unwrap_or(config)
        };
        configs.into_iter().map(usable).collect()
    }
}

fn discovered(config: &ExtensionConfig) -> Option<&Condition> {
    let conditions = config.status.iter().flat_map(|status| &status.conditions);
    conditions
        .into_iter()
        .find(|one| one.type_ == DISCOVERED && one.status == "True")
}

/// Whether the spec is the one that was discovered.
fn is_current(config: &ExtensionConfig) -> bool {
    discovered(config).is_some_and(|one| one.observed_generation == config.metadata.generation)
}

/// Whether the hooks of an extension are not known: it was never discovered, or what was discovered is lost.
pub(crate) fn is_unknown(config: &ExtensionConfig) -> bool {
    let has_handlers = config.status.as_ref().is_some_and(|status| !status.handlers.is_empty());
    !has_handlers && discovered(config).is_none() && !config.metadata.is_deleting()
}

/// A number that changes with the handlers, and with the specs of their extensions.
pub(crate) fn version(handlers: &[Handler]) -> u64 {
    let mut hasher = DefaultHasher::new();
    for handler in handlers {
        let metadata = &handler.config.metadata;
        (&handler.name, metadata.uid(), metadata.generation).hash(&mut hasher);
    }
    hasher.finish()
}

/// The object and the spec of the extension of a handler.
pub(crate) fn revision(handler: &Handler) -> String {
    let metadata = &handler.config.metadata;
    format!("{}/{}", metadata.uid(), metadata.generation.unwrap_or_default())
}

/// A number that changes with anything about the extension of a handler: its spec, what was discovered, and its annotations.
pub(crate) fn release(handler: &Handler) -> u64 {
    let mut hasher = DefaultHasher::new();
    let metadata = &handler.config.metadata;
    (metadata.uid(), &metadata.resource_version).hash(&mut hasher);
    hasher.finish()
}

/// The selector of the namespaces for which an extension is called; none if all.
pub(crate) fn namespaces(config: &ExtensionConfig) -> Result<Option<Selector>, String> {
    let Some(selector) = &config.spec.namespace_selector else {
        return Ok(None);
    };
    let selector = Selector::parse(selector).map_err(|error| {
        format!(
            "ExtensionConfig {}: spec.namespaceSelector.{error}",
            config.metadata.name()
        )
    })?;
    Ok(Some(selector).filter(|selector| !selector.is_everything()))
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use windlass_api::codec::Codec as _;

    use super::*;

    fn config(name: &str, handlers: &serde_json::Value) -> Arc<ExtensionConfig> {
        let object = json!({
            "metadata": {"name": name},
            "spec": {"clientConfig": {"url": "https://x"}},
            "status": {"handlers": handlers},
        });
        Arc::new(ExtensionConfig::from_json(&object).unwrap())
    }

    fn handler(name: &str, version: &str) -> serde_json::Value {
        json!({"name": name, "requestHook": {"apiVersion": version, "hook": "BeforeClusterDelete"}})
    }

    #[test]
    fn handlers_are_those_of_the_last_discovery() {
        let version = windlass_runtime_hooks::API_VERSION;
        let mut first = handler("guard.b", version);
        first["timeoutSeconds"] = json!(3);
        first["failurePolicy"] = json!("Ignore");
        let other = handler("old.b", "hooks.runtime.cluster.x-k8s.io/v2");
        let mut gone = (*config("c", &json!([handler("x.c", version)]))).clone();
        gone.metadata.deletion_timestamp = Some(k8s_openapi::apimachinery::pkg::apis::meta::v1::Time(
            jiff::Timestamp::UNIX_EPOCH,
        ));
        let configs = [
            config("b", &json!([first, other])),
            config("a", &json!([handler("guard.a", version)])),
            Arc::new(gone),
        ];
        let found = all(&configs);
        let names: Vec<&str> = found.iter().map(Handler::name).collect();
        assert_eq!(names, ["guard.a", "guard.b"]);
        assert_eq!((found[0].timeout_seconds, found[0].is_ignored), (10, false));
        assert_eq!((found[1].timeout_seconds, found[1].is_ignored), (3, true));
        assert_eq!(found[1].own_name(), "guard");
    }

    #[test]
    fn what_was_discovered_counts_until_a_change_is_discovered() {
        let version = windlass_runtime_hooks::API_VERSION;
        let at = |url: &str, generation: i64, discovered: &str, of: i64, handlers: serde_json::Value| {
            let object = json!({
                "metadata": {"name": "a", "uid": "u", "generation": generation},
                "spec": {"clientConfig": {"url": url}},
                "status": {
                    "handlers": handlers,
                    "conditions": [{
                        "type": DISCOVERED, "status": discovered, "reason": "R", "message": "", "observedGeneration": of,
                        "lastTransitionTime": "2026-01-01T00:00:00Z",
                    }],
                },
            });
            Arc::new(ExtensionConfig::from_json(&object).unwrap())
        };
        let url = |seen: &Discovered, config: &Arc<ExtensionConfig>| {
            seen.usable(vec![config.clone()])[0]
                .spec
                .client_config
                .url
                .clone()
                .unwrap()
        };
        let handlers = || json!([handler("x.a", version)]);
        let mut seen = Discovered::default();
        let good = at("https://good", 1, "True", 1, handlers());
        seen.see(None, Some(&good));
        let changed = at("https://typo", 2, "True", 1, handlers());
        seen.see(Some(&good), Some(&changed));
        assert_eq!(url(&seen, &changed), "https://good");
        let failed = at("https://typo", 2, "False", 2, handlers());
        seen.see(Some(&changed), Some(&failed));
        assert_eq!(url(&seen, &failed), "https://good");
        let mended = at("https://better", 3, "True", 3, json!([]));
        seen.see(Some(&failed), Some(&mended));
        assert_eq!(url(&seen, &mended), "https://better");
        // It was discovered with no handlers, and does not answer any more.
        let down = at("https://better", 3, "False", 3, json!([]));
        seen.see(Some(&mended), Some(&down));
        let usable = seen.usable(vec![down.clone()]);
        assert!(is_unknown(&down) && !is_unknown(&usable[0]));
        seen.see(Some(&down), None);
        assert!(is_unknown(&seen.usable(vec![down])[0]));
    }
}
