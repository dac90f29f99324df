//! Objects that a Cluster or Machine references by group and kind: read at the version, and understood by the contract, that the
//! provider's CRD declares.

use std::ops::Deref;
use std::sync::Arc;

use windlass_api::core::ContractVersionedObjectReference;
use windlass_contract::ContractVersion;
use windlass_kit::{Cx, Dynamic, ObjectKey, Seen};

/// A referenced object and the contract it follows.
#[derive(Clone, Debug)]
pub(crate) struct Referenced {
    object: Arc<Dynamic>,
    /// The contract.
    pub(crate) contract: ContractVersion,
}

impl Deref for Referenced {
    type Target = Dynamic;

    fn deref(&self) -> &Dynamic {
        &self.object
    }
}

/// Reads a reference.
pub(crate) async fn read(cx: &Cx, namespace: &str, reference: &ContractVersionedObjectReference) -> Seen<Referenced> {
    match cx.dynamic(&windlass_contract::group_kind_of(reference)).await {
        Ok(cache) => {
            let contract = cache.contract();
            let object = cache.get(&ObjectKey::new(namespace, &reference.name));
            object.map(|object| Referenced { object, contract }).into()
        }
        Err(error) => Seen::Failed(error.to_string()),
    }
}

#[cfg(test)]
impl Referenced {
    /// An object of a test, by the current contract.
    pub(crate) fn of(value: serde_json::Value) -> Self {
        Self {
            object: Arc::new(Dynamic::new(value).unwrap()),
            contract: ContractVersion::V1Beta2,
        }
    }
}
