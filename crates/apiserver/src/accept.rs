//! In what form an answer is wanted.

use http::HeaderMap;

/// The form of objects in an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum View {
    /// Whole.
    Full,
    /// Only their metadata.
    Metadata,
    /// As rows of a table.
    Table,
}

/// Reads the Accept header: the first form that is known here. Everything is answered in JSON.
pub(crate) fn view(headers: &HeaderMap) -> View {
    for value in headers.get_all(http::header::ACCEPT) {
        for part in value.to_str().unwrap_or("").split(',') {
            let mut params = part.split(';').map(str::trim);
            let media = params.next().unwrap_or("");
            if !matches!(media, "application/json" | "*/*" | "application/*" | "") {
                continue;
            }
            let wanted = params.find_map(|p| p.strip_prefix("as="));
            match wanted {
                None => return View::Full,
                Some("Table") => return View::Table,
                Some("PartialObjectMetadata" | "PartialObjectMetadataList") => return View::Metadata,
                Some(_) => {}
            }
        }
    }
    View::Full
}

/// Whether aggregated discovery is wanted, and under which media type.
pub(crate) fn wants_aggregated(headers: &HeaderMap) -> bool {
    headers.get_all(http::header::ACCEPT).iter().any(|value| {
        value.to_str().unwrap_or("").split(',').any(|part| {
            part.contains("g=apidiscovery.k8s.io")
                && part.contains("v=v2")
                && !part.contains("v=v2beta1")
                && part.trim().starts_with("application/json")
        })
    })
}
