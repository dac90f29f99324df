//! All objects of the demo in their current state, and their tree.

use std::collections::BTreeMap;

use super::item::{Id, Item};

/// Kinds that hang below a Cluster, in the order in which they are shown.
const ORDER: [&str; 5] = [
    "DevCluster",
    "KubeadmControlPlane",
    "MachineDeployment",
    "MachineSet",
    "Machine",
];

/// What happened to an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Update {
    /// An added or changed object.
    There(Box<Item>),
    /// A deleted object.
    Gone(Id),
}

/// Objects by name.
#[derive(Clone, Debug, Default)]
pub(crate) struct World(BTreeMap<Id, Item>);

/// An object in the tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Node<'a> {
    /// The lines in front of its name.
    pub(crate) prefix: String,
    /// The object.
    pub(crate) item: &'a Item,
}

impl World {
    /// Applies a change; returns the object before it.
    pub(crate) fn update(&mut self, update: Update) -> Option<Item> {
        match update {
            Update::There(item) => self.0.insert(item.id.clone(), *item),
            Update::Gone(id) => self.0.remove(&id),
        }
    }

    /// One object.
    pub(crate) fn get(&self, id: &Id) -> Option<&Item> {
        self.0.get(id)
    }

    /// All objects of a cluster.
    pub(crate) fn of<'a>(&'a self, cluster: &'a str) -> impl Iterator<Item = &'a Item> {
        self.0.values().filter(move |item| item.cluster == cluster)
    }

    /// All Clusters, by name.
    pub(crate) fn clusters(&self) -> impl Iterator<Item = &Item> {
        self.0.values().filter(|item| item.id.kind == "Cluster")
    }

    /// All objects of one kind.
    pub(crate) fn kind<'a>(&'a self, kind: &'a str) -> impl Iterator<Item = &'a Item> {
        self.0.values().filter(move |item| item.id.kind == kind)
    }

    /// Whether anything is left.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// All objects.
    pub(crate) fn all(&self) -> impl Iterator<Item = &Item> {
        self.0.values()
    }

    /// A Cluster and all objects below it. An object without an owner is directly below the Cluster.
    pub(crate) fn tree(&self, cluster: &str) -> Vec<Node<'_>> {
        let items: Vec<&Item> = self.0.values().filter(|item| item.cluster == cluster).collect();
        let mut nodes = Vec::new();
        let root = items.iter().find(|item| item.id.kind == "Cluster");
        let mut below: BTreeMap<&str, Vec<&Item>> = BTreeMap::new();
        for item in &items {
            if rank(item).is_none() {
                continue;
            }
            // The nearest owner that is shown; the Cluster owns most objects as well.
            let owner = items
                .iter()
                .filter(|owner| item.owners.contains(&owner.uid) && !owner.uid.is_empty())
                .max_by_key(|owner| rank(owner));
            let parent = match owner {
                Some(owner) if owner.id.kind != "Cluster" && owner.id != item.id => owner.uid.as_str(),
                _ => "",
            };
            below.entry(parent).or_default().push(item);
        }
        for items in below.values_mut() {
            items.sort_by_key(|item| (rank(item), &item.id));
        }
        if let Some(root) = root {
            nodes.push(Node {
                prefix: String::new(),
                item: root,
            });
        }
        hang(&below, "", "", &mut nodes);
        nodes
    }
}

/// The position of a kind below a Cluster.
fn rank(item: &Item) -> Option<usize> {
    ORDER.iter().position(|kind| *kind == item.id.kind)
}

fn hang<'a>(below: &BTreeMap<&str, Vec<&'a Item>>, parent: &str, prefix: &str, nodes: &mut Vec<Node<'a>>) {
    let children = below.get(parent).map(Vec::as_slice).unwrap_or_default();
    for (index, item) in children.iter().enumerate() {
        let is_last = index + 1 == children.len();
        nodes.push(Node {
            prefix: format!("{prefix}{}", if is_last { "└─" } else { "├─" }),
            item,
        });
        // An object that owns itself would cause endless recursion.
        if item.uid != parent && !item.uid.is_empty() {
            let deeper = format!("{prefix}{}", if is_last { "  " } else { "│ " });
            hang(below, &item.uid, &deeper, nodes);
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use serde_json::{Value, json};

    pub(crate) fn item(kind: &str, name: &str, uid: &str, owners: &[&str], more: &Value) -> Item {
        let owners: Vec<Value> = owners.iter().map(|uid| json!({"uid": uid})).collect();
        let mut object = json!({
            "metadata": {
                "name": name, "namespace": "default", "uid": uid, "ownerReferences": owners,
                "labels": {"cluster.x-k8s.io/cluster-name": "c"},
            },
        });
        for (key, value) in more.as_object().into_iter().flatten() {
            object[key] = value.clone();
        }
        Item::read(kind, &object)
    }

    pub(crate) fn world(items: Vec<Item>) -> World {
        let mut world = World::default();
        for item in items {
            world.update(Update::There(Box::new(item)));
        }
        world
    }

    #[test]
    fn objects_hang_below_their_owners() {
        let none = json!({});
        let world = world(vec![
            item("Machine", "cp-1", "m1", &["k"], &none),
            item("Machine", "w-1", "m2", &["s"], &none),
            item("Machine", "w-2", "m3", &["s", "c"], &none),
            item("MachineSet", "s", "s", &["d", "c"], &none),
            item("MachineDeployment", "d", "d", &["c"], &none),
            item("KubeadmControlPlane", "k", "k", &["c"], &none),
            item("DevCluster", "i", "i", &["c"], &none),
            item("Cluster", "c", "c", &[], &none),
            item("Machine", "lost", "m4", &["gone"], &none),
            item("Secret", "hidden", "x", &["c"], &none),
        ]);
        let lines: Vec<String> = world
            .tree("c")
            .iter()
            .map(|node| format!("{}{}", node.prefix, node.item.id))
            .collect();
        assert_eq!(
            lines,
            [
                "Cluster/c",
                "├─DevCluster/i",
                "├─KubeadmControlPlane/k",
                "│ └─Machine/cp-1",
                "├─MachineDeployment/d",
                "│ └─MachineSet/s",
                "│   ├─Machine/w-1",
                "│   └─Machine/w-2",
                "└─Machine/lost",
            ]
        );
    }

    #[test]
    fn what_is_gone_is_forgotten() {
        let cluster = item("Cluster", "c", "c", &[], &json!({}));
        let mut world = world(vec![cluster.clone()]);
        assert_eq!(world.update(Update::Gone(cluster.id.clone())), Some(cluster));
        assert!(world.is_empty());
    }
}
