//! Carries out what was planned for a DevMachinePool. The only file of this controller that writes.

use serde_json::json;
use windlass_api_ext::finalizers;
use windlass_controller_runtime::{Cx, ReconcileError};

use super::observe::Observed;
use super::plan::{Action, Plan};
use crate::dev_machine::MANAGER;

/// The field manager of the machines, as Cluster API names it.
const MACHINES: &str = "devmachinepool-controller";

/// What became of a plan.
#[derive(Debug, Default)]
pub(crate) struct Done {
    /// The first action that failed. Those after it were not tried.
    pub(crate) failed: Option<ReconcileError>,
    /// The generation of the DevMachinePool after its specification was written.
    pub(crate) generation: Option<i64>,
}

/// Carries out the actions in order, up to the first that fails.
pub(super) async fn apply(cx: &Cx, seen: &Observed, plan: &Plan) -> Done {
    let mut done = Done::default();
    for action in &plan.actions {
        if let Err(error) = carry_out(cx, seen, action, &mut done).await {
            done.failed = Some(error);
            break;
        }
    }
    done
}

async fn carry_out(cx: &Cx, seen: &Observed, action: &Action, done: &mut Done) -> Result<(), ReconcileError> {
    let metadata = &seen.object.metadata;
    let writer = cx.writer();
    match action {
        Action::Create(object) => {
            writer.apply_value(MACHINES, object).await?;
        }
        Action::Adopt(object) => {
            writer.apply_value("devmachinepool-adoption", object).await?;
        }
        Action::DeleteMachine(machine) => {
            writer.delete(&**machine).await?;
        }
        Action::DeleteHost(host) => {
            writer.delete(&**host).await?;
        }
        Action::List { pool, machines } => {
            let desired = json!({
                "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta2",
                "kind": "DevMachinePool",
                "metadata": { "name": metadata.name, "namespace": metadata.namespace, "uid": metadata.uid },
                "spec": { "providerID": pool, "providerIDList": machines },
            });
            let applied = writer.apply_value(MANAGER, &desired).await?;
            done.generation = applied.object.metadata().generation;
        }
        Action::RemoveFinalizer => {
            writer
                .remove_finalizer(MANAGER, &*seen.object, finalizers::DEV_MACHINE_POOL)
                .await?;
        }
    }
    Ok(())
}

impl windlass_controller_runtime::Done for Done {
    fn failed(&self) -> Option<&ReconcileError> {
        self.failed.as_ref()
    }
}
