//! All declared providers of the cluster, through both APIs, as far as they concern one another.

use windlass_api_operator::{Api, ProviderObject, ProviderType, conditions as types, management, operator};
use windlass_conditions as conditions;
use windlass_controller_runtime::{Cx, ObjectKey, Timestamp, Watch, key_of};

use crate::names::{VOUCHED, reasons::UNPAUSE_BLOCKED};

/// A declared provider as the others see it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Peer {
    /// What sort of provider.
    pub type_: ProviderType,
    /// Through which API.
    pub api: Api,
    /// Namespace and name.
    pub key: ObjectKey,
    /// The uid of the declaration.
    pub uid: String,
    /// When it was declared.
    pub created: Option<Timestamp>,
    /// Whether the declaration is being deleted.
    pub deleting: bool,
    /// Whether its specification pauses it, or would if it could be read.
    pub paused: bool,
    /// Whether it asked to come back from a pause and has to stay without replicas, as its status says.
    pub held: bool,
    /// The contract of what is installed; none while nothing is.
    pub contract: Option<String>,
    /// Its annotation with digests of what is kept.
    pub vouched: Option<String>,
}

impl Peer {
    /// What others have to know of a declaration.
    pub fn of<P: ProviderObject>(object: &P) -> Self {
        let meta = object.meta();
        Self {
            type_: P::TYPE,
            api: P::API,
            key: key_of(meta),
            uid: meta.uid.clone().unwrap_or_default(),
            created: meta.creation_timestamp.as_ref().map(|time| time.0),
            deleting: meta.deletion_timestamp.is_some(),
            paused: object.declared().is_ok_and(|declared| declared.paused),
            held: conditions::get(object.conditions(), types::READY)
                .is_some_and(|ready| ready.reason == UNPAUSE_BLOCKED),
            contract: object.status_parts().contract.map(str::to_owned),
            vouched: meta.annotations.as_ref().and_then(|notes| notes.get(VOUCHED)).cloned(),
        }
    }

    /// Whether it is installed.
    pub fn is_installed(&self) -> bool {
        self.contract.is_some()
    }

    /// Who comes first of two that want to be the same provider: who is installed, else who was declared first.
    pub fn goes_before(&self, other: &Self) -> bool {
        let rank = |peer: &Self| {
            (
                !peer.is_installed(),
                peer.created,
                peer.key.namespace.clone(),
                peer.key.name.clone(),
                std::cmp::Reverse(peer.api),
            )
        };
        rank(self) < rank(other)
    }

    /// `InfrastructureProvider ns/name`, with the API where that is not the same.
    pub fn told_to(&self, api: Api) -> String {
        if self.api == api {
            format!("{} {}", self.type_, self.key)
        } else {
            format!("{} {} of {}", self.type_, self.key, self.api)
        }
    }
}

/// Does something for each of the eleven kinds.
macro_rules! for_all_kinds {
    ($do:ident) => {
        $do!(operator::CoreProvider);
        $do!(operator::BootstrapProvider);
        $do!(operator::ControlPlaneProvider);
        $do!(operator::InfrastructureProvider);
        $do!(operator::IPAMProvider);
        $do!(operator::RuntimeExtensionProvider);
        $do!(operator::AddonProvider);
        $do!(management::CoreProvider);
        $do!(management::BootstrapProvider);
        $do!(management::ControlPlaneProvider);
        $do!(management::InfrastructureProvider);
    };
}
pub(crate) use for_all_kinds;

/// All declared providers but the one with this uid, by type, API and key.
pub fn all_but(cx: &Cx, uid: &str) -> Vec<Peer> {
    let mut peers = Vec::new();
    macro_rules! add {
        ($kind:ty) => {
            peers.extend(cx.cache::<$kind>().all().iter().map(|object| Peer::of(&**object)));
        };
    }
    for_all_kinds!(add);
    peers.retain(|peer| peer.uid != uid);
    peers
}

/// The declarations of a kind, but for the one with this uid.
pub(crate) fn keys_but<P: ProviderObject>(cx: &Cx, uid: Option<&str>) -> Vec<ObjectKey> {
    let all = cx.cache::<P>().all();
    let others = all.iter().filter(|object| object.meta().uid.as_deref() != uid);
    others.map(|object| key_of(object.meta())).collect()
}

/// Wakes all declarations of a kind, which `others` tells, when one of any kind changes in what concerns others. What only one has
/// to know it learns by its own events.
pub(crate) fn watches(others: fn(&Cx, Option<&str>) -> Vec<ObjectKey>) -> Vec<Watch> {
    let mut watches = Vec::new();
    macro_rules! add {
        ($kind:ty) => {
            watches.push(Watch::map::<$kind>(move |cx, old, new| {
                woken(cx, old.map(Peer::of), new.map(Peer::of), others)
            }));
        };
    }
    for_all_kinds!(add);
    watches
}

fn woken(
    cx: &Cx,
    old: Option<Peer>,
    new: Option<Peer>,
    others: fn(&Cx, Option<&str>) -> Vec<ObjectKey>,
) -> Vec<ObjectKey> {
    // What is kept of a provider concerns others only while they are rendered, and is read then.
    let concerns = |peer: &Option<Peer>| peer.clone().map(|peer| Peer { vouched: None, ..peer });
    if concerns(&old) == concerns(&new) {
        return Vec::new();
    }
    let changed = new.or(old).map(|peer| peer.uid);
    others(cx, changed.as_deref())
}
