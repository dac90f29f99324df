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
        let (_, name) = named(secret);
        let decoded = secret["x-decoded"]["value"].as_str().map(|text| self.text(text));
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
