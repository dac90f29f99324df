//! Errors of requests. Each names the host or the address, and the cause.

use std::time::Duration;

use windlass_meta::beginning;

/// The most bytes of an address, or of its path, in a message: a server may have chosen it, and a long path may have a token.
pub(crate) const LONGEST_SHOWN: usize = 300;

/// Why there is no answer. The message says what to do.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The address cannot be used.
    #[error("{url:?} is not an address: {why}")]
    InvalidUrl {
        /// The address, without passwords.
        url: String,
        /// What is wrong with it.
        why: String,
    },
    /// The certificate of the server has an untrusted issuer.
    #[error("the certificate of {host} is not trusted ({why}): give its authority as PEM, or correct the certificate")]
    Untrusted {
        /// The server.
        host: String,
        /// What TLS says.
        why: String,
    },
    /// Extra authorities cannot be read.
    #[error("the extra authorities are not certificates in PEM: {why}")]
    Authorities {
        /// What is wrong.
        why: String,
    },
    /// No connection.
    #[error(
        "{host} cannot be reached: {why}; check the address, the network, and whether a proxy is needed (HTTPS_PROXY)"
    )]
    Unreachable {
        /// The server.
        host: String,
        /// What the machine says.
        why: String,
    },
    /// The proxy does not pass anything on.
    #[error("the proxy {proxy} does not connect to {host}: {why}; check HTTPS_PROXY and NO_PROXY")]
    Proxy {
        /// The proxy, without passwords.
        proxy: String,
        /// The server behind the proxy.
        host: String,
        /// What it says.
        why: String,
    },
    /// No answer in time, or an answer that stopped.
    #[error("{url} did not answer within {} s", after.as_secs_f32())]
    TimedOut {
        /// The requested address.
        url: String,
        /// The time limit.
        after: Duration,
    },
    /// Redirects that lead nowhere, or out of TLS.
    #[error("{url} redirects {why}")]
    Redirect {
        /// The requested address.
        url: String,
        /// The target, and what is wrong with it.
        why: String,
    },
    /// The answer is longer than the limit.
    #[error("{url} is longer than {limit} bytes: is it the right file?")]
    TooLarge {
        /// The requested address.
        url: String,
        /// The limit in bytes.
        limit: usize,
    },
    /// The connection ended before the answer did.
    #[error("{url} ended after {got} bytes{}: the connection broke, or the file is not whole on the server", expected.map(|all| format!(" of {all}")).unwrap_or_default())]
    Truncated {
        /// The requested address.
        url: String,
        /// How many bytes came.
        got: u64,
        /// How many were announced.
        expected: Option<u64>,
    },
}

impl Error {
    pub(crate) fn invalid_url(url: &str, why: &str) -> Self {
        Self::InvalidUrl {
            url: beginning(&without_credentials(url), LONGEST_SHOWN).into_owned(),
            why: why.to_owned(),
        }
    }

    /// It may pass without any action.
    pub fn is_passing(&self) -> bool {
        matches!(
            self,
            Self::Unreachable { .. } | Self::Proxy { .. } | Self::TimedOut { .. } | Self::Truncated { .. }
        )
    }
}

/// An address for messages. Text before an `@` may be a password and is not shown.
pub fn without_credentials(url: &str) -> String {
    let (scheme, rest) = url.find("://").map_or(("", url), |at| url.split_at(at + 3));
    match rest.rsplit_once('@') {
        Some((_, host)) if !host.starts_with("sha256:") => format!("{scheme}***@{host}"),
        Some((place, digest)) if place.contains('@') => format!("{scheme}***@{digest}"),
        _ => url.to_owned(),
    }
}

/// The message of an error with those of its causes, each once.
pub fn causes(error: &dyn std::error::Error) -> String {
    // A connection that failed is explained by its cause.
    let outer = error.to_string();
    let skip = outer == "client error (Connect)" && error.source().is_some();
    let mut words = if skip { String::new() } else { outer };
    let mut source = error.source();
    while let Some(inner) = source {
        let text = inner.to_string();
        if !words.contains(&text) {
            words = if words.is_empty() {
                text
            } else {
                format!("{words}: {text}")
            };
        }
        source = inner.source();
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, thiserror::Error)]
    #[error("{text}")]
    struct Layer {
        text: &'static str,
        #[source]
        inner: Option<Box<Self>>,
    }

    fn layers(texts: &[&'static str]) -> Layer {
        let (first, rest) = texts.split_first().unwrap();
        let inner = (!rest.is_empty()).then(|| Box::new(layers(rest)));
        Layer { text: first, inner }
    }

    #[test]
    fn an_error_is_reported_with_each_of_its_causes_once() {
        let check = |texts: &[&'static str], expected: &str| assert_eq!(causes(&layers(texts)), expected);
        check(&["lost"], "lost");
        check(&["lost", "connection closed"], "lost: connection closed");
        check(&["lost: refused", "refused", "refused"], "lost: refused");
        check(&["client error (Connect)", "dial tcp a:1"], "dial tcp a:1");
        check(&["client error (Connect)"], "client error (Connect)");
    }

    #[test]
    fn addresses_in_messages_have_no_credentials() {
        let check = |url: &str, expected: &str| assert_eq!(without_credentials(url), expected);
        check("https://me:hush@example.com/a", "https://***@example.com/a");
        check("https://example.com/a", "https://example.com/a");
        check("me:hush@example.com/a", "***@example.com/a");
        check("example.com/a@sha256:0", "example.com/a@sha256:0");
        check("me:hush@example.com/a@sha256:0", "***@sha256:0");
    }
}
