//! Client input, parsed without a server: bodies, patches, the query of a list. Pure, and total: for any input, the result is a
//! value or an error for the client. The fuzz targets check this.

use http::{HeaderMap, HeaderValue, header};
use serde_json::Value;

use crate::codec::decoding;
use crate::error::ApiError;
use crate::http::request::Query;
use crate::verbs::continue_token::Continue;
use crate::verbs::mutation::Mutation;
use crate::verbs::options::ListOptions;

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

    /// Otherwise reading and writing would change an object, and repeated applies would never settle.
    #[test]
    fn numbers_are_read_as_what_was_written() {
        let check = |text: &str| {
            let read = object("application/yaml", text.as_bytes()).unwrap();
            let again = object("application/json", read.to_string().as_bytes()).unwrap();
            assert_eq!(again, read, "{text}");
            assert_eq!(read.as_f64(), text.trim().parse().ok(), "{text}");
        };
        for long in [
            "\n4444444444444444444444444444444444444444444\n",
            "111111111111100200011068937977120715206",
            "5588888866666666666888488888888888888888888555",
            "2222222222222222222222",
            "111111111111111055555111555555",
            "1111111111111114111111411111",
        ] {
            check(long);
        }
        for n in 1..200_i32 {
            check(&format!("{:?}", f64::from(n) / 7.0));
            check(&format!("{:?}", f64::from(n) * 1e-30 / 3.0));
        }
    }

    #[test]
    fn what_clients_send_is_read_or_refused() {
        assert_eq!(object("application/yaml", b"a: [1, yes]").unwrap()["a"][0], 1);
        assert_eq!(object("text/plain", b"{}").unwrap_err().code, 415);
        assert_eq!(patch("application/merge-patch+json", b"[]").unwrap_err().code, 400);
        assert!(list_query("labelSelector=a%20in%20(b,c)&limit=3").is_ok());
        assert_eq!(list_query("continue=nonsense").unwrap_err().code, 400);
    }
}
