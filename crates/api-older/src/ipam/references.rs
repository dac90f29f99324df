//! References to pools, addresses and claims: older versions have Kubernetes' own types for them.

use windlass_api::ipam::{IPAddressClaimReference, IPAddressReference, IPPoolReference};

use crate::common::{LocalObjectReference, TypedLocalObjectReference};
use crate::parts::unless_default;

impl TypedLocalObjectReference {
    /// The pool of the hub. Its group is empty if the older version has none, which the hub's schema refuses.
    pub(super) fn into_pool(self) -> IPPoolReference {
        let Self { api_group, kind, name } = self;
        IPPoolReference {
            api_group: api_group.unwrap_or_default(),
            kind,
            name,
        }
    }

    pub(super) fn from_pool(hub: IPPoolReference) -> Self {
        let IPPoolReference { api_group, kind, name } = hub;
        Self {
            api_group: unless_default(api_group),
            kind,
            name,
        }
    }
}

impl LocalObjectReference {
    pub(super) fn into_claim(self) -> IPAddressClaimReference {
        let Self { name } = self;
        IPAddressClaimReference { name }
    }

    pub(super) fn from_claim(hub: IPAddressClaimReference) -> Self {
        let IPAddressClaimReference { name } = hub;
        Self { name }
    }

    pub(super) fn into_address(self) -> Option<IPAddressReference> {
        let Self { name } = self;
        unless_default(IPAddressReference { name })
    }

    pub(super) fn from_address(hub: Option<IPAddressReference>) -> Self {
        let IPAddressReference { name } = hub.unwrap_or_default();
        Self { name }
    }
}
