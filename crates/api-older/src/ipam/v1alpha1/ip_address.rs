//! IPAddress: the same fields as in v1beta1.

use windlass_api::api_kind;
use windlass_api::ipam as hub;
use windlass_api::kind::Column;

use crate::convert::{ConversionError, References, Spoke};
use crate::ipam::v1beta1::IPAddressSpec;

api_kind! {
    /// An IP address that a pool gave to a claim.
    pub struct IPAddress {
        /// The address.
        #[serde(default)]
        pub spec: IPAddressSpec,
    }
    group: "ipam.cluster.x-k8s.io",
    version: "v1alpha1",
    plural: "ipaddresses",
    short_names: [],
    provider: "cluster-api",
    contract: false,
    required: [],
    status: false,
    scale: None,
    columns: [
        Column::new("Address", "string", ".spec.address", "The address"),
        Column::new("Pool Name", "string", ".spec.poolRef.name", "Name of the pool that it is from"),
        Column::new("Pool Kind", "string", ".spec.poolRef.kind", "Kind of the pool that it is from"),
        Column::new("Age", "date", ".metadata.creationTimestamp", "Time since creation"),
    ],
}

impl Spoke for IPAddress {
    type Hub = hub::IPAddress;
    const CARRIES_HUB: bool = false;
    const DEPRECATED: bool = false;

    fn into_hub(self, _: Option<Self::Hub>) -> Result<Self::Hub, ConversionError> {
        let Self { metadata: _, spec } = self;
        Ok(hub::IPAddress {
            spec: spec.into_hub(),
            ..Self::Hub::default()
        })
    }

    fn from_hub(hub: Self::Hub, _: &str, _: &dyn References) -> Result<Self, ConversionError> {
        let hub::IPAddress { metadata: _, spec } = hub;
        Ok(Self {
            spec: IPAddressSpec::from_hub(spec),
            ..Self::default()
        })
    }
}
