//! Conversion of MachineHealthChecks, and of health checks in classes and topologies.

use windlass_api::core as hub;

use super::{
    MachineHealthCheck, MachineHealthCheckSpec, MachineHealthCheckStatus, UnhealthyCondition, UnhealthyMachineCondition,
};
use crate::common::V1Beta2Status;
use crate::convert::{ConversionError, References, Spoke};
use crate::core::v1beta1::MachineHealthCheckClass;
use crate::parts::{
    from_seconds, from_template, intent_of_number, to_seconds, to_template, unless_default, unless_empty, whole_seconds,
};

/// The parts of a health check in the hub.
#[derive(Default)]
pub(in crate::core::v1beta1) struct HubCheck {
    pub(in crate::core::v1beta1) checks: Option<hub::MachineHealthCheckChecks>,
    pub(in crate::core::v1beta1) trigger_if: Option<hub::MachineHealthCheckTriggerIf>,
    pub(in crate::core::v1beta1) template_ref: Option<hub::TemplateReference>,
}

impl HubCheck {
    /// Whether nothing is set.
    pub(in crate::core::v1beta1) fn is_empty(&self) -> bool {
        let Self {
            checks,
            trigger_if,
            template_ref,
        } = self;
        checks.is_none() && trigger_if.is_none() && template_ref.is_none()
    }

    pub(in crate::core::v1beta1) fn of(check: MachineHealthCheckClass) -> Self {
        let MachineHealthCheckClass {
            unhealthy_conditions,
            unhealthy_machine_conditions,
            max_unhealthy,
            unhealthy_range,
            node_startup_timeout,
            remediation_template,
        } = check;
        let of_node = |condition: UnhealthyCondition| hub::UnhealthyNodeCondition {
            status: condition.status,
            timeout_seconds: whole_seconds(condition.timeout),
            type_: condition.type_,
        };
        let of_machine = |condition: UnhealthyMachineCondition| hub::UnhealthyMachineCondition {
            status: condition.status,
            timeout_seconds: whole_seconds(condition.timeout),
            type_: condition.type_,
        };
        Self {
            checks: unless_default(hub::MachineHealthCheckChecks {
                node_startup_timeout_seconds: to_seconds(node_startup_timeout),
                unhealthy_machine_conditions: unhealthy_machine_conditions.into_iter().map(of_machine).collect(),
                unhealthy_node_conditions: unhealthy_conditions.into_iter().map(of_node).collect(),
            }),
            trigger_if: unless_default(hub::MachineHealthCheckTriggerIf {
                unhealthy_in_range: unless_empty(unhealthy_range),
                unhealthy_less_than_or_equal_to: max_unhealthy,
            }),
            template_ref: remediation_template.map(to_template).and_then(unless_default),
        }
    }

    /// The remediation of a kind that has nothing else there.
    pub(in crate::core::v1beta1) fn remediation(
        trigger_if: Option<hub::MachineHealthCheckTriggerIf>,
        template_ref: Option<hub::TemplateReference>,
    ) -> Option<hub::MachineHealthCheckRemediation> {
        unless_default(hub::MachineHealthCheckRemediation {
            template_ref,
            trigger_if,
        })
    }

    pub(in crate::core::v1beta1) fn into_older(self, namespace: &str) -> MachineHealthCheckClass {
        let hub::MachineHealthCheckChecks {
            node_startup_timeout_seconds,
            unhealthy_machine_conditions,
            unhealthy_node_conditions,
        } = self.checks.unwrap_or_default();
        let hub::MachineHealthCheckTriggerIf {
            unhealthy_in_range,
            unhealthy_less_than_or_equal_to,
        } = self.trigger_if.unwrap_or_default();
        let timeout = |seconds| from_seconds(Some(seconds)).unwrap_or_default();
        let of_node = |condition: hub::UnhealthyNodeCondition| UnhealthyCondition {
            type_: condition.type_,
            status: condition.status,
            timeout: timeout(condition.timeout_seconds),
        };
        let of_machine = |condition: hub::UnhealthyMachineCondition| UnhealthyMachineCondition {
            type_: condition.type_,
            status: condition.status,
            timeout: timeout(condition.timeout_seconds),
        };
        MachineHealthCheckClass {
            unhealthy_conditions: unhealthy_node_conditions.into_iter().map(of_node).collect(),
            unhealthy_machine_conditions: unhealthy_machine_conditions.into_iter().map(of_machine).collect(),
            max_unhealthy: unhealthy_less_than_or_equal_to,
            unhealthy_range: unless_empty(unhealthy_in_range),
            node_startup_timeout: from_seconds(node_startup_timeout_seconds),
            remediation_template: self
                .template_ref
                .and_then(unless_default)
                .map(|template| from_template(template, namespace)),
        }
    }
}

impl Spoke for MachineHealthCheck {
    type Hub = hub::MachineHealthCheck;

    fn into_hub(self, kept: Option<Self::Hub>) -> Result<Self::Hub, ConversionError> {
        let MachineHealthCheckSpec {
            cluster_name,
            selector,
            unhealthy_conditions,
            unhealthy_machine_conditions,
            max_unhealthy,
            unhealthy_range,
            node_startup_timeout,
            remediation_template,
        } = self.spec;
        let check = HubCheck::of(MachineHealthCheckClass {
            unhealthy_conditions,
            unhealthy_machine_conditions,
            max_unhealthy,
            unhealthy_range,
            node_startup_timeout,
            remediation_template,
        });
        let kept = kept.and_then(|kept| kept.status).unwrap_or_default();
        Ok(hub::MachineHealthCheck {
            spec: hub::MachineHealthCheckSpec {
                checks: check.checks,
                cluster_name,
                remediation: HubCheck::remediation(check.trigger_if, check.template_ref),
                selector,
            },
            status: unless_default(status_to_hub(self.status, &kept)),
            ..Self::Hub::default()
        })
    }

    fn from_hub(hub: Self::Hub, namespace: &str, _: &dyn References) -> Result<Self, ConversionError> {
        let hub::MachineHealthCheckSpec {
            checks,
            cluster_name,
            remediation,
            selector,
        } = hub.spec;
        let hub::MachineHealthCheckRemediation {
            template_ref,
            trigger_if,
        } = remediation.unwrap_or_default();
        let MachineHealthCheckClass {
            unhealthy_conditions,
            unhealthy_machine_conditions,
            max_unhealthy,
            unhealthy_range,
            node_startup_timeout,
            remediation_template,
        } = HubCheck {
            checks,
            trigger_if,
            template_ref,
        }
        .into_older(namespace);
        Ok(Self {
            spec: MachineHealthCheckSpec {
                cluster_name,
                selector,
                unhealthy_conditions,
                unhealthy_machine_conditions,
                max_unhealthy,
                unhealthy_range,
                node_startup_timeout,
                remediation_template,
            },
            status: status_from_hub(hub.status.unwrap_or_default()),
            ..Self::default()
        })
    }
}

fn status_to_hub(
    status: MachineHealthCheckStatus,
    kept: &hub::MachineHealthCheckStatus,
) -> hub::MachineHealthCheckStatus {
    let MachineHealthCheckStatus {
        expected_machines,
        current_healthy,
        remediations_allowed,
        observed_generation,
        targets,
        conditions,
        v1beta2,
    } = status;
    let deprecated = unless_default(hub::MachineHealthCheckV1Beta1DeprecatedStatus { conditions });
    hub::MachineHealthCheckStatus {
        conditions: V1Beta2Status::into_conditions(v1beta2),
        current_healthy: intent_of_number(current_healthy, kept.current_healthy),
        deprecated: deprecated.map(|v1beta1| hub::MachineHealthCheckDeprecatedStatus { v1beta1: Some(v1beta1) }),
        expected_machines: intent_of_number(expected_machines, kept.expected_machines),
        observed_generation: unless_default(observed_generation),
        remediations_allowed: intent_of_number(remediations_allowed, kept.remediations_allowed),
        targets,
    }
}

fn status_from_hub(status: hub::MachineHealthCheckStatus) -> MachineHealthCheckStatus {
    let hub::MachineHealthCheckStatus {
        conditions,
        current_healthy,
        deprecated,
        expected_machines,
        observed_generation,
        remediations_allowed,
        targets,
    } = status;
    MachineHealthCheckStatus {
        expected_machines: expected_machines.unwrap_or_default(),
        current_healthy: current_healthy.unwrap_or_default(),
        remediations_allowed: remediations_allowed.unwrap_or_default(),
        observed_generation: observed_generation.unwrap_or_default(),
        targets,
        conditions: deprecated.unwrap_or_default().v1beta1.unwrap_or_default().conditions,
        v1beta2: V1Beta2Status::holding(conditions),
    }
}
