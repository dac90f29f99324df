//! URLs: the parts that fetching needs, without passwords in messages.

use std::fmt;

use windlass_meta::beginning;

use crate::error::{Error, LONGEST_SHOWN};

/// The most bytes of a path. Google's registries have signed tokens of some KiB in paths.
const LONGEST_PATH: usize = 16 << 10;
/// The most bytes of a name of a host (RFC 1035).
const LONGEST_HOST: usize = 253;

/// The scheme of an address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scheme {
    /// Without TLS.
    Http,
    /// With TLS.
    Https,
}

/// An absolute HTTP or HTTPS URL. It is printed without its query, which has the signature of signed URLs.
#[derive(Clone, PartialEq, Eq)]
pub struct Url {
    /// With or without TLS.
    pub scheme: Scheme,
    /// Name or address, in lower case; IPv6 addresses with their brackets.
    pub host: String,
    port: Option<u16>,
    /// With its leading slash, still encoded.
    pub path: String,
    query: Option<String>,
}

impl Url {
    /// Reads an address. Errors do not repeat its passwords.
    pub fn parse(text: &str) -> Result<Self, Error> {
        let wrong = |why: &str| Error::invalid_url(text, why);
        let (scheme, rest) = match text.split_once("://") {
            Some((scheme, rest)) if scheme.eq_ignore_ascii_case("https") => (Scheme::Https, rest),
            Some((scheme, rest)) if scheme.eq_ignore_ascii_case("http") => (Scheme::Http, rest),
            _ => return Err(wrong("it has to begin with https://")),
        };
        let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
        let (authority, tail) = rest.split_at(end);
        if authority.contains('@') {
            return Err(wrong(
                "user names, passwords and tokens do not belong into it: put them into the variables of the provider",
            ));
        }
        let (host, port) = split_port(authority).ok_or_else(|| wrong("what follows the host is not a port"))?;
        let proper = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_');
        let bracketed = host.starts_with('[')
            && host.ends_with(']')
            && host[1..host.len() - 1].parse::<std::net::Ipv6Addr>().is_ok();
        if host.is_empty() || !(bracketed || host.chars().all(proper)) {
            return Err(wrong("its host is not a name and not an address"));
        }
        if host.len() > LONGEST_HOST {
            return Err(wrong("its host is longer than names are"));
        }
        let tail = tail.split('#').next().unwrap_or_default();
        let (path, query) = match tail.split_once('?') {
            Some((path, query)) => (path, Some(query.to_owned())),
            None => (tail, None),
        };
        if path.len() > LONGEST_PATH {
            return Err(wrong("its path has more than 16 KiB"));
        }
        if !path
            .chars()
            .chain(query.iter().flat_map(|query| query.chars()))
            .all(|c| c.is_ascii_graphic() && !"<>\"\\^`{|}".contains(c))
        {
            return Err(wrong("it has characters that have to be encoded with %"));
        }
        Ok(Self {
            scheme,
            host: host.to_ascii_lowercase(),
            port,
            path: if path.is_empty() {
                "/".to_owned()
            } else {
                path.to_owned()
            },
            query,
        })
    }

    /// The port of the address, or that of its scheme.
    pub fn port(&self) -> u16 {
        self.port.unwrap_or(match self.scheme {
            Scheme::Http => 80,
            Scheme::Https => 443,
        })
    }

    /// Host and the port that was named.
    pub fn authority(&self) -> String {
        match self.port {
            Some(port) => format!("{}:{port}", self.host),
            None => self.host.clone(),
        }
    }

    /// Scheme, host and the port that was named.
    pub fn origin(&self) -> String {
        format!("{}://{}", self.scheme.name(), self.authority())
    }

    /// The part of a request line.
    pub fn path_and_query(&self) -> String {
        match &self.query {
            Some(query) => format!("{}?{query}", self.path),
            None => self.path.clone(),
        }
    }

    /// Scheme, host and port are the same.
    pub fn same_origin(&self, other: &Self) -> bool {
        (self.scheme, &self.host, self.port()) == (other.scheme, &other.host, other.port())
    }

    /// The segments of the path, without empty ones at both ends.
    pub fn segments(&self) -> Vec<&str> {
        self.path
            .trim_matches('/')
            .split('/')
            .filter(|segment| !segment.is_empty())
            .collect()
    }

    /// Another path at the same origin.
    #[must_use]
    pub fn at(&self, path: &str) -> Self {
        let (path, query) = match path.split_once('?') {
            Some((path, query)) => (path, Some(query.to_owned())),
            None => (path, None),
        };
        Self {
            path: path.to_owned(),
            query,
            ..self.clone()
        }
    }

    /// The target of a redirect or an upload.
    pub fn join(&self, location: &str) -> Result<Self, Error> {
        // A query may contain an address.
        let is_absolute = location
            .split_once("://")
            .is_some_and(|(scheme, _)| !scheme.contains(['/', '?', '#']));
        if is_absolute {
            Self::parse(location)
        } else if let Some(rest) = location.strip_prefix("//") {
            Self::parse(&format!("{}://{rest}", self.scheme.name()))
        } else if location.starts_with('/') {
            Self::parse(&format!("{}{location}", self.origin()))
        } else {
            let folder = self.path.rsplit_once('/').map_or("", |(folder, _)| folder);
            Self::parse(&format!("{}{folder}/{location}", self.origin()))
        }
    }

    /// All of it, for keys of caches. Never printed.
    pub fn whole(&self) -> String {
        format!("{}{}", self.origin(), self.path_and_query())
    }
}

impl Scheme {
    /// As addresses begin.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Http => "http",
            Self::Https => "https",
        }
    }
}

impl fmt::Display for Url {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.origin(), beginning(&self.path, LONGEST_SHOWN))
    }
}

impl fmt::Debug for Url {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

fn split_port(authority: &str) -> Option<(&str, Option<u16>)> {
    let after_brackets = authority.rfind(']').map_or(0, |at| at + 1);
    match authority[after_brackets..].rfind(':') {
        None => Some((authority, None)),
        Some(at) => {
            let (host, port) = authority.split_at(after_brackets + at);
            Some((host, Some(port[1..].parse().ok()?)))
        }
    }
}

/// Encodes what is one segment of a path.
pub fn encoded(segment: &str) -> String {
    let mut text = String::with_capacity(segment.len());
    for byte in segment.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            text.push(char::from(byte));
        } else {
            text.push('%');
            text.extend([byte >> 4, byte & 15].map(|half| char::from(b"0123456789ABCDEF"[usize::from(half)])));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_taken_apart() {
        let check = |text: &str, expected: Option<(&str, u16, &str)>| {
            let url = Url::parse(text).ok();
            let parts = url
                .as_ref()
                .map(|url| (url.host.as_str(), url.port(), url.path.as_str()));
            assert_eq!(parts, expected, "{text}");
        };
        check(
            "https://github.com/a/b/releases",
            Some(("github.com", 443, "/a/b/releases")),
        );
        check("http://Files.Example.com:8080", Some(("files.example.com", 8080, "/")));
        check("https://[::1]:9/x?y=1#z", Some(("[::1]", 9, "/x")));
        check("ftp://example.com/", None);
        check("https://", None);
        check("https://exa mple.com/", None);
        check("https://example.com:http/", None);
        check("https://example.com/a b", None);
        check("github.com/a/b", None);
    }

    #[test]
    fn what_is_secret_in_an_address_is_not_printed() {
        let error = Url::parse("https://me:hush@example.com/a").unwrap_err().to_string();
        assert!(
            !error.contains("hush") && error.contains("https://***@example.com/a"),
            "{error}"
        );
        let url = Url::parse("https://example.com/a?X-Amz-Signature=hush").unwrap();
        assert_eq!(format!("{url} {url:?}"), "https://example.com/a https://example.com/a");
    }

    /// Messages repeat the paths of redirects.
    #[test]
    fn long_paths_are_refused_and_not_repeated() {
        let from = Url::parse("https://example.com/a").unwrap();
        let path = "x".repeat(LONGEST_PATH);
        let error = from.join(&format!("/{path}")).unwrap_err().to_string();
        assert!(error.len() < 500 && error.contains("more than 16 KiB"), "{error}");
        let long = from.join(&format!("/{}?{path}", &path[1..])).unwrap();
        assert_eq!(long.path_and_query().len(), 2 * LONGEST_PATH + 1);
        assert!(
            long.to_string().len() < 400 && long.to_string().ends_with("xxx..."),
            "{long}"
        );
        let host = |length: usize| Url::parse(&format!("https://{}/a", "h".repeat(length)));
        assert!(host(LONGEST_HOST).is_ok());
        assert!(
            host(LONGEST_HOST + 1)
                .unwrap_err()
                .to_string()
                .contains("host is longer")
        );
    }

    #[test]
    fn redirects_go_where_they_say() {
        let from = Url::parse("https://example.com:8443/a/b?c").unwrap();
        let check = |location: &str, expected: &str| assert_eq!(from.join(location).unwrap().whole(), expected);
        check("https://other.example.com/x?y=1", "https://other.example.com/x?y=1");
        check("//other.example.com/x", "https://other.example.com/x");
        check("/x?y=2", "https://example.com:8443/x?y=2");
        check("x", "https://example.com:8443/a/x");
        check(
            "/x?then=https://other.example.com/y",
            "https://example.com:8443/x?then=https://other.example.com/y",
        );
        check("x?then=a://b", "https://example.com:8443/a/x?then=a://b");
    }

    #[test]
    fn segments_are_encoded() {
        assert_eq!(encoded("v1.0.0+build 1/x"), "v1.0.0%2Bbuild%201%2Fx");
    }
}
