//! The names of artifacts.

use std::fmt;

use crate::error::Error;
use windlass_http_client::{Scheme, Url};

/// The location of an artifact.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Reference {
    /// The registry.
    pub(crate) host: Url,
    pub(crate) repository: String,
    pub(crate) tag: Option<String>,
    /// `sha256:<hex>`.
    pub(crate) digest: Option<String>,
}

impl Reference {
    pub(crate) fn parse(text: &str) -> Result<Self, Error> {
        let text = text.trim();
        let form = "artifacts are named {host}/{repository}, with :{tag} or @sha256:{digest} after it or without";
        let wrong = || Error::invalid_url(text, form);
        let bare = text.strip_prefix("oci://").unwrap_or(text);
        let (scheme, bare) = match bare.strip_prefix("http://") {
            Some(bare) => (Scheme::Http, bare),
            None => (Scheme::Https, bare.strip_prefix("https://").unwrap_or(bare)),
        };
        let (host, path) = bare.split_once('/').ok_or_else(wrong)?;
        let host = Url::parse(&format!("{}://{host}/", scheme.name())).map_err(|_| wrong())?;
        let (path, digest) = match path.split_once('@') {
            Some((path, digest)) => (path, Some(digest)),
            None => (path, None),
        };
        let (path, tag) = match path.rsplit_once(':') {
            Some((path, tag)) => (path, Some(tag)),
            None => (path, None),
        };
        let part = |part: &str| {
            !part.is_empty()
                && part
                    .bytes()
                    .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b"._-".contains(&b))
        };
        let digest_ok = digest.is_none_or(|digest| {
            let hex = digest.strip_prefix("sha256:");
            hex.is_some_and(|hex| hex.len() == 64 && hex.bytes().all(|b| b.is_ascii_hexdigit()))
        });
        if !path.split('/').all(part) || !tag.is_none_or(is_tag) || !digest_ok {
            return Err(wrong());
        }
        Ok(Self {
            host,
            repository: path.to_owned(),
            tag: tag.map(str::to_owned),
            digest: digest.map(str::to_owned),
        })
    }

    /// A URL below the repository's.
    pub(crate) fn at(&self, path: &str) -> Url {
        self.host.at(&format!("/v2/{}/{path}", self.repository))
    }
}

/// Whether a text is a valid tag.
pub(crate) fn is_tag(text: &str) -> bool {
    let first = text
        .bytes()
        .next()
        .is_some_and(|b| b.is_ascii_alphanumeric() || b == b'_');
    first && text.len() <= 128 && text.bytes().all(|b| b.is_ascii_alphanumeric() || b"._-".contains(&b))
}

/// Whether a text is a digest that can be checked: the algorithms of the OCI image specification that registries use.
pub(crate) fn is_digest(text: &str) -> bool {
    let hexadecimal = |text: &str| text.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b));
    match text.split_once(':') {
        Some(("sha256", hex)) => hex.len() == 64 && hexadecimal(hex),
        Some(("sha512", hex)) => hex.len() == 128 && hexadecimal(hex),
        _ => false,
    }
}

impl fmt::Display for Reference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.host.scheme == Scheme::Http {
            f.write_str("http://")?;
        }
        write!(f, "{}/{}", self.host.authority(), self.repository)?;
        if let Some(tag) = &self.tag {
            write!(f, ":{tag}")?;
        }
        match &self.digest {
            Some(digest) => write!(f, "@{digest}"),
            None => Ok(()),
        }
    }
}
