//! An API server with the kinds of the operator, the operator on it, and a controller of Deployments, where a test asks for it.

use std::time::Duration;

use kube::api::{Api, ApiResource, DeleteParams, DynamicObject, GroupVersionKind, Patch, PatchParams};
use kube::discovery::{Scope, oneshot};
use serde_json::{Value, json};
use tokio::time::MissedTickBehavior;
use windlass_api::crd::crd;
use windlass_api_operator::{inventory, management, operator};
use windlass_controller_runtime::{Metrics, Runtime, transport};
use windlass_fake_providers::{Forge, LookAlike};
use windlass_meta::FakeClock;
use windlass_operator::{BuiltIns, Operator, entries};
use windlass_pki::KeyAlgorithm;
use windlass_provider_components::images::Overrides;
use windlass_provider_repository::{Client, Settings};
use windlass_testkit::faults::Faults;
use windlass_testkit::{Deployments, Server, keys_of, wait};

/// How long a test waits for anything: far more than it takes, so that a busy machine fails no test.
const TIMEOUT: std::time::Duration = std::time::Duration::from_secs(90);
/// Where most tests declare providers.
pub(crate) const NAMESPACE: &str = "providers";
pub(crate) const V1ALPHA1: &str = "management.cluster.x-k8s.io/v1alpha1";
pub(crate) const V1ALPHA2: &str = "operator.cluster.x-k8s.io/v1alpha2";

/// API version, kind and name of an object; one in another namespace than most is named `namespace/name`.
pub(crate) type Of<'a> = (&'a str, &'a str, &'a str);

pub(crate) struct Env {
    pub(crate) server: Server,
    pub(crate) client: kube::Client,
    pub(crate) settings: Settings,
    /// Images from other places, for operators that start from now on.
    pub(crate) overrides: Overrides,
    /// The providers that operators have built in that start from now on.
    pub(crate) built_ins: BuiltIns,
    /// The clock of these operators. Defaults to the machine's.
    pub(crate) clock: Option<FakeClock>,
    pub(crate) runs: Option<Deployments>,
    kit: Option<Runtime>,
}

pub(crate) fn definitions() -> Vec<Value> {
    vec![
        crd::<operator::CoreProvider>(),
        crd::<operator::BootstrapProvider>(),
        crd::<operator::ControlPlaneProvider>(),
        crd::<operator::InfrastructureProvider>(),
        crd::<operator::IPAMProvider>(),
        crd::<operator::RuntimeExtensionProvider>(),
        crd::<operator::AddonProvider>(),
        crd::<management::CoreProvider>(),
        crd::<management::BootstrapProvider>(),
        crd::<management::ControlPlaneProvider>(),
        crd::<management::InfrastructureProvider>(),
        crd::<inventory::Provider>(),
    ]
}

impl Env {
    /// With a controller of Deployments.
    pub(crate) async fn start() -> Self {
        let mut env = Self::idle(Settings::default()).await;
        env.runs = Some(Deployments::run(env.client.clone()));
        env.operate(&Faults::none());
        env
    }

    /// The same with a forge, at which the operator finds every host.
    pub(crate) async fn forged() -> (Self, Forge) {
        let (mut env, forge) = Self::idle_forged().await;
        env.operate(&Faults::none());
        (env, forge)
    }

    /// The same without an operator yet.
    pub(crate) async fn idle_forged() -> (Self, Forge) {
        let forge = Forge::start().await.expect("a forge starts on loopback");
        let settings = Settings {
            authorities: vec![forge.authority()],
            hosts: forge.hosts(),
            ..Settings::default()
        };
        let mut env = Self::idle(settings).await;
        env.runs = Some(Deployments::run(env.client.clone()));
        (env, forge)
    }

    /// Where nothing runs Deployments.
    pub(crate) async fn without_nodes() -> Self {
        let mut env = Self::idle(Settings::default()).await;
        env.operate(&Faults::none());
        env
    }

    /// Without an operator yet.
    pub(crate) async fn idle(settings: Settings) -> Self {
        let server = Server::with(definitions()).await;
        let env = Self {
            client: server.client("test"),
            server,
            settings,
            overrides: Overrides::default(),
            built_ins: BuiltIns::default(),
            clock: None,
            runs: None,
            kit: None,
        };
        env.namespace(NAMESPACE).await;
        env
    }

    /// Starts an operator.
    pub(crate) fn operate(&mut self, faults: &Faults) {
        let metrics = Metrics::new();
        let client = transport::in_process(faults.wrap(self.server.service("operator")), &metrics);
        let kit = Runtime::builder(client).metrics(metrics);
        let kit = match &self.clock {
            Some(clock) => kit.clock(clock.clone()),
            None => kit,
        };
        let kit = kit.build();
        let client = Client::new(self.settings.clone()).expect("the settings are right");
        let operator = Operator::new(client, keys_of(KeyAlgorithm::EcdsaP256));
        let operator = operator
            .overrides(self.overrides.clone())
            .having(self.built_ins.clone());
        kit.start(entries(&operator));
        self.kit = Some(kit);
    }

    /// What a scrape of the operator tells.
    pub(crate) fn metrics(&self) -> String {
        self.kit.as_ref().map(|kit| kit.metrics().encode()).unwrap_or_default()
    }

    /// Waits until each of these controllers of the operator has reconciled an object: until then, silence means nothing.
    pub(crate) async fn wait_reconciled(&self, controllers: &[&str]) {
        let all_have = || {
            let loads = self.kit.as_ref().map(|kit| kit.metrics().loads()).unwrap_or_default();
            let has = |name: &str| loads.iter().any(|load| load.controller == name && load.reconciles > 0);
            controllers.iter().all(|name| has(name))
        };
        let mut looks = tokio::time::interval(Duration::from_millis(100));
        looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let waited = tokio::time::timeout(Duration::from_secs(90), async {
            while !all_have() {
                looks.tick().await;
            }
        });
        assert!(waited.await.is_ok(), "{controllers:?} have reconciled nothing");
    }

    /// Ends the operator, as the end of its process does.
    pub(crate) async fn stop_operating(&mut self) {
        if let Some(kit) = self.kit.take() {
            kit.shutdown().await;
        }
    }

    pub(crate) async fn namespace(&self, name: &str) {
        self.apply(json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}))
            .await;
    }

    async fn api(&self, api_version: &str, kind: &str, namespace: &str) -> (Api<DynamicObject>, ApiResource) {
        let gvk = match api_version.split_once('/') {
            Some((group, version)) => GroupVersionKind::gvk(group, version, kind),
            None => GroupVersionKind::gvk("", api_version, kind),
        };
        let found = oneshot::pinned_kind(&self.client, &gvk).await;
        let (resource, can) = found.unwrap_or_else(|error| panic!("{api_version} {kind}: {error}"));
        let api = match can.scope {
            Scope::Cluster => Api::all_with(self.client.clone(), &resource),
            Scope::Namespaced => Api::namespaced_with(self.client.clone(), namespace, &resource),
        };
        (api, resource)
    }

    /// Applies an object.
    pub(crate) async fn apply(&self, object: Value) -> Value {
        self.try_apply(&object)
            .await
            .unwrap_or_else(|error| panic!("cannot apply {object}: {error}"))
    }

    pub(crate) async fn try_apply(&self, object: &Value) -> Result<Value, kube::Error> {
        let text = |v: &Value| v.as_str().unwrap_or_default().to_owned();
        let namespace = text(&object["metadata"]["namespace"]);
        let (api, _) = self
            .api(&text(&object["apiVersion"]), &text(&object["kind"]), &namespace)
            .await;
        let parameters = PatchParams::apply("test").force();
        let name = text(&object["metadata"]["name"]);
        let stored = api.patch(&name, &parameters, &Patch::Apply(object)).await?;
        Ok(serde_json::to_value(stored).expect("objects are JSON"))
    }

    /// Creates an object as a program of that name does, strictly.
    pub(crate) async fn create(&self, manager: &str, object: &Value) -> Result<Value, kube::Error> {
        let text = |v: &Value| v.as_str().unwrap_or_default().to_owned();
        let namespace = text(&object["metadata"]["namespace"]);
        let (_, resource) = self
            .api(&text(&object["apiVersion"]), &text(&object["kind"]), &namespace)
            .await;
        let prefix = if resource.group.is_empty() { "/api" } else { "/apis" };
        let place = if namespace.is_empty() {
            String::new()
        } else {
            format!("/namespaces/{namespace}")
        };
        let (group, plural) = (&resource.api_version, &resource.plural);
        let url = format!("{prefix}/{group}{place}/{plural}?fieldValidation=Strict&fieldManager={manager}");
        let request = http::Request::post(url).header("content-type", "application/json");
        let body = object.to_string().into_bytes();
        self.client
            .request(request.body(body).expect("the request is valid"))
            .await
    }

    /// Access to an object, and its name.
    async fn at<'a>(&self, (api_version, kind, name): Of<'a>) -> (Api<DynamicObject>, &'a str) {
        let (namespace, name) = name.split_once('/').unwrap_or((NAMESPACE, name));
        let (api, _) = self.api(api_version, kind, namespace).await;
        (api, name)
    }

    /// Changes an object by a merge patch.
    pub(crate) async fn merge(&self, of: Of<'_>, patch: Value) {
        let (api, name) = self.at(of).await;
        let sent = api.patch(name, &PatchParams::default(), &Patch::Merge(&patch)).await;
        sent.unwrap_or_else(|error| panic!("cannot change {of:?}: {error}"));
    }

    pub(crate) async fn delete(&self, of: Of<'_>) {
        let (api, name) = self.at(of).await;
        let sent = api.delete(name, &DeleteParams::default()).await;
        sent.unwrap_or_else(|error| panic!("cannot delete {of:?}: {error}"));
    }

    /// An object as it is stored.
    pub(crate) async fn get(&self, of: Of<'_>) -> Option<Value> {
        let (api, name) = self.at(of).await;
        let found = api.get_opt(name).await.expect("the server answers");
        found.map(|object| serde_json::to_value(object).expect("objects are JSON"))
    }

    /// Waits until an object is as it should be; `null` is one that is not there.
    pub(crate) async fn wait(&self, of: Of<'_>, what: &str, is_right: impl Fn(&Value) -> bool) -> Value {
        let (api, name) = self.at(of).await;
        let value = |all: &[DynamicObject]| match all.first() {
            Some(object) => serde_json::to_value(object).expect("objects are JSON"),
            None => Value::Null,
        };
        let found = wait::until(api, Some(name), |all| is_right(&value(all)));
        let found = tokio::time::timeout(TIMEOUT, found).await.ok().flatten();
        let Some(all) = found else {
            let is = self.get(of).await.unwrap_or_default();
            panic!(
                "waited in vain for {of:?}: {what}; it is {:#} {}",
                is["status"], is["spec"]
            )
        };
        value(&all)
    }

    /// Waits until a condition of a declared provider has a status and a reason, for the generation that there is.
    pub(crate) async fn wait_condition(&self, of: Of<'_>, type_: &str, status: &str, reason: &str) -> Value {
        let what = format!("condition {type_} {status} {reason}");
        let object = self
            .wait(of, &what, |object| {
                let now = object["metadata"]["generation"].clone();
                let found = condition(object, type_);
                found["status"] == status && found["reason"] == reason && found["observedGeneration"] == now
            })
            .await;
        condition(&object, type_).clone()
    }

    /// Waits until a version is installed.
    pub(crate) async fn wait_installed(&self, of: Of<'_>, version: &str) -> Value {
        let message = format!("version {version} is installed");
        self.wait(of, &message, |object| {
            let found = condition(object, "ProviderInstalled");
            let same = object["status"]["observedGeneration"] == object["metadata"]["generation"];
            found["status"] == "True" && found["message"].as_str().is_some_and(|m| m.starts_with(&message)) && same
        })
        .await
    }

    /// Puts the files of a provider into ConfigMaps that `provider-components: LABEL` selects.
    pub(crate) async fn shelve(&self, provider: &LookAlike) {
        self.shelve_text(provider, &provider.components()).await;
    }

    /// The same with other components.
    pub(crate) async fn shelve_text(&self, provider: &LookAlike, components: &str) {
        self.apply(json!({
            "apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {
                "name": format!("{}-{}", provider.label(), provider.release()), "namespace": NAMESPACE,
                "labels": {
                    "provider-components": provider.label(),
                    "provider.cluster.x-k8s.io/version": provider.release(),
                },
            },
            "data": {"components": components, "metadata": provider.metadata()},
        }))
        .await;
    }

    /// A Secret with values for all variables that a provider needs.
    pub(crate) async fn variables(&self, name: &str, provider: &LookAlike) {
        let values = provider.required_variables().iter();
        let values: serde_json::Map<_, _> = values.map(|name| (name.clone(), json!("dmFsdWU="))).collect();
        self.apply(json!({
            "apiVersion": "v1", "kind": "Secret",
            "metadata": {"name": name, "namespace": NAMESPACE},
            "data": values,
        }))
        .await;
    }

    /// The uid of an object that is there.
    pub(crate) async fn uid(&self, of: Of<'_>) -> String {
        let found = self.get(of).await.unwrap_or_else(|| panic!("{of:?} is not there"));
        found["metadata"]["uid"].as_str().unwrap_or_default().to_owned()
    }

    /// Waits for a condition with these words in its message.
    pub(crate) async fn wait_told(&self, of: Of<'_>, [type_, status, reason]: [&str; 3], words: &[&str]) {
        let what = format!("condition {type_} {status} {reason} with {words:?}");
        self.wait(of, &what, |object| {
            let now = &object["metadata"]["generation"];
            let found = condition(object, type_);
            let message = found["message"].as_str().unwrap_or_default();
            found["status"] == status
                && found["reason"] == reason
                && found["observedGeneration"] == *now
                && words.iter().all(|word| message.contains(word))
        })
        .await;
    }

    /// Has the operator look at a declaration again, which changes nothing of what it says.
    pub(crate) async fn poke(&self, of: Of<'_>, touch: &str) {
        self.merge(of, json!({"metadata": {"annotations": {"touched": touch}}}))
            .await;
    }

    /// A core provider at v1.0.0, shelved and declared.
    pub(crate) async fn with_core(&self, api: &str) {
        self.shelve(&LookAlike::core()).await;
        self.apply(declaration(
            api,
            "CoreProvider",
            "cluster-api",
            json!({"version": "v1.0.0"}),
        ))
        .await;
        self.wait_installed((api, "CoreProvider", "cluster-api"), "v1.0.0")
            .await;
    }
}

/// A declaration that says where its files come from, or is of a known name.
pub(crate) fn plain((api, kind, name): Of<'_>, spec: &Value) -> Value {
    json!({"apiVersion": api, "kind": kind, "metadata": {"name": name, "namespace": NAMESPACE}, "spec": spec})
}

/// A declaration that takes its files from shelved ConfigMaps.
pub(crate) fn declaration(api: &str, kind: &str, name: &str, mut spec: Value) -> Value {
    let label = match kind {
        "CoreProvider" => name.to_owned(),
        "BootstrapProvider" => format!("bootstrap-{name}"),
        "ControlPlaneProvider" => format!("control-plane-{name}"),
        "AddonProvider" => format!("addon-{name}"),
        _ => format!("infrastructure-{name}"),
    };
    spec["fetchConfig"] = json!({"selector": {"matchLabels": {"provider-components": label}}});
    json!({
        "apiVersion": api, "kind": kind,
        "metadata": {"name": name, "namespace": NAMESPACE},
        "spec": spec,
    })
}

pub(crate) fn condition<'a>(object: &'a Value, type_: &str) -> &'a Value {
    let conditions = object["status"]["conditions"].as_array().into_iter().flatten();
    conditions
        .into_iter()
        .find(|condition| condition["type"] == type_)
        .unwrap_or(&Value::Null)
}
