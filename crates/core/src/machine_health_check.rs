//! The MachineHealthCheck controller: marks Machines that have to be replaced.
