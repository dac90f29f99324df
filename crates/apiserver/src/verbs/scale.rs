//! The scale subresource.

use std::sync::Arc;

use http::Response;

use crate::error::ApiError;
use crate::http::body::{self, ApiBody};
use crate::http::context::RequestContext;
use crate::objects::convert::served;
use crate::objects::resource::Resource;
use crate::objects::scale::{is_unset, of};
use crate::objects::view::View;
use crate::objects::view::metadata_only;
use crate::verbs::mutation::Mutation;
use crate::verbs::options::WriteOptions;
use crate::verbs::read;
use windlass_objects::Part;

/// Handles a request to the scale of an object.
pub(crate) async fn answer(
    asked: &RequestContext<'_>,
    resource: &Arc<Resource>,
    namespace: &str,
    name: &str,
) -> Result<Response<ApiBody>, ApiError> {
    let Some(paths) = &resource.scale else {
        return Err(ApiError::no_resource());
    };
    let record = read::find_served(asked.server, resource, namespace, name).await?;
    let object = served(resource, &record)?;
    let current = of(&object, paths);
    let verb = asked.write_verb();
    let options = WriteOptions::parse(&asked.query, verb)?;
    let unset = resource.is_custom() && is_unset(&object, &paths.spec);
    let wanted = match asked.parts.method.as_str() {
        "GET" if unset => {
            let words = format!("the spec replicas field \".{}\" does not exist", paths.spec);
            return Err(ApiError::internal(words));
        }
        "GET" => return Ok(body::json(200, &current)),
        "PUT" => {
            let (scale, twice) = asked.object()?;
            Mutation::Replace(scale, twice)
        }
        "PATCH" => asked.patch(resource)?,
        other => return Err(ApiError::method_not_allowed(other)),
    };
    let mutation = Mutation::Scale(Box::new(wanted));
    let call = asked.call(resource, namespace, &options);
    let outcome = call.change(name, &mutation, Part::Scale).await?;
    let scale = of(&*outcome.object(resource)?, paths);
    if let View::Metadata(version) = asked.view {
        return Ok(body::json(200, &metadata_only(&scale, version)));
    }
    Ok(body::json(200, &scale))
}
