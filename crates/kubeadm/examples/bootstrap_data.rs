//! What the bootstrap data of one machine costs: `cargo xtask bench kubeadm`. Prints medians beside their target, asserts nothing. Keys
//! and certificates are given, as they are made once for a cluster.

use std::error::Error;
use std::io::Write as _;
use std::time::{Duration, Instant};

use windlass_api_kubeadm::bootstrap::KubeadmConfigSpec;
use windlass_kubeadm::{ClusterFacts, KubeadmError, WriteFile, render_init, render_join, resolve};

/// The time that the data of a machine may take.
const TARGET: Duration = Duration::from_millis(1);
/// Renderings for a median.
const RUNS: usize = 2_000;

/// The settings of a control plane in production: audit, an etcd disk, users, files.
const SPEC: &str = r"
clusterConfiguration:
  apiServer:
    certSANs: [api.example.com]
    extraArgs: [{name: audit-policy-file, value: /etc/kubernetes/audit.yaml}, {name: profiling, value: 'false'}]
    extraVolumes: [{name: audit, hostPath: /etc/kubernetes/audit.yaml, mountPath: /etc/kubernetes/audit.yaml, readOnly: true}]
  etcd: {local: {dataDir: /var/lib/etcddisk/etcd, extraArgs: [{name: quota-backend-bytes, value: '8589934592'}]}}
initConfiguration: {nodeRegistration: {kubeletExtraArgs: [{name: cloud-provider, value: external}]}}
joinConfiguration: {controlPlane: {}, nodeRegistration: {kubeletExtraArgs: [{name: cloud-provider, value: external}]}}
diskSetup:
  partitions: [{device: /dev/vdb, layout: true, tableType: gpt}]
  filesystems: [{device: /dev/vdb, filesystem: ext4, label: etcd_disk}]
mounts: [[LABEL=etcd_disk, /var/lib/etcddisk]]
users: [{name: admin, sudo: 'ALL=(ALL) NOPASSWD:ALL', sshAuthorizedKeys: [ssh-ed25519 AAAA admin@example.com]}]
preKubeadmCommands: [systemctl restart containerd, hostnamectl set-hostname x]
";

fn main() -> Result<(), Box<dyn Error>> {
    let mut out = std::io::stdout().lock();
    let mut spec: KubeadmConfigSpec = serde_saphyr::from_str(SPEC)?;
    // Twenty files of 2 KiB.
    let file = |index: usize| {
        let content = format!("line {index} of a file\n").repeat(100);
        serde_json::from_value(serde_json::json!({ "path": format!("/etc/files/{index}"), "content": content }))
    };
    spec.files = (0..20).map(file).collect::<Result<_, _>>()?;
    let certificates: Vec<WriteFile> = ["ca", "etcd/ca", "front-proxy-ca", "sa"]
        .iter()
        .map(|name| WriteFile {
            path: format!("/etc/kubernetes/pki/{name}.key"),
            owner: "root:root".to_owned(),
            permissions: "0600".to_owned(),
            content: "x".repeat(1_700),
            ..WriteFile::default()
        })
        .collect();
    for version in ["v1.30.0", "v1.36.0"] {
        let facts = ClusterFacts {
            name: "demo".to_owned(),
            kubernetes_version: version.to_owned(),
            control_plane_endpoint: Some("10.0.0.1:6443".to_owned()),
            ..ClusterFacts::default()
        };
        let resolved = resolve(&spec, Some(version), &|_| None)?;
        let join = spec.join_configuration.clone().unwrap_or_default();
        let init = || render_init(&spec, &facts, &certificates, &resolved).map(|data| data.value.len());
        let joined = || render_join(&spec, &join, &facts, &certificates, &resolved).map(|data| data.value.len());
        for (what, data) in [("init", &init as &dyn Fn() -> _), ("join", &joined)] {
            let (took, size) = median(data)?;
            let verdict = if took <= TARGET { "met" } else { "MISSED" };
            writeln!(
                out,
                "{what} of {version}, {size} bytes: {took:?} (target {TARGET:?}, {verdict})"
            )?;
        }
    }
    Ok(())
}

/// The median time of a rendering, and the bytes that it makes.
fn median(render: &dyn Fn() -> Result<usize, KubeadmError>) -> Result<(Duration, usize), KubeadmError> {
    let mut size = 0;
    let mut took = Vec::with_capacity(RUNS);
    for _ in 0..RUNS {
        let begin = Instant::now();
        size = render()?;
        took.push(begin.elapsed());
    }
    took.sort();
    Ok((took[RUNS / 2], size))
}
