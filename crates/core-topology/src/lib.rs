//! The Cluster topology controller.
