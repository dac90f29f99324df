//! Conversion of patches.

use std::collections::HashMap;

use windlass_api::core as hub;

use super::{
    ClusterClassPatch, ExternalPatchDefinition, PatchDefinition, PatchSelector, PatchSelectorMatch,
    PatchSelectorMatchClass,
};
use crate::parts::{by_key, intent, some_text, unless_empty};

/// Patches of the hub. `kept` are those that they were made from.
pub(in crate::core::v1beta1) fn to_hub(
    patches: Vec<ClusterClassPatch>,
    kept: &[hub::ClusterClassPatch],
) -> Vec<hub::ClusterClassPatch> {
    let kept = by_key(kept, |kept| &kept.name);
    patches.into_iter().map(|patch| patch_to_hub(patch, &kept)).collect()
}

fn patch_to_hub(patch: ClusterClassPatch, kept: &HashMap<&str, &hub::ClusterClassPatch>) -> hub::ClusterClassPatch {
    let ClusterClassPatch {
        name,
        description,
        enabled_if,
        definitions,
        external,
    } = patch;
    // Definitions have no names. They are the same ones as long as their number is the same.
    let kept: &[hub::PatchDefinition] = kept
        .get(name.as_str())
        .map(|patch| patch.definitions.as_slice())
        .filter(|kept| kept.len() == definitions.len())
        .unwrap_or_default();
    let definition = |(index, definition): (usize, PatchDefinition)| {
        let kept = kept.get(index).map(|definition| &definition.selector.match_resources);
        hub::PatchDefinition {
            json_patches: definition.json_patches,
            selector: selector_to_hub(definition.selector, kept),
        }
    };
    hub::ClusterClassPatch {
        definitions: definitions.into_iter().enumerate().map(definition).collect(),
        description: some_text(description),
        enabled_if: unless_empty(enabled_if),
        external: external.map(|external| {
            let ExternalPatchDefinition {
                generate_extension,
                validate_extension,
                discover_variables_extension,
                settings,
            } = external;
            hub::ExternalPatchDefinition {
                discover_variables_extension: unless_empty(discover_variables_extension),
                generate_patches_extension: unless_empty(generate_extension),
                settings,
                validate_topology_extension: unless_empty(validate_extension),
            }
        }),
        name,
    }
}

fn selector_to_hub(selector: PatchSelector, kept: Option<&hub::PatchSelectorMatch>) -> hub::PatchSelector {
    let PatchSelector {
        api_version,
        kind,
        match_resources,
    } = selector;
    let PatchSelectorMatch {
        control_plane,
        infrastructure_cluster,
        machine_deployment_class,
        machine_pool_class,
    } = match_resources;
    let class = |class: PatchSelectorMatchClass| hub::PatchSelectorMatchClass { names: class.names };
    hub::PatchSelector {
        api_version,
        kind,
        match_resources: hub::PatchSelectorMatch {
            control_plane: intent(control_plane, kept.and_then(|kept| kept.control_plane)),
            infrastructure_cluster: intent(
                infrastructure_cluster,
                kept.and_then(|kept| kept.infrastructure_cluster),
            ),
            machine_deployment_class: machine_deployment_class.map(class),
            machine_pool_class: machine_pool_class.map(class),
        },
    }
}

/// The inverse of [`to_hub`].
pub(in crate::core::v1beta1) fn from_hub(patches: Vec<hub::ClusterClassPatch>) -> Vec<ClusterClassPatch> {
    patches.into_iter().map(patch_from_hub).collect()
}

fn patch_from_hub(patch: hub::ClusterClassPatch) -> ClusterClassPatch {
    let hub::ClusterClassPatch {
        definitions,
        description,
        enabled_if,
        external,
        name,
    } = patch;
    let class = |class: hub::PatchSelectorMatchClass| PatchSelectorMatchClass { names: class.names };
    let definition = |definition: hub::PatchDefinition| {
        let hub::PatchDefinition { json_patches, selector } = definition;
        let hub::PatchSelector {
            api_version,
            kind,
            match_resources,
        } = selector;
        let hub::PatchSelectorMatch {
            control_plane,
            infrastructure_cluster,
            machine_deployment_class,
            machine_pool_class,
        } = match_resources;
        PatchDefinition {
            selector: PatchSelector {
                api_version,
                kind,
                match_resources: PatchSelectorMatch {
                    control_plane: control_plane.unwrap_or_default(),
                    infrastructure_cluster: infrastructure_cluster.unwrap_or_default(),
                    machine_deployment_class: machine_deployment_class.map(class),
                    machine_pool_class: machine_pool_class.map(class),
                },
            },
            json_patches,
        }
    };
    ClusterClassPatch {
        name,
        description: description.unwrap_or_default(),
        enabled_if: unless_empty(enabled_if),
        definitions: definitions.into_iter().map(definition).collect(),
        external: external.map(|external| {
            let hub::ExternalPatchDefinition {
                discover_variables_extension,
                generate_patches_extension,
                settings,
                validate_topology_extension,
            } = external;
            ExternalPatchDefinition {
                generate_extension: unless_empty(generate_patches_extension),
                validate_extension: unless_empty(validate_topology_extension),
                discover_variables_extension: unless_empty(discover_variables_extension),
                settings,
            }
        }),
    }
}
