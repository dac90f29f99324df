//! What clients send, read without a server: bodies, patches, the query of a list. Pure, and total: whatever comes in, the answer is a value
//! or an error for the client. The fuzz targets hold them to that.

use http::{HeaderMap, HeaderValue, header};
use serde_json::Value;

use crate::change::Mutation;
use crate::continues::Continue;
use crate::decoding;
use crate::error::ApiError;
use crate::options::ListOptions;
use crate::request::Query;

/// The object in a body of a media type (JSON, YAML or protobuf).
pub fn object(media_type: &str, body: &[u8]) -> Result<Value, ApiError> {
    let mut headers = HeaderMap::new();
    if let Ok(value) = HeaderValue::from_str(media_type) {
        headers.insert(header::CONTENT_TYPE, value);
    }
    decoding::decode(body, decoding::form(&headers)?).map(|(object, _)| object)
}

/// The patch in a body of a media type.
pub fn patch(media_type: &str, body: &[u8]) -> Result<Value, ApiError> {
    match decoding::patch(media_type, false, body)? {
        Mutation::Replace(value, _)
        | Mutation::Json(value, _)
        | Mutation::Merge(value, _)
        | Mutation::Strategic(value, _)
        | Mutation::Apply(value, _) => Ok(value),
        Mutation::Scale(_) | Mutation::Bind(_) => Err(ApiError::internal("a patch is read as something else")),
    }
}

/// Checks the query of a list or watch: selectors, limits, revisions, the token that continues a list.
pub fn list_query(query: &str) -> Result<(), ApiError> {
    let options = ListOptions::parse(&Query::parse(query))?;
    let bad = |why: String| ApiError::bad_request(why);
    options.revision().map_err(bad)?;
    let token = options.continues.as_deref().map(Continue::decode);
    token.transpose().map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_clients_send_is_read_or_refused() {
        assert_eq!(object("application/yaml", b"a: [1, yes]").unwrap()["a"][0], 1);
        assert_eq!(object("text/plain", b"{}").unwrap_err().code, 415);
        assert_eq!(patch("application/merge-patch+json", b"[]").unwrap_err().code, 400);
        assert!(list_query("labelSelector=a%20in%20(b,c)&limit=3").is_ok());
        assert_eq!(list_query("continue=nonsense").unwrap_err().code, 400);
    }
}
