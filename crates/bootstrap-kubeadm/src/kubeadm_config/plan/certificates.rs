//! Certificates: which a machine needs, whether they are there, and which files they become.

use std::collections::BTreeMap;

use windlass_api::core::v1beta2::Cluster;
use windlass_api_kubeadm::bootstrap::KubeadmConfig;
use windlass_api_kubeadm::v1beta1::reasons;
use windlass_controller_runtime::Seen;
use windlass_kubeadm::WriteFile;
use windlass_pki::{KeyMaterial, Purpose, RotationStage, rotation};

use super::super::observed::{Material, cluster_configuration, external_etcd};
use super::{Lack, Verdict};

const DEFAULT_FOLDER: &str = "/etc/kubernetes/pki";

/// Whether a purpose is for the user to fill: this controller has no authority to sign for an external etcd.
pub(super) fn is_users(config: &KubeadmConfig, purpose: Purpose) -> bool {
    external_etcd(config).is_some() && matches!(purpose, Purpose::EtcdCa | Purpose::ApiServerEtcdClient)
}

/// What is missing or unreadable among the certificates, if anything.
pub(super) fn lacking(seen: &BTreeMap<Purpose, Seen<KeyMaterial>>, cluster: &str) -> Option<Verdict> {
    let failures: Vec<_> = seen.values().filter_map(Seen::failure).collect();
    if !failures.is_empty() {
        let lack = Lack::failed(failures.join("; "), reasons::CERTIFICATES_CORRUPTED);
        return Some(Verdict::InternalError(lack));
    }
    let missing = missing(seen);
    if missing.is_empty() {
        return None;
    }
    let names: Vec<_> = missing.iter().map(|purpose| purpose.secret_name(cluster)).collect();
    let lack = Lack::failed(
        format!("Waiting for Secrets with certificates: {}", names.join(", ")),
        reasons::CERTIFICATES_GENERATION_FAILED,
    );
    Some(Verdict::InternalError(lack))
}

/// What is wrong with the keys that a joining control plane machine signs with, if anything. Only the authority of an etcd elsewhere comes
/// without its key.
pub(super) fn without_key(config: &KubeadmConfig, material: &Material, cluster: &Cluster) -> Option<Lack> {
    let lacking = material.certificates.iter().filter(|(purpose, secret)| {
        !is_users(config, **purpose) && secret.found().is_some_and(|material| material.key.is_empty())
    });
    let cluster = cluster.metadata.name.as_deref().unwrap_or_default();
    let names: Vec<_> = lacking.map(|(purpose, _)| purpose.secret_name(cluster)).collect();
    (!names.is_empty()).then(|| {
        Lack::failed(
            format!(
                "missing key data: Secrets {} have no tls.key, which a control plane machine needs; put the keys there in PEM form",
                names.join(", ")
            ),
            reasons::CERTIFICATES_CORRUPTED,
        )
    })
}

/// The purposes without a Secret.
pub(super) fn missing(seen: &BTreeMap<Purpose, Seen<KeyMaterial>>) -> Vec<Purpose> {
    seen.iter()
        .filter(|(_, material)| material.is_not_found())
        .map(|(purpose, _)| *purpose)
        .collect()
}

/// The files of a control plane machine, in the order of [`Purpose::CONTROL_PLANE`].
pub(super) fn files(config: &KubeadmConfig, seen: &BTreeMap<Purpose, Seen<KeyMaterial>>) -> Vec<WriteFile> {
    let folder = cluster_configuration(config)
        .and_then(|configuration| configuration.certificates_dir.as_deref())
        .unwrap_or(DEFAULT_FOLDER);
    let mut files = Vec::new();
    for purpose in Purpose::CONTROL_PLANE.into_iter().chain([Purpose::ApiServerEtcdClient]) {
        let Some(Seen::Found(material)) = seen.get(&purpose) else {
            continue;
        };
        let Some((certificate, key)) = paths(config, folder, purpose) else {
            continue;
        };
        files.extend(file(certificate, "0640", &material.crt));
        if purpose == Purpose::ClusterCa {
            files.extend(signing(folder, &material.crt));
        }
        if let Some(key) = key {
            files.extend(file(key, "0600", &material.key));
        }
    }
    files
}

/// The certificate that signs, beside a bundle: the controller manager signs with a file that has only this one.
fn signing(folder: &str, bundle: &str) -> Option<WriteFile> {
    let blocks = rotation::blocks(bundle).ok().filter(|blocks| blocks.len() > 1)?;
    let path = format!("{}/{}", folder.trim_end_matches('/'), rotation::SIGNING_CERTIFICATE);
    file(path, "0640", blocks.first()?)
}

/// The file with the authority of the cluster, where API servers may run whose certificates another one than the first in it has signed: those
/// of before its rotation was completed. A bundle without a rotation is a user's, or what is left of one that was ended half-way.
pub(super) fn mixed<'a>(material: &Material, files: &'a [WriteFile]) -> Option<&'a WriteFile> {
    let stage = material.rotation.as_deref().map(str::parse);
    if !matches!(stage, None | Some(Ok(RotationStage::Completing))) {
        return None;
    }
    let Some(Seen::Found(authority)) = material.certificates.get(&Purpose::ClusterCa) else {
        return None;
    };
    rotation::blocks(&authority.crt)
        .ok()
        .filter(|blocks| blocks.len() > 1)?;
    // A worker has none of these files.
    files.iter().find(|file| file.content == authority.crt)
}

/// What the data of a machine was made of, while authorities are rotated. The control plane knows by it which machines are left.
pub(super) fn mark(material: &Material) -> Option<String> {
    let found = material.certificates.iter();
    let authorities = found.filter_map(|(purpose, secret)| Some((*purpose, secret.found()?.crt.as_str())));
    let rotated = authorities.filter(|(purpose, _)| Purpose::CONTROL_PLANE.contains(purpose));
    let stage = material.rotation.as_deref()?;
    Some(rotation::mark(stage, rotated))
}

/// Where certificate and key go. The authority of an etcd elsewhere is written without its key, which is not ours to spread.
fn paths(config: &KubeadmConfig, folder: &str, purpose: Purpose) -> Option<(String, Option<String>)> {
    if let Some(etcd) = external_etcd(config) {
        match purpose {
            Purpose::EtcdCa => return Some((etcd.ca_file.clone(), None)),
            Purpose::ApiServerEtcdClient => return Some((etcd.cert_file.clone(), Some(etcd.key_file.clone()))),
            _ => {}
        }
    }
    let (certificate, key) = purpose.files()?;
    let below = |name: &str| format!("{}/{name}", folder.trim_end_matches('/'));
    Some((below(certificate), Some(below(key))))
}

fn file(path: String, permissions: &str, content: &str) -> Option<WriteFile> {
    (!content.is_empty()).then(|| WriteFile {
        path,
        owner: "root:root".to_owned(),
        permissions: permissions.to_owned(),
        content: content.to_owned(),
        ..WriteFile::default()
    })
}
