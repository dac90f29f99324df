//! A webhook of a provider: it answers while the provider's Deployment exists.

use std::sync::Arc;

use base64::Engine as _;
use http::{Request, Response, StatusCode};
use http_body_util::{BodyExt as _, Full};
use hyper::body::{Bytes, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use k8s_openapi::api::apps::v1::Deployment;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use windlass_meta::{Clock as _, SystemClock};
use windlass_pki::{CaRequest, CertificateAuthority, KeyAlgorithm, LeafRequest, PrivateKey};

use crate::env::{Env, NAMESPACE};

/// Serves a webhook for as long as a Deployment exists; its `clientConfig`.
pub(crate) async fn serve(env: &Env, deployment: &str) -> Value {
    let key = || PrivateKey::generate(KeyAlgorithm::EcdsaP256).unwrap();
    let now = SystemClock.now();
    let authority = CertificateAuthority::self_signed(&CaRequest::new("hook"), key(), now).unwrap();
    let key = key();
    let certificate = authority
        .issue(&LeafRequest::server("hook", vec!["127.0.0.1".to_owned()]), &key, now)
        .unwrap();
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let tls = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(
            vec![CertificateDer::from(certificate.der().to_vec())],
            PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.to_pkcs8_der())),
        )
        .unwrap();
    let acceptor = tokio_rustls::TlsAcceptor::from(Arc::new(tls));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let deployments: kube::Api<Deployment> = kube::Api::namespaced(env.client.clone(), NAMESPACE);
    let name = deployment.to_owned();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let (acceptor, deployments, name) = (acceptor.clone(), deployments.clone(), name.clone());
            tokio::spawn(async move {
                let Ok(stream) = acceptor.accept(stream).await else {
                    return;
                };
                let service = service_fn(move |request| answer(request, deployments.clone(), name.clone()));
                let _ = http1::Builder::new()
                    .serve_connection(TokioIo::new(stream), service)
                    .await;
            });
        }
    });
    let bundle = base64::engine::general_purpose::STANDARD.encode(authority.certificate().to_pem());
    json!({"url": format!("https://{address}/validate"), "caBundle": bundle})
}

async fn answer(
    request: Request<Incoming>,
    deployments: kube::Api<Deployment>,
    name: String,
) -> Result<Response<Full<Bytes>>, hyper::Error> {
    let body = request.into_body().collect().await?.to_bytes();
    let review: Value = serde_json::from_slice(&body).unwrap_or_default();
    let runs = deployments.get_opt(&name).await.ok().flatten().is_some();
    let answer = json!({
        "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview",
        "response": {"uid": review["request"]["uid"], "allowed": true},
    });
    let mut response = Response::new(Full::new(Bytes::from(answer.to_string())));
    if !runs {
        *response.status_mut() = StatusCode::SERVICE_UNAVAILABLE;
    }
    Ok(response)
}
