//! The templates of a MachineSpec: pure.

use std::collections::BTreeSet;

use windlass_api::core::{ContractVersionedObjectReference as Reference, MachineSpec};
use windlass_controller_runtime::GroupKind;

/// A template, by kind and name. All templates of a Cluster are in its namespace.
pub(super) type TemplateId = (GroupKind, String);

/// The templates that Machines of this spec are made from.
pub(super) fn templates(spec: &MachineSpec) -> BTreeSet<TemplateId> {
    [spec.bootstrap.config_ref.as_ref(), Some(&spec.infrastructure_ref)]
        .into_iter()
        .flatten()
        .filter(|r| is_template(r))
        .map(|r| (r.group_kind(), r.name.clone()))
        .collect()
}

fn is_template(reference: &Reference) -> bool {
    reference.kind.ends_with("Template") && !reference.name.is_empty()
}
