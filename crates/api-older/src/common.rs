//! What kinds of several groups share: references, failure domains, metadata of templates, and rules of conversion.

use std::collections::BTreeMap;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use windlass_api::core as hub;
use windlass_api::kind::is_unset;
use windlass_api::{Condition, schema};

use crate::parts::unless_default;

/// Conditions in the form of v1beta2, in a status of an older version.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct V1Beta2Status {
    /// Conditions of the object, one per type.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "schema::conditions")]
    pub conditions: Vec<Condition>,
}

impl V1Beta2Status {
    /// The field of an older version for conditions of the hub. Without conditions it is left out.
    pub(crate) fn holding(conditions: Vec<Condition>) -> Option<Self> {
        (!conditions.is_empty()).then_some(Self { conditions })
    }

    /// The conditions of the hub.
    pub(crate) fn into_conditions(field: Option<Self>) -> Vec<Condition> {
        let Self { conditions } = field.unwrap_or_default();
        conditions
    }
}

/// Labels and annotations of objects that are created from a template.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ObjectMeta {
    /// Annotations of the created objects.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub annotations: BTreeMap<String, String>,
    /// Labels of the created objects.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
}

impl ObjectMeta {
    pub(crate) fn into_hub(self) -> Option<hub::ObjectMeta> {
        let Self { annotations, labels } = self;
        unless_default(hub::ObjectMeta { annotations, labels })
    }

    pub(crate) fn from_hub(hub: Option<hub::ObjectMeta>) -> Self {
        let hub::ObjectMeta { annotations, labels } = hub.unwrap_or_default();
        Self { annotations, labels }
    }
}

/// A failure domain, without its name: the name is the key of the map that it is in.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FailureDomainSpec {
    /// Additional attributes that the provider reports.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub attributes: BTreeMap<String, String>,
    /// Whether the failure domain is suitable for control plane Machines.
    #[serde(default, skip_serializing_if = "is_unset")]
    pub control_plane: bool,
}

/// Failure domains of the hub: by name, each with an explicit `controlPlane`.
pub(crate) fn failure_domains_into_hub(domains: BTreeMap<String, FailureDomainSpec>) -> Vec<hub::FailureDomain> {
    domains
        .into_iter()
        .map(|(name, domain)| {
            let FailureDomainSpec {
                attributes,
                control_plane,
            } = domain;
            hub::FailureDomain {
                attributes,
                control_plane: Some(control_plane),
                name,
            }
        })
        .collect()
}

/// Failure domains of an older version. The order of the hub is lost. Of two with the same name, which the schema refuses, the last stays.
pub(crate) fn failure_domains_from_hub(domains: Vec<hub::FailureDomain>) -> BTreeMap<String, FailureDomainSpec> {
    domains
        .into_iter()
        .map(|domain| {
            let hub::FailureDomain {
                attributes,
                control_plane,
                name,
            } = domain;
            let domain = FailureDomainSpec {
                attributes,
                control_plane: control_plane.unwrap_or_default(),
            };
            (name, domain)
        })
        .collect()
}

/// Reference to an object in the same namespace, whose kind follows from the field.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-map-type" = "atomic"))]
pub struct LocalObjectReference {
    /// Name of the object. Empty: no object.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(extend("default" = ""))]
    pub name: String,
}

/// Reference to an object of any kind in the same namespace.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-map-type" = "atomic"))]
pub struct TypedLocalObjectReference {
    /// API group of the object. Unset for kinds of the core API of Kubernetes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub api_group: Option<String>,
    /// Kind of the object.
    #[serde(default)]
    #[schemars(!default)]
    pub kind: String,
    /// Name of the object.
    #[serde(default)]
    #[schemars(!default)]
    pub name: String,
}

/// A whole number without a format.
pub(crate) fn integer(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": "integer"})
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failure_domains_are_ordered_by_name() {
        let domain = |name: &str, control_plane| hub::FailureDomain {
            name: name.to_owned(),
            control_plane,
            ..hub::FailureDomain::default()
        };
        let older = failure_domains_from_hub(vec![
            domain("b", Some(true)),
            domain("a", None),
            domain("c", Some(false)),
        ]);
        assert_eq!(
            failure_domains_into_hub(older),
            [
                domain("a", Some(false)),
                domain("b", Some(true)),
                domain("c", Some(false))
            ]
        );
    }
}
