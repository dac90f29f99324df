//! `operator.cluster.x-k8s.io/v1alpha2`.

use serde_json::{Value, json};
use windlass_api::crd::crd;
use windlass_api_operator::operator::{
    AddonProvider, BootstrapProvider, ControlPlaneProvider, CoreProvider, IPAMProvider, InfrastructureProvider,
    RuntimeExtensionProvider,
};
use windlass_api_operator::{Api, Fetch, ImageOverride, Patches, ProviderObject, ProviderType};
use windlass_cel::review;
use windlass_meta::GoDuration;
use windlass_schema::{Patterns, Reviewing};

use crate::server::{refusals, stored};

type Kind = InfrastructureProvider;

fn provider(spec: Value) -> Value {
    let mut object = json!({
        "apiVersion": "operator.cluster.x-k8s.io/v1alpha2",
        "kind": "InfrastructureProvider",
        "metadata": {"name": "aws", "namespace": "capa-system"},
    });
    object["spec"] = spec;
    object
}

fn refuses(spec: Value, field: &str, words: &str) {
    let found = refusals::<Kind>(&provider(spec), None);
    let is_named = found.iter().any(|text| text.contains(field) && text.contains(words));
    assert!(is_named, "no {field} with {words:?} in {found:#?}");
}

/// What a server takes and the operator cannot act on.
fn complains(spec: Value, expect: &str) {
    let problems = stored::<Kind>(&provider(spec)).declared().unwrap_err();
    assert_eq!(problems.to_string(), expect);
}

#[test]
fn there_are_seven_kinds_one_for_each_type() {
    fn check<K: ProviderObject>(short: &str, type_: ProviderType) {
        let definition = crd::<K>();
        assert_eq!(definition["spec"]["names"]["shortNames"], json!([short]));
        assert_eq!((K::TYPE, K::API), (type_, Api::V1Alpha2));
        assert_eq!(K::TYPE.inventory(), K::KIND);
        assert_eq!(K::API.api_version(), K::API_VERSION);
    }
    check::<CoreProvider>("cacp", ProviderType::Core);
    check::<BootstrapProvider>("cabp", ProviderType::Bootstrap);
    check::<ControlPlaneProvider>("cacpp", ProviderType::ControlPlane);
    check::<InfrastructureProvider>("caip", ProviderType::Infrastructure);
    check::<IPAMProvider>("caipamp", ProviderType::Ipam);
    check::<RuntimeExtensionProvider>("carep", ProviderType::RuntimeExtension);
    check::<AddonProvider>("caap", ProviderType::Addon);
}

#[test]
fn a_server_takes_the_schema_and_its_rules() {
    let definition = crd::<Kind>();
    let how = Reviewing {
        at: "schema",
        resource: true,
        status: true,
        known: false,
        patterns: &Patterns::default(),
    };
    let schema = &definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"];
    let found: Vec<String> = review(schema, &how).iter().map(ToString::to_string).collect();
    assert_eq!(found, Vec::<String>::new());
}

#[test]
fn what_is_there_twice_is_described_once() {
    fn strip(schema: &mut Value) {
        if let Some(node) = schema.as_object_mut() {
            if node.get("description").is_some_and(Value::is_string) {
                node.remove("description");
            }
            node.values_mut().for_each(strip);
        }
    }
    let definition = crd::<Kind>();
    let spec = &definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"];
    let further = &spec["additionalDeployments"]["additionalProperties"]["properties"];
    for field in ["deployment", "manager"] {
        let mut first = spec[field].clone();
        strip(&mut first);
        assert_eq!(first, further[field], "{field}");
    }
    assert!(spec["deployment"]["properties"]["replicas"]["description"].is_string());
}

#[test]
fn everything_that_is_declared_is_in_the_model() {
    let election = json!({
        "leaderElect": true, "leaseDuration": "15s", "renewDeadline": "10s", "retryPeriod": "0s",
        "resourceLock": "", "resourceName": "n", "resourceNamespace": "",
    });
    let spec = json!({
        "version": "v2.3.4",
        "configSecret": {"name": "s"},
        "additionalManifests": {"name": "m", "namespace": "other"},
        "fetchConfig": {"oci": "registry.example.com/aws"},
        "manager": {
            "additionalArgs": {"x": "y"},
            "controller": {"groupKindConcurrency": {"K.g": 4}, "cacheSyncTimeout": 1_000_000_000, "recoverPanic": true},
            "metrics": {"diagnosticsAddress": ":8443", "insecureDiagnostics": true},
            "leaderElection": election,
            "verbosity": 4,
        },
        "deployment": {
            "serviceAccountName": "sa",
            "imagePullSecrets": [{"name": "p"}, {}],
            "tolerations": [],
            "containers": [{"name": "manager", "imageUrl": "r/i:t", "command": ["/m"], "args": {"a": "b"}}],
        },
        "patches": [{"patch": "{}", "target": {"kind": "Deployment", "labelSelector": "a=b", "name": ""}}],
        "additionalDeployments": {"second": {"deployment": {"replicas": 0}, "manager": {"verbosity": 2}}},
    });
    let declared = stored::<Kind>(&provider(spec)).declared().unwrap();
    assert_eq!(declared.version.as_deref(), Some("v2.3.4"));
    assert_eq!(declared.config_secret.unwrap().to_string(), "capa-system/s");
    assert_eq!(declared.manifests.unwrap().to_string(), "other/m");
    assert_eq!(declared.fetch, Fetch::Oci("registry.example.com/aws".to_owned()));
    let manager = declared.manager;
    assert_eq!(manager.additional_args, [("x".to_owned(), "y".to_owned())].into());
    assert_eq!(manager.group_kind_concurrency, [("K.g".to_owned(), 4)].into());
    assert_eq!(manager.cache_sync_timeout, Some(GoDuration::from_secs(1)));
    assert_eq!(manager.recover_panic, Some(true));
    assert_eq!(manager.diagnostics_address.as_deref(), Some(":8443"));
    assert_eq!(manager.insecure_diagnostics, Some(true));
    assert_eq!(manager.verbosity, Some(4));
    let election = manager.leader_election.unwrap();
    assert_eq!(election.renew_deadline, Some(GoDuration::from_secs(10)));
    assert_eq!((election.retry_period, election.resource_lock), (None, None));
    assert_eq!(election.resource_name.as_deref(), Some("n"));
    let deployment = declared.deployment;
    assert_eq!(deployment.service_account_name.as_deref(), Some("sa"));
    assert_eq!(deployment.image_pull_secrets, Some(vec!["p".to_owned()]));
    assert_eq!(deployment.tolerations, Some(vec![]));
    assert_eq!(
        deployment.containers[0].image,
        Some(ImageOverride::Whole("r/i:t".to_owned()))
    );
    assert_eq!(deployment.containers[0].command, Some(vec!["/m".to_owned()]));
    let second = &declared.additional["second"];
    assert_eq!(
        (second.deployment.replicas, second.manager.verbosity),
        (Some(0), Some(2))
    );
    let Patches::Targeted(patches) = declared.patches else {
        panic!("patches with targets");
    };
    let target = patches[0].target.clone().unwrap();
    assert_eq!((target.kind.as_deref(), target.name), (Some("Deployment"), None));
    assert_eq!(target.label_selector.as_deref(), Some("a=b"));
}

#[test]
fn the_default_of_the_schema_counts_as_unset() {
    let read: Kind = stored(&provider(json!({"manager": {}})));
    assert_eq!(read.spec.as_ref().unwrap().manager.as_ref().unwrap().verbosity, Some(1));
    assert_eq!(read.declared().unwrap().manager.verbosity, None);
}

#[test]
fn rules_of_the_schema_refuse() {
    let words = "set exactly one of oci, url, selector";
    refuses(json!({"fetchConfig": {}}), "spec.fetchConfig", words);
    refuses(
        json!({"fetchConfig": {"oci": "a", "url": "b"}}),
        "spec.fetchConfig",
        words,
    );
    refuses(
        json!({"patches": [], "manifestPatches": []}),
        "spec",
        "set either patches or manifestPatches",
    );
    refuses(
        json!({"deployment": {"replicas": -1}}),
        "spec.deployment.replicas",
        "greater than or equal to 0",
    );
    refuses(
        json!({"manager": {"leaderElection": {"leaderElect": true}}}),
        "leaseDuration",
        "Required",
    );
    refuses(json!({"paused": true}), "spec.paused", "unknown field");
    refuses(json!({"secretName": "s"}), "spec.secretName", "unknown field");
    refuses(
        json!({"manager": {"debug": true}}),
        "spec.manager.debug",
        "unknown field",
    );
}

#[test]
fn problems_that_the_schema_lets_pass_are_reported_by_field() {
    complains(
        json!({"version": "latest"}),
        "spec.version: \"latest\" is not a version: expected one like v1.2.3 or v1.2.3-rc.0",
    );
    complains(
        json!({"fetchConfig": {"url": ""}}),
        "spec.fetchConfig: none of oci, url and selector is set: set one, or leave fetchConfig out for a provider that is known by its name",
    );
    complains(
        json!({"manager": {"syncPeriod": "660"}, "configSecret": {"name": ""}}),
        "spec.manager.syncPeriod: \"660\" is not a duration: expected numbers with units, such as \"10s\", \"1m30s\" or \"500ms\"; spec.configSecret.name: is empty",
    );
    let election = json!({
        "leaderElect": true, "leaseDuration": "15s", "renewDeadline": "20s", "retryPeriod": "-2s",
        "resourceLock": "", "resourceName": "", "resourceNamespace": "",
    });
    complains(
        json!({"additionalDeployments": {"x": {"manager": {"leaderElection": election}}}}),
        "spec.additionalDeployments[x].manager.leaderElection.retryPeriod: -2s is negative; spec.additionalDeployments[x].manager.leaderElection.renewDeadline: 20s is longer than leaseDuration, 15s",
    );
    complains(
        json!({"manager": {"webhook": {"port": 70000}, "controller": {"groupKindConcurrency": {"K.g": 0}}}}),
        "spec.manager.controller.groupKindConcurrency[K.g]: 0 is less than 1; spec.manager.webhook.port: 70000 is not a port: expected 1 to 65535",
    );
    // Users of this version may leave out the v, as some repositories do.
    assert!(
        stored::<Kind>(&provider(json!({"version": "1.2.3"})))
            .declared()
            .is_ok()
    );
}
