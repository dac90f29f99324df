//! The dev infrastructure provider: DevCluster, DevMachine, the in-memory backend.
