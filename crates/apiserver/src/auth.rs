//! Authentication and authorization: users, impersonation, and role-based access control.

pub(crate) mod authorizer;
pub(crate) mod escalation;
pub(crate) mod impersonation;
pub(crate) mod rbac;
pub(crate) mod tokens;
