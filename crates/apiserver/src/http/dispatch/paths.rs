//! Paths other than resources: discovery, OpenAPI, health, metrics.

use http::Method;
use http::request::Parts;

use crate::builtin;
use crate::error::ApiError;
use crate::http::context::Answer;
use crate::http::{access_review, body, discovery, health, negotiation, openapi, openapi_v2};
use crate::state::Inner;

/// Answers a path.
pub(super) async fn answer(server: &Inner, parts: &Parts) -> Answer {
    let full = parts.uri.path();
    if let Some(answer) = health::answer(full, parts.uri.query().unwrap_or(""), server.shutdown.is_cancelled()) {
        return answer;
    }
    let path = full.strip_suffix('/').unwrap_or(full);
    if !matches!(parts.method, Method::GET | Method::HEAD) && is_routed(path) {
        return Err(ApiError::method_not_allowed(parts.method.as_str()));
    }
    match path {
        "/version" => Ok(body::json(200, &discovery::version(server))),
        "/metrics" if parts.method == Method::DELETE => {
            server.counters.reset();
            Ok(body::with_type(200, "text/plain; charset=utf-8", "metrics reset\n"))
        }
        "/metrics" => Ok(body::with_type(
            200,
            "text/plain; version=0.0.4; charset=utf-8; escaping=underscores",
            server.counters.render(),
        )),
        "" => Ok(body::json(200, &discovery::paths(&server.registry()))),
        "/openapi/v2" => openapi_v2::answer(server, &parts.headers).await,
        "/openapi/v3" => Ok(openapi::index(server).await),
        _ if path.starts_with("/openapi/v3/") => {
            openapi::document(server, &path["/openapi/v3/".len()..], &parts.headers, parts.uri.query()).await
        }
        "/api" | "/apis" => discovery::roots(server, path, &parts.headers).await,
        _ => {
            let answer = discovery::answer(server, path).await.ok_or_else(|| unknown(path))?;
            negotiation::check(&parts.headers)?;
            Ok(answer)
        }
    }
}

/// Whether a path accepts GET only, as in kube-apiserver's router. Other paths answer all methods alike.
fn is_routed(path: &str) -> bool {
    let mut parts = path.split('/').skip(1);
    match (parts.next(), parts.next(), parts.next(), parts.next()) {
        (Some("api" | "version"), None, None, None) | (Some("api"), Some("v1"), None, None) => true,
        (Some("apis"), Some(group), Some(version), None) => {
            builtin::resources()
                .iter()
                .any(|r| r.group == group && r.version == version)
                || access_review::VIRTUAL
                    .iter()
                    .any(|(g, v, _)| *g == group && *v == version)
        }
        _ => false,
    }
}

/// The error for an unknown path.
pub(super) fn unknown(path: &str) -> ApiError {
    let mut parts = path.split('/').skip(1);
    let known = match parts.next() {
        Some("api" | "version") => true,
        Some("apis") => parts
            .next()
            .is_some_and(|group| builtin::resources().iter().any(|r| r.group == group)),
        _ => false,
    };
    if known {
        ApiError::no_resource()
    } else {
        ApiError::no_page()
    }
}
