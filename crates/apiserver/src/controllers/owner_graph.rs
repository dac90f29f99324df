//! The graph of owner references, as of the garbage collector. Pure: changes come in, actions go out.

mod owner;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use windlass_store::{Event, Key, Record};

use self::owner::{Called, Owner};

use crate::verbs::delete::{FOREGROUND, ORPHAN};

type Uid = Arc<str>;

/// An object.
#[derive(Debug)]
struct Node {
    key: Key,
    called: Called,
    owners: Vec<Owner>,
    /// The owners that were seen to be deleted.
    lost: BTreeSet<Uid>,
    deleting: bool,
    foreground: bool,
    orphan: bool,
}

/// An action.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Action {
    /// Delete an object whose owners are gone.
    Delete {
        key: Key,
        uid: Uid,
        foreground: bool,
        /// Before the deletion, no longer block the owners: they wait for the object, and it will wait for an object that waits
        /// for them.
        unblock: bool,
        owners: Vec<Uid>,
        /// Owners that were never seen: their kind may not be served here.
        unseen: Vec<Uid>,
    },
    /// Remove owners from an object that are deleted, or that orphan it.
    Disown {
        key: Key,
        uid: Uid,
        owners: Vec<Uid>,
        /// Owners that were never seen: their kind may not be served here.
        unseen: Vec<Uid>,
    },
    /// Remove the finalizer of an object whose dependents are gone.
    Release {
        key: Key,
        uid: Uid,
        finalizer: &'static str,
    },
}

/// A function from storage name to kind.
type KindOf = dyn Fn(&str) -> Option<String> + Send;

/// Objects by uid, and the references between them.
pub(crate) struct Graph {
    /// Returns the kind of a storage name.
    kind: Box<KindOf>,
    nodes: HashMap<Uid, Node>,
    dependents: HashMap<Uid, BTreeSet<Uid>>,
    dirty: BTreeSet<Uid>,
}

impl Graph {
    /// An empty graph. `kind` returns the kind of a storage name.
    pub(crate) fn new(kind: impl Fn(&str) -> Option<String> + Send + 'static) -> Self {
        Self {
            kind: Box::new(kind),
            nodes: HashMap::new(),
            dependents: HashMap::new(),
            dirty: BTreeSet::new(),
        }
    }

    /// Applies a change.
    pub(crate) fn observe(&mut self, event: &Event) {
        let record = &event.record;
        if event.deleted {
            self.remove(&Uid::from(record.header.uid.as_ref()));
        } else {
            if let Some(previous) = &event.previous
                && previous.header.uid != record.header.uid
            {
                self.remove(&Uid::from(previous.header.uid.as_ref()));
            }
            self.put(record);
        }
    }

    /// Adds or updates an object.
    pub(crate) fn put(&mut self, record: &Record) {
        let header = &record.header;
        let uid = Uid::from(header.uid.as_ref());
        let has = |name: &str| header.finalizers.iter().any(|f| f.as_ref() == name);
        let mut old = self.nodes.remove(&uid);
        let owners = owner::owners(record, old.as_ref().map_or(&[], |o| &o.owners));
        let called = old
            .as_ref()
            .map_or_else(|| owner::called(&record.key, &self.kind), |o| o.called);
        let mut lost = old.as_mut().map(|o| std::mem::take(&mut o.lost)).unwrap_or_default();
        // Of several references to one owner, the first one counts.
        let mut blocking: HashMap<Uid, bool> = HashMap::with_capacity(owners.len());
        for owner in &owners {
            blocking.entry(Arc::clone(&owner.uid)).or_insert(owner.blocks);
        }
        lost.retain(|gone| blocking.contains_key(gone));
        let node = Node {
            key: record.key.clone(),
            called,
            owners,
            lost,
            deleting: header.deleting,
            foreground: header.deleting && has(FOREGROUND),
            orphan: header.deleting && has(ORPHAN),
        };
        for owner in old.iter().flat_map(|o| &o.owners) {
            match blocking.get(&owner.uid) {
                None => self.unlink(&owner.uid, &uid),
                // The owner need not wait for it any longer.
                Some(false) if owner.blocks => {
                    self.dirty.insert(Arc::clone(&owner.uid));
                }
                Some(_) => {}
            }
        }
        for owner in &node.owners {
            self.dependents
                .entry(Arc::clone(&owner.uid))
                .or_default()
                .insert(Arc::clone(&uid));
        }
        let was_waiting = old.as_ref().is_some_and(|o| o.foreground || o.orphan);
        if (node.foreground || node.orphan) && !was_waiting {
            self.dirty
                .extend(self.dependents.get(&uid).into_iter().flatten().cloned());
        }
        if !node.owners.is_empty() || node.foreground || node.orphan {
            self.dirty.insert(Arc::clone(&uid));
        }
        self.nodes.insert(uid, node);
    }

    fn unlink(&mut self, owner: &Uid, dependent: &Uid) {
        if let Some(set) = self.dependents.get_mut(owner) {
            set.remove(dependent);
            if set.is_empty() {
                self.dependents.remove(owner);
            }
        }
        self.dirty.insert(Arc::clone(owner));
    }

    fn remove(&mut self, uid: &Uid) {
        let Some(node) = self.nodes.remove(uid) else {
            return;
        };
        for owner in &node.owners {
            self.unlink(&owner.uid, uid);
        }
        for dependent in self.dependents.get(uid).into_iter().flatten() {
            if let Some(other) = self.nodes.get_mut(dependent)
                && reachable(&node, other)
            {
                other.lost.insert(Arc::clone(uid));
            }
            self.dirty.insert(Arc::clone(dependent));
        }
    }

    /// Schedules another check of an object.
    pub(crate) fn again(&mut self, action: &Action) {
        let (Action::Delete { uid, .. } | Action::Disown { uid, .. } | Action::Release { uid, .. }) = action;
        self.dirty.insert(Arc::clone(uid));
    }

    /// The actions that follow from the changes since the last call.
    pub(crate) fn decide(&mut self) -> Vec<Action> {
        let dirty = std::mem::take(&mut self.dirty);
        let mut disown: BTreeMap<Uid, Vec<Uid>> = BTreeMap::new();
        let mut out = Vec::new();
        for uid in dirty {
            let Some(node) = self.nodes.get(&uid) else {
                continue;
            };
            if node.orphan {
                self.orphan(&uid, node, &mut disown, &mut out);
            } else if node.foreground {
                self.foreground(&uid, node, &mut out);
            }
            if !node.deleting {
                out.extend(self.as_dependent(&uid, node));
            }
        }
        for (uid, owners) in disown {
            if let Some(node) = self.nodes.get(&uid) {
                out.push(Action::Disown {
                    key: node.key.clone(),
                    uid,
                    owners,
                    unseen: Vec::new(),
                });
            }
        }
        out
    }

    fn orphan(&self, uid: &Uid, node: &Node, disown: &mut BTreeMap<Uid, Vec<Uid>>, out: &mut Vec<Action>) {
        match self.dependents.get(uid) {
            Some(dependents) => {
                for dependent in dependents {
                    disown.entry(Arc::clone(dependent)).or_default().push(Arc::clone(uid));
                }
            }
            None => out.push(Action::Release {
                key: node.key.clone(),
                uid: Arc::clone(uid),
                finalizer: ORPHAN,
            }),
        }
    }

    fn foreground(&self, uid: &Uid, node: &Node, out: &mut Vec<Action>) {
        let blocked = self.dependents.get(uid).into_iter().flatten().any(|d| {
            self.nodes
                .get(d)
                .is_some_and(|n| n.owners.iter().any(|o| o.blocks && o.uid == *uid && o.is(node, n)))
        });
        if !blocked {
            out.push(Action::Release {
                key: node.key.clone(),
                uid: Arc::clone(uid),
                finalizer: FOREGROUND,
            });
        }
    }

    /// The action on an object because of its owners.
    fn as_dependent(&self, uid: &Uid, node: &Node) -> Option<Action> {
        let (mut solid, mut owners, mut unseen, mut waits) = (false, Vec::new(), Vec::new(), false);
        for owner in &node.owners {
            match self.nodes.get(&owner.uid) {
                // A namespaced object cannot own a cluster-scoped one: such a reference has no effect.
                Some(o) if !reachable(o, node) && node.key.namespace().is_empty() => return None,
                Some(o) if owner.is(o, node) => {
                    if o.foreground {
                        waits = true;
                        owners.push(Arc::clone(&owner.uid));
                    } else if o.orphan {
                        // Its owner is about to orphan it.
                        return None;
                    } else {
                        solid = true;
                    }
                }
                _ => {
                    owners.push(Arc::clone(&owner.uid));
                    if !node.lost.contains(&owner.uid) {
                        unseen.push(Arc::clone(&owner.uid));
                    }
                }
            }
        }
        if owners.is_empty() {
            return None;
        }
        let (key, uid_) = (node.key.clone(), Arc::clone(uid));
        if solid {
            return Some(Action::Disown {
                key,
                uid: uid_,
                owners,
                unseen,
            });
        }
        let dependents = self.dependents.get(uid).filter(|_| waits);
        let waited_for = |d: &Uid| self.nodes.get(d).is_some_and(|n| n.foreground);
        Some(Action::Delete {
            key,
            uid: uid_,
            foreground: dependents.is_some(),
            unblock: node.owners.iter().any(|o| o.blocks) && dependents.into_iter().flatten().any(waited_for),
            owners,
            unseen,
        })
    }
}

impl Owner {
    /// Whether a dependent's reference matches the object with its uid.
    fn is(&self, owner: &Node, dependent: &Node) -> bool {
        reachable(owner, dependent) && self.called.fits(owner.called)
    }
}

/// An owner is in the same namespace, or cluster-scoped.
fn reachable(owner: &Node, dependent: &Node) -> bool {
    owner.key.namespace().is_empty() || owner.key.namespace() == dependent.key.namespace()
}

#[cfg(test)]
mod tests;
