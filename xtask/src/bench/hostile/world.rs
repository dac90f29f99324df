//! The server that is attacked, its users and what they find there.

use std::path::Path;
use std::time::{Duration, Instant};

use kube::Client;
use kube::client::Body;
use kube::config::{KubeConfigOptions, Kubeconfig};
use serde_json::{Value, json};

use super::requests::{Sent, post};
use crate::bench::child::{Folder, Running};
use crate::bench::server::memory;

/// Users with the role `admin` in the namespace `default`, and edit rights on the custom resources.
pub(super) const TENANTS: usize = 3;
/// Users without rights.
pub(super) const STRANGERS: usize = 3;
/// ConfigMaps that lists go through.
const MAPS: usize = 2_000;
const PATIENCE: Duration = Duration::from_mins(1);

/// A running server.
pub(super) struct World {
    running: Running,
    _folder: Folder,
    kubeconfig: Kubeconfig,
    /// Host and port.
    pub(super) address: String,
}

/// How clients reach a server.
#[derive(Clone)]
pub(super) struct Access(Kubeconfig);

impl Access {
    /// A client with connections of its own, for a user by name; the administrator has the kubeconfig of the server.
    pub(super) async fn client(&self, user: &str) -> Result<Client, String> {
        let mut kubeconfig = self.0.clone();
        if user != "admin" {
            let auth = json!({"token": format!("token-of-{user}")});
            for one in &mut kubeconfig.auth_infos {
                one.auth_info = serde_json::from_value(auth.clone()).map_err(|error| error.to_string())?;
            }
        }
        let config = kube::Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default())
            .await
            .map_err(|error| error.to_string())?;
        Client::try_from(config).map_err(|error| error.to_string())
    }
}

fn names(prefix: &str, count: usize) -> impl Iterator<Item = String> {
    (0..count).map(move |at| format!("{prefix}-{at}"))
}

impl World {
    pub(super) async fn start(program: &Path) -> Result<Self, String> {
        let folder = Folder::new()?;
        let users = names("tenant", TENANTS)
            .chain(names("stranger", STRANGERS))
            .chain(["prober".to_owned()]);
        let tokens: Vec<String> = users.map(|user| format!("token-of-{user},{user},{user}\n")).collect();
        let (file, kubeconfig) = (folder.argument("tokens"), folder.argument("kubeconfig"));
        std::fs::write(&file, tokens.concat()).map_err(|error| error.to_string())?;
        let data = folder.argument("data");
        let line = [
            "apiserver",
            "--port",
            "0",
            "--data-dir",
            &data,
            "--kubeconfig",
            &kubeconfig,
            "--token-auth-file",
            &file,
        ];
        let running = Running::start(program, &line)?;
        let begun = Instant::now();
        let kubeconfig = loop {
            if let Ok(found) = Kubeconfig::read_from(&kubeconfig) {
                break found;
            }
            if begun.elapsed() > PATIENCE {
                return Err("windlass apiserver writes no kubeconfig".to_owned());
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        };
        let server = kubeconfig
            .clusters
            .first()
            .and_then(|one| one.cluster.as_ref()?.server.clone());
        let address = server
            .unwrap_or_default()
            .trim_start_matches("https://")
            .trim_end_matches('/')
            .to_owned();
        let world = Self {
            running,
            _folder: folder,
            kubeconfig,
            address,
        };
        world.furnish().await?;
        Ok(world)
    }

    pub(super) fn access(&self) -> Access {
        Access(self.kubeconfig.clone())
    }

    pub(super) fn peak_memory(&self) -> Result<f64, String> {
        memory(self.running.id(), "status", "VmHWM:")
    }

    /// What an administrator has made.
    async fn furnish(&self) -> Result<(), String> {
        let admin = self.access().client("admin").await?;
        let subjects: Vec<Value> = names("tenant", TENANTS)
            .map(|name| json!({"kind": "User", "apiGroup": "rbac.authorization.k8s.io", "name": name}))
            .collect();
        let rbac = "/apis/rbac.authorization.k8s.io/v1";
        let role = json!({"kind": "ClusterRole", "metadata": {"name": "items"}, "rules": [{"apiGroups": ["example.com"], "resources": ["*"], "verbs": ["*"]}]});
        create(
            &admin,
            &format!("{rbac}/clusterroles"),
            role,
            "rbac.authorization.k8s.io/v1",
        )
        .await?;
        for (name, role) in [("tenants", "admin"), ("items", "items")] {
            let role = json!({"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role});
            let binding =
                json!({"kind": "RoleBinding", "metadata": {"name": name}, "roleRef": role, "subjects": subjects});
            let path = format!("{rbac}/namespaces/default/rolebindings");
            create(&admin, &path, binding, "rbac.authorization.k8s.io/v1").await?;
        }
        let path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
        create(&admin, path, definition(), "apiextensions.k8s.io/v1").await?;
        let list = json!({"kind": "Item", "metadata": {"name": "list"}, "any": {"list": vec![1; 1_000_000]}});
        create(&admin, super::requests::ITEMS, list, "example.com/v1").await?;
        for at in 0..MAPS {
            let map = json!({"kind": "ConfigMap", "metadata": {"name": format!("map-{at}"), "labels": {"app": "a"}}});
            create(&admin, super::requests::MAPS, map, "v1").await?;
        }
        Ok(())
    }
}

/// A kind with rules (about as expensive as kube-apiserver allows), a pattern, and room for anything.
fn definition() -> Value {
    let rules = vec![json!({"rule": "self.all(x, self.all(y, x <= y || x > y))"}); 8];
    let schema = json!({"type": "object", "properties": {
        "any": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
        "numbers": {"type": "array", "maxItems": 1000, "items": {"type": "integer"}, "x-kubernetes-validations": rules},
        "words": {"type": "array", "items": {"type": "string", "pattern": "^(([a-z]{1,50})*[0-9]{1,50})*$"}},
        "keyed": {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"],
            "items": {"type": "object", "required": ["name"], "properties": {"name": {"type": "string"}}}},
    }});
    json!({"kind": "CustomResourceDefinition", "metadata": {"name": "items.example.com"}, "spec": {
        "group": "example.com", "scope": "Namespaced", "names": {"plural": "items", "kind": "Item"},
        "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": schema}}],
    }})
}

async fn create(client: &Client, path: &str, mut object: Value, api_version: &str) -> Result<(), String> {
    object["apiVersion"] = api_version.into();
    let request: Sent = post(path, object.to_string());
    let answer = client
        .send(request.map(Body::from))
        .await
        .map_err(|error| error.to_string())?;
    let status = answer.status();
    if status.is_success() {
        return Ok(());
    }
    Err(format!("{path}: {status}"))
}
