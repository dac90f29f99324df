//! Cluster, Machine, MachineSet, MachineDeployment controllers.
