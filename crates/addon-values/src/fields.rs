//! The known fields of objects, and their names in Go.
//!
//! The fields of a Cluster are known from the schema of its definition. A name that neither the schema nor the object has is
//! unknown, and the error suggests the closest known name. Control planes and infrastructure are only known to be Kubernetes
//! objects: fields that they lack count as unset.
//!
//! The keys of the data take precedence. Otherwise a name may be spelled as in Go: with a capital (`Spec`), with an acronym as
//! its first word in capitals (`CIDRBlocks`, `APIServerPort`, `UID`), and with metadata fields directly below the object
//! (`.Cluster.Name`, also `.Cluster.ObjectMeta.Name`).

use std::collections::BTreeMap;
use std::sync::LazyLock;

use serde_json::Value;
use windlass_api::core::Cluster;
use windlass_gotemplate::{Form, Knowledge, Member};

use crate::{CLUSTER, CONTROL_PLANE, INFRA_CLUSTER};

/// Nothing is known: any key may exist, in its own spelling.
const ANYTHING: Form = Form(0);
/// Neither a list nor an object.
const SCALAR: Form = Form(1);
/// Part of an object without a known schema.
const LOOSE: Form = Form(2);
/// An object without a known schema.
const LOOSE_OBJECT: Form = Form(3);
/// The data as a whole.
pub(crate) const DATA: Form = Form(4);

/// Words that Go writes in capitals.
const ACRONYMS: &[&str] = &[
    "api", "ca", "cidr", "cpu", "dns", "fqdn", "http", "https", "id", "ip", "json", "os", "tls", "ttl", "uid", "uri",
    "url", "vm", "yaml",
];

/// The fields of every object's metadata, with their types.
const METADATA: &[(&str, Kind)] = &[
    ("name", Kind::Scalar),
    ("generateName", Kind::Scalar),
    ("namespace", Kind::Scalar),
    ("uid", Kind::Scalar),
    ("resourceVersion", Kind::Scalar),
    ("generation", Kind::Scalar),
    ("creationTimestamp", Kind::Scalar),
    ("deletionTimestamp", Kind::Scalar),
    ("deletionGracePeriodSeconds", Kind::Scalar),
    ("labels", Kind::Anything),
    ("annotations", Kind::Anything),
    ("ownerReferences", Kind::Loose),
    ("finalizers", Kind::Loose),
    ("managedFields", Kind::Loose),
    ("selfLink", Kind::Scalar),
];

#[derive(Clone, Copy)]
enum Kind {
    Scalar,
    Anything,
    Loose,
}

/// A form with its parts.
#[derive(Debug)]
enum Shape {
    Anything,
    Scalar,
    Loose,
    /// A list, with the form of its elements.
    List(Form),
    /// An object with known fields; `other` is the form of additional ones, if they are allowed.
    Object {
        fields: BTreeMap<String, Form>,
        other: Option<Form>,
    },
}

/// All known forms.
#[derive(Debug)]
pub(crate) struct Known {
    shapes: Vec<Shape>,
    /// Objects that have metadata.
    with_metadata: Vec<Form>,
}

/// The known forms, computed once.
pub(crate) fn known() -> &'static Known {
    static KNOWN: LazyLock<Known> = LazyLock::new(Known::new);
    &KNOWN
}

impl Known {
    fn new() -> Self {
        let mut known = Self {
            shapes: vec![
                Shape::Anything,
                Shape::Scalar,
                Shape::Loose,
                Shape::Loose,
                Shape::Anything,
            ],
            with_metadata: vec![LOOSE_OBJECT],
        };
        let metadata = METADATA.iter().map(|(name, kind)| {
            let form = match kind {
                Kind::Scalar => SCALAR,
                Kind::Anything => ANYTHING,
                Kind::Loose => LOOSE,
            };
            ((*name).to_owned(), form)
        });
        let metadata = Shape::Object {
            fields: metadata.collect(),
            other: None,
        };
        let metadata = known.add(metadata);
        let cluster = known.read(&windlass_api::crd::open_api_schema::<Cluster>());
        if let Some(Shape::Object { fields, .. }) = known.shape_mut(cluster) {
            fields.insert("metadata".to_owned(), metadata);
        }
        known.with_metadata.push(cluster);
        let data = [
            (CLUSTER, cluster),
            (CONTROL_PLANE, LOOSE_OBJECT),
            (INFRA_CLUSTER, LOOSE_OBJECT),
        ];
        let data = Shape::Object {
            fields: data.into_iter().map(|(name, form)| (name.to_owned(), form)).collect(),
            other: None,
        };
        if let Some(shape) = known.shape_mut(DATA) {
            *shape = data;
        }
        known
    }

    fn add(&mut self, shape: Shape) -> Form {
        self.shapes.push(shape);
        Form(u32::try_from(self.shapes.len() - 1).unwrap_or(ANYTHING.0))
    }

    fn shape(&self, form: Form) -> &Shape {
        let at = usize::try_from(form.0).unwrap_or_default();
        self.shapes.get(at).unwrap_or(&Shape::Anything)
    }

    fn shape_mut(&mut self, form: Form) -> Option<&mut Shape> {
        self.shapes.get_mut(usize::try_from(form.0).ok()?)
    }

    /// The form of a schema.
    fn read(&mut self, schema: &Value) -> Form {
        if schema["x-kubernetes-preserve-unknown-fields"] == Value::Bool(true) {
            return ANYTHING;
        }
        if let Some(properties) = schema["properties"].as_object() {
            let fields = properties
                .iter()
                .map(|(key, inner)| (key.clone(), self.read(inner)))
                .collect();
            return self.add(Shape::Object { fields, other: None });
        }
        if schema["additionalProperties"].is_object() {
            let other = Some(self.read(&schema["additionalProperties"]));
            let fields = BTreeMap::new();
            return self.add(Shape::Object { fields, other });
        }
        match schema["type"].as_str() {
            Some("array") => {
                let element = self.read(&schema["items"]);
                self.add(Shape::List(element))
            }
            Some("object") | None => ANYTHING,
            Some(_) => SCALAR,
        }
    }

    /// A metadata field that Go shows on the object itself.
    fn promoted(&self, form: Form, name: &str) -> Option<Member> {
        if !self.with_metadata.contains(&form) {
            return None;
        }
        if name == "TypeMeta" {
            return Some(Member::Keys(Vec::new(), form));
        }
        let metadata = self.child(form, "metadata");
        if name == "ObjectMeta" {
            return Some(Member::Keys(vec!["metadata".to_owned()], metadata));
        }
        let (key, _) = METADATA.iter().find(|(key, _)| is_go_name(name, key))?;
        let keys = vec!["metadata".to_owned(), (*key).to_owned()];
        Some(Member::Keys(keys, self.child(metadata, key)))
    }
}

impl Knowledge for Known {
    fn member(&self, form: Form, name: &str, has: &dyn Fn(&str) -> bool) -> Member {
        let one = |key: &str| Member::Keys(vec![key.to_owned()], self.child(form, key));
        if has(name) {
            return one(name);
        }
        match self.shape(form) {
            Shape::Anything => one(name),
            Shape::Scalar | Shape::List(_) => Member::Unknown(None),
            Shape::Loose => self
                .promoted(form, name)
                .unwrap_or_else(|| one(json_spellings(name).iter().find(|key| has(key)).map_or(name, |key| key))),
            Shape::Object { fields, other } => {
                if fields.contains_key(name) {
                    return one(name);
                }
                if let Some(key) = fields.keys().find(|key| is_go_name(name, key)) {
                    return one(key);
                }
                self.promoted(form, name).unwrap_or_else(|| match other {
                    Some(_) => one(name),
                    None => Member::Unknown(closest(name, fields.keys(), self.with_metadata.contains(&form))),
                })
            }
        }
    }

    fn child(&self, form: Form, key: &str) -> Form {
        match self.shape(form) {
            Shape::Anything | Shape::Scalar | Shape::List(_) => ANYTHING,
            Shape::Loose if form == LOOSE_OBJECT && key == "metadata" => LOOSE,
            Shape::Loose if matches!(key, "labels" | "annotations") => ANYTHING,
            Shape::Loose => LOOSE,
            Shape::Object { fields, other } => fields.get(key).copied().or(*other).unwrap_or(ANYTHING),
        }
    }

    fn element(&self, form: Form) -> Form {
        match self.shape(form) {
            Shape::List(element) => *element,
            Shape::Loose => LOOSE,
            _ => ANYTHING,
        }
    }
}

/// Whether `name` is the Go spelling of the field with this key.
fn is_go_name(name: &str, key: &str) -> bool {
    let (first, rest) = first_word(key);
    let acronym = ACRONYMS.contains(&first).then(|| first.to_ascii_uppercase() + rest);
    name == capitalised(key) || acronym.is_some_and(|acronym| name == acronym)
}

/// The keys that a Go spelling may mean, if no schema has them.
fn json_spellings(name: &str) -> Vec<String> {
    if !name.starts_with(|c: char| c.is_ascii_uppercase()) {
        return Vec::new();
    }
    let mut keys = Vec::new();
    let plain = name[..1].to_ascii_lowercase() + &name[1..];
    keys.push(plain);
    for word in ACRONYMS {
        if let Some(rest) = name.strip_prefix(&word.to_ascii_uppercase()) {
            keys.push(format!("{word}{rest}"));
        }
    }
    keys
}

fn capitalised(key: &str) -> String {
    let mut characters = key.chars();
    characters.next().map_or_else(String::new, |first| {
        first.to_ascii_uppercase().to_string() + characters.as_str()
    })
}

/// The leading lower-case letters of a key, and the rest.
fn first_word(key: &str) -> (&str, &str) {
    key.split_at(key.find(|c: char| !c.is_ascii_lowercase()).unwrap_or(key.len()))
}

/// The closest known name.
fn closest<'a>(name: &str, keys: impl Iterator<Item = &'a String>, has_metadata: bool) -> Option<String> {
    let lower = name.to_lowercase();
    let allowed = (name.chars().count() / 3).max(1);
    let of_metadata = METADATA.iter().filter(|_| has_metadata);
    let candidates = keys
        .map(|key| (key.clone(), key.to_lowercase()))
        .chain(of_metadata.map(|(key, _)| (format!("metadata.{key}"), key.to_lowercase())));
    candidates
        .map(|(shown, key)| (windlass_meta::distance(&lower, &key), shown))
        .filter(|(distance, _)| *distance <= allowed)
        .min()
        .map(|(_, shown)| shown)
}
