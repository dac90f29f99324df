//! A recorded management cluster, made ready to be stored again: pure. What was left out when it was recorded (keys, tokens, hashes) is
//! made again, and the address of the workload cluster gets a port that is free here.

use std::collections::BTreeSet;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use jiff::{SignedDuration, Timestamp};
use regex::{Captures, Regex};
use serde_json::{Value, json};
use windlass_pki::{CertificateAuthority, KeyAlgorithm, KeyMaterial, Kubeconfig, LeafRequest, PrivateKey, Purpose};

use crate::recorded::play::CLUSTER;

/// The recorded port of the workload cluster.
const PORT: u16 = 20000;
/// The hash of an authority in place of the recorded one.
const NO_PIN: &str = "sha256:0000000000000000000000000000000000000000000000000000000000000000";

/// Where kubeadm keeps certificates.
const CERTIFICATES: &str = "/etc/kubernetes/pki/";
/// How a line ends that stands for a certificate or a key.
const LEFT_OUT: &str = " (left out)";
/// The annotation of a control plane Machine that replaced another.
const REMEDIATION_FOR: &str = "controlplane.cluster.x-k8s.io/remediation-for";
/// How long authorities are valid.
const CA_DAYS: i32 = 3650;

/// A source of new RSA keys.
pub(super) type Keys<'a> = &'a dyn Fn() -> Result<PrivateKey, String>;

/// The kind and the name of an object.
pub(super) fn named(object: &Value) -> (String, String) {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    (text(&object["kind"]), text(&object["metadata"]["name"]))
}

/// Owners before what they own.
fn owners_first(mut objects: Vec<Value>) -> Result<Vec<Value>, String> {
    let mut sorted = Vec::new();
    let mut known = BTreeSet::new();
    while !objects.is_empty() {
        let (ready, rest): (Vec<Value>, Vec<Value>) = objects.into_iter().partition(|object| {
            let mut owners = object["metadata"]["ownerReferences"].as_array().into_iter().flatten();
            owners.all(|owner| owner["uid"].as_str().is_some_and(|uid| known.contains(uid)))
        });
        if ready.is_empty() {
            let names: Vec<String> = rest.iter().map(|object| named(object).1).collect();
            return Err(format!(
                "an owner of these objects is not recorded: {}",
                names.join(", ")
            ));
        }
        known.extend(
            ready
                .iter()
                .filter_map(|object| object["metadata"]["uid"].as_str().map(str::to_owned)),
        );
        sorted.extend(ready);
        objects = rest;
    }
    Ok(sorted)
}

/// The keys of the recorded cluster, and what depends on them.
pub(super) struct Material {
    port: u16,
    time: Regex,
    /// How long ago it was recorded. All times are moved by it: a Machine that was starting then has just been created.
    ago: SignedDuration,
    authorities: Vec<(Purpose, KeyMaterial)>,
    pin: String,
    kubeconfig: String,
}

impl Material {
    /// New keys, and this port of the workload cluster, for objects that were recorded together.
    pub(super) fn new(objects: &[Value], port: u16, keys: Keys<'_>) -> Result<Self, String> {
        let wrong = |error: windlass_pki::PkiError| error.to_string();
        let now = Timestamp::now();
        let newest = objects.iter().filter_map(newest).max().ok_or("no object has a time")?;
        let mut authorities = Vec::new();
        for purpose in Purpose::CONTROL_PLANE {
            let material = KeyMaterial::generate(purpose, keys()?, CA_DAYS, now).map_err(wrong)?;
            authorities.push((purpose, material));
        }
        let cluster = authorities.iter().find(|(purpose, _)| *purpose == Purpose::ClusterCa);
        let (_, cluster) = cluster.ok_or("no authority of the cluster")?;
        let authority: CertificateAuthority = cluster.authority().map_err(wrong)?;
        let key = PrivateKey::generate(KeyAlgorithm::EcdsaP256).map_err(wrong)?;
        let client = authority
            .issue(&LeafRequest::administrator(), &key, now)
            .map_err(wrong)?;
        let kubeconfig = Kubeconfig {
            cluster: CLUSTER.to_owned(),
            server: format!("https://127.0.0.1:{port}"),
            authority: authority.certificate().to_pem(),
            client_certificate: client.to_pem(),
            client_key: key.to_pem(),
        };
        Ok(Self {
            port,
            time: Regex::new(r"\b\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ").map_err(|error| error.to_string())?,
            ago: now.duration_since(newest),
            pin: authority.certificate().public_key_pin(),
            kubeconfig: kubeconfig.render(),
            authorities,
        })
    }

    /// Objects as they can be stored, owners first.
    pub(super) fn prepared(&self, objects: Vec<Value>) -> Result<Vec<Value>, String> {
        let mut objects = owners_first(objects)?;
        for object in &mut objects {
            if object["kind"] == "Secret" {
                self.fill(object)?;
            }
            self.replace(object);
        }
        Ok(objects)
    }

    /// The administrator's kubeconfig of the workload cluster.
    pub(super) fn kubeconfig(&self) -> &str {
        &self.kubeconfig
    }

    /// Gives a Secret its values.
    fn fill(&self, secret: &mut Value) -> Result<(), String> {
        if secret.get("data").is_none() {
            return Ok(());
        }
        let (_, name) = named(secret);
        let decoded = secret["x-decoded"]["value"].as_str();
        let decoded = decoded.map(|text| self.with_authorities(&self.text(text)));
        let data = if let Some(text) = decoded {
            json!({ "format": STANDARD.encode("cloud-config"), "value": STANDARD.encode(text) })
        } else if name == Purpose::Kubeconfig.secret_name(CLUSTER) {
            json!({ "value": STANDARD.encode(&self.kubeconfig) })
        } else {
            let own = self
                .authorities
                .iter()
                .find(|(purpose, _)| purpose.secret_name(CLUSTER) == name);
            let (_, own) =
                own.ok_or_else(|| format!("Secret {name} is none of those that are known: say what is in it"))?;
            let data = own.data().into_iter();
            data.map(|(key, value)| (key.to_owned(), json!(STANDARD.encode(value))))
                .collect()
        };
        let keys = |value: &Value| {
            value
                .as_object()
                .map(|map| map.keys().cloned().collect::<BTreeSet<_>>())
        };
        if keys(&data) != keys(&secret["data"]) {
            return Err(format!(
                "Secret {name} has other keys than expected: {}",
                secret["data"]
            ));
        }
        secret["data"] = data;
        secret.as_object_mut().and_then(|map| map.remove("x-decoded"));
        Ok(())
    }

    /// Bootstrap data with the authorities in place of what was left out: simulated machines are made of them.
    fn with_authorities(&self, data: &str) -> String {
        let mut folder = None;
        let lines = data.split_inclusive('\n').map(|whole| {
            let line = whole.trim_end();
            if let Some(path) = line.strip_prefix("-   path: ") {
                folder = path.strip_prefix(CERTIFICATES);
            }
            let left_out = line.trim_start().starts_with("-----BEGIN ") && line.ends_with(LEFT_OUT);
            match folder.filter(|_| left_out).and_then(|file| self.file(file)) {
                Some(pem) => pem.trim_end().lines().flat_map(|part| ["      ", part, "\n"]).collect(),
                None => whole.to_owned(),
            }
        });
        lines.collect()
    }

    /// A file of an authority in kubeadm's folder of certificates.
    fn file(&self, name: &str) -> Option<&str> {
        self.authorities.iter().find_map(|(purpose, material)| {
            let (certificate, key) = purpose.files()?;
            let files = [(certificate, &material.crt), (key, &material.key)];
            let found = files.into_iter().find(|(file, _)| *file == name);
            found.map(|(_, pem)| pem.as_str())
        })
    }

    fn text(&self, text: &str) -> String {
        let moved = |found: &Captures<'_>| {
            let time: Option<Timestamp> = found[0].parse().ok();
            let time = time.and_then(|time| time.checked_add(self.ago).ok());
            time.map_or_else(
                || found[0].to_owned(),
                |time| time.strftime("%Y-%m-%dT%H:%M:%SZ").to_string(),
            )
        };
        let text = self.time.replace_all(text, moved);
        text.replace(&format!("127.0.0.1:{PORT}"), &format!("127.0.0.1:{}", self.port))
            .replace(NO_PIN, &self.pin)
    }

    fn replace(&self, value: &mut Value) {
        match value {
            Value::Object(map) => {
                for (key, below) in map.iter_mut() {
                    if key == "port" && *below == json!(PORT) {
                        *below = json!(self.port);
                    } else {
                        self.replace(below);
                    }
                }
            }
            Value::Array(items) => items.iter_mut().for_each(|item| self.replace(item)),
            Value::String(text) => *text = self.text(text),
            _ => {}
        }
    }
}

/// The objects with what Cluster API leaves in cases that are not recorded: a Secret `NAME-shim`, which the Cluster owns, owns the infrastructure
/// cluster and the control plane beside the Cluster, if it ended just after it had made them; and a control plane Machine that replaced
/// an unhealthy one says so.
pub(super) fn with_marks(mut objects: Vec<Value>) -> Result<Vec<Value>, String> {
    const UID: &str = "00000000-0000-4000-8000-000000000001";
    let name = format!("{CLUSTER}-shim");
    let cluster = objects
        .iter()
        .find(|object| object["kind"] == "Cluster")
        .ok_or("no Cluster is recorded")?;
    let owned = |uid: &Value| json!({ (format!("k:{{\"uid\":{uid}}}")): {} });
    let uid = &cluster["metadata"]["uid"];
    let shim = json!({
        "apiVersion": "v1", "kind": "Secret", "type": "cluster.x-k8s.io/secret",
        "metadata": {
            "name": name, "namespace": cluster["metadata"]["namespace"], "uid": UID,
            "ownerReferences": [{"apiVersion": cluster["apiVersion"], "kind": "Cluster", "name": CLUSTER, "uid": uid}],
            "managedFields": [{
                "apiVersion": "v1", "fieldsType": "FieldsV1", "manager": "capi-manager", "operation": "Update",
                "time": cluster["metadata"]["creationTimestamp"],
                "fieldsV1": {"f:metadata": {"f:ownerReferences": owned(uid)}, "f:type": {}},
            }],
        },
    });
    let reference = json!({"apiVersion": "v1", "kind": "Secret", "name": name, "uid": UID});
    let parts = objects
        .iter_mut()
        .filter(|object| object["kind"] == "DevCluster" || object["kind"] == "KubeadmControlPlane");
    for part in parts {
        let metadata = &mut part["metadata"];
        let owners = metadata["ownerReferences"]
            .as_array_mut()
            .ok_or("an object has no owner")?;
        owners.insert(0, reference.clone());
        let entries = metadata["managedFields"].as_array_mut().into_iter().flatten();
        for entry in entries.filter(|entry| entry["manager"] == "capi-topology") {
            entry["fieldsV1"]["f:metadata"]["f:ownerReferences"] = owned(&json!(UID));
        }
    }
    objects.push(shim);
    let labelled = |object: &&mut Value| {
        object["metadata"]["labels"]
            .get("cluster.x-k8s.io/control-plane")
            .is_some()
    };
    let mut machines = objects.iter_mut().filter(|object| object["kind"] == "Machine");
    let metadata = &mut machines.find(labelled).ok_or("no control plane Machine is recorded")?["metadata"];
    let replaced =
        json!({"machine": format!("{CLUSTER}-pd65g-zzzzz"), "timestamp": "2026-11-21T10:37:00Z", "retryCount": 1});
    metadata["annotations"][REMEDIATION_FOR] = json!(replaced.to_string());
    let entries = metadata["managedFields"].as_array_mut().into_iter().flatten();
    for entry in entries.filter(|entry| entry["manager"] == "capi-kubeadmcontrolplane") {
        entry["fieldsV1"]["f:metadata"]["f:annotations"][format!("f:{REMEDIATION_FOR}")] = json!({});
    }
    let is_control_plane = |object: &&mut Value| object["kind"] == "KubeadmControlPlane";
    let control_plane = objects
        .iter_mut()
        .find(is_control_plane)
        .ok_or("no control plane is recorded")?;
    control_plane["status"]["lastRemediation"] =
        json!({"machine": replaced["machine"], "retryCount": 1, "time": replaced["timestamp"]});
    let entries = control_plane["metadata"]["managedFields"]
        .as_array_mut()
        .into_iter()
        .flatten();
    for entry in entries.filter(|entry| entry["subresource"] == "status") {
        entry["fieldsV1"]["f:status"]["f:lastRemediation"] = json!({"f:machine": {}, "f:retryCount": {}, "f:time": {}});
    }
    Ok(objects)
}

/// When the newest part of an object was written.
fn newest(object: &Value) -> Option<Timestamp> {
    let entries = object["metadata"]["managedFields"].as_array()?;
    entries
        .iter()
        .filter_map(|entry| entry["time"].as_str()?.parse().ok())
        .max()
}

/// How far the status is behind the spec: the generations that no controller had seen.
pub(super) fn unseen(object: &Value) -> i64 {
    let generation = object["metadata"]["generation"].as_i64();
    let seen = object["status"]["observedGeneration"].as_i64();
    generation.zip(seen).map_or(0, |(generation, seen)| generation - seen)
}

/// Whether it was being deleted.
pub(super) fn is_going(object: &Value) -> bool {
    object["metadata"].get("deletionTimestamp").is_some()
}

/// The object without what a server sets.
pub(super) fn creatable(object: &Value) -> Value {
    let mut object = object.clone();
    if let Some(metadata) = object["metadata"].as_object_mut() {
        let of_server = [
            "creationTimestamp",
            "deletionGracePeriodSeconds",
            "deletionTimestamp",
            "generation",
            "managedFields",
            "resourceVersion",
            "uid",
        ];
        metadata.retain(|key, _| !of_server.contains(&key.as_str()));
    }
    object
}

/// Generations start at 1 again, so those that controllers have seen are moved. A condition that nothing wrote for long keeps none.
pub(super) fn move_generations(status: &mut Value, by: i64) {
    match status {
        Value::Object(map) => {
            for (key, below) in map.iter_mut() {
                match below.as_i64().filter(|_| key == "observedGeneration") {
                    Some(seen) => *below = json!((seen + by).max(0)),
                    None => move_generations(below, by),
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| move_generations(item, by)),
        _ => {}
    }
}

/// An object with the uids of this server in place of the recorded ones.
pub(super) fn with_uids(object: &Value, uids: &[(String, String)]) -> Result<Value, String> {
    let text = uids.iter().fold(object.to_string(), |text, (recorded, here)| {
        text.replace(recorded, here)
    });
    serde_json::from_str(&text).map_err(|error| error.to_string())
}

/// The objects of one version with those of another version in their place, where they are recorded in that version.
pub(super) fn in_version(objects: Vec<Value>, other: &[Value]) -> Vec<Value> {
    let find = |object: Value| {
        let Some(found) = other.iter().find(|one| named(one) == named(&object)) else {
            return object;
        };
        let mut found = found.clone();
        // They are the same in each version, and were left out there.
        found["metadata"]["managedFields"] = object["metadata"]["managedFields"].clone();
        found
    };
    objects.into_iter().map(find).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn object(kind: &str, uid: &str, owners: &[&str]) -> Value {
        let owners: Vec<Value> = owners.iter().map(|uid| json!({ "uid": uid })).collect();
        json!({"kind": kind, "metadata": {"name": uid, "uid": uid, "ownerReferences": owners}})
    }

    #[test]
    fn owners_come_first_and_all_of_them_are_needed() {
        let all = vec![
            object("A", "a", &["b", "c"]),
            object("B", "b", &["c"]),
            object("C", "c", &[]),
        ];
        let sorted = owners_first(all).unwrap();
        let names: Vec<String> = sorted.iter().map(|object| named(object).1).collect();
        assert_eq!(names, ["c", "b", "a"]);
        let error = owners_first(vec![object("A", "a", &["gone"]), object("B", "b", &[])]).unwrap_err();
        assert_eq!(error, "an owner of these objects is not recorded: a");
    }

    #[test]
    fn generations_begin_again_and_statuses_follow() {
        let behind = json!({"metadata": {"generation": 7}, "status": {"observedGeneration": 6}});
        assert_eq!(
            (unseen(&behind), unseen(&json!({"metadata": {"generation": 7}}))),
            (1, 0)
        );
        let mut status =
            json!({"observedGeneration": 7, "conditions": [{"type": "A", "observedGeneration": 3}, {"type": "B"}]});
        move_generations(&mut status, -6);
        let expect =
            json!({"observedGeneration": 1, "conditions": [{"type": "A", "observedGeneration": 0}, {"type": "B"}]});
        assert_eq!(status, expect);
    }

    #[test]
    fn recorded_objects_get_keys_a_port_and_recent_times() {
        let keys = || PrivateKey::generate(KeyAlgorithm::EcdsaP256).map_err(|error| error.to_string());
        let recorded = |kind: &str, name: &str, rest: Value| {
            let mut object = object(kind, name, &[]);
            object["metadata"]["managedFields"] = json!([{"time": "2026-11-21T10:00:00Z"}]);
            object
                .as_object_mut()
                .unwrap()
                .extend(rest.as_object().unwrap().clone());
            object
        };
        let file =
            "-   path: /etc/kubernetes/pki/ca.crt\n    content: |\n      -----BEGIN CERTIFICATE----- (left out)\n";
        let text = format!("{file}server: 127.0.0.1:20000 {NO_PIN}");
        let objects = vec![
            recorded(
                "DevCluster",
                "c",
                json!({"spec": {"port": 20000}, "status": {"at": "2026-11-21T09:59:50Z"}}),
            ),
            recorded(
                "Secret",
                "demo000-ca",
                json!({"data": {"tls.crt": "<left out>", "tls.key": "<left out>"}}),
            ),
            recorded(
                "Secret",
                "w",
                json!({"data": {"format": "<left out>", "value": "<left out>"}, "x-decoded": {"value": text}}),
            ),
        ];
        let material = Material::new(&objects, 4711, &keys).unwrap();
        let prepared = material.prepared(objects).unwrap();
        assert_eq!(prepared[0]["spec"]["port"], 4711);
        let at: Timestamp = prepared[0]["status"]["at"].as_str().unwrap().parse().unwrap();
        let ago = Timestamp::now().duration_since(at);
        assert!(
            ago >= SignedDuration::from_secs(9) && ago < SignedDuration::from_mins(5),
            "{ago}"
        );
        let decoded = |value: &Value| String::from_utf8(STANDARD.decode(value.as_str().unwrap()).unwrap()).unwrap();
        let authority = decoded(&prepared[1]["data"]["tls.crt"]);
        let pin = windlass_pki::Certificate::from_pem(&authority)
            .unwrap()
            .public_key_pin();
        let indented: String = authority.lines().flat_map(|line| ["      ", line, "\n"]).collect();
        let filled = file.replace("      -----BEGIN CERTIFICATE----- (left out)\n", &indented);
        assert_eq!(
            decoded(&prepared[2]["data"]["value"]),
            format!("{filled}server: 127.0.0.1:4711 {pin}")
        );
        assert!(
            material
                .prepared(vec![recorded("Secret", "unknown", json!({"data": {"a": "b"}}))])
                .is_err()
        );
    }
}
