//! Declarations of providers: creates them and waits for their results.

use std::time::Duration;

use kube::api::{Api, ApiResource, DeleteParams, DynamicObject, Patch, PatchParams};
use kube::core::GroupVersionKind;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use super::files::Release;

/// The API through which providers are declared.
pub(crate) const GROUP: &str = "operator.cluster.x-k8s.io";
/// The polling interval.
pub(crate) const POLL: Duration = Duration::from_millis(20);
/// The timeout of all waits.
pub(crate) const PATIENCE: Duration = Duration::from_mins(2);
/// The Secret with variables.
const VARIABLES: &str = "variables";

/// The API of a release's declarations, in their namespace.
pub(crate) fn api(client: &kube::Client, release: &Release) -> Api<DynamicObject> {
    let kind = GroupVersionKind::gvk(GROUP, "v1alpha2", release.type_.inventory());
    Api::namespaced_with(client.clone(), &namespace(release), &ApiResource::from_gvk(&kind))
}

/// Declares a release, or another release of the same provider.
pub(crate) async fn declare(client: &kube::Client, release: &Release, url: &str) -> Result<(), String> {
    for object in objects(release, url)? {
        apply(client, &object).await?;
    }
    Ok(())
}

/// Waits until a release is installed, and its Deployments are available.
pub(crate) async fn installed(client: &kube::Client, release: &Release) -> Result<(), String> {
    let is_so = |object: &Value| {
        let status = &object["status"];
        status["observedGeneration"] == object["metadata"]["generation"]
            && status["installedVersion"] == release.version.as_str()
            && ["ProviderInstalled", "Ready"].iter().all(|kind| is_true(status, kind))
    };
    wait(client, release, "to be installed", |object| object.is_some_and(is_so)).await
}

/// Deletes a declaration, and waits until it is gone.
pub(crate) async fn remove(client: &kube::Client, release: &Release) -> Result<(), String> {
    let deleted = api(client, release)
        .delete(&release.name, &DeleteParams::default())
        .await;
    deleted.map_err(|error| format!("cannot delete {}: {error}", release.label()))?;
    wait(client, release, "to be gone", |object| object.is_none()).await
}

async fn wait(
    client: &kube::Client,
    release: &Release,
    what: &str,
    is_so: impl Fn(Option<&Value>) -> bool,
) -> Result<(), String> {
    let (api, started) = (api(client, release), Instant::now());
    loop {
        let found = api.get_opt(&release.name).await.map_err(|error| error.to_string())?;
        let object = found.map(|object| serde_json::to_value(object).unwrap_or_default());
        if is_so(object.as_ref()) {
            return Ok(());
        }
        if started.elapsed() > PATIENCE {
            let status = object.map(|object| object["status"].to_string()).unwrap_or_default();
            return Err(format!(
                "{}: waited in vain {what}; its status: {status}",
                release.label()
            ));
        }
        sleep(POLL).await;
    }
}

fn is_true(status: &Value, kind: &str) -> bool {
    let mut conditions = status["conditions"].as_array().into_iter().flatten();
    conditions.any(|condition| condition["type"] == kind && condition["status"] == "True")
}

/// The namespace of a provider and its declaration.
fn namespace(release: &Release) -> String {
    format!("{}-system", release.label())
}

/// The objects of a declaration.
fn objects(release: &Release, url: &str) -> Result<Vec<Value>, String> {
    let namespace = namespace(release);
    let variables = release.variables()?;
    Ok(vec![
        json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}}),
        json!({
            "apiVersion": "v1", "kind": "Secret", "metadata": {"name": VARIABLES, "namespace": namespace},
            "stringData": variables,
        }),
        json!({
            "apiVersion": format!("{GROUP}/v1alpha2"), "kind": release.type_.inventory(),
            "metadata": {"name": release.name, "namespace": namespace},
            "spec": {
                "version": release.version,
                "configSecret": {"name": VARIABLES},
                "fetchConfig": {"url": url},
            },
        }),
    ])
}

/// Applies an object of a declaration.
async fn apply(client: &kube::Client, object: &Value) -> Result<(), String> {
    let (version, kind) = (&object["apiVersion"], &object["kind"]);
    let (version, kind) = (version.as_str().unwrap_or_default(), kind.as_str().unwrap_or_default());
    let (group, version) = version.rsplit_once('/').unwrap_or(("", version));
    let mut resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, kind));
    if group == GROUP {
        resource.plural = format!("{}s", kind.to_lowercase());
    }
    let metadata = &object["metadata"];
    let name = metadata["name"].as_str().unwrap_or_default();
    let api: Api<DynamicObject> = match metadata["namespace"].as_str() {
        Some(namespace) => Api::namespaced_with(client.clone(), namespace, &resource),
        None => Api::all_with(client.clone(), &resource),
    };
    let applied = api
        .patch(name, &PatchParams::apply("xtask").force(), &Patch::Apply(object))
        .await;
    applied
        .map(drop)
        .map_err(|error| format!("cannot apply {kind} {name}: {error}"))
}
