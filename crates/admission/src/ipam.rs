//! IPAddresses and IPAddressClaims.

use std::net::IpAddr;

use windlass_schema::FieldErrors;

use crate::changes::changes;
use crate::field::Field;
use crate::rule::{Change, Verdict};
use crate::view::{self, Unread};

const GROUP: &str = "ipam.cluster.x-k8s.io";

/// Checks an IPAddress: it is an address, and its pool is the one of its claim.
pub fn check_address(change: &Change<'_>) -> Result<Verdict, Unread> {
    if !change.old.is_null() {
        return Ok(same_spec(change, "IPAddress").into());
    }
    let mut errors = FieldErrors::new();
    let spec = Field::of(change.new).child("spec");
    let (address, prefix, gateway) = (spec.child("address"), spec.child("prefix"), spec.child("gateway"));
    let bits = prefix.number().unwrap_or_default();
    match parse(address.text()) {
        None => errors.add(|| address.invalid("not a valid IP address")),
        Some(IpAddr::V4(_)) if bits > 32 => errors.add(|| prefix.invalid("prefix is too large for an IPv4 address")),
        Some(IpAddr::V6(_)) if bits > 128 => errors.add(|| prefix.invalid("prefix is too large for an IPv6 address")),
        Some(_) => {}
    }
    if bits < 0 {
        errors.add(|| prefix.invalid("prefix cannot be negative"));
    }
    if gateway.is_set() && parse(gateway.text()).is_none() {
        errors.add(|| gateway.invalid("not a valid IP address"));
    }
    let namespace = change.new["metadata"]["namespace"].as_str().unwrap_or_default();
    let claim = spec.child("claimRef.name").text();
    let pool = spec.child("poolRef");
    let claim = view::object(change.view, (GROUP, "IPAddressClaim"), namespace, claim)?;
    if let Some(claim) = claim {
        let claimed = Field::of(&claim).child("spec.poolRef");
        let differs = |part: &&str| claimed.child(part).text() != pool.child(part).text();
        if ["apiGroup", "kind", "name"].iter().any(differs) {
            let why =
                "the referenced pool is different from the pool referenced by the claim this address should fulfill";
            errors.add(|| pool.invalid(why));
        }
    }
    Ok(errors.into())
}

/// Checks an IPAddressClaim: it never changes.
pub fn check_claim(change: &Change<'_>) -> Result<Verdict, Unread> {
    let unchanged = change.old.is_null();
    Ok(if unchanged {
        Verdict::default()
    } else {
        same_spec(change, "IPAddressClaim").into()
    })
}

fn same_spec(change: &Change<'_>, kind: &str) -> FieldErrors {
    let mut errors = FieldErrors::new();
    let (old, new) = (Field::of(change.old).child("spec"), Field::of(change.new).child("spec"));
    let mut paths = Vec::new();
    changes(old.value(), new.value(), |path| paths.push(path.join(".")));
    if !paths.is_empty() {
        errors.add(|| new.forbidden(format!("{kind} spec is immutable. Changed: {}", paths.join(", "))));
    }
    errors
}

/// An address as Go's `netip` reads it: an IPv6 address may have a zone.
fn parse(text: &str) -> Option<IpAddr> {
    match text.split_once('%') {
        Some((address, zone)) if !zone.is_empty() => Some(IpAddr::V6(address.parse().ok()?)),
        Some(_) => None,
        None => text.parse().ok(),
    }
}
