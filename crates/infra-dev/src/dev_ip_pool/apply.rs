//! Carries out what was planned for a DevIPPool. The only file of this controller that writes.

use std::collections::BTreeSet;

use serde_json::json;
use windlass_api::ipam::{IPAddressClaim, PROTECT_ADDRESS_FINALIZER, RELEASE_ADDRESS_FINALIZER};
use windlass_api::kind::ApiKind as _;
use windlass_api::meta::MetaExt as _;
use windlass_api_ext::finalizers;
use windlass_controller_runtime::{Cx, ReconcileError};

use super::observe::Observed;
use super::plan::{Action, Plan};
use crate::dev_machine::MANAGER;

/// The field manager of the status of claims.
const CLAIM_STATUS: &str = "devippool-claim-status";

/// What became of a plan.
#[derive(Debug, Default)]
pub(crate) struct Done {
    /// The first action that failed.
    pub(crate) failed: Option<ReconcileError>,
}

/// Carries out the actions in order. After one that fails, those about the same claim are left out: no claim gets an address in its status that
/// was not made. Other claims go on.
pub(super) async fn apply(cx: &Cx, seen: &Observed, plan: &Plan) -> Done {
    let mut done = Done::default();
    let mut refused = BTreeSet::new();
    for action in &plan.actions {
        let is_left_out = match about(action) {
            Some(claim) => refused.contains(claim),
            None => done.failed.is_some(),
        };
        if is_left_out {
            continue;
        }
        if let Err(error) = carry_out(cx, seen, action).await {
            refused.extend(about(action));
            done.failed.get_or_insert(error);
        }
    }
    done
}

/// The name of the claim that an action is about; its address has the same one. `None` for the pool.
fn about(action: &Action) -> Option<&str> {
    match action {
        Action::Hold(claim) | Action::Report(claim, _) | Action::Release(claim) => Some(claim.metadata.name()),
        Action::DeleteAddress(address) | Action::ReleaseAddress(address) => Some(address.metadata.name()),
        Action::Apply(address) => address["metadata"]["name"].as_str(),
        Action::RemoveFinalizer => None,
    }
}

async fn carry_out(cx: &Cx, seen: &Observed, action: &Action) -> Result<(), ReconcileError> {
    let writer = cx.writer();
    match action {
        Action::Hold(claim) => {
            let metadata = &claim.metadata;
            let desired = json!({
                "apiVersion": IPAddressClaim::API_VERSION,
                "kind": IPAddressClaim::KIND,
                "metadata": {
                    "name": metadata.name,
                    "namespace": metadata.namespace,
                    "uid": metadata.uid,
                    "finalizers": [RELEASE_ADDRESS_FINALIZER],
                },
            });
            writer.apply_value(MANAGER, &desired).await?;
        }
        Action::Apply(address) => {
            writer.apply_value(MANAGER, address).await?;
        }
        Action::Report(claim, status) => {
            writer.apply_status(CLAIM_STATUS, &**claim, status.clone()).await?;
        }
        Action::DeleteAddress(address) => {
            writer.delete(&**address).await?;
        }
        Action::ReleaseAddress(address) => {
            writer
                .remove_finalizer(MANAGER, &**address, PROTECT_ADDRESS_FINALIZER)
                .await?;
        }
        Action::Release(claim) => {
            writer
                .remove_finalizer(MANAGER, &**claim, RELEASE_ADDRESS_FINALIZER)
                .await?;
        }
        Action::RemoveFinalizer => {
            writer
                .remove_finalizer(MANAGER, &*seen.pool, finalizers::DEV_IP_POOL)
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
