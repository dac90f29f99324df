//! Serves an empty cluster on loopback, for use with `kubectl`:
//! `cargo run -p windlass-apiserver --example serve -- KUBECONFIG [PORT] [DATA-DIR]`.

use std::path::Path;
use std::sync::Arc;

use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use tokio::net::TcpListener;
use windlass_apiserver::{ApiServer, Options, tls_config};
use windlass_meta::{Clock as _, SystemClock};
use windlass_pki::{CaRequest, CertificateAuthority, KeyAlgorithm, Kubeconfig, LeafRequest, PrivateKey};
use windlass_store::{Limits, Store};

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut args = std::env::args().skip(1);
    let kubeconfig = args.next().ok_or("give the path of the kubeconfig to write")?;
    let port: u16 = args.next().map_or(Ok(0), |p| p.parse())?;
    let store = match args.next() {
        Some(folder) => Store::open(Path::new(&folder), Limits::default())?,
        None => Store::memory(Limits::default()),
    };
    let key = || PrivateKey::generate(KeyAlgorithm::EcdsaP256);
    let now = SystemClock.now();
    let authority = CertificateAuthority::self_signed(&CaRequest::new("serve"), key()?, now)?;
    let server_key = key()?;
    let names = vec!["127.0.0.1".to_owned(), "localhost".to_owned()];
    let certificate = authority.issue(&LeafRequest::server("kube-apiserver", names), &server_key, now)?;
    let admin_key = key()?;
    let admin = authority.issue(&LeafRequest::administrator(), &admin_key, now)?;

    let authority_der = CertificateDer::from(authority.certificate().der().to_vec());
    let server_der = CertificateDer::from(certificate.der().to_vec());
    let private = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(server_key.to_pkcs8_der()));
    let signer = rustls::crypto::aws_lc_rs::sign::any_supported_type(&private)?;
    let certified = rustls::sign::CertifiedKey::new(vec![server_der], signer);
    let resolver = rustls::sign::SingleCertAndKey::from(certified);
    let tls = tls_config(Arc::new(resolver), &[authority_der])?;

    let listener = TcpListener::bind(("127.0.0.1", port)).await?;
    let address = listener.local_addr()?;
    let text = Kubeconfig {
        cluster: "serve".to_owned(),
        server: format!("https://{address}"),
        authority: authority.certificate().to_pem(),
        client_certificate: admin.to_pem(),
        client_key: admin_key.to_pem(),
    }
    .render();
    std::fs::write(&kubeconfig, text)?;
    let server = ApiServer::start(Options::new(store)).await?;
    let serving = server.clone();
    let task = tokio::spawn(async move { serving.serve(listener, tls).await });
    tokio::signal::ctrl_c().await?;
    server.shutdown();
    task.await??;
    server.store().close().await;
    Ok(())
}
