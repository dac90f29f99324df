//! Version v1beta1 of the group of IP addresses.

mod ip_address;
mod ip_address_claim;

pub use ip_address::*;
pub use ip_address_claim::*;
