//! Whether a namespace accepts new objects. Pure.

use crate::error::ApiError;
use crate::objects::resource::Resource;

/// Checks that the namespace of an object accepts new objects.
pub(crate) fn check_namespace(
    resource: &Resource,
    namespace: Option<&windlass_store::Record>,
    wanted: &str,
    name: &str,
) -> Result<(), ApiError> {
    let Some(namespace) = namespace else {
        return Err(ApiError::not_found("", "namespaces", wanted));
    };
    if namespace.header.deleting {
        let mut error = ApiError::forbidden(
            &resource.group,
            &resource.plural,
            name,
            &format!("unable to create new content in namespace {wanted} because it is being terminated"),
        );
        if let Some(details) = &mut error.details {
            details.causes.push(crate::error::Cause {
                reason: "NamespaceTerminating".to_owned(),
                message: format!("namespace {wanted} is being terminated"),
                field: "metadata.namespace".to_owned(),
            });
        }
        return Err(error);
    }
    Ok(())
}
