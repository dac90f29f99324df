//! What the objects in the cache of a watch take, for servers whose objects may not take all the memory.

use std::collections::HashMap;

use windlass_api::codec::Stored;

use super::events::Name;
use crate::object::{ObjectKey, key_of};
use crate::transport::{Bounds, Stock, estimate};

/// What an object takes beside its fields, so that many small ones count, too.
const OBJECT: usize = 1 << 10;

/// The weights of objects by key.
#[derive(Debug, Default)]
pub(super) struct Weights {
    all: HashMap<ObjectKey, usize>,
    sum: usize,
    /// What a list holds beside these until it ends: earlier versions of its objects, and objects that cannot be decoded.
    beside: usize,
    stock: Option<Stock>,
}

impl Weights {
    /// Records an object of a watch. The error says that its server sends too many.
    pub(super) fn set(&mut self, object: &dyn Stored, bounds: Option<&Bounds>) -> Result<(), String> {
        self.record(object, bounds, false)
    }

    /// Records an object of a list, which keeps all its versions until it ends.
    pub(super) fn listed(&mut self, object: &dyn Stored, bounds: Option<&Bounds>) -> Result<(), String> {
        self.record(object, bounds, true)
    }

    fn record(&mut self, object: &dyn Stored, bounds: Option<&Bounds>, is_list: bool) -> Result<(), String> {
        let Some(bounds) = bounds else {
            return Ok(());
        };
        // Only the fields that are kept count.
        let kept = object.encode().map_err(|error| error.to_string())?;
        let weight = OBJECT + estimate(&kept);
        let old = self.all.insert(key_of(object.metadata()), weight).unwrap_or(0);
        self.sum = self.sum + weight - old;
        if is_list {
            self.beside += old;
        }
        self.count(bounds)
    }

    /// Records an object of a watch that cannot be decoded: its name is kept, and an earlier version.
    pub(super) fn undecodable(&mut self, name: &Name, bounds: Option<&Bounds>) -> Result<(), String> {
        let Some(bounds) = bounds else {
            return Ok(());
        };
        let weight = OBJECT + name.size();
        let old = self.all.get(&name.key).copied().unwrap_or(0);
        if weight > old {
            self.all.insert(name.key.clone(), weight);
            self.sum += weight - old;
        }
        self.count(bounds)
    }

    /// Records an object of a list that cannot be decoded, and whose name is kept.
    pub(super) fn undecodable_listed(&mut self, name: &Name, bounds: Option<&Bounds>) -> Result<(), String> {
        self.beside += OBJECT + name.size();
        self.undecodable(name, bounds)
    }

    /// Records that the list ended.
    pub(super) fn list_ended(&mut self) {
        self.beside = 0;
        self.gave_back();
    }

    /// Records that an object is gone.
    pub(super) fn remove(&mut self, key: &ObjectKey) {
        self.sum -= self.all.remove(key).unwrap_or(0);
        self.gave_back();
    }

    fn count(&mut self, bounds: &Bounds) -> Result<(), String> {
        let stock = self.stock.get_or_insert_with(|| bounds.stock());
        stock.set(self.sum + self.beside).map_err(|error| error.to_string())
    }

    /// Counts less. That the server has too much all the same is an error of the next object.
    fn gave_back(&mut self) {
        if let Some(stock) = &mut self.stock {
            let _ = stock.set(self.sum + self.beside);
        }
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::ConfigMap;
    use windlass_api::k8s::Node;

    use super::super::store::Store;
    use super::*;
    use crate::object::gvk_from;
    use crate::transport::{Held, Limits, Policy};

    fn object(name: &str, size: usize) -> ConfigMap {
        let mut object = ConfigMap::default();
        object.metadata.name = Some(name.to_owned());
        object.data = Some([("x".to_owned(), "x".repeat(size))].into());
        object
    }

    fn bounds() -> Bounds {
        let limits = Limits {
            cached: 20 * OBJECT,
            ..Limits::default()
        };
        let policy = Policy {
            limits,
            ..Policy::default()
        };
        Bounds::new(policy, Held::default())
    }

    #[test]
    fn objects_count_once_and_until_they_are_gone() {
        let bounds = bounds();
        let mut weights = Weights::default();
        for _ in 0..20 {
            weights.set(&object("a", 8 * OBJECT), Some(&bounds)).unwrap();
        }
        weights.set(&object("b", 7 * OBJECT), Some(&bounds)).unwrap();
        let (a, b) = (ObjectKey::new("", "a"), ObjectKey::new("", "b"));
        weights.remove(&a);
        weights.remove(&a);
        weights.set(&object("c", 8 * OBJECT), Some(&bounds)).unwrap();
        assert_eq!(bounds.refusal(), None);
        weights.set(&object("a", 8 * OBJECT), Some(&bounds)).unwrap_err();
        assert!(bounds.refusal().is_some());
        weights.remove(&a);
        weights.remove(&ObjectKey::new("", "c"));
        assert_eq!(weights.sum, weights.all[&b]);
        let trusted = weights.set(&object("d", 100 * OBJECT), None);
        assert_eq!(trusted, Ok(()));
    }

    #[test]
    fn all_versions_of_a_list_count_until_it_ends() {
        let bounds = bounds();
        let mut weights = Weights::default();
        weights.listed(&object("a", 4 * OBJECT), Some(&bounds)).unwrap();
        weights.listed(&object("a", 4 * OBJECT), Some(&bounds)).unwrap();
        weights.list_ended();
        assert_eq!(
            (weights.sum, weights.beside),
            (weights.all[&ObjectKey::new("", "a")], 0)
        );
        let listed = (0..4).all(|_| weights.listed(&object("a", 4 * OBJECT), Some(&bounds)).is_ok());
        assert!(!listed, "the same object without end");
        assert!(bounds.refusal().is_some());
    }

    #[test]
    fn names_of_objects_that_cannot_be_decoded_count() {
        let bounds = bounds();
        let mut weights = Weights::default();
        let name = |number: usize| Name {
            key: ObjectKey::new("", number.to_string()),
            uid: String::new(),
            version: None,
            cluster: None,
        };
        for _ in 0..100 {
            weights.undecodable(&name(1), Some(&bounds)).unwrap();
        }
        let all = (0..100).all(|number| weights.undecodable(&name(number), Some(&bounds)).is_ok());
        assert!(!all, "names without end");
    }

    #[test]
    fn all_watches_of_a_server_count_together() {
        let bounds = bounds();
        let (mut one, mut other) = (Weights::default(), Weights::default());
        one.set(&object("a", 15 * OBJECT), Some(&bounds)).unwrap();
        drop(one);
        other.set(&object("a", 15 * OBJECT), Some(&bounds)).unwrap();
        Weights::default()
            .set(&object("a", 5 * OBJECT), Some(&bounds))
            .unwrap_err();
    }

    /// A Node as a busy cluster has it: 50 images, and fields that no controller reads.
    fn large_node(number: usize) -> String {
        let images: Vec<serde_json::Value> = (0..50)
            .map(|image| serde_json::json!({"names": [format!("registry.example.com/team/image-{image}@sha256:{:064}", 0)], "sizeBytes": 1}))
            .collect();
        let conditions: Vec<serde_json::Value> = (0..8)
            .map(|n| serde_json::json!({"type": n.to_string(), "status": "True", "reason": "KubeletReady", "message": "ready"}))
            .collect();
        let fields: serde_json::Map<String, serde_json::Value> = (0..200)
            .map(|n| (format!("f:field-{n}"), serde_json::json!({})))
            .collect();
        let labels: serde_json::Map<String, serde_json::Value> = (0..30)
            .map(|n| (format!("label.example.com/{n}"), "value".into()))
            .collect();
        let node = serde_json::json!({
            "apiVersion": "v1", "kind": "Node",
            "metadata": {
                "name": format!("node-{number}"), "labels": labels, "annotations": {"other": "x".repeat(4000)},
                "managedFields": [{"manager": "kubelet", "operation": "Update", "fieldsV1": fields}],
            },
            "status": {"conditions": conditions, "images": images},
        });
        node.to_string()
    }

    #[test]
    fn five_thousand_large_nodes_are_within_the_limits() {
        let bounds = Bounds::new(Policy::default(), Held::default());
        let store = Store::of::<Node>(gvk_from("v1", "Node"));
        let (mut weights, mut sent) = (Weights::default(), 0);
        for number in 0..5000 {
            let text = large_node(number);
            sent += text.len();
            bounds.received(text.len()).unwrap();
            bounds.decodes("an event", estimate(text.as_bytes())).unwrap();
            let node = store.decode(text.as_bytes()).unwrap();
            weights.listed(&*node, Some(&bounds)).unwrap();
        }
        assert!(sent > 5000 * 15_000, "{sent}");
        assert_eq!(bounds.refusal(), None);
    }

    #[test]
    fn many_short_values_count_for_more_than_their_text() {
        let bounds = bounds();
        let mut object = object("a", 0);
        let short = (0..200).map(|number| (number.to_string(), String::new()));
        object.data = Some(short.collect());
        let text = serde_json::to_vec(&object).unwrap().len();
        let mut weights = Weights::default();
        weights.set(&object, Some(&bounds)).unwrap();
        assert!(weights.sum > OBJECT + 5 * text, "{} for {text} bytes", weights.sum);
    }
}
