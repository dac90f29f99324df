//! MachineDrainRule: the same fields as in the hub version.

use windlass_api::api_kind;
use windlass_api::core as hub;
use windlass_api::core::MachineDrainRuleSpec;
use windlass_api::kind::Column;

use crate::convert::{ConversionError, References, Spoke};

api_kind! {
    /// How the Pods of Machines are drained when the Machines are deleted.
    pub struct MachineDrainRule {
        /// The rule.
        pub spec: MachineDrainRuleSpec,
    }
    group: "cluster.x-k8s.io",
    version: "v1beta1",
    plural: "machinedrainrules",
    short_names: [],
    provider: "cluster-api",
    contract: false,
    required: ["metadata", "spec"],
    status: false,
    scale: None,
    columns: [
        Column::new("Behavior", "string", ".spec.drain.behavior", "How the Pods are drained"),
        Column::new("Order", "string", ".spec.drain.order", "When they are drained, lowest first"),
        Column::new("Age", "date", ".metadata.creationTimestamp", "Time since creation"),
    ],
}

impl Spoke for MachineDrainRule {
    type Hub = hub::MachineDrainRule;
    const CARRIES_HUB: bool = false;

    fn into_hub(self, _: Option<Self::Hub>) -> Result<Self::Hub, ConversionError> {
        Ok(hub::MachineDrainRule {
            spec: self.spec,
            ..Self::Hub::default()
        })
    }

    fn from_hub(hub: Self::Hub, _: &str, _: &dyn References) -> Result<Self, ConversionError> {
        Ok(Self {
            spec: hub.spec,
            ..Self::default()
        })
    }
}
