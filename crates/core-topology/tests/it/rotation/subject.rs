//! The templates that change, their random contents, and what the webhooks make of them.

use rand::rngs::SmallRng;
use rand::{RngExt as _, SeedableRng as _};
use serde_json::{Map, Value, json};

/// A kind of template, and its place in the topology.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Subject {
    pub(super) kind: &'static str,
    /// The template of the class.
    pub(super) template: &'static str,
    /// Where a MachineDeployment names its copy.
    pub(super) reference: &'static str,
}

pub(super) const INFRASTRUCTURE: Subject = Subject {
    kind: "VSphereMachineTemplate",
    template: "windows-vsphere-template",
    reference: "/spec/template/spec/infrastructureRef/name",
};

pub(super) const BOOTSTRAP: Subject = Subject {
    kind: "KubeadmConfigTemplate",
    template: "existing-boot-ref-windows",
    reference: "/spec/template/spec/bootstrap/configRef/name",
};

/// What the webhooks of a run do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Habits {
    /// Empty values are dropped, as a webhook in Go does that decodes and encodes an object.
    pub(super) drops: bool,
    /// Missing fields get values.
    pub(super) adds: bool,
    /// Values get another form.
    pub(super) rewrites: bool,
    /// Lists are sorted and lose duplicates.
    pub(super) sorts: bool,
    /// Templates of classes go through the webhooks, too.
    pub(super) everywhere: bool,
}

impl Habits {
    pub(super) fn any(random: &mut SmallRng) -> Self {
        Self {
            drops: random.random(),
            adds: random.random(),
            rewrites: random.random(),
            sorts: random.random(),
            everywhere: random.random(),
        }
    }

    /// What the webhooks make of `spec.template.spec`. Twice is the same as once.
    pub(super) fn make(self, kind: &str, spec: &Value) -> Value {
        let mut spec = spec.clone();
        if self.rewrites {
            rewrite(kind, &mut spec);
        }
        if self.sorts {
            sort(kind, &mut spec);
        }
        if self.drops {
            spec = without_empty(spec);
        }
        if self.adds {
            add(kind, &mut spec);
        }
        spec
    }
}

fn rewrite(kind: &str, spec: &mut Value) {
    if kind == INFRASTRUCTURE.kind {
        if let Some(template) = spec["template"].as_str() {
            spec["template"] = template.trim().to_lowercase().into();
        }
    } else {
        for file in spec["files"].as_array_mut().into_iter().flatten() {
            if let Some(path) = file["path"].as_str() {
                file["path"] = path.replace("//", "/").into();
            }
        }
    }
    tidy(spec);
}

/// Indexing has left nulls.
fn tidy(spec: &mut Value) {
    if let Some(spec) = spec.as_object_mut() {
        spec.retain(|_, value| !value.is_null());
    }
}

fn sort(kind: &str, spec: &mut Value) {
    let field = if kind == INFRASTRUCTURE.kind { "tags" } else { "mounts" };
    if let Some(list) = spec.get_mut(field).and_then(Value::as_array_mut) {
        list.sort_by_key(Value::to_string);
        list.dedup();
    }
}

fn add(kind: &str, spec: &mut Value) {
    let Some(fields) = spec.as_object_mut() else { return };
    if kind == INFRASTRUCTURE.kind {
        fields.entry("os").or_insert_with(|| json!("Linux"));
        let disks = fields.get_mut("disks").and_then(Value::as_array_mut);
        for disk in disks.into_iter().flatten().filter_map(Value::as_object_mut) {
            disk.entry("format").or_insert_with(|| json!("thin"));
        }
        return;
    }
    let commands = fields.entry("postKubeadmCommands").or_insert_with(|| json!([]));
    if let Some(commands) = commands.as_array_mut()
        && commands.last() != Some(&json!("sync"))
    {
        commands.push(json!("sync"));
    }
}

fn without_empty(value: Value) -> Value {
    let is_empty = |value: &Value| match value {
        Value::Null => true,
        Value::Bool(it) => !it,
        Value::Number(it) => it.as_f64() == Some(0.0),
        Value::String(it) => it.is_empty(),
        Value::Array(it) => it.is_empty(),
        Value::Object(it) => it.is_empty(),
    };
    match value {
        Value::Object(fields) => {
            let kept = fields.into_iter().map(|(key, value)| (key, without_empty(value)));
            Value::Object(kept.filter(|(_, value)| !is_empty(value)).collect())
        }
        Value::Array(items) => items.into_iter().map(without_empty).collect(),
        other => other,
    }
}

fn one<'a>(random: &mut SmallRng, of: &[&'a str]) -> &'a str {
    of[random.random_range(0..of.len())]
}

fn some(random: &mut SmallRng, of: &[&str]) -> Vec<String> {
    let count = random.random_range(0..4);
    (0..count).map(|_| one(random, of).to_owned()).collect()
}

/// Different names, as a list with keys and a set need.
fn distinct(random: &mut SmallRng, of: &[&str]) -> Vec<String> {
    let chosen = of.iter().filter(|_| random.random());
    chosen.map(|one| (*one).to_owned()).collect()
}

impl Subject {
    fn fields(self) -> &'static [&'static str] {
        if self == INFRASTRUCTURE {
            &[
                "template", "os", "numCPUs", "tags", "zones", "disks", "extra", "network",
            ]
        } else {
            &[
                "preKubeadmCommands",
                "postKubeadmCommands",
                "files",
                "mounts",
                "verbosity",
                "useExperimentalRetryJoin",
            ]
        }
    }

    /// A value of a field, or none.
    fn value(self, field: &str, random: &mut SmallRng) -> Option<Value> {
        let found = match field {
            "template" => json!(one(random, &["windows", "Windows", " windows ", "linux", ""])),
            "os" => json!(one(random, &["Linux", "Windows", ""])),
            "numCPUs" | "verbosity" => json!(random.random_range(0..3)),
            "tags" => json!(some(random, &["a", "b", "c", ""])),
            "zones" => json!(distinct(random, &["x", "y", "z"])),
            "disks" => {
                let names = distinct(random, &["root", "data", "log"]);
                let disk = |name| {
                    let mut disk = json!({"name": name, "sizeGiB": random.random_range(0..3)});
                    if random.random() {
                        disk["format"] = json!(one(random, &["thin", "thick"]));
                    }
                    disk
                };
                names.into_iter().map(disk).collect()
            }
            "extra" => {
                let keys = distinct(random, &["k", "l", "m"]);
                let pairs = keys.into_iter().map(|key| (key, one(random, &["1", "2", ""]).into()));
                let pairs = pairs.collect::<Map<_, _>>();
                // kube-apiserver makes null of a map whose last entries an apply takes away, and refuses that.
                if pairs.is_empty() {
                    return None;
                }
                Value::Object(pairs)
            }
            "network" => {
                let names = some(random, &["prod", "test"]);
                let device = |name| json!({"networkName": name, "dhcp4": random.random::<bool>()});
                json!({"devices": names.into_iter().map(device).collect::<Vec<_>>()})
            }
            "preKubeadmCommands" => json!(some(random, &["one", "two", "three"])),
            "postKubeadmCommands" => json!(some(random, &["four", "sync"])),
            "files" => {
                let paths = some(random, &["/etc/a", "/etc//a", "/etc/b"]);
                let file = |path| {
                    let mut file = json!({"path": path, "content": one(random, &["x", "y"])});
                    if random.random() {
                        file["permissions"] = json!("0640");
                    }
                    file
                };
                paths.into_iter().map(file).collect()
            }
            "mounts" => some(random, &["/a", "/b"])
                .into_iter()
                .map(|mount| json!([mount, "/mnt"]))
                .collect(),
            _ => return None,
        };
        let is_empty_list = found.as_array().is_some_and(Vec::is_empty);
        // Its schema takes no empty lists.
        (!(self == BOOTSTRAP && is_empty_list)).then_some(found)
    }

    /// A change of `spec.template.spec` of a class's template: what it is, and the result.
    pub(super) fn change(self, spec: &Value, habits: Habits, random: &mut SmallRng) -> (String, Value) {
        let mut next = spec.as_object().cloned().unwrap_or_default();
        let fields = self.fields();
        let field = fields[random.random_range(0..fields.len())];
        let list = next.get(field).and_then(Value::as_array).cloned().unwrap_or_default();
        let what = match random.random_range(0..7) {
            0 => "nothing".to_owned(),
            1 => {
                next.remove(field);
                format!("removal of {field}")
            }
            2 if list.len() > 1 => {
                next.insert(field.to_owned(), list[..list.len() - 1].into());
                format!("shorter {field}")
            }
            3 if !list.is_empty() => {
                let mut fewer = list.clone();
                let changed = fewer[0].as_object_mut().and_then(|item| {
                    item.remove("permissions")
                        .or_else(|| item.remove("format"))
                        .or_else(|| item.remove("sizeGiB"))
                });
                if changed.is_none() && self == BOOTSTRAP {
                    fewer.push(list[0].clone());
                }
                next.insert(field.to_owned(), fewer.into());
                format!("item of {field}")
            }
            4 => {
                next = habits.make(self.kind, spec).as_object().cloned().unwrap_or_default();
                "what the webhooks make of it".to_owned()
            }
            5 => {
                let mut other = SmallRng::seed_from_u64(random.random());
                for field in fields {
                    match self.value(field, &mut other) {
                        Some(value) => next.insert((*field).to_owned(), value),
                        None => next.remove(*field),
                    };
                }
                "everything".to_owned()
            }
            _ => {
                match self.value(field, random) {
                    Some(value) => next.insert(field.to_owned(), value),
                    None => next.remove(field),
                };
                format!("another {field}")
            }
        };
        (what, next.into())
    }
}
