//! Objects of a provider, a patch and flags: applies settings and patches, finds certificates and adds them.
//!
//! The input is three texts separated by lines with `====`: objects, a patch, and flags with their values, one per line.

use std::collections::BTreeMap;

use serde_json::json;
use windlass_api_operator::operator::InfrastructureProvider;
use windlass_api_operator::{Declared, Patches, ProviderObject, TargetedPatch};
use windlass_provider_components::certificates::{self, Issued};
use windlass_provider_components::customize::{customize, pause};
use windlass_provider_components::{manifest, patch};

fn declared(args: &str) -> Option<Declared> {
    let args: BTreeMap<&str, &str> = args.lines().filter_map(|line| line.split_once(' ')).collect();
    let provider: InfrastructureProvider = serde_json::from_value(json!({
        "apiVersion": "operator.cluster.x-k8s.io/v1alpha2", "kind": "InfrastructureProvider",
        "metadata": {"namespace": "ns", "name": "x"},
        "spec": {
            "manager": {
                "verbosity": 3, "featureGates": {"A": true}, "webhook": {"port": 9444, "certDir": "/c"},
                "health": {"healthProbeBindAddress": ":1", "livenessEndpointName": "a"}, "metrics": {"bindAddress": ":2"},
            },
            "deployment": {
                "replicas": 2, "serviceAccountName": "a",
                "containers": [{"name": "manager", "args": args, "env": [{"name": "A", "value": "b"}]}],
            },
        },
    }))
    .ok()?;
    provider.declared().ok()
}

/// Runs the target on one input; a panic is a bug in what it calls.
pub fn run(text: &str) {
    let parts: Vec<&str> = text.splitn(3, "\n====\n").collect();
    let part = |nth: usize| parts.get(nth).copied().unwrap_or_default();
    let Ok(objects) = manifest::parse(part(0)) else {
        return;
    };
    let targeted = TargetedPatch {
        patch: part(1).to_owned(),
        target: None,
    };
    for patches in [
        Patches::Merge(vec![part(1).to_owned()]),
        Patches::Targeted(vec![targeted]),
    ] {
        let _ = patch::apply(&mut objects.clone(), &patches);
    }
    if let Some(declared) = declared(part(2)) {
        let mut once = objects.clone();
        if customize(&mut once, &declared).is_ok() {
            let mut twice = once.clone();
            customize(&mut twice, &declared).expect("what could be applied can be applied again");
            assert_eq!(twice, once, "nothing changes the second time");
        }
    }
    for mut object in objects.clone() {
        if object["spec"].is_object() {
            pause::hold(&mut object, 3);
            pause::give_back(&mut object, 3);
            assert_eq!(pause::replicas(&object), 3);
        }
    }
    if let Ok(plan) = certificates::plan(&objects) {
        let one = Issued {
            certificate: "c".to_owned(),
            key: "k".to_owned(),
            bundle: "b".to_owned(),
        };
        let issued = plan
            .requests
            .iter()
            .map(|request| (request.secret.clone(), one.clone()))
            .collect();
        let mut made = objects;
        certificates::put(&mut made, &plan, &issued).expect("all that is asked for was issued");
        let again = certificates::plan(&made).expect("nothing is asked for any more");
        assert!(again.requests.is_empty() && again.injections.is_empty());
    }
}
