//! The status of an ExtensionConfig: pure.

use jiff::Timestamp;
use windlass_api::conditions::DISCOVERED;
use windlass_api::kind::Conditioned as _;
use windlass_api::runtime::{
    ExtensionConfigDeprecatedStatus, ExtensionConfigStatus, ExtensionConfigV1Beta1DeprecatedStatus,
};
use windlass_api::v1beta1::reasons as old_reasons;
use windlass_api::{reasons, v1beta1};
use windlass_conditions::{Builder, Draft};
use windlass_controller_runtime::ReconcileError;

use super::observe::Observed;
use super::plan::Plan;
use crate::shared::legacy::{Legacy, LegacyConditions};

/// The status to be applied; none when nothing was learned. What was discovered stays while the extension does not answer.
pub(super) fn status(
    seen: &Observed,
    plan: &Plan,
    done: Option<&ReconcileError>,
    now: Timestamp,
) -> Option<ExtensionConfigStatus> {
    let before = seen.config.status.clone().unwrap_or_default();
    let old = before
        .deprecated
        .as_ref()
        .and_then(|deprecated| deprecated.v1beta1.as_ref());
    let mut all = Builder::new(seen.config.conditions(), seen.config.metadata.generation, now);
    let mut legacy = LegacyConditions::new(old.map_or(&[][..], |old| &old.conditions), now);
    // Only CA certificates are written.
    let unwritten =
        done.map(|error| format!("the CA certificates cannot be written into spec.clientConfig.caBundle: {error}"));
    let failed = match (&seen.discovery, plan.unusable.as_ref().or(unwritten.as_ref())) {
        (Some(Err(why)), _) => Some(why),
        // Without CA certificates the extension is not asked, and neither before it has the ones that it should have.
        (None, Some(why)) if unwritten.is_some() || seen.config.spec.client_config.ca_bundle.is_none() => Some(why),
        _ => None,
    };
    let mut handlers = before.handlers;
    if let Some(why) = failed {
        let message = format!("Error in discovery: {why}");
        all.set(DISCOVERED, Draft::no(reasons::NOT_DISCOVERED, message.clone()));
        legacy.set(
            v1beta1::conditions::DISCOVERED,
            &Legacy::error(old_reasons::DISCOVERY_FAILED, message),
        );
    } else if let Some(Ok(found)) = &seen.discovery {
        handlers.clone_from(found);
        all.set(DISCOVERED, Draft::yes(reasons::DISCOVERED, ""));
        legacy.set(v1beta1::conditions::DISCOVERED, &Legacy::Good);
    } else {
        return None;
    }
    let conditions = legacy.done();
    Some(ExtensionConfigStatus {
        conditions: all.done(),
        deprecated: (!conditions.is_empty()).then_some(ExtensionConfigDeprecatedStatus {
            v1beta1: Some(ExtensionConfigV1Beta1DeprecatedStatus { conditions }),
        }),
        handlers,
    })
}
