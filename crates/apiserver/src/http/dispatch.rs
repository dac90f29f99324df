//! Dispatch: authorizes a request and calls the verb that answers it.

mod load;
mod paths;

use std::sync::Arc;

use bytes::Bytes;
use http::Response;
use http::request::Parts;

use crate::auth::impersonation::Wanted;
use crate::codec::decoding;
use crate::error::ApiError;
use crate::http::body::{self, ApiBody};
use crate::http::context::Answer;
use crate::http::context::RequestContext;
use crate::http::counters::RequestKey;
use crate::http::heavy::Turn;
use crate::http::negotiation::{self, Subject};
use crate::http::per_user::Place;
use crate::http::request::{Query, ResourcePath, parse_path};
use crate::http::response::ResponseForm;
use crate::http::{access_review, deadline, portforward, warnings};
use crate::objects::resource::Resource;
use crate::objects::view::Include;
use crate::objects::view::View;
use crate::state::Inner;
use crate::verbs::cost::Cost;
use crate::verbs::mutation::Mutation;
use crate::verbs::options::{ListOptions, WriteOptions, WriteVerb};
use crate::verbs::read;
use crate::verbs::scale;
use crate::verbs::{delete_collection, pods, watch};
use windlass_builtin_kinds::Special;
use windlass_meta::budget::{LIGHT_QUERY_BYTES, REQUEST_TIME, WATCH_SELECTOR_BYTES, WATCHES_OF_A_USER};
use windlass_objects::Part;
use windlass_rbac::attributes::{Attributes, Target};
use windlass_rbac::user::UserInfo;

use load::Load;

const PATCH_TYPES: &str = "application/json-patch+json, application/merge-patch+json, application/strategic-merge-patch+json, application/apply-patch+yaml, application/apply-patch+cbor";

/// Handles a request; errors become responses.
pub(crate) async fn handle(
    server: &Arc<Inner>,
    user: &UserInfo,
    parts: Parts,
    body: Bytes,
    turn: Option<Turn>,
) -> Response<ApiBody> {
    let path = parse_path(parts.uri.path());
    let query = Query::parse(parts.uri.query().unwrap_or(""));
    let form = ResponseForm::of(&parts, &query);
    let verb = verb(&parts, path.as_ref(), &query);
    let mut key = RequestKey {
        verb: verb.to_owned(),
        group: path.as_ref().map(|p| p.group.clone()).unwrap_or_default(),
        resource: path.as_ref().map_or_else(
            || parts.uri.path().to_owned(),
            |p| match &p.subresource {
                Some(sub) => format!("{}/{sub}", p.resource),
                None => p.resource.clone(),
            },
        ),
        agent: agent(&parts).to_owned(),
        code: 0,
    };
    let lasts = verb == "watch" || parts.headers.contains_key(http::header::UPGRADE);
    let limit = deadline::of(&query);
    let load = Load {
        verb,
        sender: user,
        is_heavy: turn.is_some(),
        is_read: matches!(parts.method, http::Method::GET | http::Method::HEAD),
        limit: *limit.as_ref().unwrap_or(&REQUEST_TIME),
        form,
    };
    let answer = async {
        if !is_open(parts.uri.path()) {
            server.heavy.reads(user)?;
        }
        let other = authorize(server, user, &parts, path.as_ref(), verb)?;
        let user = other.as_ref().unwrap_or(user);
        match path {
            Some(path) => answer_resource(server, user, parts, &body, query, path, load).await,
            None => paths::answer(server, &parts).await,
        }
    };
    let answer = match (limit, turn) {
        (Ok(_), None) if lasts => answer.await,
        (Ok(limit), None) => deadline::within(limit, answer).await,
        (Ok(limit), Some(turn)) => {
            let answer = Box::pin(answer);
            let encoded = Box::pin(async { load.encode(server, answer.await?) });
            server.heavy.run(turn, limit, encoded).await
        }
        (Err(error), _) => Err(error),
    };
    let mut response = answer.unwrap_or_else(|error| {
        let mut response = body::error(&error);
        for words in &error.warnings {
            warnings::add(&mut response, words);
        }
        response
    });
    warnings::write(&mut response);
    let response = if load.is_light(&response) {
        load.encode_or_refuse(server, response)
    } else {
        Box::pin(load.finish(server, response)).await
    };
    let response = server.heavy.answer(user, load.is_read, response);
    key.code = response.status().as_u16();
    server.counters.add(key);
    form.compress(response).await
}

fn agent(parts: &Parts) -> &str {
    parts
        .headers
        .get(http::header::USER_AGENT)
        .and_then(|v| v.to_str().ok())
        .and_then(|v| v.split_whitespace().next())
        .unwrap_or("")
}

fn verb(parts: &Parts, path: Option<&ResourcePath>, query: &Query) -> &'static str {
    let named = path.is_some_and(|p| p.name.is_some());
    let watches = || {
        path.is_some_and(|p| {
            p.watch || (p.subresource.is_none() && p.name.is_none() && query.flag("watch") == Some(true))
        })
    };
    match (parts.method.as_str(), named) {
        ("GET" | "HEAD", _) if path.is_none() => "get",
        ("GET", _) if watches() => "watch",
        ("GET" | "HEAD", true) => "get",
        ("GET" | "HEAD", false) => "list",
        ("POST", _) => "create",
        ("PUT", _) => "update",
        ("PATCH", _) if decoding::media_type(&parts.headers).starts_with("application/apply-patch") => "apply",
        ("PATCH", _) => "patch",
        ("DELETE", true) => "delete",
        ("DELETE", false) => "deletecollection",
        _ => "other",
    }
}

/// Whether a path needs no authorization: health checks come from programs without credentials.
fn is_open(path: &str) -> bool {
    matches!(path, "/healthz" | "/livez" | "/readyz")
}

/// Authorizes a request; `verb` is the verb of the resource. Returns the impersonated user, if there is one.
fn authorize(
    server: &Inner,
    user: &UserInfo,
    parts: &Parts,
    path: Option<&ResourcePath>,
    verb: &str,
) -> Result<Option<UserInfo>, ApiError> {
    let url = parts.uri.path();
    let wanted = Wanted::read(&parts.headers)?;
    if wanted.is_none() && (user.is_master() || is_open(url)) {
        return Ok(None);
    }
    let method = parts.method.as_str().to_ascii_lowercase();
    let only = match path {
        Some(ResourcePath { name: None, .. }) if matches!(verb, "list" | "watch") => {
            only_name(parts.uri.query().unwrap_or(""))
        }
        _ => None,
    };
    let asked = match path {
        None => Attributes {
            verb: &method,
            target: Target::Path(url),
        },
        Some(path) => {
            let is_namespace = path.group.is_empty() && path.resource == "namespaces";
            let target = Target::Resource {
                group: &path.group,
                resource: &path.resource,
                subresource: path.subresource.as_deref().unwrap_or(""),
                // A namespace is in itself, so that a Role in it can apply to it.
                namespace: match &path.namespace {
                    None if is_namespace => path.name.as_deref().unwrap_or(""),
                    other => other.as_deref().unwrap_or(""),
                },
                name: path.name.as_deref().or(only.as_deref()).unwrap_or(""),
            };
            let verb = if verb == "apply" { "patch" } else { verb };
            Attributes { verb, target }
        }
    };
    let other = wanted
        .map(|wanted| wanted.become_by(user, &asked, &server.authorizer))
        .transpose()?;
    let user = other.as_ref().unwrap_or(user);
    // Without RBAC, the public permissions are listed here.
    let is_public = server.authorizer.rbac().is_none()
        && method == "get"
        && path.is_none()
        && matches!(url.trim_end_matches('/'), "/version");
    if !user.is_master() && !is_open(url) && !is_public {
        server.authorizer.check(user, &asked)?;
    }
    Ok(other)
}

/// The name in the field selector of a list or watch, if it selects a single object.
fn only_name(query: &str) -> Option<String> {
    if !query.contains("fieldSelector") {
        return None;
    }
    let query = Query::parse(query);
    let fields = windlass_objects::selector::FieldSelector::parse(query.get("fieldSelector")?).ok()?;
    fields.exact("metadata.name").map(str::to_owned)
}

/// Whether a request has a body that matters. Others are answered without waiting for one.
pub(crate) fn takes_body(parts: &Parts) -> bool {
    !matches!(parts.method, http::Method::GET | http::Method::HEAD) && parse_path(parts.uri.path()).is_some()
}

/// Authorizes a request before its body is read.
pub(crate) fn admit(server: &Inner, user: &UserInfo, parts: &Parts) -> Result<(), ApiError> {
    let path = parse_path(parts.uri.path());
    let query = Query::parse(parts.uri.query().unwrap_or(""));
    authorize(server, user, parts, path.as_ref(), verb(parts, path.as_ref(), &query)).map(|_| ())
}

async fn answer_resource(
    server: &Arc<Inner>,
    user: &UserInfo,
    parts: Parts,
    body: &Bytes,
    query: Query,
    path: ResourcePath,
    load: Load<'_>,
) -> Answer {
    let verb = load.verb;
    // Subresources cannot be watched. The right to watch one is none to the object itself.
    if path.watch && path.subresource.is_some() {
        return Err(paths::unknown(parts.uri.path()));
    }
    if path.group.is_empty() && path.resource == "pods" && path.subresource.as_deref() == Some("portforward") {
        let namespace = path.namespace.unwrap_or_default();
        return portforward::upgrade(server, parts, &namespace, path.name.as_deref().unwrap_or(""));
    }
    let mut asked = RequestContext {
        server,
        user,
        parts: &parts,
        body,
        view: View::Full,
        query,
    };
    if let Some(answer) = access_review::answer(&asked, &path) {
        return answer;
    }
    let registry = server.registry();
    let resource = registry
        .find(&path.group, &path.version, &path.resource)
        .ok_or_else(|| paths::unknown(parts.uri.path()))?;
    // Only reads may be in all namespaces: custom resources have no path for other verbs.
    let unplaced = resource.is_custom() && path.namespace.is_none() && !matches!(verb, "list" | "watch");
    if resource.namespaced && unplaced || !resource.namespaced && path.namespace.is_some() {
        return Err(paths::unknown(parts.uri.path()));
    }
    let subject = match verb {
        "watch" => Subject::Watch,
        "list" | "deletecollection" => Subject::Collection,
        _ => Subject::One,
    };
    asked.view = negotiation::negotiate(&parts.headers, &resource, subject)?;
    if let View::Table(_, include) = &mut asked.view {
        let wanted = asked.query.get("includeObject");
        *include = Include::parse(wanted).ok_or_else(|| {
            ApiError::bad_request(format!(
                "Unable to convert to Table as requested: includeObject: Invalid value: \"{}\": must be 'Metadata', 'Object', 'None', or empty",
                wanted.unwrap_or("")
            ))
        })?;
    }
    if path.watch && verb != "watch" {
        return Err(ApiError::method_not_allowed(verb));
    }
    let answer = if verb == "watch" {
        let place = watch_place(server, load.sender)?;
        let options = asked.watch_options(&path)?;
        let is_heavy = asked.begins_heavy(&resource, path.namespace.as_deref(), &options);
        let namespace = path.namespace.as_deref();
        let answer = Box::pin(watch::watch(server, &resource, namespace, options, asked.view, place));
        if is_heavy && !load.is_heavy {
            let turn = server.heavy.enter(load.sender)?;
            Box::pin(server.heavy.run(turn, load.limit, answer)).await
        } else {
            answer.await
        }
    } else if !load.is_heavy && asked.is_heavy(&resource, &path, load) {
        let turn = server.heavy.enter(load.sender)?;
        let answer = Box::pin(async { load.encode(server, asked.answer(&resource, &path).await?) });
        Box::pin(server.heavy.run(turn, load.limit, answer)).await
    } else {
        asked.answer(&resource, &path).await
    };
    let Some(words) = &resource.deprecation else {
        return answer;
    };
    match answer {
        Ok(mut response) => {
            warnings::add(&mut response, words);
            Ok(response)
        }
        Err(error) => Err(error.warned(&mut vec![words.clone()])),
    }
}

/// The place of a watch among those of its user. Members of `system:masters` are not counted.
fn watch_place(server: &Inner, user: &UserInfo) -> Result<Option<Place<()>>, ApiError> {
    if server.heavy.is_exempt(user) {
        return Ok(None);
    }
    let place = server.watches.take(&user.name, WATCHES_OF_A_USER);
    place
        .map(Some)
        .ok_or_else(|| ApiError::too_many("watches", WATCHES_OF_A_USER))
}

impl RequestContext<'_> {
    /// Whether a request with a small body costs much all the same.
    fn is_heavy(&self, resource: &Resource, path: &ResourcePath, load: Load<'_>) -> bool {
        // Definitions are compiled, and grants are compared with all rights of their writer.
        let is_complex =
            resource.special == Special::Crd || resource.group == windlass_rbac::GROUP && !self.user.is_master();
        let is_write = !matches!(load.verb, "get" | "list");
        if self.has_long_query() || is_write && is_complex {
            return true;
        }
        let cost = Cost {
            store: &self.server.store,
            resource,
            namespace: path.namespace.as_deref(),
        };
        let name = path.name.as_deref().unwrap_or("");
        match load.verb {
            "get" => {
                let decodes = self.view != View::Full || load.form.rewrites() || path.subresource.is_some();
                cost.of_one(name, decodes)
            }
            "list" => ListOptions::parse(&self.query)
                .is_ok_and(|options| cost.of_list(&options, self.view != View::Full || load.form.rewrites())),
            "deletecollection" => ListOptions::parse(&self.query).is_ok_and(|options| cost.of_list(&options, true)),
            "create" if path.subresource.as_deref() == Some("eviction") => cost.of_eviction(name),
            // A subresource of what is stored is created, too.
            "create" | "update" | "patch" | "apply" | "delete" => resource.is_costly() || cost.of_one(name, true),
            _ => false,
        }
    }

    fn has_long_query(&self) -> bool {
        let query = self.parts.uri.query();
        query.is_some_and(|query| query.len() > LIGHT_QUERY_BYTES)
    }

    /// Whether a watch begins with objects that cost as much as a heavy list. It encodes them later.
    fn begins_heavy(&self, resource: &Resource, namespace: Option<&str>, options: &ListOptions) -> bool {
        let cost = Cost {
            store: &self.server.store,
            resource,
            namespace,
        };
        options.begins_with_objects() && (self.has_long_query() || cost.of_watch(options))
    }

    fn watch_options(&self, path: &ResourcePath) -> Result<ListOptions, ApiError> {
        let selectors = ["labelSelector", "fieldSelector"].map(|name| self.query.get(name).map_or(0, str::len));
        if selectors.iter().sum::<usize>() > WATCH_SELECTOR_BYTES {
            // They are compared with every change, as long as the watch lasts.
            return Err(ApiError::new(
                413,
                "RequestEntityTooLarge",
                format!("the selectors of a watch are too long: limit is {WATCH_SELECTOR_BYTES} bytes"),
            ));
        }
        let mut options = ListOptions::parse(&self.query)?;
        if let Some(name) = &path.name {
            options.fields.0.push(windlass_objects::selector::FieldTerm {
                field: "metadata.name".to_owned(),
                equal: true,
                value: name.clone(),
            });
        }
        Ok(options)
    }

    async fn answer(&self, resource: &Arc<Resource>, path: &ResourcePath) -> Answer {
        let namespace = path.namespace.as_deref();
        let method = self.parts.method.as_str();
        if let Some(methods) = path.subresource.as_deref().and_then(|sub| resource.methods(sub))
            && !methods.contains(&method)
        {
            return Err(ApiError::method_not_allowed(method));
        }
        match (&path.name, path.subresource.as_deref()) {
            (None, _) => self.collection(resource, namespace, method).await,
            // For a custom resource, the name in the object counts, not the one in the path.
            (Some(_), None) if resource.is_custom() && method == "POST" => {
                self.collection(resource, namespace, method).await
            }
            (Some(name), Some(part)) if resource.is_custom() && !resource.has_part(part) => {
                Err(ApiError::not_found(&resource.group, &resource.plural, name))
            }
            (Some(_), Some(_)) if resource.is_custom() && matches!(method, "DELETE" | "POST") => {
                let verb = if method == "POST" { "create" } else { "delete" };
                Err(ApiError::not_supported(&resource.group, &resource.plural, verb))
            }
            (Some(name), None) => self.named(resource, namespace, name, Part::Main, method).await,
            (Some(name), Some("status")) if resource.status && method != "DELETE" => {
                self.named(resource, namespace, name, Part::Status, method).await
            }
            (Some(name), Some("finalize")) if resource.special == Special::Namespace => {
                if method != "PUT" {
                    return Err(ApiError::method_not_allowed(method));
                }
                self.named(resource, namespace, name, Part::Finalize, method).await
            }
            (Some(name), Some("scale")) if resource.scale.is_some() => {
                scale::answer(self, resource, namespace.unwrap_or(""), name).await
            }
            (Some(name), Some("eviction")) if resource.special == Special::Pod && method == "POST" => {
                Box::pin(pods::evict(self, resource, namespace.unwrap_or(""), name)).await
            }
            (Some(name), Some("binding")) if resource.special == Special::Pod && method == "POST" => {
                pods::bind(self, resource, namespace.unwrap_or(""), name).await
            }
            (Some(name), Some("ephemeralcontainers"))
                if resource.special == Special::Pod && matches!(method, "GET" | "PUT" | "PATCH") =>
            {
                self.named(resource, namespace, name, Part::Containers, method).await
            }
            (Some(name), Some(part @ ("log" | "exec" | "attach"))) if resource.special == Special::Pod => {
                read::find(self.server, resource, namespace.unwrap_or(""), name)?;
                Err(ApiError::bad_request(format!(
                    "this API server runs no containers: pod {name:?} has nothing to {part}"
                )))
            }
            // For a custom resource, the subresource exists only if its definition has it.
            (Some(name), Some(_)) if resource.is_custom() => {
                Err(ApiError::not_found(&resource.group, &resource.plural, name))
            }
            _ => Err(ApiError::no_resource()),
        }
    }

    fn place<'n>(resource: &Resource, namespace: Option<&'n str>) -> Result<&'n str, ApiError> {
        match namespace {
            None if resource.namespaced => Err(ApiError::bad_request(
                "an empty namespace may not be set when a resource name is provided",
            )),
            other => Ok(other.unwrap_or("")),
        }
    }

    async fn collection(&self, resource: &Arc<Resource>, namespace: Option<&str>, method: &str) -> Answer {
        match method {
            "GET" => {
                let options = ListOptions::parse(&self.query)?;
                read::list(self.server, resource, namespace, &options, self.view).await
            }
            "POST" => {
                if namespace.is_none() && resource.namespaced {
                    return Err(ApiError::method_not_allowed("create"));
                }
                let options = WriteOptions::parse(&self.query, WriteVerb::Create)?;
                let (object, duplicates) = self.object_of(resource)?;
                let call = self.call(resource, namespace.unwrap_or(""), &options);
                let outcome = call.create(object, &duplicates, false, None).await?;
                self.outcome(resource, &outcome)
            }
            "DELETE" => {
                let unplaced = namespace.is_none() && resource.namespaced;
                if unplaced || resource.special == Special::Namespace {
                    return Err(ApiError::method_not_allowed("deletecollection"));
                }
                let delete = self.delete_options()?;
                let options = ListOptions::parse(&self.query)?;
                delete_collection::delete(self, resource, namespace, &options, &delete).await
            }
            "PUT" | "PATCH" if resource.is_custom() => {
                if method == "PATCH" {
                    decoding::check_patch_type(decoding::media_type(&self.parts.headers))?;
                }
                Err(ApiError::bad_request("name must be provided"))
            }
            _ => Err(Self::no_method(resource, method)),
        }
    }

    async fn named(
        &self,
        resource: &Arc<Resource>,
        namespace: Option<&str>,
        name: &str,
        part: Part,
        method: &str,
    ) -> Answer {
        let namespace = Self::place(resource, namespace)?;
        match method {
            "GET" => {
                read::check_version(self.server, self.query.get("resourceVersion"))?;
                let record = read::find_served(self.server, resource, namespace, name).await?;
                read::answer(self.server, resource, &record, self.view, 200)
            }
            "PUT" => {
                let options = WriteOptions::parse(&self.query, WriteVerb::Update)?;
                let (object, duplicates) = self.object_of(resource)?;
                let call = self.call(resource, namespace, &options);
                let mutation = Mutation::Replace(object, duplicates);
                let outcome = call.change(name, &mutation, part).await?;
                self.outcome(resource, &outcome)
            }
            "PATCH" => {
                let media = decoding::media_type(&self.parts.headers);
                if !resource.is_custom() && !PATCH_TYPES.split(", ").any(|t| t == media) {
                    return Err(ApiError::unrouted_media_type());
                }
                let options = WriteOptions::parse(&self.query, self.write_verb())?;
                let mutation = match self.patch(resource) {
                    // A patch is validated only if its object exists; an apply creates the object.
                    Err(error) if error.code == 400 && self.write_verb() != WriteVerb::Apply => {
                        read::find(self.server, resource, namespace, name)?;
                        return Err(error);
                    }
                    mutation => mutation?,
                };
                let mut call = self.call(resource, namespace, &options);
                if matches!(mutation, Mutation::Apply(..)) {
                    call.manager = options.field_manager.clone().unwrap_or_default();
                }
                let outcome = call.change(name, &mutation, part).await?;
                self.outcome(resource, &outcome)
            }
            "DELETE" => {
                let delete = self.delete_options()?;
                let options = WriteOptions::default();
                let call = self.call(resource, namespace, &options);
                let done = call.delete(name, &delete).await?;
                let object = if done.gone {
                    call.success(&done.object)
                } else {
                    done.object
                };
                let mut response = if windlass_objects::metadata::text(&object, "kind") == "Status" {
                    body::json(200, &object)
                } else {
                    read::answer_value(self.server, resource, &object, self.view, 200)?
                };
                for words in &done.warnings {
                    warnings::add(&mut response, words);
                }
                Ok(response)
            }
            _ => Err(Self::no_method(resource, method)),
        }
    }

    /// The error for an unsupported method.
    fn no_method(resource: &Resource, method: &str) -> ApiError {
        if resource.is_custom() {
            ApiError::not_supported(&resource.group, &resource.plural, "")
        } else {
            ApiError::method_not_allowed(method)
        }
    }
}

#[cfg(test)]
mod tests;
