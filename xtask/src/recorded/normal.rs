//! Normalises objects: replaces values that differ between runs (random names by role, times, uids, ports, hashes, key material).

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use regex::{Captures, Regex};
use serde_json::{Map, Value, json};

use super::flat::{Flat, flatten, owners};

/// The letters of random suffixes.
const RANDOM: &str = "bcdfghjklmnpqrstvwxz2456789";
/// The order of kinds: owners come before objects that are named after them.
const ORDER: [&str; 7] = [
    "Cluster",
    "KubeadmControlPlane",
    "DevCluster",
    "MachineDeployment",
    "MachineSet",
    "Machine",
    "DevMachineTemplate",
];

/// Kind and role of an object.
pub(crate) type Role = (String, String);

/// All objects at a time, normalised. Objects with a deletion timestamp are omitted, because they are about to disappear.
pub(crate) fn normalise(objects: &[Value]) -> BTreeMap<Role, Flat> {
    let stays = |object: &&Value| object["metadata"].get("deletionTimestamp").is_none();
    let objects: Vec<Value> = objects.iter().filter(stays).cloned().collect();
    let objects = objects.as_slice();
    let names = Names::of(objects);
    let rules = Rules::new();
    let one = |object: &Value| {
        let (kind, name, _) = identity(object);
        let role = names.by_name.get(&name).cloned().unwrap_or(name);
        ((kind, role), flat(object, &names, &rules))
    };
    objects.iter().map(one).collect()
}

/// One object without its owners: names (longest first) and values replaced, and empty values omitted.
pub(crate) fn shape(object: &Value, names: &[(String, String)]) -> Flat {
    let rules = Rules::new();
    let mut kept = kept(object, &rules);
    drop_empty(&mut kept);
    replace(&mut kept, "", &|_, text| rules.text(&renamed(text, names)));
    let mut flat = Flat::new();
    flatten("", &kept, &mut flat);
    flat
}

fn identity(object: &Value) -> (String, String, String) {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let metadata = &object["metadata"];
    (text(&object["kind"]), text(&metadata["name"]), text(&metadata["uid"]))
}

/// The replacements of a run's names and uids.
struct Names {
    by_name: BTreeMap<String, String>,
    /// Longest first, because names contain names.
    longest: Vec<(String, String)>,
    by_uid: BTreeMap<String, String>,
}

impl Names {
    fn of(objects: &[Value]) -> Self {
        let mut sorted: Vec<&Value> = objects.iter().collect();
        sorted.sort_by_key(|object| {
            let (kind, name, _) = identity(object);
            let order = ORDER.iter().position(|known| **known == kind).unwrap_or(ORDER.len());
            let created = object["metadata"]["creationTimestamp"]
                .as_str()
                .unwrap_or_default()
                .to_owned();
            // The first machine of a control plane may be as old as the second: only the first does not join.
            (order, kind, created, !initialises(objects, &name), name)
        });
        let mut by_name: BTreeMap<String, String> = BTreeMap::new();
        let mut counts: BTreeMap<(String, String), usize> = BTreeMap::new();
        for object in &sorted {
            let (kind, name, _) = identity(object);
            let Some((prefix, suffix)) = name.rsplit_once('-') else {
                continue;
            };
            if by_name.contains_key(&name) || !is_random(suffix) {
                continue;
            }
            let prefix = by_name.get(prefix).cloned().unwrap_or_else(|| prefix.to_owned());
            let count = counts.entry((kind.clone(), prefix.clone())).or_default();
            *count += 1;
            // A deleted MachineSet still counts.
            let revision = object["metadata"]["annotations"]["machinedeployment.clusters.x-k8s.io/revision"].as_str();
            let number = revision
                .filter(|_| kind == "MachineSet")
                .map_or_else(|| count.to_string(), str::to_owned);
            let role = format!("{prefix}-<{kind} {number}>");
            by_name.insert(name, role);
        }
        let by_uid = objects.iter().map(|object| {
            let (kind, name, uid) = identity(object);
            let role = by_name.get(&name).cloned().unwrap_or(name);
            (uid, format!("<uid of {kind} {role}>"))
        });
        let by_uid = by_uid.collect();
        let mut longest: Vec<(String, String)> = by_name.clone().into_iter().collect();
        longest.sort_by_key(|(name, _)| std::cmp::Reverse(name.len()));
        Self {
            by_name,
            longest,
            by_uid,
        }
    }

    fn text(&self, text: &str, rules: &Rules) -> String {
        let text = renamed(text, &self.longest);
        let uid = |found: &Captures<'_>| {
            let known = self.by_uid.get(&found[0]);
            known.map_or("<uid>", String::as_str).to_owned()
        };
        rules.uid.replace_all(&text, uid).into_owned()
    }
}

/// A text with names replaced, the longest first.
fn renamed(text: &str, names: &[(String, String)]) -> String {
    let mut text = text.to_owned();
    for (name, role) in names {
        if text.contains(name.as_str()) {
            text = text.replace(name.as_str(), role);
        }
    }
    text
}

fn is_random(suffix: &str) -> bool {
    suffix.len() == 5 && suffix.chars().all(|letter| RANDOM.contains(letter))
}

/// Whether the machine of this name has a KubeadmConfig without a join configuration.
fn initialises(objects: &[Value], name: &str) -> bool {
    objects.iter().any(|object| {
        object["kind"] == "KubeadmConfig"
            && object["metadata"]["name"] == name
            && object["spec"].get("joinConfiguration").is_none()
    })
}

/// Patterns of texts that are different each time.
struct Rules {
    uid: Regex,
    texts: Vec<(Regex, &'static str)>,
    pem: Regex,
    /// Contents that were replaced by their length when they were recorded.
    length: Regex,
    count: Regex,
    ordinal: Regex,
}

#[expect(clippy::unwrap_used, reason = "constant expressions, which the tests use")]
fn regex(text: &str) -> Regex {
    Regex::new(text).unwrap()
}

impl Rules {
    fn new() -> Self {
        let texts = [
            (r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)", "<time>"),
            (r"\b127\.0\.0\.1:\d{4,5}\b", "127.0.0.1:<port>"),
            (r"\b[0-9a-f]{64}\b", "<hash>"),
            (r"\b[a-z0-9]{6}\.[a-z0-9]{16}\b", "<token>"),
            (r"\b\d+-[bcdfghjklmnpqrstvwxz2456789]{5}\b", "<template hash>"),
            // Durations are shortened when played.
            (r#""startupDuration":"[0-9a-z.]+""#, r#""startupDuration":"<duration>""#),
            (r"in-memory://[a-z0-9-]+$", "in-memory://<machine>"),
        ];
        Self {
            uid: regex(r"\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b"),
            texts: texts.iter().map(|(pattern, with)| (regex(pattern), *with)).collect(),
            pem: regex(r"(?s)-----BEGIN ([A-Z ]+)-----.*?-----END [A-Z ]+-----"),
            length: regex(r"^<\d+ characters>$"),
            count: regex(r"^<\d+ (bytes: )?"),
            ordinal: regex(r"<([A-Za-z]+) \d+>"),
        }
    }

    fn text(&self, text: &str) -> String {
        let mut text = text.to_owned();
        for (pattern, with) in &self.texts {
            text = pattern.replace_all(&text, *with).into_owned();
        }
        text
    }

    /// The type of a Secret's value.
    fn content(&self, value: &str) -> String {
        if self.length.is_match(value) {
            return "<text>".to_owned();
        }
        if self.count.is_match(value) {
            return self.count.replace(value, "<").into_owned();
        }
        let Some(text) = decoded(value) else {
            return "<binary>".to_owned();
        };
        match self.pem.captures(&text) {
            Some(found) => format!("<PEM {}>", &found[1]),
            None => "<text>".to_owned(),
        }
    }
}

fn decoded(value: &str) -> Option<String> {
    STANDARD
        .decode(value)
        .ok()
        .and_then(|bytes| String::from_utf8(bytes).ok())
}

/// The compared parts of an object.
fn kept(object: &Value, rules: &Rules) -> Value {
    let mut kept = object.clone();
    if let Some(metadata) = kept.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.retain(|key, _| {
            matches!(
                key.as_str(),
                "labels" | "annotations" | "finalizers" | "ownerReferences"
            )
        });
    }
    if object["kind"] == "Secret" {
        secret(&mut kept, rules);
    }
    kept
}

/// Replaces values by their type, except for bootstrap data, which is compared.
fn secret(object: &mut Value, rules: &Rules) {
    let is_bootstrap = object["data"].get("format").is_some();
    let value = object["data"]["value"].as_str().unwrap_or_default().to_owned();
    if is_bootstrap && object.get("x-decoded").is_none() {
        let text = decoded(&value).unwrap_or_default();
        object["x-decoded"] = json!({"value": rules.pem.replace_all(&text, "-----BEGIN $1----- (left out)")});
    }
    if !is_bootstrap && let Some(object) = object.as_object_mut() {
        object.remove("x-decoded");
    }
    for value in object["data"].as_object_mut().into_iter().flat_map(Map::values_mut) {
        if let Some(text) = value.as_str() {
            *value = json!(rules.content(text));
        }
    }
}

fn flat(object: &Value, names: &Names, rules: &Rules) -> Flat {
    let mut kept = kept(object, rules);
    let text = |path: &str, text: &str| {
        let text = rules.text(&names.text(text, rules));
        if path.ends_with("message") {
            // Messages list objects in the order of their random names.
            return rules.ordinal.replace_all(&text, "<$1>").into_owned();
        }
        text
    };
    replace(&mut kept, "", &text);
    let mut flat = Flat::new();
    flatten("", &kept, &mut flat);
    for (path, who) in owners(object) {
        flat.insert(names.text(&path, rules), who);
    }
    flat
}

/// Replaces texts, ports and durations everywhere, and drops times.
fn replace(value: &mut Value, path: &str, text: &impl Fn(&str, &str) -> String) {
    match value {
        Value::Object(map) => {
            map.retain(|key, _| {
                !matches!(
                    key.as_str(),
                    "lastTransitionTime" | "observedGeneration" | "lastHeartbeatTime" | "lastProbeTime"
                )
            });
            for (key, below) in map.iter_mut() {
                match key.as_str() {
                    "startupDuration" => *below = json!("<duration>"),
                    "port" if path.ends_with("controlPlaneEndpoint") => *below = json!("<port>"),
                    id if id.ends_with("/cluster-id") || id.ends_with("/member-id") => *below = json!("<id>"),
                    _ => replace(below, &format!("{path}.{key}"), text),
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| replace(item, path, text)),
        Value::String(found) => *found = text(path, found),
        _ => {}
    }
}

fn drop_empty(value: &mut Value) {
    let is_empty = |value: &Value| match value {
        Value::Null => true,
        Value::Object(map) => map.is_empty(),
        Value::Array(items) => items.is_empty(),
        _ => false,
    };
    match value {
        Value::Object(map) => {
            map.values_mut().for_each(drop_empty);
            map.retain(|_, value| !is_empty(value));
        }
        Value::Array(items) => items.iter_mut().for_each(drop_empty),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn object(kind: &str, name: &str, uid: u8, rest: &Value) -> Value {
        let uid = format!("c533f088-c42a-4cd1-8188-e331634966{uid:02}");
        let mut object = json!({"kind": kind, "metadata": {"name": name, "uid": uid}});
        for (key, value) in rest.as_object().unwrap() {
            if let Some(metadata) = key.strip_prefix("metadata.") {
                object["metadata"][metadata] = value.clone();
            } else {
                object[key] = value.clone();
            }
        }
        object
    }

    /// The same cluster with other suffixes, uids and times normalises to the same result.
    #[test]
    fn names_are_replaced_by_roles() {
        let run = |kcp: &str, machines: [&str; 2], created: [&str; 2], uid: u8| {
            let kcp = format!("demo-{kcp}");
            let owner = json!([{"kind": "KubeadmControlPlane", "name": kcp, "uid": format!("c533f088-c42a-4cd1-8188-e331634966{uid:02}")}]);
            let mut objects = vec![object("KubeadmControlPlane", &kcp, uid, &json!({}))];
            for (index, (machine, created)) in machines.iter().zip(created).enumerate() {
                let name = format!("{kcp}-{machine}");
                let uid = uid + 1 + u8::try_from(index).unwrap();
                let spec = if index == 0 {
                    json!({})
                } else {
                    json!({"joinConfiguration": {}})
                };
                objects.push(object("KubeadmConfig", &name, uid, &json!({"spec": spec})));
                objects.push(object(
                    "Machine",
                    &name,
                    uid + 10,
                    &json!({
                        "metadata.ownerReferences": owner, "metadata.creationTimestamp": created, "metadata.resourceVersion": uid,
                        "status": {"conditions": [{"type": "A", "message": format!("* {name}: since {created}")}]},
                    }),
                ));
            }
            normalise(&objects)
        };
        let one = run(
            "pd65g",
            ["75vsq", "cg6dm"],
            ["2026-11-21T10:36:36Z", "2026-11-21T10:36:37Z"],
            10,
        );
        let other = run(
            "bbbbb",
            ["zzz22", "ccccc"],
            ["2026-11-21T11:00:00Z", "2026-11-21T11:00:00Z"],
            40,
        );
        assert_eq!(one, other);
        let machine = &one[&(
            "Machine".to_owned(),
            "demo-<KubeadmControlPlane 1>-<Machine 2>".to_owned(),
        )];
        assert_eq!(
            machine["status.conditions[A].message"],
            "\"* demo-<KubeadmControlPlane>-<Machine>: since <time>\""
        );
        let owner = "metadata.ownerReferences[KubeadmControlPlane demo-<KubeadmControlPlane 1>].uid";
        assert_eq!(
            machine[owner],
            "\"<uid of KubeadmControlPlane demo-<KubeadmControlPlane 1>>\""
        );
    }

    /// The first set may be deleted, or about to be.
    #[test]
    fn machine_sets_are_distinguished_by_revision() {
        let set = |name: &str, revision: &str, rest: &Value| {
            let mut set = object("MachineSet", name, 1, rest);
            set["metadata"]["annotations"] = json!({"machinedeployment.clusters.x-k8s.io/revision": revision});
            set
        };
        let old = set(
            "md-bbbbb",
            "1",
            &json!({"metadata.deletionTimestamp": "2026-11-21T10:36:36Z"}),
        );
        let new = set("md-ccccc", "2", &json!({}));
        let expect = normalise(std::slice::from_ref(&new));
        assert!(expect.contains_key(&("MachineSet".to_owned(), "md-<MachineSet 2>".to_owned())));
        assert_eq!(normalise(&[old, new]), expect);
    }

    #[test]
    fn values_that_change_are_replaced() {
        let rules = Rules::new();
        let check = |text: &str, expect: &str| assert_eq!(rules.text(text), expect);
        check(
            "apiServerEndpoint: 127.0.0.1:20000",
            "apiServerEndpoint: 127.0.0.1:<port>",
        );
        check("token: abcdef.0123456789abcdef", "token: <token>");
        check(
            "machine-template-hash=979104937-2mhp2,a=b",
            "machine-template-hash=<template hash>,a=b",
        );
        check("{\"startupDuration\":\"10s\"}", "{\"startupDuration\":\"<duration>\"}");
        check("v1.35.0 at 2026-11-21T10:36:36Z", "v1.35.0 at <time>");
    }

    #[test]
    fn secrets_show_kinds_of_content_and_bootstrap_data() {
        let check = |data: &Value, expect: &Value| {
            let mut object = json!({"kind": "Secret", "data": data});
            secret(&mut object, &Rules::new());
            assert_eq!(object["data"], expect["data"]);
            assert_eq!(object["x-decoded"], expect["x-decoded"]);
        };
        let pem = "-----BEGIN RSA PRIVATE KEY-----\nAAAA\n-----END RSA PRIVATE KEY-----\n";
        let script = format!("a: 1\n  {pem}\nb: 2\n");
        let (key, data) = (STANDARD.encode(pem), STANDARD.encode(script));
        check(
            &json!({"tls.key": key}),
            &json!({"data": {"tls.key": "<PEM RSA PRIVATE KEY>"}}),
        );
        check(
            &json!({"token-id": "<8 characters>"}),
            &json!({"data": {"token-id": "<text>"}}),
        );
        check(
            &json!({"tls.key": "<1679 bytes: PEM RSA PRIVATE KEY>"}),
            &json!({"data": {"tls.key": "<PEM RSA PRIVATE KEY>"}}),
        );
        check(
            &json!({"format": STANDARD.encode("cloud-config"), "value": data}),
            &json!({
                "data": {"format": "<text>", "value": "<PEM RSA PRIVATE KEY>"},
                "x-decoded": {"value": "a: 1\n  -----BEGIN RSA PRIVATE KEY----- (left out)\n\nb: 2\n"},
            }),
        );
    }

    #[test]
    fn shapes_leave_out_what_is_empty() {
        let pod = json!({"kind": "Pod", "metadata": {"name": "x", "labels": {"a": ""}}, "spec": {"containers": null, "n": {}}});
        let found: Vec<String> = shape(&pod, &[]).into_keys().collect();
        assert_eq!(found, ["kind", "metadata.labels.a"]);
        let names = [("node-1".to_owned(), "<node>".to_owned())];
        assert_eq!(shape(&json!({"nodeName": "node-1"}), &names)["nodeName"], "\"<node>\"");
    }
}
