//! An HTTPS server on the loopback interface that acts as the webhooks of cases. It sends the answers of the case, and keeps the
//! reviews that it receives.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use bytes::Bytes;
use http::{Request, Response, StatusCode, header};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto;
use parking_lot::Mutex;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use windlass_meta::{Clock as _, SystemClock};
use windlass_pki::{CaRequest, CertificateAuthority, KeyAlgorithm, LeafRequest, PrivateKey};

/// The answer of a webhook.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Answer {
    /// The fields of the response, added to `{"uid": ..., "allowed": true}`; null removes a field.
    pub response: BTreeMap<String, Value>,
    /// A JSON patch, which becomes the `patch` and `patchType` of the response.
    pub patch: Option<Value>,
    /// Fields of the review itself.
    pub review: BTreeMap<String, Value>,
    /// The status code.
    pub status: Option<u16>,
    /// The whole body instead of a review.
    pub text: Option<String>,
    /// Seconds before the answer.
    pub delay: f64,
    /// For conversions: the fields to set in each object, by target version. The apiVersion is always set.
    pub convert: BTreeMap<String, Value>,
}

/// A received request: its case, the webhook, and the review.
type Asked = (String, String, Value);

#[derive(Debug, Default)]
struct State {
    /// By case and name.
    answers: Mutex<BTreeMap<(String, String), Answer>>,
    asked: Mutex<Vec<Asked>>,
}

/// The running server.
#[derive(Debug)]
pub struct Hooks {
    /// `https://HOST:PORT`
    pub url: String,
    /// The certificate of its authority, in base64.
    pub authority: String,
    state: Arc<State>,
}

impl Hooks {
    /// Starts a server.
    pub async fn start() -> Result<Self, String> {
        let say = |e: &dyn std::fmt::Display| e.to_string();
        let now = SystemClock.now();
        let key = || PrivateKey::generate(KeyAlgorithm::EcdsaP256).map_err(|e| say(&e));
        let authority =
            CertificateAuthority::self_signed(&CaRequest::new("hooks"), key()?, now).map_err(|e| say(&e))?;
        let own = key()?;
        let names = vec!["127.0.0.1".to_owned(), "localhost".to_owned()];
        let certificate = authority
            .issue(&LeafRequest::server("hooks", names), &own, now)
            .map_err(|e| say(&e))?;
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let mut tls = rustls::ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|e| say(&e))?
            .with_no_client_auth()
            .with_single_cert(
                vec![CertificateDer::from(certificate.der().to_vec())],
                PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(own.to_pkcs8_der())),
            )
            .map_err(|e| say(&e))?;
        tls.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        let acceptor = tokio_rustls::TlsAcceptor::from(Arc::new(tls));
        let listener = TcpListener::bind("127.0.0.1:0").await.map_err(|e| say(&e))?;
        let address = listener.local_addr().map_err(|e| say(&e))?;
        let state = Arc::new(State::default());
        let out = Self {
            url: format!("https://{address}"),
            authority: base64::engine::general_purpose::STANDARD.encode(authority.certificate().to_pem()),
            state: Arc::clone(&state),
        };
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (state, acceptor) = (Arc::clone(&state), acceptor.clone());
                tokio::spawn(async move {
                    let Ok(stream) = acceptor.accept(stream).await else {
                        return;
                    };
                    let service = service_fn(move |request| respond(Arc::clone(&state), request));
                    let _ = auto::Builder::new(TokioExecutor::new())
                        .serve_connection(TokioIo::new(stream), service)
                        .await;
                });
            }
        });
        Ok(out)
    }

    /// Sets the answers of a case's webhooks, which are at `/ID/NAME`.
    pub fn set(&self, id: &str, answers: &BTreeMap<String, Answer>) {
        let mut all = self.state.answers.lock();
        for (name, answer) in answers {
            all.insert((id.to_owned(), name.clone()), answer.clone());
        }
    }

    /// The reviews that a webhook of a case has received since the last call, in order; without a name, those of all webhooks.
    pub fn asked(&self, id: &str, name: &str) -> Vec<Value> {
        let mut asked = self.state.asked.lock();
        let (mine, others) = std::mem::take(&mut *asked)
            .into_iter()
            .partition(|(case, hook, _): &Asked| case == id && (name == "*" || hook == name));
        *asked = others;
        mine.into_iter()
            .map(|(_, hook, review)| {
                if name == "*" {
                    json!({"hook": hook, "review": review})
                } else {
                    review
                }
            })
            .collect()
    }
}

async fn respond(state: Arc<State>, request: Request<Incoming>) -> Result<Response<Full<Bytes>>, hyper::Error> {
    let path = request.uri().path().to_owned();
    let query = request.uri().query().unwrap_or("").to_owned();
    let body = request.into_body().collect().await?.to_bytes();
    let review: Value = serde_json::from_slice(&body).unwrap_or_default();
    let mut steps = path.trim_start_matches('/').splitn(2, '/').map(str::to_owned);
    let (id, name) = (steps.next().unwrap_or_default(), steps.next().unwrap_or_default());
    let found = state.answers.lock().get(&(id.clone(), name.clone())).cloned();
    let mut seen = review.clone();
    if let Some(map) = seen.as_object_mut() {
        map.insert("query".to_owned(), query.into());
    }
    state.asked.lock().push((id, name, seen));
    let Some(answer) = found else {
        return Ok(reply(404, "no such webhook".to_owned()));
    };
    if answer.delay > 0.0 {
        tokio::time::sleep(Duration::from_secs_f64(answer.delay)).await;
    }
    let status = answer.status.unwrap_or(200);
    let body = match &answer.text {
        Some(text) => text.clone(),
        None => reviewed(&answer, &review).to_string(),
    };
    Ok(reply(status, body))
}

fn reply(status: u16, body: String) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::from(body));
    *response.status_mut() = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let json = header::HeaderValue::from_static("application/json");
    response.headers_mut().insert(header::CONTENT_TYPE, json);
    response
}

/// The answer to a review.
fn reviewed(answer: &Answer, review: &Value) -> Value {
    let request = &review["request"];
    let mut response = json!({"uid": request["uid"]});
    if review["kind"] == "ConversionReview" {
        response["result"] = json!({"status": "Success"});
        response["convertedObjects"] = converted(answer, request);
    } else {
        response["allowed"] = true.into();
    }
    if let Some(patch) = &answer.patch {
        let patch = base64::engine::general_purpose::STANDARD.encode(patch.to_string());
        response["patch"] = patch.into();
        response["patchType"] = "JSONPatch".into();
    }
    lay_over(&mut response, &answer.response);
    let mut out = json!({"apiVersion": review["apiVersion"], "kind": review["kind"], "response": response});
    lay_over(&mut out, &answer.review);
    out
}

fn lay_over(object: &mut Value, fields: &BTreeMap<String, Value>) {
    let Some(map) = object.as_object_mut() else {
        return;
    };
    for (key, value) in fields {
        if value.is_null() {
            map.remove(key);
        } else {
            map.insert(key.clone(), value.clone());
        }
    }
}

/// The objects of a conversion in the target version.
fn converted(answer: &Answer, request: &Value) -> Value {
    let wanted = &request["desiredAPIVersion"];
    let version = wanted.as_str().and_then(|v| v.rsplit('/').next()).unwrap_or_default();
    let objects = request["objects"].as_array().cloned().unwrap_or_default();
    let convert = |mut object: Value| {
        object["apiVersion"] = wanted.clone();
        if let Some(more) = answer.convert.get(version) {
            merge(&mut object, more);
        }
        object
    };
    objects.into_iter().map(convert).collect()
}

fn merge(object: &mut Value, more: &Value) {
    match (object, more) {
        (Value::Object(map), Value::Object(more)) => {
            for (key, value) in more {
                if value.is_null() {
                    map.remove(key);
                } else {
                    merge(map.entry(key.clone()).or_insert(Value::Null), value);
                }
            }
        }
        (object, more) => *object = more.clone(),
    }
}
