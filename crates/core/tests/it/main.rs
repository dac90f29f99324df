//! The MachineDeployment, MachineSet and MachineHealthCheck controllers against an API server in this process.

mod env;
mod health;
mod rollouts;
mod sets;
