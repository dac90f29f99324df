//! One request to an extension over HTTPS.

use std::collections::HashMap;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use http::{Method, Request, StatusCode, Uri, header};
use http_body_util::{Full, LengthLimitError};
use parking_lot::Mutex;
use rustls::client::ResolvesClientCert;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::sign::CertifiedKey;
use rustls::{ClientConfig, SignatureScheme};
use windlass_controller_runtime::Repeats;
use windlass_http_client::{Connections, Dial, Options, Pool, Target, causes, read_all, tls};

/// The largest answer, in bytes. That of Cluster API.
const LARGEST: usize = 20 << 20;
/// How much of an answer that is an error is repeated, in bytes.
const LONGEST_WORDS: usize = 512;
/// How many trust stores have connections of their own. Each is one CA bundle of an ExtensionConfig.
const MOST_POOLS: usize = 64;

/// Connections to extensions.
pub(crate) type Http = Pool<Dial, Full<Bytes>>;

/// The certificate with which this process identifies itself to extensions. The files are read again when they change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientIdentity {
    /// The file with the PEM-encoded certificate.
    pub certificate: PathBuf,
    /// The file with the PEM-encoded private key.
    pub key: PathBuf,
}

impl ClientIdentity {
    /// Why the certificate cannot be used now.
    pub fn check(&self) -> Result<(), String> {
        load(self).map(drop)
    }
}

/// The connections to extensions, kept by what their certificates are checked with.
pub(crate) struct Calls {
    pools: Mutex<HashMap<Vec<u8>, Http>>,
    identity: Option<Arc<Identity>>,
}

impl fmt::Debug for Calls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Calls").finish_non_exhaustive()
    }
}

/// What became of a request: the status for the metrics, and the answer.
pub(crate) struct Answered {
    /// The HTTP status; none without an answer.
    pub(crate) code: Option<StatusCode>,
    /// The answer, or why there is none.
    pub(crate) body: Result<Bytes, String>,
}

impl Calls {
    pub(crate) fn new(identity: Option<ClientIdentity>) -> Self {
        Self {
            pools: Mutex::default(),
            identity: identity.map(|files| Arc::new(Identity::new(files))),
        }
    }

    /// The connections to extensions whose certificates are checked with these CA certificates, or why there are none.
    pub(crate) fn pool(&self, ca_bundle: &[u8]) -> Result<Http, String> {
        let mut pools = self.pools.lock();
        if let Some(pool) = pools.get(ca_bundle) {
            return Ok(pool.clone());
        }
        let pool = connect(ca_bundle, self.identity.clone())?;
        if pools.len() >= MOST_POOLS {
            pools.clear();
        }
        pools.insert(ca_bundle.to_vec(), pool.clone());
        Ok(pool)
    }
}

/// Sends a body, and returns the answer. Redirects are not followed: an extension cannot send the request elsewhere.
pub(crate) async fn post(http: &Http, to: &Uri, body: Vec<u8>, timeout: Duration) -> Answered {
    let lost = |why: String| Answered {
        code: None,
        body: Err(format!("http call failed: Post \"{to}\": {why}")),
    };
    let request = Request::builder()
        .method(Method::POST)
        .uri(to.clone())
        .header(header::CONTENT_TYPE, "application/json")
        .header(header::ACCEPT, "application/json")
        .body(Full::new(Bytes::from(body)));
    let request = match request {
        Ok(request) => request,
        Err(error) => return lost(error.to_string()),
    };
    let exchange = async {
        let answer = http.request(request).await.map_err(|error| lost(causes(&error)))?;
        let code = answer.status();
        let body = read_all(answer.into_body(), LARGEST).await;
        Ok::<_, Answered>((code, body.map_err(|error| unread(&*error))))
    };
    let (code, body) = match tokio::time::timeout(timeout, exchange).await {
        Ok(Ok(answered)) => answered,
        Ok(Err(lost)) => return lost,
        Err(_) => return lost(format!("no answer in {} s", timeout.as_secs())),
    };
    let body = match body {
        Ok(body) if code == StatusCode::OK => Ok(body),
        Ok(body) => Err(refusal(code, &body)),
        Err(why) => Err(format!("http call failed: {why}")),
    };
    Answered { code: Some(code), body }
}

/// Why an answer was not read to its end.
fn unread(error: &(dyn std::error::Error + Send + Sync + 'static)) -> String {
    if error.is::<LengthLimitError>() {
        return format!("the answer is larger than {} MiB", LARGEST >> 20);
    }
    format!("the answer cannot be read: {}", causes(error))
}

/// An answer that is not 200, with the beginning of its text.
fn refusal(code: StatusCode, body: &[u8]) -> String {
    let text = String::from_utf8_lossy(&body[..body.len().min(LONGEST_WORDS)]);
    let more = if body.len() > LONGEST_WORDS { "..." } else { "" };
    format!(
        "http call failed: got response with status code {} != 200: response: {:?}",
        code.as_u16(),
        format!("{text}{more}")
    )
}

fn connect(ca_bundle: &[u8], identity: Option<Arc<Identity>>) -> Result<Http, String> {
    let roots = if ca_bundle.is_empty() {
        tls::system_roots()
    } else {
        let roots = tls::roots(ca_bundle).map_err(|error| format!("spec.clientConfig.caBundle: {error}"))?;
        Arc::new(roots)
    };
    let builder = tls::trusting(roots).map_err(|error| error.to_string())?;
    let config: ClientConfig = match identity {
        Some(identity) => builder.with_client_cert_resolver(identity),
        None => builder.with_no_client_auth(),
    };
    let options = Options {
        closes_idle: true,
        ..Options::default()
    };
    let dial = Dial::new(|uri| Target::of(uri).ok_or_else(|| "the address has no host".into()));
    Ok(Connections::new(dial, config, options).pool())
}

/// The certificate of this process, as it was last read.
#[derive(Debug)]
struct Identity {
    files: ClientIdentity,
    read: Mutex<Read>,
    /// The failures to read it, as far as they were logged.
    said: Repeats,
}

#[derive(Debug, Default)]
struct Read {
    written: Option<(SystemTime, SystemTime)>,
    key: Option<Arc<CertifiedKey>>,
}

impl Identity {
    fn new(files: ClientIdentity) -> Self {
        Self {
            files,
            read: Mutex::default(),
            said: Repeats::default(),
        }
    }

    /// The certificate. One that cannot be read leaves the one before it.
    fn current(&self) -> Option<Arc<CertifiedKey>> {
        let time = |path: &PathBuf| std::fs::metadata(path).and_then(|data| data.modified());
        let mut read = self.read.lock();
        let written = time(&self.files.certificate).and_then(|a| Ok((a, time(&self.files.key)?)));
        let is_new = written.as_ref().is_ok_and(|written| read.written != Some(*written));
        if is_new || read.key.is_none() {
            match load(&self.files) {
                Ok(key) => {
                    *read = Read {
                        written: written.ok(),
                        key: Some(Arc::new(key)),
                    }
                }
                Err(why) => {
                    if let Some(repeated) = self.said.line("", &why, std::time::Instant::now()) {
                        tracing::warn!(
                            certificate = %self.files.certificate.display(),
                            why,
                            repeated,
                            "the client certificate for extensions cannot be read"
                        );
                    }
                }
            }
        }
        read.key.clone()
    }
}

fn load(files: &ClientIdentity) -> Result<CertifiedKey, String> {
    let chain = CertificateDer::pem_file_iter(&files.certificate)
        .and_then(Iterator::collect::<Result<Vec<_>, _>>)
        .map_err(|error| error.to_string())?;
    let key = PrivateKeyDer::from_pem_file(&files.key).map_err(|error| error.to_string())?;
    CertifiedKey::from_der(chain, key, &tls::provider()).map_err(|error| error.to_string())
}

impl ResolvesClientCert for Identity {
    fn resolve(&self, _: &[&[u8]], _: &[SignatureScheme]) -> Option<Arc<CertifiedKey>> {
        self.current()
    }

    fn has_certs(&self) -> bool {
        true
    }
}
