//! Every configuration that is rendered is one that the real kubeadm takes.

use std::path::Path;
use std::process::Command;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;
use windlass_api_kubeadm::bootstrap::KubeadmConfigSpec;
use windlass_envtest::Tools;
use windlass_kubeadm::WriteFile;
use windlass_kubeadm::administrator::trust_bundle;

use crate::ignition;
use crate::machine::Machine;
use crate::samples::{everything, init, join};

/// A kubeadm, the version of Kubernetes that it is for, and a feature gate that it knows.
pub(crate) const KUBEADMS: [(&str, &str, &str); 2] = [
    ("kubeadm", "v1.36.0", "NodeLocalCRISocket"),
    ("kubeadm-1.30", "v1.30.0", "EtcdLearnerMode"),
];

/// Asks kubeadm whether a file is one that it takes. Warnings are about names of this machine.
pub(crate) fn validate(kubeadm: &Path, file: &Path, of: &str) {
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
pub(crate) fn places(value: &Value, at: &str, found: &mut Vec<String>) {
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
pub(crate) fn without(mut spec: Value, places: &[&str]) -> Value {
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
            let spec: KubeadmConfigSpec = serde_json::from_value(spec).unwrap();
            let in_ignition = KubeadmConfigSpec {
                format: Some("ignition".to_owned()),
                ..spec.clone()
            };
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

            let (init, join) = (init(&in_ignition, version, &[]), join(&in_ignition, version, &[]));
            for (data, what) in [(init, "init"), (join, "join")] {
                let file = root.path().join("kubeadm.yml");
                let document = serde_json::from_str(&data.value).unwrap();
                std::fs::write(&file, ignition::content(&document, "/etc/kubeadm.yml")).unwrap();
                validate(&kubeadm, &file, &format!("{name}, {what} in Ignition, {shape}"));
            }
        }
    }
}

/// Runs kubeadm, which has to succeed.
fn run(kubeadm: &Path, arguments: &[&str]) {
    let done = Command::new(kubeadm).args(arguments).output().unwrap();
    let said = String::from_utf8_lossy(&done.stderr);
    assert!(done.status.success(), "{arguments:?}: {said}");
}

/// The authorities that a kubeconfig trusts.
fn trusted(kubeconfig: &Path) -> String {
    let text = std::fs::read_to_string(kubeconfig).unwrap();
    let kubeconfig: Value = serde_saphyr::from_str(&text).unwrap();
    let data = kubeconfig["clusters"][0]["cluster"]["certificate-authority-data"].as_str();
    String::from_utf8(STANDARD.decode(data.unwrap()).unwrap()).unwrap()
}

/// kubeadm makes an `admin.conf` that trusts the first certificate of a bundle only, and joins by it.
#[test]
fn the_administrator_of_a_machine_that_joins_trusts_the_whole_bundle() {
    for (name, version, _) in KUBEADMS {
        let Some(kubeadm) = Tools::required(name) else {
            continue;
        };
        let root = tempfile::tempdir().unwrap();
        let place = |path: &str| root.path().join(path).to_str().unwrap().to_owned();
        for folder in ["old", "kubernetes/pki"] {
            let folder = place(folder);
            let arguments = ["init", "phase", "certs", "ca", "--kubernetes-version", version];
            run(&kubeadm, &[&arguments[..], &["--cert-dir", &folder]].concat());
        }
        let read = |path: &str| std::fs::read_to_string(place(path)).unwrap();
        let new = read("kubernetes/pki/ca.crt");
        let bundle = format!("{new}{}", read("old/ca.crt"));
        std::fs::write(place("kubernetes/pki/ca.crt"), &bundle).unwrap();

        let mut spec: KubeadmConfigSpec = serde_json::from_value(everything()).unwrap();
        spec.pre_kubeadm_commands = vec!["echo first".to_owned()];
        let mut joining = spec.join_configuration.clone().unwrap();
        let file = WriteFile {
            path: "/etc/kubernetes/pki/ca.crt".to_owned(),
            content: bundle.clone(),
            ..WriteFile::default()
        };
        trust_bundle(&mut spec, &mut joining, &file).unwrap();
        spec.join_configuration = Some(joining.clone());
        let machine = root.path().join("machine");
        let machine = Machine::start(&join(&spec, version, &[file]).value, &machine);
        validate(&kubeadm, &machine.place("/run/kubeadm/kubeadm-join-config.yaml"), name);

        let commands = &machine.commands;
        let own = commands.iter().position(|command| command == "echo first").unwrap();
        let parts: Vec<&str> = commands[own + 1].splitn(3, " && ").collect();
        let phase =
            "kubeadm join phase control-plane-prepare kubeconfig --config /run/kubeadm/kubeadm-join-config.yaml";
        assert_eq!(parts[..2], ["rm -f /etc/kubernetes/admin.conf", phase]);
        let trust = parts[2];
        run(
            &kubeadm,
            &["join", "phase", "control-plane-prepare", "kubeconfig", "--help"],
        );
        // There is no cluster to ask for its configuration: the same kubeconfig is made for the first machine of one.
        let arguments = ["init", "phase", "kubeconfig", "admin", "--kubernetes-version", version];
        let folders = [
            "--cert-dir",
            &place("kubernetes/pki"),
            "--kubeconfig-dir",
            &place("kubernetes"),
        ];
        run(&kubeadm, &[&arguments[..], &folders[..]].concat());
        let made = root.path().join("kubernetes/admin.conf");
        assert_eq!(trusted(&made).trim(), new.trim());
        let here = trust.replace("/etc/kubernetes", &place("kubernetes"));
        let done = Command::new("sh").args(["-c", &here]).output().unwrap();
        assert!(done.status.success(), "{here}: {done:?}");
        assert_eq!(trusted(&made), bundle);
        std::fs::remove_file(&made).unwrap();
        let done = Command::new("sh")
            .args(["-c", &format!("{here}\necho reached")])
            .output()
            .unwrap();
        assert!(
            !done.status.success() && done.stdout.is_empty(),
            "nothing follows what fails: {done:?}"
        );

        // A user who makes the kubeconfigs keeps them.
        let before = (spec.clone(), joining.clone());
        let file = WriteFile::default();
        trust_bundle(&mut spec, &mut joining, &file).unwrap();
        assert!(before == (spec, joining));
    }
}
