//! Authentication at registries: a refused request names the scheme, basic authentication or a token server.

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use bytes::Bytes;
use http::Method;
use parking_lot::Mutex;
use serde::Deserialize;

use crate::credentials::OciCredentials;
use crate::error::Error;
use crate::github::understood;
use crate::http::{Access, Answer, Ask, Client, Refusal as _};
use windlass_http_client::Secret;
use windlass_http_client::{Scheme, Url, encoded};

const VARIABLES: &str = "OCI_USERNAME and OCI_PASSWORD, OCI_ACCESS_TOKEN or OCI_REFRESH_TOKEN";

/// Requests to a registry, with the token that it requires.
pub(crate) struct Session<'a> {
    client: &'a Client,
    credentials: &'a OciCredentials,
    /// The last accepted value of the header.
    authorization: Mutex<Option<Secret>>,
}

#[derive(Deserialize)]
struct Token {
    token: Option<String>,
    access_token: Option<String>,
}

/// The authentication that a registry requires.
#[derive(Debug, PartialEq, Eq)]
enum Challenge {
    Basic,
    Bearer {
        realm: String,
        service: Option<String>,
        scope: Option<String>,
    },
}

impl<'a> Session<'a> {
    pub(crate) fn new(client: &'a Client, credentials: &'a OciCredentials) -> Self {
        let given = credentials.access_token.as_ref();
        let given = given.map(|token| Secret::new(&format!("Bearer {}", token.reveal())));
        Self {
            client,
            credentials,
            authorization: Mutex::new(given),
        }
    }

    pub(crate) fn access(&self) -> Access {
        Access {
            sent: !self.credentials.is_empty(),
            variables: VARIABLES,
        }
    }

    pub(crate) async fn get(&self, url: &Url, accept: &'static str) -> Result<Answer, Error> {
        // Files are cached by their digest or not at all, because registries send no ETags.
        let ask = Ask {
            kept: false,
            ..Ask::get(url.clone(), accept)
        };
        self.send(ask).await
    }

    pub(crate) async fn send(&self, ask: Ask) -> Result<Answer, Error> {
        let shown = self
            .authorization
            .lock()
            .as_ref()
            .map(|secret| secret.reveal().to_owned());
        let ask = ask.authorized(shown);
        let answer = self.client.send(&ask).await?;
        if answer.status.as_u16() != 401 || self.credentials.access_token.is_some() {
            return Ok(answer);
        }
        let challenge = answer.header("www-authenticate").and_then(challenge);
        let Some(authorization) = self.answer_to(challenge, &ask.url).await? else {
            return Ok(answer);
        };
        *self.authorization.lock() = Some(Secret::new(&authorization));
        self.client.send(&ask.authorized(Some(authorization))).await
    }

    async fn answer_to(&self, challenge: Option<Challenge>, asked: &Url) -> Result<Option<String>, Error> {
        match challenge {
            None => Ok(None),
            Some(Challenge::Basic) => Ok(self.basic()),
            Some(Challenge::Bearer { realm, service, scope }) => {
                let realm = asked.join(&realm)?;
                if asked.scheme == Scheme::Https && realm.scheme == Scheme::Http {
                    return Err(windlass_http_client::Error::Redirect {
                        url: asked.to_string(),
                        why: format!("to {realm} for a token, which is not protected by TLS"),
                    }
                    .into());
                }
                self.token(realm, service, scope)
                    .await
                    .map(|token| Some(format!("Bearer {token}")))
            }
        }
    }

    fn basic(&self) -> Option<String> {
        let (name, password) = (self.credentials.username.as_ref()?, self.credentials.password.as_ref()?);
        let pair = format!("{}:{}", name.reveal(), password.reveal());
        Some(format!("Basic {}", BASE64_STANDARD.encode(pair)))
    }

    async fn token(&self, realm: Url, service: Option<String>, scope: Option<String>) -> Result<String, Error> {
        let mut pairs = Vec::new();
        pairs.extend(service.map(|service| format!("service={}", encoded(&service))));
        pairs.extend(scope.map(|scope| format!("scope={}", encoded(&scope))));
        let ask = if let Some(refresh) = &self.credentials.refresh_token {
            pairs.push(format!(
                "grant_type=refresh_token&client_id=windlass&refresh_token={}",
                encoded(refresh.reveal())
            ));
            Ask {
                method: Method::POST,
                content_type: Some("application/x-www-form-urlencoded"),
                body: Bytes::from(pairs.join("&")),
                kept: false,
                ..Ask::get(realm, "application/json")
            }
        } else {
            let path = realm.path_and_query();
            let joint = if path.contains('?') { '&' } else { '?' };
            let url = realm.at(&format!("{path}{joint}{}", pairs.join("&")));
            Ask {
                kept: false,
                ..Ask::get(url, "application/json")
            }
            .authorized(self.basic())
        };
        let answer = self.client.send(&ask).await?;
        match answer.status.as_u16() {
            200 => {}
            // If a token server refuses, the credentials are wrong, with any of these statuses.
            400 | 401 | 403 if self.access().sent => {
                return Err(Error::Unauthorized {
                    host: answer.url.authority(),
                    sent: true,
                    variables: VARIABLES,
                });
            }
            _ => return Err(answer.refusal(self.access())),
        }
        let token: Token = understood(&answer, "a token")?;
        token.token.or(token.access_token).ok_or_else(|| Error::NotUnderstood {
            url: answer.url.to_string(),
            expected: "a token",
            why: "there is none in it".to_owned(),
        })
    }
}

fn challenge(header: &str) -> Option<Challenge> {
    let (scheme, rest) = header.trim().split_once(' ').unwrap_or((header.trim(), ""));
    if scheme.eq_ignore_ascii_case("basic") {
        return Some(Challenge::Basic);
    }
    if !scheme.eq_ignore_ascii_case("bearer") {
        return None;
    }
    let value = |wanted: &str| {
        let at = parameters(rest)
            .into_iter()
            .find(|(name, _)| name.eq_ignore_ascii_case(wanted));
        at.map(|(_, value)| value)
    };
    Some(Challenge::Bearer {
        realm: value("realm")?,
        service: value("service"),
        scope: value("scope"),
    })
}

/// Parses `name="value"` with commas between them; values may contain commas.
fn parameters(text: &str) -> Vec<(String, String)> {
    let mut found = Vec::new();
    let mut rest = text;
    while let Some((name, after)) = rest.split_once('=') {
        let name = name.trim_matches([' ', ',']).to_owned();
        let (value, tail) = match after.strip_prefix('"') {
            Some(quoted) => quoted.split_once('"').unwrap_or((quoted, "")),
            None => after.split_once(',').unwrap_or((after, "")),
        };
        found.push((name, value.to_owned()));
        rest = tail;
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn challenges_are_read() {
        let header =
            r#"Bearer realm="https://auth.example.com/token",service="registry",scope="repository:a/b:pull,push""#;
        let expected = Challenge::Bearer {
            realm: "https://auth.example.com/token".to_owned(),
            service: Some("registry".to_owned()),
            scope: Some("repository:a/b:pull,push".to_owned()),
        };
        assert_eq!(challenge(header), Some(expected));
        assert_eq!(challenge("Basic realm=\"x\""), Some(Challenge::Basic));
        assert_eq!(challenge("Negotiate"), None);
        assert_eq!(challenge("Bearer service=x"), None);
    }
}
