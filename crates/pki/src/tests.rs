//! Properties of the keys, certificates and kubeconfigs, read by other parsers if possible.

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};

use jiff::{SignedDuration, Timestamp};
use x509_parser::prelude::{FromDer as _, ParsedExtension, X509Certificate};

use crate::*;

const ALL: [KeyAlgorithm; 5] = [
    KeyAlgorithm::Rsa2048,
    KeyAlgorithm::Rsa3072,
    KeyAlgorithm::Rsa4096,
    KeyAlgorithm::EcdsaP256,
    KeyAlgorithm::EcdsaP384,
];

fn now() -> Timestamp {
    "2026-11-21T10:36:42.5Z".parse().unwrap()
}

fn ec() -> PrivateKey {
    PrivateKey::generate(KeyAlgorithm::EcdsaP256).unwrap()
}

fn authority() -> CertificateAuthority {
    CertificateAuthority::self_signed(&CaRequest::new("kubernetes"), ec(), now()).unwrap()
}

#[test]
fn every_algorithm_survives_its_pem_form() {
    for algorithm in ALL {
        let key = PrivateKey::generate(algorithm).unwrap();
        let text = key.to_pem();
        let label = if algorithm.is_slow() {
            "RSA PRIVATE KEY"
        } else {
            "EC PRIVATE KEY"
        };
        assert!(text.starts_with(&format!("-----BEGIN {label}-----\n")), "{algorithm}");
        assert!(text.ends_with(&format!("-----END {label}-----\n")), "{algorithm}");
        let read = PrivateKey::from_pem(&text).unwrap();
        assert_eq!(read.algorithm(), algorithm);
        assert_eq!(read.public_der(), key.public_der(), "{algorithm}");
        assert_eq!(read.to_pem(), text, "{algorithm}");
        let pkcs8 = pem::encode("PRIVATE KEY", &key.to_pkcs8_der());
        assert_eq!(PrivateKey::from_pem(&pkcs8).unwrap().to_pem(), text, "{algorithm}");
        assert_eq!(algorithm.as_str().parse::<KeyAlgorithm>().unwrap(), algorithm);
    }
}

#[test]
fn no_algorithm_means_rsa_2048_and_an_unknown_one_is_refused() {
    assert_eq!("".parse::<KeyAlgorithm>().unwrap(), KeyAlgorithm::Rsa2048);
    let error = "DSA".parse::<KeyAlgorithm>().unwrap_err().to_string();
    assert!(error.contains("DSA") && error.contains("ECDSA-P256"), "{error}");
}

#[test]
fn an_rsa_authority_is_as_long_as_recorded_ones() {
    // A recorded `<cluster>-ca` has 1070 bytes of PEM with the serial number 0, which RFC 5280 forbids. Ours has eight random
    // bytes, which are twelve characters more. A recorded key has 1675 or 1679.
    let key = PrivateKey::generate(KeyAlgorithm::Rsa2048).unwrap();
    let material = KeyMaterial::generate(Purpose::ClusterCa, key, authority::DEFAULT_CA_DAYS, now()).unwrap();
    assert!([1078, 1082].contains(&material.crt.len()), "{}", material.crt.len());
    assert!((1671..=1679).contains(&material.key.len()), "{}", material.key.len());
    let pair = KeyMaterial::generate(
        Purpose::ServiceAccount,
        PrivateKey::generate(KeyAlgorithm::Rsa2048).unwrap(),
        1,
        now(),
    );
    assert_eq!(pair.unwrap().crt.len(), 451);
}

#[test]
fn an_authority_lives_ten_years_and_signs_leaves_only() {
    let ca = authority();
    let certificate = ca.certificate();
    assert_eq!(certificate.common_name(), "kubernetes");
    assert_eq!(certificate.not_before(), "2026-11-21T10:31:42Z".parse().unwrap());
    assert_eq!(certificate.not_after(), "2036-11-18T10:36:42Z".parse().unwrap());
    let (_, parsed) = X509Certificate::from_der(certificate.der()).unwrap();
    let constraints = parsed.basic_constraints().unwrap().unwrap().value;
    assert!(constraints.ca);
    assert_eq!(constraints.path_len_constraint, Some(0));
    let usage = parsed.key_usage().unwrap().unwrap().value;
    assert!(usage.digital_signature() && usage.key_encipherment() && usage.key_cert_sign());
    assert!(!usage.crl_sign());
}

#[test]
fn a_certificate_chains_to_its_authority_and_carries_its_names() {
    let ca = authority();
    let key = ec();
    let names = vec!["localhost".to_owned(), "127.0.0.1".to_owned(), "::1".to_owned()];
    let leaf = ca
        .issue(&LeafRequest::server("kube-apiserver", names), &key, now())
        .unwrap();
    assert_eq!(leaf.public_key_der(), key.public_der());
    assert_eq!(leaf.not_before(), ca.certificate().not_before());
    assert_eq!(leaf.not_after(), "2027-11-21T10:36:42Z".parse().unwrap());
    assert!(!leaf.is_ca());
    assert_eq!(leaf.alternative_names(), ["localhost", "127.0.0.1", "::1"]);
    assert_eq!(ca.certificate().alternative_names(), [""; 0]);
    let (_, parsed) = X509Certificate::from_der(leaf.der()).unwrap();
    let (_, issuer) = X509Certificate::from_der(ca.certificate().der()).unwrap();
    assert_eq!(parsed.issuer(), issuer.subject());
    let subject_id = issuer
        .extensions()
        .iter()
        .find_map(|extension| match extension.parsed_extension() {
            ParsedExtension::SubjectKeyIdentifier(id) => Some(id.0.to_vec()),
            _ => None,
        });
    let authority_id = parsed
        .extensions()
        .iter()
        .find_map(|extension| match extension.parsed_extension() {
            ParsedExtension::AuthorityKeyIdentifier(id) => id.key_identifier.as_ref().map(|id| id.0.to_vec()),
            _ => None,
        });
    assert!(subject_id.is_some());
    assert_eq!(subject_id, authority_id);
    let names = parsed.subject_alternative_name().unwrap().unwrap().value;
    assert_eq!(names.general_names.len(), 3);
}

#[test]
fn the_administrator_is_in_the_masters_group() {
    let leaf = authority().issue(&LeafRequest::administrator(), &ec(), now()).unwrap();
    let (_, parsed) = X509Certificate::from_der(leaf.der()).unwrap();
    assert_eq!(parsed.subject().to_string(), "O=system:masters, CN=kubernetes-admin");
    let usage = parsed.extended_key_usage().unwrap().unwrap().value;
    assert!(usage.client_auth && !usage.server_auth);
}

#[test]
fn a_key_of_another_authority_is_refused_by_name() {
    let (one, other) = (authority(), authority());
    let error = CertificateAuthority::from_pem(&one.certificate().to_pem(), &other.key().to_pem()).unwrap_err();
    assert_eq!(
        error,
        PkiError::KeyMismatch {
            subject: "kubernetes".to_owned()
        }
    );
    CertificateAuthority::from_pem(&one.certificate().to_pem(), &one.key().to_pem()).unwrap();
}

#[test]
fn no_debug_output_shows_a_key() {
    let ca = authority();
    let config = Kubeconfig {
        cluster: "demo".to_owned(),
        server: "https://127.0.0.1:1".to_owned(),
        authority: ca.certificate().to_pem(),
        client_certificate: ca.certificate().to_pem(),
        client_key: ca.key().to_pem(),
    };
    let material = KeyMaterial::generate(Purpose::EtcdCa, ec(), 1, now()).unwrap();
    let shown = format!("{ca:?} {config:?} {material:?} {:?}", ec());
    assert!(!shown.contains("BEGIN"), "{shown}");
}

#[test]
fn damaged_input_names_what_is_wrong() {
    for (text, part) in [
        ("", "no block found"),
        ("-----BEGIN CERTIFICATE-----\nAAAA", "no end"),
        (
            "-----BEGIN CERTIFICATE-----\n!!\n-----END CERTIFICATE-----",
            "CERTIFICATE",
        ),
        (
            "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----",
            "cannot be read",
        ),
        ("-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\n", "encrypted"),
    ] {
        let error = Certificate::from_pem(text).unwrap_err().to_string();
        assert!(error.contains(part), "{text:?}: {error}");
    }
    let error =
        PrivateKey::from_pem("-----BEGIN EC PRIVATE KEY-----\nAAAA\n-----END EC PRIVATE KEY-----\n").unwrap_err();
    assert!(error.to_string().contains("P-256"), "{error}");
}

#[test]
fn a_kubeconfig_has_the_names_that_people_know() {
    let text = Kubeconfig {
        cluster: "demo000".to_owned(),
        server: "https://127.0.0.1:20000".to_owned(),
        authority: "A".to_owned(),
        client_certificate: "B".to_owned(),
        client_key: "C".to_owned(),
    }
    .render();
    let want = "apiVersion: v1
clusters:
- cluster:
    certificate-authority-data: QQ==
    server: https://127.0.0.1:20000
  name: demo000
contexts:
- context:
    cluster: demo000
    user: demo000-admin
  name: demo000-admin@demo000
current-context: demo000-admin@demo000
kind: Config
users:
- name: demo000-admin
  user:
    client-certificate-data: Qg==
    client-key-data: Qw==
";
    assert_eq!(text, want);
}

#[test]
fn a_kubeconfig_gives_its_certificate_back_whatever_the_cluster_is_called() {
    let ca = authority();
    let leaf = ca.issue(&LeafRequest::administrator(), &ec(), now()).unwrap();
    for cluster in ["demo", "1234", "on", "a.b", "0x1"] {
        let text = Kubeconfig {
            cluster: cluster.to_owned(),
            server: "https://[fd00::1]:6443".to_owned(),
            authority: ca.certificate().to_pem(),
            client_certificate: leaf.to_pem(),
            client_key: ca.key().to_pem(),
        }
        .render();
        assert_eq!(Kubeconfig::client_certificate_of(&text).unwrap(), leaf, "{cluster}");
        assert_eq!(
            Kubeconfig::server_of(&text).unwrap(),
            "https://[fd00::1]:6443",
            "{cluster}"
        );
    }
    assert!(Kubeconfig::server_of("current-context: x\ncontexts: []\nclusters: []\n").is_err());
    assert!(Kubeconfig::client_certificate_of("a: [").is_err());
    assert!(Kubeconfig::client_certificate_of("current-context: x\ncontexts: []\nusers: []\n").is_err());
}

#[test]
fn certificates_are_rotated_in_the_second_half_of_their_life() {
    let check = |left_days: i64, want: bool| {
        let year = SignedDuration::from_hours(24 * 365);
        let not_after = now() + SignedDuration::from_hours(24 * left_days);
        assert_eq!(needs_rotation(not_after, year, now()), want, "{left_days}");
    };
    check(365, false);
    check(183, false);
    check(182, true);
    check(0, true);
    check(-1, true);
    check(3650, false);
}

#[test]
fn secrets_carry_type_label_and_owner() {
    let owner = serde_json::json!({"kind": "KubeadmControlPlane", "name": "demo-cp", "controller": true});
    let material = KeyMaterial {
        crt: "c".to_owned(),
        key: "k".to_owned(),
    };
    let secret = Purpose::FrontProxyCa.secret("default", "demo", &owner, &material.data());
    assert_eq!(
        secret,
        serde_json::json!({
            "apiVersion": "v1", "kind": "Secret", "type": "cluster.x-k8s.io/secret",
            "metadata": {
                "name": "demo-proxy", "namespace": "default",
                "labels": {"cluster.x-k8s.io/cluster-name": "demo"},
                "ownerReferences": [owner],
            },
            "data": {"tls.crt": "Yw==", "tls.key": "aw=="},
        })
    );
    let read = KeyMaterial::read("demo-proxy", material_bytes).unwrap();
    assert_eq!(read, material);
    let error = KeyMaterial::read("demo-ca", |_| None).unwrap_err().to_string();
    assert!(error.contains("demo-ca") && error.contains("tls.crt"), "{error}");
}

fn material_bytes(key: &str) -> Option<&'static [u8]> {
    match key {
        "tls.crt" => Some(b"c"),
        "tls.key" => Some(b"k"),
        _ => None,
    }
}

#[test]
fn the_pin_is_the_hash_of_the_public_key() {
    let ca = authority();
    let pin = ca.certificate().public_key_pin();
    assert_eq!(pin.len(), "sha256:".len() + 64);
    let renewed = CertificateAuthority::self_signed(&CaRequest::new("kubernetes"), ca.key().clone(), now()).unwrap();
    assert_ne!(renewed.certificate(), ca.certificate());
    assert_eq!(renewed.certificate().public_key_pin(), pin);
}

struct ThreadWaker(std::thread::Thread);

impl Wake for ThreadWaker {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

fn block_on<T>(future: impl Future<Output = T>) -> T {
    let mut future = pin!(future);
    let waker = Waker::from(Arc::new(ThreadWaker(std::thread::current())));
    loop {
        match future.as_mut().poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(value) => return value,
            Poll::Pending => std::thread::park(),
        }
    }
}

#[test]
fn the_pool_serves_more_requests_than_it_has_in_stock() {
    let pool = KeyPool::new(2, KeyAlgorithm::Rsa2048, 1);
    let pending: Vec<_> = (0..3).map(|_| pool.take(KeyAlgorithm::Rsa2048)).collect();
    let mut keys: Vec<_> = pending
        .into_iter()
        .map(|key| block_on(key).unwrap().public_der())
        .collect();
    keys.push(pool.take(KeyAlgorithm::Rsa2048).wait().unwrap().public_der());
    keys.sort();
    keys.dedup();
    assert_eq!(keys.len(), 4);
    assert!(pool.take(KeyAlgorithm::EcdsaP384).is_ready());
}
