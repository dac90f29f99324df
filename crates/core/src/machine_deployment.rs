//! The MachineDeployment controller.

pub(crate) mod plan_rollout;
