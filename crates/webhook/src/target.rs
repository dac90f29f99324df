//! How the API server reaches the webhook server.

use serde_json::{Value, json};

/// The address to which an API server sends its reviews.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// A Service in front of the process.
    Service {
        /// Its namespace.
        namespace: String,
        /// Its name.
        name: String,
        /// Its port.
        port: u16,
    },
    /// A host that is reached directly.
    Url {
        /// A DNS name or an address; IPv6 without brackets.
        host: String,
        /// Its port.
        port: u16,
    },
}

/// The port of HTTPS.
const HTTPS: u16 = 443;

impl Target {
    /// Parses `NAMESPACE/NAME[:PORT]`. The port defaults to 443.
    pub fn service(text: &str) -> Result<Self, String> {
        let wrong = || format!("{text:?} is not NAMESPACE/NAME[:PORT], such as windlass-system/windlass-webhook:443");
        let (namespace, rest) = text.split_once('/').ok_or_else(wrong)?;
        let (name, port) = match rest.split_once(':') {
            Some((name, port)) => (name, port_of(port).ok_or_else(wrong)?),
            None => (rest, HTTPS),
        };
        if !is_label(namespace) || !is_label(name) {
            return Err(wrong());
        }
        Ok(Self::Service {
            namespace: namespace.to_owned(),
            name: name.to_owned(),
            port,
        })
    }

    /// Parses `https://HOST[:PORT]`. The port defaults to 443.
    pub fn url(text: &str) -> Result<Self, String> {
        let wrong =
            || format!("{text:?} is not https://HOST[:PORT] without path, such as https://windlass.example.com:9443");
        let uri: http::Uri = text.parse().map_err(|_| wrong())?;
        let authority = uri.authority().ok_or_else(wrong)?;
        let bare = matches!(
            uri.path_and_query().map(http::uri::PathAndQuery::as_str),
            None | Some("/" | "")
        );
        if uri.scheme_str() != Some("https") || !bare || authority.as_str().contains('@') {
            return Err(wrong());
        }
        let host = authority.host().trim_start_matches('[').trim_end_matches(']');
        let after_host = &authority.as_str()[authority.host().len()..];
        let port = match after_host.strip_prefix(':') {
            Some(port) => port_of(port).ok_or_else(wrong)?,
            None => HTTPS,
        };
        let names_a_host = rustls::pki_types::ServerName::try_from(host).is_ok();
        if !names_a_host {
            return Err(wrong());
        }
        Ok(Self::Url {
            host: host.to_owned(),
            port,
        })
    }

    /// The names that the certificate must have.
    pub fn names(&self) -> Vec<String> {
        match self {
            Self::Service { namespace, name, .. } => vec![
                format!("{name}.{namespace}.svc"),
                format!("{name}.{namespace}.svc.cluster.local"),
            ],
            Self::Url { host, .. } => vec![host.clone()],
        }
    }

    /// The `clientConfig` of a webhook, without the authorities.
    pub(crate) fn client_config(&self, path: &str) -> Value {
        match self {
            Self::Service { namespace, name, port } => {
                json!({"service": {"namespace": namespace, "name": name, "port": port, "path": path}})
            }
            Self::Url { host, port } if host.contains(':') => json!({"url": format!("https://[{host}]:{port}{path}")}),
            Self::Url { host, port } => json!({"url": format!("https://{host}:{port}{path}")}),
        }
    }
}

fn port_of(text: &str) -> Option<u16> {
    text.parse().ok().filter(|port| *port != 0)
}

/// A DNS label.
fn is_label(text: &str) -> bool {
    let inner = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    (1..=63).contains(&text.len()) && text.chars().all(inner) && !text.starts_with('-') && !text.ends_with('-')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn services_are_read() {
        let check = |text: &str, expect: Option<(&str, &str, u16)>| {
            let expect = expect.map(|(namespace, name, port)| Target::Service {
                namespace: namespace.to_owned(),
                name: name.to_owned(),
                port,
            });
            assert_eq!(Target::service(text).ok(), expect, "{text}");
        };
        check("ns/name", Some(("ns", "name", 443)));
        check("ns/name:9443", Some(("ns", "name", 9443)));
        for wrong in [
            "",
            "name",
            "/name",
            "ns/",
            "ns/name:",
            "ns/name:0",
            "ns/name:70000",
            "NS/name",
            "ns/a.b",
            "ns/-a",
            "a/b/c",
        ] {
            check(wrong, None);
        }
    }

    #[test]
    fn urls_are_read_and_written() {
        let check = |text: &str, expect: Option<&str>| {
            let url = Target::url(text).map(|target| target.client_config("/p")["url"].clone());
            assert_eq!(url.ok(), expect.map(Value::from), "{text}");
        };
        check("https://example.com", Some("https://example.com:443/p"));
        check("https://example.com:9443/", Some("https://example.com:9443/p"));
        check("https://127.0.0.1:9443", Some("https://127.0.0.1:9443/p"));
        check("https://[::1]:9443", Some("https://[::1]:9443/p"));
        for wrong in [
            "",
            "example.com",
            "http://example.com",
            "https://",
            "https://a/b",
            "https://a?b",
            "https://u@a",
            "https://a:0",
            "https://a:x",
            "https://a_b!",
        ] {
            check(wrong, None);
        }
    }

    #[test]
    fn certificates_are_for_the_names_that_api_servers_ask_for() {
        let service = Target::service("ns/name").unwrap();
        assert_eq!(service.names(), ["name.ns.svc", "name.ns.svc.cluster.local"]);
        assert_eq!(Target::url("https://[::1]:1").unwrap().names(), ["::1"]);
    }
}
