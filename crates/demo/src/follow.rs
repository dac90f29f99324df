//! Follows the objects that the demo shows, in the caches that the controllers use.

use tokio::sync::mpsc;
use windlass_api::core::{Cluster, Machine, MachineDeployment, MachineSet};
use windlass_api_ext::infrastructure::{DevCluster, DevMachine};
use windlass_api_kubeadm::bootstrap::KubeadmConfig;
use windlass_api_kubeadm::controlplane::KubeadmControlPlane;
use windlass_controller_runtime::{Cx, Object, key_of};

use super::item::{Id, Item};
use super::world::Update;

/// All existing objects, and every later change.
pub(crate) fn follow(cx: &Cx) -> mpsc::UnboundedReceiver<Update> {
    let (updates, receiver) = mpsc::unbounded_channel();
    kind::<Cluster>(cx, &updates);
    kind::<DevCluster>(cx, &updates);
    kind::<KubeadmControlPlane>(cx, &updates);
    kind::<MachineDeployment>(cx, &updates);
    kind::<MachineSet>(cx, &updates);
    kind::<Machine>(cx, &updates);
    // Not shown, but none of them may be left at the end.
    kind::<DevMachine>(cx, &updates);
    kind::<KubeadmConfig>(cx, &updates);
    receiver
}

fn kind<K: Object>(cx: &Cx, updates: &mpsc::UnboundedSender<Update>) {
    let updates = updates.clone();
    let name = K::kind(&()).into_owned();
    cx.cache::<K>().subscribe(move |change| {
        let update = match (&change.new, &change.old) {
            (Some(object), _) => {
                let value = object.to_json();
                Update::There(Box::new(Item::read(&name, &value)))
            }
            (None, Some(object)) => {
                let key = key_of(object.meta());
                Update::Gone(Id {
                    namespace: key.namespace,
                    kind: name.clone(),
                    name: key.name,
                })
            }
            (None, None) => return,
        };
        // The receiver is gone after the demo.
        let _ = updates.send(update);
    });
}
