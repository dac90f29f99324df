//! Values of `status.phase`.

/// Phases of a Cluster.
pub mod cluster {
    /// Nothing has happened yet.
    pub const PENDING: &str = "Pending";
    /// The infrastructure is being made.
    pub const PROVISIONING: &str = "Provisioning";
    /// The infrastructure is there.
    pub const PROVISIONED: &str = "Provisioned";
    /// The Cluster is being deleted.
    pub const DELETING: &str = "Deleting";
    /// A failure that needs a person.
    pub const FAILED: &str = "Failed";
    /// The phase could not be determined.
    pub const UNKNOWN: &str = "Unknown";
}

/// Phases of a Machine.
pub mod machine {
    /// Nothing has happened yet.
    pub const PENDING: &str = "Pending";
    /// The infrastructure is being made.
    pub const PROVISIONING: &str = "Provisioning";
    /// The infrastructure is there.
    pub const PROVISIONED: &str = "Provisioned";
    /// The Machine has become a Node.
    pub const RUNNING: &str = "Running";
    /// The Machine is being updated in place.
    pub const UPDATING: &str = "Updating";
    /// The Machine is being deleted.
    pub const DELETING: &str = "Deleting";
    /// The infrastructure is gone.
    pub const DELETED: &str = "Deleted";
    /// A failure that needs a person.
    pub const FAILED: &str = "Failed";
    /// The phase could not be determined.
    pub const UNKNOWN: &str = "Unknown";
}

/// Phases of a MachineDeployment.
pub mod machine_deployment {
    /// There are fewer Machines than desired.
    pub const SCALING_UP: &str = "ScalingUp";
    /// There are more Machines than desired.
    pub const SCALING_DOWN: &str = "ScalingDown";
    /// There are as many Machines as desired.
    pub const RUNNING: &str = "Running";
    /// A failure that needs a person.
    pub const FAILED: &str = "Failed";
    /// The phase could not be determined.
    pub const UNKNOWN: &str = "Unknown";
}
