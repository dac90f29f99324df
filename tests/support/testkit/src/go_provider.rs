//! Providers of others, written in Go: their unmodified managers run as child processes against the server of a test.
//!
//! `cargo xtask tools` builds them from Go modules. Their definitions and webhooks are read from the same modules when a test begins, and
//! composed as kustomize composes them, so no file of theirs is part of this project. Their webhooks are called at an address of this
//! machine instead of a Service.

use std::path::{Path, PathBuf};
use std::process::Command;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use kube::api::{Api, DynamicObject, Patch, PatchParams, PostParams};
use kube::core::{ApiResource, GroupVersionKind};
use serde_json::{Value, json};
use windlass_envtest::{Manager, Place, Tools};

use crate::objects::NAMESPACE;
use crate::server::Server;
use crate::wait;

/// A provider at the version that the module file in its folder below `tools` pins.
#[derive(Clone, Copy, Debug)]
pub struct GoProvider {
    /// The name of its program, and of the folder of its module file.
    pub program: &'static str,
    /// The module with its manifests.
    pub module: &'static str,
    /// The folder of its manifests within the module: with `crd/kustomization.yaml` and `webhook/manifests.yaml`.
    pub manifests: &'static str,
    /// Its flag for the address of `/readyz`.
    pub health_flag: &'static str,
    /// Its flag for the address of its metrics, which are not served.
    pub metrics_flag: &'static str,
    /// Other flags that it needs.
    pub flags: &'static [&'static str],
    /// Environment variables that it needs.
    pub variables: &'static [(&'static str, &'static str)],
    /// An object that only its webhooks refuse, as YAML. `None` if they refuse no object, so that no test can tell when they are called.
    pub refused: Option<&'static str>,
}

/// A provider that can be started: its program is built, and its module is here.
#[derive(Clone, Debug)]
pub struct Built {
    provider: GoProvider,
    program: PathBuf,
    manifests: PathBuf,
}

impl GoProvider {
    /// The built provider for a test. Without its program, the test is left out, or fails in strict mode.
    pub fn required(self) -> Option<Built> {
        let program = Tools::required(self.program)?;
        let folder = go_module(self.program, self.module);
        Some(Built {
            provider: self,
            program,
            manifests: folder.join(self.manifests),
        })
    }
}

impl Built {
    /// Its definitions as it publishes them, except for the address of their conversion webhooks.
    fn definitions(&self, place: &Place) -> Vec<Value> {
        let folder = self.manifests.join("crd");
        let kustomization = documents(&folder.join("kustomization.yaml")).remove(0);
        let mut definitions: Vec<Value> = texts(&kustomization["resources"])
            .flat_map(|path| documents(&folder.join(path)))
            .collect();
        let patches = kustomization["patches"].as_array().into_iter().flatten();
        for patch in patches.flat_map(|patch| texts(&patch["path"])) {
            for patch in documents(&folder.join(patch)) {
                let target = definitions
                    .iter_mut()
                    .find(|definition| definition["metadata"]["name"] == patch["metadata"]["name"]);
                merge(target.expect("a patch has a definition"), &patch);
            }
        }
        let labels = kustomization["labels"].as_array().into_iter().flatten();
        for pairs in labels
            .map(|label| &label["pairs"])
            .chain([&kustomization["commonLabels"]])
        {
            for definition in &mut definitions {
                merge(definition, &json!({"metadata": {"labels": pairs}}));
            }
        }
        for definition in &mut definitions {
            let webhook = &mut definition["spec"]["conversion"]["webhook"];
            if webhook.is_object() {
                webhook["clientConfig"] = client_config(place, &webhook["clientConfig"]);
            } else if let Some(spec) = definition["spec"].as_object_mut() {
                spec.remove("conversion");
            }
        }
        definitions
    }

    /// Its webhook configurations, named after it.
    fn configurations(&self, place: &Place) -> Vec<Value> {
        let mut all = documents(&self.manifests.join("webhook/manifests.yaml"));
        for configuration in &mut all {
            configuration["metadata"]["name"] = json!(self.provider.program);
            let webhooks = configuration["webhooks"].as_array_mut();
            for webhook in webhooks.into_iter().flatten() {
                webhook["clientConfig"] = client_config(place, &webhook["clientConfig"]);
            }
        }
        all
    }

    /// Installs its definitions and webhooks, and starts it. Returns when it is ready and the server calls its webhooks. `change` may
    /// change a definition first, as an operator's patches do.
    pub async fn start(&self, server: &Server, change: impl Fn(&mut Value)) -> Manager {
        let place = Place::make().unwrap_or_else(|error| panic!("no place for a manager: {error}"));
        let client = server.client("provider");
        let mut definitions = self.definitions(&place);
        definitions.iter_mut().for_each(change);
        server.define(&definitions).await;
        let configurations = self.configurations(&place);
        let mut flags = vec![
            format!("{}={}", self.provider.health_flag, place.health_address()),
            format!("--webhook-port={}", place.webhook_port()),
            format!("--webhook-cert-dir={}", place.certificate_folder().display()),
            format!("{}=0", self.provider.metrics_flag),
        ];
        flags.extend(self.provider.flags.iter().map(|flag| (*flag).to_owned()));
        let (name, kubeconfig) = (self.provider.program, server.kubeconfig());
        let started = place.start(&self.program, name, &kubeconfig, &flags, self.provider.variables);
        let manager = started.await.unwrap_or_else(|error| panic!("{error}"));
        for configuration in &configurations {
            let api = dynamic(&client, configuration, None);
            let parameters = PatchParams::apply("provider").force();
            let sent = api.patch(name, &parameters, &Patch::Apply(configuration)).await;
            sent.unwrap_or_else(|error| panic!("cannot apply the webhooks of {name}: {error}"));
        }
        self.is_admitting(&client, &manager).await;
        manager
    }

    /// Waits until the server calls the webhooks: a real one follows their configurations by a watch.
    async fn is_admitting(&self, client: &kube::Client, manager: &Manager) {
        let Some(refused) = self.provider.refused else {
            return;
        };
        let refused: Value = serde_saphyr::from_str(refused).expect("the object is valid YAML");
        let api = dynamic(client, &refused, Some(NAMESPACE));
        let object: DynamicObject = serde_json::from_value(refused).expect("it is an object");
        let dry = PostParams {
            dry_run: true,
            ..PostParams::default()
        };
        let waiting = async {
            let mut looks = wait::looks();
            while api.create(&dry, &object).await.is_ok() {
                looks.tick().await;
            }
        };
        let in_time = tokio::time::timeout(wait::TIMEOUT, waiting).await;
        in_time.unwrap_or_else(|_| panic!("the server never calls its webhooks; its log:\n{}", manager.log()));
    }
}

/// Access to the objects of the kind of an object.
fn dynamic(client: &kube::Client, object: &Value, namespace: Option<&str>) -> Api<DynamicObject> {
    let text = |field: &str| object[field].as_str().unwrap_or_default();
    let (group, version) = text("apiVersion").split_once('/').unwrap_or_default();
    let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, text("kind")));
    match namespace {
        Some(namespace) => Api::namespaced_with(client.clone(), namespace, &resource),
        None => Api::all_with(client.clone(), &resource),
    }
}

/// The address of a webhook on this machine, instead of that of a Service.
fn client_config(place: &Place, service: &Value) -> Value {
    let path = service["service"]["path"].as_str().unwrap_or_default();
    json!({"url": place.webhook(path), "caBundle": BASE64_STANDARD.encode(place.authority())})
}

/// The folder of a module in Go's cache, at the version that the module file in a folder below `tools` pins.
pub fn go_module(pins: &str, module: &str) -> PathBuf {
    let folder = module_folder(&tools().join(pins), module);
    folder.unwrap_or_else(|error| panic!("{module}: {error}"))
}

fn tools() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../tools")
}

/// The folder of a module in Go's cache, at the version that a module file pins.
fn module_folder(pins: &Path, module: &str) -> Result<PathBuf, String> {
    let mut go = Command::new("go");
    go.args(["mod", "download", "-json", module])
        .env("GOTOOLCHAIN", "local")
        .env("GOWORK", "off")
        .env("GOFLAGS", "-mod=readonly")
        .current_dir(pins);
    let answer = go.output().map_err(|error| format!("go cannot be run: {error}"))?;
    let value: Value = serde_json::from_slice(&answer.stdout).map_err(|error| error.to_string())?;
    match value["Dir"].as_str() {
        Some(folder) => Ok(folder.into()),
        None => Err(format!("not in Go's cache: {value}")),
    }
}

/// The documents of a YAML file.
fn documents(path: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let parsed: Result<Vec<Value>, _> = serde_saphyr::from_multiple(&text);
    let mut all = parsed.unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    all.retain(|document| !document.is_null());
    all
}

/// A text, or the texts of a list.
fn texts(value: &Value) -> impl Iterator<Item = &str> {
    let listed = value.as_array().into_iter().flatten().filter_map(Value::as_str);
    value.as_str().into_iter().chain(listed)
}

/// Merges a patch of kustomize that has maps only; a list in one replaces the list before it, and nothing is removed.
fn merge(into: &mut Value, patch: &Value) {
    match (into, patch) {
        (Value::Object(into), Value::Object(patch)) => {
            for (key, value) in patch.iter().filter(|(_, value)| !value.is_null()) {
                merge(into.entry(key).or_insert(Value::Null), value);
            }
        }
        (into, patch) => into.clone_from(patch),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_patch_adds_and_replaces_fields_and_keeps_the_others() {
        let mut definition = json!({"metadata": {"name": "a"}, "spec": {"names": ["x"], "group": "g"}});
        merge(
            &mut definition,
            &json!({"metadata": {"labels": {"l": ""}}, "spec": {"names": ["y"], "conversion": {"strategy": "Webhook"}}}),
        );
        merge(&mut definition, &json!({"metadata": {"labels": null}}));
        let expect = json!({
            "metadata": {"name": "a", "labels": {"l": ""}},
            "spec": {"names": ["y"], "group": "g", "conversion": {"strategy": "Webhook"}},
        });
        assert_eq!(definition, expect);
    }
}
