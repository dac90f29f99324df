//! Every configuration that is rendered is one that the real kubeadm takes.

use std::path::Path;
use std::process::Command;

use serde_json::Value;
use windlass_envtest::Tools;

use crate::machine::Machine;
use crate::samples::{everything, init, join};

/// A kubeadm, the version of Kubernetes that it is for, and a feature gate that it knows.
const KUBEADMS: [(&str, &str, &str); 2] = [
    ("kubeadm", "v1.36.0", "NodeLocalCRISocket"),
    ("kubeadm-1.30", "v1.30.0", "EtcdLearnerMode"),
];

/// Asks kubeadm whether a file is one that it takes. Warnings are about names of this machine.
fn validate(kubeadm: &Path, file: &Path, of: &str) {
    let checked = Command::new(kubeadm)
        .args(["config", "validate", "--config"])
        .arg(file)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&checked.stderr);
    let text = std::fs::read_to_string(file).unwrap();
    assert!(checked.status.success(), "{of}: {said}\n{text}");
    for complaint in ["unknown field", "strict decoding error", "Ignored"] {
        assert!(!said.contains(complaint), "{of}: {said}\n{text}");
    }
}

/// The places of all fields below a value.
fn places(value: &Value, at: &str, found: &mut Vec<String>) {
    let Some(fields) = value.as_object() else {
        return;
    };
    for (key, below) in fields {
        let place = format!("{at}/{key}");
        places(below, &place, found);
        found.push(place);
    }
}

/// A specification without the fields at some places.
fn without(mut spec: Value, places: &[&str]) -> Value {
    for place in places {
        let (parent, key) = place.rsplit_once('/').unwrap();
        if let Some(fields) = spec.pointer_mut(parent).and_then(Value::as_object_mut) {
            fields.remove(key);
        }
    }
    spec
}

/// Whether kubeadm needs a field of a specification to join: what the bootstrap controller fills in where it is missing.
fn is_filled_in(place: &str) -> bool {
    [
        "/joinConfiguration",
        "/discovery",
        "/bootstrapToken",
        "/token",
        "/apiServerEndpoint",
        "/caCertHashes",
    ]
    .iter()
    .any(|needed| place.starts_with("/joinConfiguration") && place.ends_with(needed))
}

#[test]
fn every_field_and_every_lack_of_one_gives_a_configuration_that_kubeadm_takes() {
    let mut all = everything();
    let mut fields = Vec::new();
    places(&all, "", &mut fields);
    fields.retain(|place| !is_filled_in(place));
    assert!(fields.len() > 60, "{fields:?}");
    for (name, version, gate) in KUBEADMS {
        all["clusterConfiguration"]["featureGates"] = serde_json::json!({ gate: true });
        let Some(kubeadm) = Tools::required(name) else {
            continue;
        };
        // Each field is missing once, in some order several at a time.
        let mut shapes = vec![(String::from("every field"), all.clone())];
        for chunk in fields.chunks(4) {
            let missing: Vec<&str> = chunk.iter().map(String::as_str).collect();
            shapes.push((
                format!("without {}", missing.join(", ")),
                without(all.clone(), &missing),
            ));
        }
        let mut external = without(all.clone(), &["/clusterConfiguration/etcd/local"]);
        external["clusterConfiguration"]["etcd"]["external"] = serde_json::json!({
            "endpoints": ["https://10.0.0.2:2379"], "caFile": "/c", "certFile": "/d", "keyFile": "/e",
        });
        shapes.push(("external etcd".to_owned(), external));
        let mut untainted = all.clone();
        untainted["initConfiguration"]["nodeRegistration"]["taints"] = serde_json::json!([]);
        shapes.push(("no taints".to_owned(), untainted));
        shapes.push((
            "nothing".to_owned(),
            serde_json::json!({"joinConfiguration": all["joinConfiguration"]}),
        ));
        for (shape, spec) in shapes {
            let spec = serde_json::from_value(spec).unwrap();
            let root = tempfile::tempdir().unwrap();
            let machine = Machine::start(&init(&spec, version, &[]).value, root.path());
            validate(
                &kubeadm,
                &machine.place("/run/kubeadm/kubeadm.yaml"),
                &format!("{name}, init, {shape}"),
            );
            let machine = Machine::start(&join(&spec, version, &[]).value, root.path());
            let file = machine.place("/run/kubeadm/kubeadm-join-config.yaml");
            validate(&kubeadm, &file, &format!("{name}, join, {shape}"));
        }
    }
}
