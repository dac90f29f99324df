//! Content negotiation: the form of a response, from the Accept headers.

use http::HeaderMap;

use crate::error::ApiError;
use crate::objects::resource::Resource;
use crate::objects::view::Include;
use crate::objects::view::Meta;
use crate::objects::view::View;

/// The encoding of a response.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Media {
    #[default]
    Json,
    Yaml,
}

/// The subject of a response, which determines the possible encodings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Subject {
    One,
    Collection,
    Watch,
}

const TYPES: &str = "application/json, application/yaml, application/vnd.kubernetes.protobuf";
const WATCH_TYPES: &str = "application/json;stream=watch, application/vnd.kubernetes.protobuf;stream=watch";

struct Clause<'a> {
    media: &'a str,
    params: Vec<(&'a str, &'a str)>,
    weight: f32,
}

impl<'a> Clause<'a> {
    fn param(&self, key: &str) -> Option<&'a str> {
        self.params.iter().find(|(k, _)| *k == key).map(|(_, v)| *v)
    }

    fn written_as(&self) -> Option<Media> {
        match self.media {
            "application/json" | "*/*" | "application/*" => Some(Media::Json),
            "application/yaml" => Some(Media::Yaml),
            _ => None,
        }
    }

    fn view(&self) -> Option<View> {
        let Some(kind) = self.param("as") else {
            let is_plain = self.param("g").is_none() && self.param("v").is_none();
            return is_plain.then_some(View::Full);
        };
        let meta = match (self.param("g")?, self.param("v")?) {
            ("meta.k8s.io", "v1") => Meta::V1,
            ("meta.k8s.io", "v1beta1") => Meta::V1beta1,
            _ => return None,
        };
        match kind {
            "Table" => Some(View::Table(meta, Include::default())),
            "PartialObjectMetadata" => Some(View::Metadata(meta)),
            "PartialObjectMetadataList" => Some(View::MetadataList(meta)),
            _ => None,
        }
    }
}

/// The clauses of the Accept headers, most preferred first.
fn clauses(headers: &HeaderMap) -> Vec<Clause<'_>> {
    let mut out: Vec<Clause<'_>> = headers
        .get_all(http::header::ACCEPT)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .filter(|part| !part.trim().is_empty())
        .map(|part| {
            let mut parts = part.split(';').map(str::trim);
            let media = parts.next().unwrap_or("");
            let params: Vec<_> = parts.map(|p| p.split_once('=').unwrap_or((p, ""))).collect();
            let weight = params.iter().find(|(k, _)| *k == "q").and_then(|(_, q)| q.parse().ok());
            Clause {
                media,
                params,
                weight: weight.unwrap_or(1.0),
            }
        })
        .collect();
    out.sort_by(|a, b| b.weight.total_cmp(&a.weight));
    out
}

/// The first clause that can be satisfied.
fn choose(clauses: &[Clause<'_>]) -> Option<(Media, View)> {
    if clauses.is_empty() {
        return Some((Media::Json, View::Full));
    }
    clauses.iter().find_map(|c| Some((c.written_as()?, c.view()?)))
}

/// The encoding of a response, for any subject.
pub(crate) fn media(headers: &HeaderMap) -> Media {
    clauses(headers).iter().find_map(Clause::written_as).unwrap_or_default()
}

/// The form of a response about a resource.
pub(crate) fn negotiate(headers: &HeaderMap, resource: &Resource, subject: Subject) -> Result<View, ApiError> {
    let clauses = clauses(headers);
    // The router of built-in kinds selects paths by media type, before it checks parameters.
    let named = |c: &Clause<'_>| c.media == "*/*" || TYPES.split(", ").any(|t| t == c.media);
    if !resource.is_custom() && !clauses.is_empty() && !clauses.iter().any(named) {
        return Err(ApiError::not_available(&match subject {
            Subject::One => TYPES.to_owned(),
            Subject::Collection | Subject::Watch => format!("{TYPES}, {WATCH_TYPES}"),
        }));
    }
    let watches = subject == Subject::Watch;
    choose(&clauses)
        .filter(|(media, _)| !watches || *media == Media::Json)
        .map(|(_, view)| view)
        .ok_or_else(|| ApiError::not_acceptable(if watches { WATCH_TYPES } else { TYPES }))
}

/// Checks the encoding of a response that is not about a resource.
pub(crate) fn check(headers: &HeaderMap) -> Result<(), ApiError> {
    choose(&clauses(headers))
        .map(|_| ())
        .ok_or_else(|| ApiError::not_acceptable(TYPES))
}

/// Whether the client asks for aggregated discovery.
pub(crate) fn aggregated(headers: &HeaderMap) -> Result<bool, ApiError> {
    let clauses = clauses(headers);
    if clauses.is_empty() {
        return Ok(false);
    }
    for clause in clauses.iter().filter(|c| c.written_as().is_some()) {
        match (clause.param("g"), clause.param("v"), clause.param("as")) {
            (_, _, None) => return Ok(false),
            (Some("apidiscovery.k8s.io"), Some("v2"), Some("APIGroupDiscoveryList")) => return Ok(true),
            _ => {}
        }
    }
    Err(ApiError::not_acceptable(TYPES))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(accept: &str, want: Option<(Media, View)>) {
        let mut headers = HeaderMap::new();
        headers.insert(http::header::ACCEPT, accept.parse().unwrap());
        assert_eq!(choose(&clauses(&headers)), want, "{accept}");
    }

    #[test]
    fn the_first_form_that_is_known_is_taken() {
        let table = "application/json;as=Table;v=v1;g=meta.k8s.io";
        check("", Some((Media::Json, View::Full)));
        check("*/*", Some((Media::Json, View::Full)));
        let rows = Some((Media::Json, View::Table(Meta::V1, Include::Metadata)));
        check(table, rows);
        check(&format!("text/html,{table}"), rows);
        check(
            "application/json;as=PartialObjectMetadata;v=v1beta1;g=meta.k8s.io",
            Some((Media::Json, View::Metadata(Meta::V1beta1))),
        );
        check("application/json;as=Table;v=v2;g=meta.k8s.io", None);
        check("application/json;as=Other;v=v1;g=meta.k8s.io", None);
        check(
            "application/json;q=0.1,application/yaml;q=0.2",
            Some((Media::Yaml, View::Full)),
        );
        check(
            "application/vnd.kubernetes.protobuf,application/json",
            Some((Media::Json, View::Full)),
        );
        check("text/html", None);
    }
}
