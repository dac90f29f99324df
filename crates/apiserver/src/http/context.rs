//! A request with its user and body, and the values that every verb reads from it.

use std::sync::Arc;

use bytes::Bytes;
use http::request::Parts;
use http::{Method, Response};
use serde_json::Value;

use crate::codec::decoding;
use crate::error::ApiError;
use crate::http::body::ApiBody;
use crate::http::request::Query;
use crate::http::warnings;
use crate::objects::resource::Resource;
use crate::objects::view::View;
use crate::state::Inner;
use crate::verbs::call::{Call, Outcome};
use crate::verbs::delete::DeleteOptions;
use crate::verbs::mutation::Mutation;
use crate::verbs::options::{WriteOptions, WriteVerb};
use crate::verbs::read;
use windlass_rbac::user::UserInfo;

/// The media type of server-side apply.
const APPLY: &str = "application/apply-patch+yaml";
/// The response to a request, or its error.
pub(crate) type Answer = Result<Response<ApiBody>, ApiError>;

/// A request, ready to be handled.
pub(crate) struct RequestContext<'a> {
    pub(crate) server: &'a Arc<Inner>,
    pub(crate) user: &'a UserInfo,
    pub(crate) parts: &'a Parts,
    pub(crate) body: &'a Bytes,
    pub(crate) query: Query,
    pub(crate) view: View,
}

impl RequestContext<'_> {
    /// A call to a resource with the field manager of the request or its user agent.
    pub(crate) fn call<'b>(
        &'b self,
        resource: &'b Arc<Resource>,
        namespace: &'b str,
        options: &'b WriteOptions,
    ) -> Call<'b> {
        let manager = options.field_manager.clone().unwrap_or_else(|| {
            let agent = self.parts.headers.get(http::header::USER_AGENT);
            let agent = agent.and_then(|v| v.to_str().ok()).unwrap_or("");
            let agent = agent.split('/').next().unwrap_or("");
            let agent: String = agent.chars().filter(|c| !c.is_control()).take(128).collect();
            if agent.is_empty() { "unknown".to_owned() } else { agent }
        });
        Call {
            server: self.server,
            resource,
            namespace,
            user: self.user,
            options,
            manager,
        }
    }

    /// The object in the body.
    pub(crate) fn object(&self) -> Result<(Value, Vec<String>), ApiError> {
        decoding::decode(self.body, decoding::form(&self.parts.headers)?)
    }

    /// The object of a resource in the body.
    pub(crate) fn object_of(&self, resource: &Resource) -> Result<(Value, Vec<String>), ApiError> {
        decoding::decode_object(self.body, decoding::form(&self.parts.headers)?, resource)
    }

    pub(crate) fn delete_options(&self) -> Result<DeleteOptions, ApiError> {
        if self.body.is_empty() {
            return DeleteOptions::parse(&Value::Null, &self.query);
        }
        let body = decoding::decode_options(self.body, decoding::form(&self.parts.headers)?)?;
        let body = Some(body).filter(|b| b.as_object().is_some_and(|b| !b.is_empty()));
        DeleteOptions::parse(&body.unwrap_or(Value::Null), &self.query)
    }

    /// The verb of a write with a patch or an object in its body.
    pub(crate) fn write_verb(&self) -> WriteVerb {
        match decoding::media_type(&self.parts.headers) {
            _ if self.parts.method == Method::PUT => WriteVerb::Update,
            APPLY | "application/apply-patch+json" => WriteVerb::Apply,
            _ => WriteVerb::Patch,
        }
    }

    /// The patch in the body.
    pub(crate) fn patch(&self, resource: &Resource) -> Result<Mutation, ApiError> {
        let media = decoding::media_type(&self.parts.headers);
        decoding::patch(media, resource.is_custom(), self.body)
    }

    /// The response for the outcome of a write.
    pub(crate) fn outcome(&self, resource: &Resource, outcome: &Outcome) -> Answer {
        let (server, code) = (self.server, if outcome.created { 201 } else { 200 });
        let mut response = if let Some(record) = &outcome.record {
            read::answer(server, resource, record, self.view, code)?
        } else {
            let object = outcome.object(resource)?;
            read::answer_value(server, resource, &object, self.view, code)?
        };
        for words in &outcome.warnings {
            warnings::add(&mut response, words);
        }
        Ok(response)
    }
}
