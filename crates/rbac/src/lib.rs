//! Role-based access control: parsed Roles, ClusterRoles and bindings, and what they let a user do.
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
/// ClusterRoles, as the store names them.
pub const CLUSTER_ROLES: &str = "clusterroles.rbac.authorization.k8s.io";
/// ClusterRoleBindings, as the store names them.
pub const CLUSTER_BINDINGS: &str = "clusterrolebindings.rbac.authorization.k8s.io";
/// Roles, as the store names them.
pub const ROLES: &str = "roles.rbac.authorization.k8s.io";
/// RoleBindings, as the store names them.
pub const BINDINGS: &str = "rolebindings.rbac.authorization.k8s.io";
