//! Version v1beta2 of IPAddresses and IPAddressClaims.

mod ip_address;
mod ip_address_claim;

pub use ip_address::*;
pub use ip_address_claim::*;

/// The finalizer of IPAddresses, which keeps an address that a claim still has.
pub const PROTECT_ADDRESS_FINALIZER: &str = "ipam.cluster.x-k8s.io/protect-address";
/// The finalizer of IPAddressClaims, until their address is given back.
pub const RELEASE_ADDRESS_FINALIZER: &str = "ipam.cluster.x-k8s.io/release-address";
