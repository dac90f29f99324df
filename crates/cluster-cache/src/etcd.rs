//! Tunnels to etcd members: gRPC over TLS inside a port-forward to the member's pod.

use std::sync::Arc;
use std::time::Duration;

use hyper_util::rt::TokioIo;
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::Secret;
use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::{CertificateError, DigitallySignedStruct, SignatureScheme};
use tonic::transport::{Channel, Endpoint};
use tower::service_fn;
use windlass_controller_runtime::{Cache, ObjectKey, Term};
use windlass_http_client::{causes, tls};
use windlass_pki::{KeyAlgorithm, KeyMaterial, LeafRequest, PrivateKey, Purpose};

use crate::error::RemoteError;
use crate::tunnel::Tunnels;

/// The port that etcd serves clients on.
const PORT: u16 = 2379;
/// After this time, a new client certificate is issued.
const RENEW: SignedDuration = SignedDuration::from_hours(24);

/// TLS settings for the etcd members of one cluster, and the Secrets they are derived from.
pub(crate) struct Credentials {
    /// resourceVersions of the Secrets.
    from: (String, Option<String>),
    made: Timestamp,
    tls: Arc<rustls::ClientConfig>,
}

/// The TLS settings, rebuilt when a Secret changes or the client certificate gets old.
///
/// With the authority's key at hand (etcd managed by the control plane) a client certificate is issued; without it (external
/// etcd) the one of the API server in Secret `<cluster>-apiserver-etcd-client` is used.
pub(crate) fn credentials(
    cluster: &ObjectKey,
    secrets: &Cache<Secret>,
    now: Timestamp,
    known: &mut Option<Credentials>,
) -> Result<Arc<rustls::ClientConfig>, RemoteError> {
    let name = Purpose::EtcdCa.secret_name(&cluster.name);
    let authority = secrets
        .get(&ObjectKey::new(cluster.namespace.as_str(), name.as_str()))
        .ok_or_else(|| RemoteError::new(cluster, "reach etcd", format!("there is no Secret {name}")))?;
    let client_name = Purpose::ApiServerEtcdClient.secret_name(&cluster.name);
    let client = secrets.get(&ObjectKey::new(cluster.namespace.as_str(), client_name.as_str()));
    let from = (version(&authority), client.as_deref().map(version));
    if let Some(known) = known
        && known.from == from
        && now.duration_since(known.made) < RENEW
    {
        return Ok(known.tls.clone());
    }
    let failed = |e: &dyn ToString| RemoteError::new(cluster, "make credentials for etcd", e.to_string());
    let material = read(&name, &authority).map_err(|e| failed(&e))?;
    let identity = if material.key.is_empty() {
        let client = client.ok_or_else(|| failed(&format!("there is no Secret {client_name}")))?;
        read(&client_name, &client).map_err(|e| failed(&e))?
    } else {
        issue(&material, now).map_err(|e| failed(&e))?
    };
    let tls = config(&material.crt, &identity).map_err(|e| failed(&e))?;
    let tls = Arc::new(tls);
    *known = Some(Credentials {
        from,
        made: now,
        tls: tls.clone(),
    });
    Ok(tls)
}

fn version(secret: &Secret) -> String {
    secret.metadata.resource_version.clone().unwrap_or_default()
}

fn read(name: &str, secret: &Secret) -> Result<KeyMaterial, windlass_pki::PkiError> {
    KeyMaterial::read(name, |key| Some(secret.data.as_ref()?.get(key)?.0.as_slice()))
}

/// A client certificate of the manager.
fn issue(authority: &KeyMaterial, now: Timestamp) -> Result<KeyMaterial, windlass_pki::PkiError> {
    let key = PrivateKey::generate(KeyAlgorithm::EcdsaP256)?;
    let request = LeafRequest {
        organization: None,
        ..LeafRequest::client("cluster-api.x-k8s.io", "")
    };
    let certificate = authority.authority()?.issue(&request, &key, now)?;
    Ok(KeyMaterial {
        crt: certificate.to_pem(),
        key: key.to_pem(),
    })
}

fn config(authority: &str, identity: &KeyMaterial) -> Result<rustls::ClientConfig, String> {
    let roots = tls::roots(authority.as_bytes()).map_err(|error| match error {
        tls::BadAuthorities::Certificate(e) => e.to_string(),
        other => format!("the etcd authority is not PEM: {other}"),
    })?;
    let chain = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), tls::provider())
        .build()
        .map_err(|e| e.to_string())?;
    let certificates = CertificateDer::pem_slice_iter(identity.crt.as_bytes())
        .collect::<Result<Vec<_>, _>>()
        .map_err(|e| format!("the client certificate is not PEM: {e}"))?;
    // The error of a key's parser could quote the key.
    let key =
        PrivateKeyDer::from_pem_slice(identity.key.as_bytes()).map_err(|_| "the client key is not PEM".to_owned())?;
    let mut config = tls::builder()
        .map_err(|e| e.to_string())?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(ChainOnly(chain)))
        .with_client_auth_cert(certificates, key)
        .map_err(|e| e.to_string())?;
    config.alpn_protocols = vec![b"h2".to_vec()];
    Ok(config)
}

/// Verifies that the certificate comes from the etcd authority, whatever name it carries: the member is chosen by the tunnel, and
/// the pod's name is in no certificate.
#[derive(Debug)]
struct ChainOnly(Arc<WebPkiServerVerifier>);

impl ServerCertVerifier for ChainOnly {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        let verified = self
            .0
            .verify_server_cert(end_entity, intermediates, server_name, ocsp_response, now);
        match verified {
            Err(rustls::Error::InvalidCertificate(
                CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. },
            )) => Ok(ServerCertVerified::assertion()),
            other => other,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.0.verify_tls12_signature(message, cert, dss)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.0.verify_tls13_signature(message, cert, dss)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.supported_verify_schemes()
    }
}

/// Opens the tunnel and a channel in it, within a time.
pub(crate) async fn channel(
    cluster: &ObjectKey,
    tunnels: Tunnels,
    pod: &str,
    tls: Arc<rustls::ClientConfig>,
    (term, limit): (Term, Duration),
) -> Result<Channel, RemoteError> {
    let what = format!("reach etcd in pod {pod}");
    let pod = pod.to_owned();
    let connector = service_fn(move |_: http::Uri| {
        let (tunnels, pod, tls, term) = (tunnels.clone(), pod.clone(), tls.clone(), term.clone());
        async move { Ok::<_, std::io::Error>(TokioIo::new(tunnels.tls(&pod, PORT, tls, &term).await?)) }
    });
    // The address is never resolved: the connector knows where to go.
    Endpoint::from_static("http://etcd")
        .connect_timeout(limit)
        .connect_with_connector(connector)
        .await
        .map_err(|e| RemoteError::new(cluster, what, causes(&e)))
}
