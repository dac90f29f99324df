//! An API server with one kind, and webhooks for it.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::Secret;
use kube::Client;
use kube::api::{Api, ApiResource, DynamicObject, GroupVersionKind, Patch, PatchParams, PostParams};
use kube::core::Status;
use serde_json::{Value, json};
use tokio::net::{TcpListener, TcpSocket};
use tokio::time::MissedTickBehavior;
use windlass_admission::{Admission, Change, Operation, Rule, Verdict, view};
use windlass_apiserver::{ApiServer, Options as ServerOptions, UserInfo, WebhookServices};
use windlass_meta::{Clock, SystemClock};
use windlass_schema::FieldError;
use windlass_store::{Limits, Store};
use windlass_testkit::{Server, define};
use windlass_webhook::{Certificates, Configuration, Options, SECRET_NAME, Target, WebhookError, Webhooks};

/// The name of the configuration of checks.
pub(crate) const NAME: &str = Configuration::Validating.name();

/// The timeout of all waits: far more than they take.
const PATIENCE: Duration = Duration::from_mins(3);

/// The object with the largest size that [`limited`] allows.
pub(crate) const LIMITS: &str = "limits";

/// A size may not shrink. A colour is blue, unless it is given.
pub(crate) fn rule() -> Rule {
    let mut rule = checks();
    rule.admission = rule.admission.completing(|_, object| {
        if let Some(spec) = object["spec"].as_object_mut() {
            spec.entry("colour").or_insert("blue".into());
        }
        Ok(Verdict::default())
    });
    rule
}

/// As [`rule`], and a size is not larger than another object says.
pub(crate) fn limited() -> Rule {
    let mut rule = rule();
    rule.admission.check = |change| {
        let mut verdict = (checks().admission.check)(change)?;
        let limits = view::object(change.view, ("infra.example.com", "TestCluster"), "default", LIMITS)?;
        let size = |object: &Value| object["spec"]["size"].as_i64().unwrap_or_default();
        if limits.is_none_or(|limits| size(change.new) > size(&limits)) {
            verdict.errors.push(FieldError::forbidden("spec.size", "too large"));
        }
        Ok(verdict)
    };
    rule
}

/// A size may not shrink.
pub(crate) fn checks() -> Rule {
    let check = |change: &Change<'_>| {
        let size = |object: &Value| object["spec"]["size"].as_i64().unwrap_or_default();
        let mut verdict = Verdict::default();
        if size(change.new) < size(change.old) {
            verdict.errors.push(FieldError::forbidden("spec.size", "never smaller"));
        }
        Ok(verdict)
    };
    Rule {
        group: "infra.example.com",
        version: "v1",
        kind: "TestCluster",
        resource: "testclusters",
        admission: Admission::checking(&[Operation::Update], check),
        decode: None,
        closed: Vec::new(),
    }
}

/// An API server.
pub(crate) struct World {
    server: Option<Server>,
    pub(crate) client: Client,
}

impl World {
    pub(crate) async fn start() -> Self {
        let server = Server::start().await;
        let client = server.client("admin");
        Self::with_kind(Some(server), client).await
    }

    /// An API server that finds the Services of webhooks in a table, as only the embedded server does: a real one would need a
    /// network for Services.
    pub(crate) async fn with_services() -> (Self, WebhookServices) {
        let options = ServerOptions::new(Store::memory(Limits::default()));
        let services = options.webhook_services.clone();
        let server = ApiServer::start(options).await.unwrap();
        let client = Client::new(server.client_service(UserInfo::admin("admin")), "default");
        (Self::with_kind(None, client).await, services)
    }

    async fn with_kind(server: Option<Server>, client: Client) -> Self {
        let version = |name: &str| {
            let any = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
            let schema = json!({"type": "object", "properties": {"spec": any, "status": any}});
            json!({
                "name": name, "served": true, "storage": name == "v1",
                "schema": {"openAPIV3Schema": schema}, "subresources": {"status": {}},
            })
        };
        let definition = json!({
            "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": {"name": "testclusters.infra.example.com"},
            "spec": {
                "group": "infra.example.com", "scope": "Namespaced",
                "names": {"kind": "TestCluster", "plural": "testclusters"},
                "versions": [version("v1"), version("v1beta1")],
            },
        });
        define(&client, &[definition]).await;
        Self { server, client }
    }

    /// The number of writes of webhook configurations.
    pub(crate) fn writes(&self) -> u64 {
        let counts = self.server.as_ref().unwrap().counters().snapshot();
        let ours = counts
            .iter()
            .filter(|(write, _)| write.resource == "validatingwebhookconfigurations");
        ours.map(|(_, count)| count).sum()
    }

    /// A client of a user with the permissions of Roles.
    pub(crate) fn user(&self, name: &str) -> Client {
        self.server.as_ref().unwrap().client_of(name, &[])
    }

    /// Grants a user permissions on all objects of a resource.
    pub(crate) async fn allow(&self, user: &str, group: &str, resource: &str, verbs: &[&str]) {
        let (api, name) = ("rbac.authorization.k8s.io/v1", format!("{user}-{resource}"));
        let role = json!({
            "apiVersion": api, "kind": "ClusterRole", "metadata": {"name": name},
            "rules": [{"apiGroups": [group], "resources": [resource], "verbs": verbs}],
        });
        let binding = json!({
            "apiVersion": api, "kind": "ClusterRoleBinding", "metadata": {"name": name},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": name},
            "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": user}],
        });
        for (object, plural) in [(role, "clusterroles"), (binding, "clusterrolebindings")] {
            let kind = object["kind"].as_str().unwrap().to_owned();
            let api = self.all("rbac.authorization.k8s.io", "v1", &kind, plural);
            api.patch(&name, &PatchParams::apply("test"), &Patch::Apply(&object))
                .await
                .unwrap();
        }
    }

    fn all(&self, group: &str, version: &str, kind: &str, plural: &str) -> Api<DynamicObject> {
        let kind = GroupVersionKind::gvk(group, version, kind);
        Api::all_with(self.client.clone(), &ApiResource::from_gvk_with_plural(&kind, plural))
    }

    pub(crate) fn configurations(&self) -> Api<DynamicObject> {
        self.configurations_of(Configuration::Validating)
    }

    pub(crate) fn configurations_of(&self, of: Configuration) -> Api<DynamicObject> {
        self.all("admissionregistration.k8s.io", "v1", of.kind(), of.resource())
    }

    pub(crate) fn objects(&self, version: &str) -> Api<DynamicObject> {
        let kind = GroupVersionKind::gvk("infra.example.com", version, "TestCluster");
        Api::default_namespaced_with(
            self.client.clone(),
            &ApiResource::from_gvk_with_plural(&kind, "testclusters"),
        )
    }

    pub(crate) fn secrets(&self) -> Api<Secret> {
        Api::default_namespaced(self.client.clone())
    }

    /// The stored configuration.
    pub(crate) async fn configuration(&self) -> Option<Value> {
        self.configuration_of(Configuration::Validating).await
    }

    /// The stored configuration.
    pub(crate) async fn configuration_of(&self, of: Configuration) -> Option<Value> {
        let found = self.configurations_of(of).get_opt(of.name()).await.unwrap();
        found.map(|found| serde_json::to_value(found).unwrap())
    }

    /// The stored Secret, by key.
    pub(crate) async fn kept(&self, key: &str) -> String {
        let secret = self.secrets().get(SECRET_NAME).await.unwrap();
        String::from_utf8(secret.data.unwrap()[key].0.clone()).unwrap()
    }

    pub(crate) async fn create(&self, name: &str, size: i64) {
        let object = json!({
            "apiVersion": "infra.example.com/v1", "kind": "TestCluster", "metadata": {"name": name}, "spec": {"size": size},
        });
        let object = serde_json::from_value(object).unwrap();
        self.objects("v1")
            .create(&PostParams::default(), &object)
            .await
            .unwrap();
    }

    pub(crate) async fn resize(&self, name: &str, size: i64) -> Result<(), Box<Status>> {
        self.bleach(name, size).await.map(drop)
    }

    /// Writes a size and no colour, and gives the stored colour.
    pub(crate) async fn bleach(&self, name: &str, size: i64) -> Result<Value, Box<Status>> {
        let patch = Patch::Merge(json!({"spec": {"size": size, "colour": null}}));
        let done = self.objects("v1").patch(name, &PatchParams::default(), &patch).await;
        done.map(|done| done.data["spec"]["colour"].clone())
            .map_err(|error| match error {
                kube::Error::Api(status) => status,
                other => panic!("not an answer of the server: {other}"),
            })
    }

    /// Asserts that writes are completed and checked: a larger size is allowed, a smaller one is refused.
    pub(crate) async fn is_judged(&self, name: &str) {
        let stored = self.objects("v1").get(name).await.unwrap();
        let size = stored.data["spec"]["size"].as_i64().unwrap();
        assert_eq!(self.bleach(name, size + 1).await.unwrap(), "blue");
        let refused = self.resize(name, size).await.unwrap_err();
        assert_eq!(refused.code, 422, "{refused:?}");
    }
}

/// The webhook server of a test.
pub(crate) struct Serving {
    /// Reserves the port while no server listens.
    pub(crate) socket: TcpSocket,
    pub(crate) certificates: Certificates,
    pub(crate) clock: Arc<dyn Clock>,
    /// The Service for the API server; without one, the address is used.
    pub(crate) service: Option<(&'static str, &'static str)>,
    /// The address of a load balancer before it.
    pub(crate) balancer: Option<SocketAddr>,
    /// How long it waits for API servers to follow a configuration.
    pub(crate) spread: Duration,
    pub(crate) rules: Vec<Rule>,
}

impl Serving {
    pub(crate) fn new() -> Self {
        let socket = TcpSocket::new_v4().unwrap();
        socket.set_reuseaddr(true).unwrap();
        socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
        Self {
            socket,
            certificates: Certificates::Secret {
                namespace: "default".to_owned(),
            },
            clock: Arc::new(SystemClock),
            service: None,
            balancer: None,
            spread: Duration::from_secs(1),
            rules: vec![rule()],
        }
    }

    pub(crate) async fn start(&self, client: Client) -> Result<Webhooks, WebhookError> {
        let address = self.socket.local_addr().unwrap();
        let listener = TcpListener::bind(address).await.unwrap();
        let target = match self.service {
            Some((namespace, name)) => Target::service(&format!("{namespace}/{name}:9443")),
            None => Target::url(&format!("https://{}", self.balancer.unwrap_or(address))),
        };
        let target = target.unwrap();
        let mut options = Options::new(listener, target, self.certificates.clone(), self.rules.clone());
        options.clock = Arc::clone(&self.clock);
        options.look = Duration::from_millis(20);
        options.spread = self.spread;
        windlass_webhook::start(client, options).await
    }
}

/// Waits until a condition holds.
pub(crate) async fn until(what: &str, is_so: impl AsyncFn() -> bool) {
    let mut looks = tokio::time::interval(Duration::from_millis(10));
    looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let waited = tokio::time::timeout(PATIENCE, async {
        while !is_so().await {
            looks.tick().await;
        }
    });
    assert!(waited.await.is_ok(), "waited in vain until {what}");
}
