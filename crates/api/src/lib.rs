//! The v1beta2 types of the core Cluster API groups and the CRDs generated from them.
