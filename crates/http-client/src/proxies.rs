//! Selects the proxy of a host from the usual environment variables, with the rules of Go programs.

use std::fmt;
use std::net::IpAddr;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;

use crate::error::Error;
use crate::reach::Network;
use crate::secret::Secret;
use crate::url::{Scheme, Url};

/// A proxy; its password is not printed.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Proxy {
    pub(crate) url: Url,
    credentials: Option<Secret>,
}

impl Proxy {
    pub(crate) fn parse(text: &str) -> Result<Self, Error> {
        let text = text.trim();
        let with_scheme = if text.contains("://") {
            text.to_owned()
        } else {
            format!("http://{text}")
        };
        let (scheme, rest) = with_scheme.split_once("://").unwrap_or(("http", text));
        let (credentials, rest) = match rest.rsplit_once('@') {
            Some((credentials, rest)) => (Some(Secret::new(&decoded(credentials))), rest),
            None => (None, rest),
        };
        let url = Url::parse(&format!("{scheme}://{rest}")).map_err(|_| {
            Error::invalid_url(
                &format!("{scheme}://{rest}"),
                "it is no proxy: http://HOST:PORT and https://HOST:PORT are",
            )
        })?;
        Ok(Self { url, credentials })
    }

    /// The value of `Proxy-Authorization`.
    pub(crate) fn authorization(&self) -> Option<String> {
        let credentials = self.credentials.as_ref()?;
        Some(format!("Basic {}", BASE64_STANDARD.encode(credentials.reveal())))
    }
}

impl fmt::Debug for Proxy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.url.origin())
    }
}

/// Decodes %-encoding, which passwords with an `@` need.
fn decoded(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        let hex = (bytes[at] == b'%').then(|| text.get(at + 1..at + 3)).flatten();
        let byte = hex.and_then(|hex| u8::from_str_radix(hex, 16).ok());
        out.push(byte.unwrap_or(bytes[at]));
        at += if byte.is_some() { 3 } else { 1 };
    }
    String::from_utf8_lossy(&out).into_owned()
}

/// Hosts that are reached without a proxy.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Exempt {
    Everything,
    /// A name and its subdomains; with a port, only that port.
    Name {
        name: String,
        itself: bool,
        port: Option<u16>,
    },
    Net(Network),
    Address {
        address: IpAddr,
        port: Option<u16>,
    },
}

/// The proxies of the environment.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Proxies {
    http: Option<Proxy>,
    https: Option<Proxy>,
    exempt: Vec<Exempt>,
}

impl Proxies {
    /// No proxies.
    pub fn none() -> Self {
        Self::default()
    }

    /// Reads `HTTPS_PROXY`, `HTTP_PROXY`, `ALL_PROXY` and `NO_PROXY`, or the same in lower case, with a lookup function (`|name|
    /// std::env::var(name).ok()`).
    pub fn from_env(lookup: impl Fn(&str) -> Option<String>) -> Result<Self, Error> {
        let find = |name: &str| {
            let found = lookup(name).or_else(|| lookup(&name.to_ascii_lowercase()));
            found.filter(|text| !text.trim().is_empty())
        };
        let proxy = |name: &str| {
            let found = find(name).or_else(|| find("ALL_PROXY"));
            found.map(|text| Proxy::parse(&text)).transpose()
        };
        Ok(Self {
            http: proxy("HTTP_PROXY")?,
            https: proxy("HTTPS_PROXY")?,
            exempt: find("NO_PROXY").map(|text| exempt(&text)).unwrap_or_default(),
        })
    }

    /// Whether a proxy is the one for addresses with TLS.
    pub(crate) fn has(&self, proxy: &Proxy) -> bool {
        let origin = proxy.url.origin();
        self.https.as_ref().is_some_and(|own| own.url.origin() == origin)
    }

    /// The proxy for an address. Local addresses have no proxy.
    pub(crate) fn route(&self, url: &Url) -> Option<&Proxy> {
        let proxy = match url.scheme {
            Scheme::Http => self.http.as_ref(),
            Scheme::Https => self.https.as_ref(),
        }?;
        let host = url.host.trim_matches(['[', ']']);
        let address: Option<IpAddr> = host.parse().ok();
        let here = host == "localhost" || address.is_some_and(|address| address.is_loopback());
        let exempt = here
            || self
                .exempt
                .iter()
                .any(|exempt| exempt.covers(host, address, url.port()));
        (!exempt).then_some(proxy)
    }
}

impl Exempt {
    fn covers(&self, host: &str, of_host: Option<IpAddr>, at: u16) -> bool {
        let same_port = |port: &Option<u16>| port.is_none_or(|port| port == at);
        match self {
            Self::Everything => true,
            Self::Name { name, itself, port } => {
                let below = host.strip_suffix(name.as_str()).is_some_and(|rest| rest.ends_with('.'));
                same_port(port) && (below || (*itself && host == name))
            }
            Self::Net(network) => of_host.is_some_and(|found| network.contains(found)),
            Self::Address { address, port } => same_port(port) && of_host == Some(*address),
        }
    }
}

fn exempt(text: &str) -> Vec<Exempt> {
    let entries = text.split(',').map(|entry| entry.trim().to_ascii_lowercase());
    entries
        .filter(|entry| !entry.is_empty())
        .map(|entry| exempt_entry(&entry))
        .collect()
}

fn exempt_entry(entry: &str) -> Exempt {
    if entry == "*" {
        return Exempt::Everything;
    }
    if let Some((address, bits)) = entry.split_once('/')
        && let (Ok(address), Ok(bits)) = (address.parse(), bits.parse())
    {
        return Exempt::Net(Network::new(address, bits));
    }
    if let Ok(address) = entry.trim_matches(['[', ']']).parse() {
        return Exempt::Address { address, port: None };
    }
    let (host, port) = match entry.rsplit_once(':').map(|(host, port)| (host, port.parse())) {
        Some((host, Ok(port))) => (host, Some(port)),
        _ => (entry, None),
    };
    if let Ok(address) = host.trim_matches(['[', ']']).parse() {
        return Exempt::Address { address, port };
    }
    let host = host
        .strip_prefix('*')
        .filter(|rest| rest.starts_with('.'))
        .unwrap_or(host);
    match host.strip_prefix('.') {
        Some(name) => Exempt::Name {
            name: name.to_owned(),
            itself: false,
            port,
        },
        None => Exempt::Name {
            name: host.to_owned(),
            itself: true,
            port,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn proxies(variables: &[(&str, &str)]) -> Proxies {
        let lookup = |name: &str| {
            variables
                .iter()
                .find(|(key, _)| *key == name)
                .map(|(_, value)| (*value).to_owned())
        };
        Proxies::from_env(lookup).unwrap()
    }

    #[test]
    fn a_proxy_is_asked_for_what_is_not_exempt() {
        let of = |no_proxy: &str, url: &str| {
            let found = proxies(&[("HTTPS_PROXY", "http://proxy.example.com:3128"), ("no_proxy", no_proxy)]);
            found.route(&Url::parse(url).unwrap()).is_some()
        };
        let check = |no_proxy: &str, url: &str, asked: bool| assert_eq!(of(no_proxy, url), asked, "{no_proxy} {url}");
        check("", "https://github.com/a", true);
        check("", "http://github.com/a", false);
        check("", "https://localhost/a", false);
        check("", "https://127.0.0.1:8443/a", false);
        check("*", "https://github.com/a", false);
        check("github.com", "https://github.com/a", false);
        check("github.com", "https://api.github.com/a", false);
        check(".github.com", "https://github.com/a", true);
        check(".github.com, x", "https://api.github.com/a", false);
        check("*.github.com", "https://api.github.com/a", false);
        check("hub.com", "https://github.com/a", true);
        check("github.com:8443", "https://github.com/a", true);
        check("github.com:8443", "https://github.com:8443/a", false);
        check("10.0.0.0/8", "https://10.1.2.3/a", false);
        check("10.0.0.0/8", "https://11.1.2.3/a", true);
        check("10.1.2.3", "https://10.1.2.3/a", false);
        check("fd00::/8", "https://[fd01::1]/a", false);
    }

    #[test]
    fn proxies_keep_their_passwords_to_themselves() {
        let found = proxies(&[("ALL_PROXY", "http://me:hu%40sh@proxy:3128")]);
        assert!(!format!("{found:?}").contains("hu"), "{found:?}");
        let proxy = found.route(&Url::parse("http://example.com/").unwrap()).unwrap();
        assert_eq!(
            proxy.authorization().unwrap(),
            format!("Basic {}", BASE64_STANDARD.encode("me:hu@sh"))
        );
        let error =
            Proxies::from_env(|name| (name == "HTTPS_PROXY").then(|| "socks5://me:hush@proxy".to_owned())).unwrap_err();
        assert!(
            error.to_string().contains("socks5://proxy") && !error.to_string().contains("hush"),
            "{error}"
        );
    }
}
