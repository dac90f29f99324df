//! Role-based access control: parsed Roles, ClusterRoles and bindings, and the permissions of users.
//!
//! Everything is pure: objects come in as JSON values, a request as [`Attributes`]. The server keeps a [`policy::Policy`] and
//! updates it with every write.

pub mod attributes;
pub mod bootstrap;
pub mod policy;
pub mod roles;
pub mod rule;
pub mod user;

pub use attributes::{Attributes, Decision, Target};
pub use user::UserInfo;

/// The API group of roles and bindings.
pub const GROUP: &str = "rbac.authorization.k8s.io";
/// The storage name of ClusterRoles.
pub const CLUSTER_ROLES: &str = "clusterroles.rbac.authorization.k8s.io";
/// The storage name of ClusterRoleBindings.
pub const CLUSTER_BINDINGS: &str = "clusterrolebindings.rbac.authorization.k8s.io";
/// The storage name of Roles.
pub const ROLES: &str = "roles.rbac.authorization.k8s.io";
/// The storage name of RoleBindings.
pub const BINDINGS: &str = "rolebindings.rbac.authorization.k8s.io";
