//! The simulated external system: with `--externally-managed` the demo provides the infrastructure instead of the provider.

use std::net::Ipv4Addr;

use kube::api::{Api, ApiResource, DynamicObject, GroupVersionKind, Patch, PatchParams};
use serde_json::json;
use tokio::net::TcpSocket;
use windlass_api::annotations::MANAGED_BY;

use super::manifests::{self, NAMESPACE, Shape};
use super::wanted::Wanted;
use super::witness::Witness;
use super::{Demo, MANAGER, all, count, refused, report};
use crate::error::DemoError;

/// The name of the external system: the annotation's value, its user and its field manager.
pub(super) const SYSTEM: &str = "terraform";
/// The conditions that show what a Cluster waits for.
const WAITS: [&str; 3] = ["InfrastructureReady", "ControlPlaneInitialized", "WorkersAvailable"];

/// The external system.
pub(super) struct External {
    client: kube::Client,
    witness: Witness,
    /// Sockets of the API server endpoints. They are bound, so that no other process takes the ports before the machines exist.
    endpoints: Vec<TcpSocket>,
}

impl External {
    /// Starts recording field managers, and grants the external system the permissions of the example, and no others.
    pub(super) async fn begin(demo: &Demo<'_>) -> Result<Self, DemoError> {
        for grant in manifests::role().map_err(DemoError::plain)? {
            let text = |field: &str| grant[field].as_str().unwrap_or_default();
            let (kind, name) = (text("kind"), manifests::name(&grant));
            let (group, version) = text("apiVersion").split_once('/').unwrap_or_default();
            let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, kind));
            let api: Api<DynamicObject> = Api::namespaced_with(demo.client.clone(), NAMESPACE, &resource);
            let parameters = PatchParams::apply(MANAGER).force();
            let sent = api.patch(&name, &parameters, &Patch::Apply(&grant)).await;
            sent.map_err(|source| refused("apply", &format!("{kind} {name}"), source))?;
        }
        Ok(Self {
            client: demo.place.client_of(SYSTEM)?,
            witness: Witness::of(demo.api("DevCluster")),
            endpoints: Vec::new(),
        })
    }
}

impl Demo<'_> {
    /// Shows what the clusters wait for, and provisions it.
    pub(super) async fn provide(&mut self, external: &mut External, shape: &Shape) -> Result<(), DemoError> {
        let waits = self.waits_for();
        for line in &waits {
            self.view.say(&format!("waiting: {line}"))?;
        }
        self.report.externally_managed = Some(report::External {
            system: SYSTEM.to_owned(),
            waited_for: waits,
            ..report::External::default()
        });
        let what = format!(
            "{SYSTEM} tells of the infrastructure of {}",
            count(shape.clusters, "cluster")
        );
        let begun = self.begin("provide", &what)?;
        let api = &super::api(&external.client, "DevCluster");
        let mut requests = Vec::new();
        for name in self.infrastructure() {
            let (socket, port) = take_port()?;
            external.endpoints.push(socket);
            requests.push(tell_of(api, name, port));
        }
        all(requests).await?;
        self.finish("provide", what, begun, &self.running(shape)).await
    }

    /// The names of all infrastructure objects.
    fn infrastructure(&self) -> Vec<String> {
        self.world.kind("DevCluster").map(|item| item.id.name.clone()).collect()
    }

    /// What the first Cluster waits for, from its conditions.
    fn waits_for(&self) -> Vec<String> {
        let first = self.names.first().map(String::as_str).unwrap_or_default();
        let cluster = self.world.of(first).find(|item| item.id.kind == "Cluster");
        let bad = cluster.into_iter().flat_map(|cluster| {
            let conditions = WAITS.iter().filter_map(|kind| cluster.condition(kind));
            conditions.filter(|condition| condition.status != "True")
        });
        bad.map(|condition| format!("{}: {}", condition.kind, condition.message.replace('\n', " ")))
            .collect()
    }

    /// Tries to hand the infrastructure over to the provider, which must be refused.
    pub(super) async fn refuse(&mut self, shape: &Shape) -> Result<(), DemoError> {
        let what = "taking the annotation away".to_owned();
        let begun = self.begin("refuse", &what)?;
        let api = self.api("DevCluster");
        let parameters = PatchParams {
            field_manager: Some(MANAGER.to_owned()),
            ..PatchParams::default()
        };
        let patch = Patch::Merge(json!({"metadata": {"annotations": {(MANAGED_BY): null}}}));
        let mut refusal = None;
        for name in self.infrastructure() {
            match api.patch(&name, &parameters, &patch).await {
                Err(kube::Error::Api(status)) if status.code == 422 => refusal = Some(status.message),
                Err(source) => return Err(refused("change", &format!("DevCluster {name}"), source)),
                Ok(_) => {
                    let what = format!("DevCluster {name} lost its annotation {MANAGED_BY}, which should be refused");
                    return Err(DemoError::plain(what));
                }
            }
        }
        for line in refusal.iter().flat_map(|text| text.lines()) {
            self.view.say(&format!("refused: {line}"))?;
        }
        if let Some(report) = &mut self.report.externally_managed {
            report.refusal = refusal;
        }
        self.finish("refuse", what, begun, &self.running(shape)).await
    }

    /// Records which field managers wrote the infrastructure objects. The provider must not be one of them.
    pub(super) async fn account(&mut self, external: Option<&mut External>) -> Result<(), DemoError> {
        let Some(external) = external else { return Ok(()) };
        let seen = external.witness.tell().await?;
        if let Some(report) = &mut self.report.externally_managed {
            report.objects = seen.objects();
            report.provider_writes = seen.provider_writes;
            report.managers = seen.managers.iter().cloned().collect();
        }
        if seen.provider_writes == 0 {
            return Ok(());
        }
        let what = format!(
            "the provider wrote {} times to infrastructure objects that are not its own",
            seen.provider_writes
        );
        Err(DemoError::plain(what))
    }

    /// The goal: clusters that wait for infrastructure.
    pub(super) fn waiting(&self) -> Wanted {
        Wanted::Waiting {
            clusters: self.names.clone(),
        }
    }
}

/// Any free port on the loopback interface. It is shared with the later listener.
fn take_port() -> Result<(TcpSocket, u16), DemoError> {
    let take = || {
        let socket = TcpSocket::new_v4()?;
        socket.set_reuseaddr(true)?;
        socket.bind((Ipv4Addr::LOCALHOST, 0).into())?;
        let port = socket.local_addr()?.port();
        Ok((socket, port))
    };
    take().map_err(|source: std::io::Error| DemoError::failed("there is no free port on 127.0.0.1", source))
}

/// Writes the endpoint, and then reports the infrastructure as provisioned.
async fn tell_of(api: &Api<DynamicObject>, name: String, port: u16) -> Result<(), DemoError> {
    let parameters = PatchParams {
        field_manager: Some(SYSTEM.to_owned()),
        ..PatchParams::default()
    };
    let refused = |source| refused("tell of", &format!("DevCluster {name}"), source);
    let spec = json!({"spec": {"controlPlaneEndpoint": {"host": Ipv4Addr::LOCALHOST, "port": port}}});
    api.patch(&name, &parameters, &Patch::Merge(spec))
        .await
        .map_err(refused)?;
    let zone = |name: &str| json!({"name": name, "controlPlane": true});
    let status = json!({"status": {
        "failureDomains": [zone("zone-a"), zone("zone-b"), zone("zone-c")],
        "initialization": {"provisioned": true},
    }});
    let told = api.patch_status(&name, &parameters, &Patch::Merge(status)).await;
    told.map(drop).map_err(refused)
}
