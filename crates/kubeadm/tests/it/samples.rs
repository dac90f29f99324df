//! Specifications whose bootstrap data the tests look at.

use serde_json::Value;
use windlass_api_kubeadm::bootstrap::KubeadmConfigSpec;
use windlass_kubeadm::{BootstrapData, ClusterFacts, Resolved, WriteFile, render_init, render_join, resolve};

/// Every field of kubeadm's configuration.
const EVERYTHING: &str = r"
clusterConfiguration:
  apiServer:
    certSANs: [localhost, 10.0.0.1]
    extraArgs: [{name: audit-log-maxage, value: '30'}, {name: profiling, value: 'false'}]
    extraEnvs: [{name: GOGC, value: '50'}]
    extraVolumes:
    - {name: audit, hostPath: /etc/audit, mountPath: /etc/audit, readOnly: true, pathType: DirectoryOrCreate}
  caCertificateValidityPeriodDays: 3650
  certificateValidityPeriodDays: 365
  certificatesDir: /etc/kubernetes/pki
  controllerManager:
    extraArgs: [{name: cloud-provider, value: external}]
    extraEnvs: [{name: GOGC, value: '50'}]
    extraVolumes: [{name: flex, hostPath: /flex, mountPath: /flex}]
  dns: {imageRepository: registry.example.com/k8s, imageTag: v1.12.0}
  encryptionAlgorithm: ECDSA-P256
  etcd:
    local:
      dataDir: /var/lib/etcddisk
      extraArgs: [{name: quota-backend-bytes, value: '8589934592'}]
      extraEnvs: [{name: ETCD_MAX_TXN_OPS, value: '128'}]
      imageRepository: registry.example.com/etcd
      imageTag: 3.6.6-0
      peerCertSANs: [etcd.example.com]
      serverCertSANs: [etcd.example.com]
  featureGates: {}
  imageRepository: registry.example.com/k8s
  scheduler:
    extraArgs: [{name: bind-address, value: 0.0.0.0}]
initConfiguration:
  bootstrapTokens:
  - token: abcdef.0123456789abcdef
    description: of the first machine
    ttlSeconds: 7200
    usages: [signing, authentication]
    groups: ['system:bootstrappers:kubeadm:default-node-token']
  localAPIEndpoint: {advertiseAddress: 10.0.0.10, bindPort: 6443}
  nodeRegistration: &registration
    name: node-1
    criSocket: unix:///run/containerd/containerd.sock
    ignorePreflightErrors: [Swap, NumCPU]
    imagePullPolicy: IfNotPresent
    imagePullSerial: false
    kubeletExtraArgs: [{name: node-labels, value: 'a=b,c=d'}, {name: eviction-hard, value: 'nodefs.available<0%'}]
    taints: [{key: node-role.kubernetes.io/control-plane, effect: NoSchedule}, {key: k, value: v, effect: NoExecute}]
  patches: {directory: /etc/kubernetes/patches}
  skipPhases: [addon/kube-proxy]
  timeouts: &timeouts
    controlPlaneComponentHealthCheckSeconds: 300
    discoverySeconds: 301
    etcdAPICallSeconds: 302
    kubeletHealthCheckSeconds: 303
    kubernetesAPICallSeconds: 304
    tlsBootstrapSeconds: 305
joinConfiguration:
  caCertPath: /etc/kubernetes/pki/ca.crt
  controlPlane: {localAPIEndpoint: {advertiseAddress: 10.0.0.11, bindPort: 6443}}
  discovery:
    tlsBootstrapToken: abcdef.0123456789abcdef
    bootstrapToken:
      apiServerEndpoint: 10.0.0.1:6443
      caCertHashes: ['sha256:0000000000000000000000000000000000000000000000000000000000000000']
      token: abcdef.0123456789abcdef
  nodeRegistration: *registration
  patches: {directory: /etc/kubernetes/patches}
  skipPhases: [preflight]
  timeouts: *timeouts
verbosity: 5
";

/// Every directive of cloud-config, as far as its schema goes: it has no types of partitions with letters, and
/// takes `inactive` for a number of days.
const DIRECTIVES: &str = r#"
bootCommands: ["cloud-init-per once a echo 'b: c'"]
preKubeadmCommands: ['hostname "{{ ds.meta_data.hostname }}"']
postKubeadmCommands: ["echo done # really"]
verbosity: 3
files:
- {path: /etc/a, content: "a: b\n  c: d\n", owner: "root:root", permissions: "0600"}
- {path: /etc/a, content: more, append: true}
- {path: /etc/b, encoding: base64, content: AAEC/w==}
- {path: /etc/c, encoding: gzip+base64, content: H4sIAAAAAAAAA0tMSgYAwkEkNQMAAAA=}
- {path: /etc/d, contentFrom: {secret: {name: s, key: k}}}
- {path: /etc/e, content: "  v={{ .controlPlane.version }}", contentFormat: Template}
ntp: {enabled: true, servers: [ntp.example.com]}
users:
- name: a
  gecos: A User
  groups: b, c
  homeDir: /home/a
  lockPassword: false
  passwdFrom: {secret: {name: s, key: k}}
  primaryGroup: b
  shell: /bin/bash
  sshAuthorizedKeys: [ssh-ed25519 AAAA a@example.com]
  sudo: ALL=(ALL) NOPASSWD:ALL
diskSetup:
  partitions:
  - device: /dev/vda
    tableType: gpt
    overwrite: false
    diskLayout:
    - {percentage: 10}
    - {percentage: 10, partitionType: Linux}
    - {percentage: 10, partitionType: LinuxSwap}
    - {percentage: 10, partitionType: NTFS}
    - {percentage: 10, partitionType: LinuxExtended}
  - {device: /dev/vdb, layout: true, tableType: mbr}
  filesystems:
  - {device: /dev/vdb, filesystem: ext4, label: etcd_disk, partition: none, overwrite: true, extraOpts: [-F]}
  - {device: /dev/vdc, filesystem: xfs, label: data, partition: auto, replaceFS: ext4}
mounts:
- [LABEL=etcd_disk, /var/lib/etcddisk, auto, "defaults,nofail"]
"#;

/// [`DIRECTIVES`] as a specification.
pub(crate) fn directives() -> KubeadmConfigSpec {
    spec(DIRECTIVES)
}

/// [`EVERYTHING`] as a value, from which a test may take fields away.
pub(crate) fn everything() -> Value {
    serde_saphyr::from_str(EVERYTHING).unwrap()
}

pub(crate) fn spec(yaml: &str) -> KubeadmConfigSpec {
    serde_saphyr::from_str(yaml).unwrap()
}

fn facts(version: &str) -> ClusterFacts {
    ClusterFacts {
        name: "demo".to_owned(),
        kubernetes_version: version.to_owned(),
        control_plane_endpoint: Some("10.0.0.1:6443".to_owned()),
        dns_domain: Some("cluster.local".to_owned()),
        pod_subnets: vec!["192.168.0.0/16".to_owned(), "fd00:1::/48".to_owned()],
        service_subnets: vec!["10.128.0.0/12".to_owned(), "fd00:2::/108".to_owned()],
    }
}

/// Data of the machine that creates the cluster.
pub(crate) fn init(spec: &KubeadmConfigSpec, version: &str, certificates: &[WriteFile]) -> BootstrapData {
    render_init(spec, &facts(version), certificates, &resolved(spec)).unwrap()
}

/// Data of a machine that joins.
pub(crate) fn join(spec: &KubeadmConfigSpec, version: &str, certificates: &[WriteFile]) -> BootstrapData {
    let join = spec.join_configuration.clone().unwrap_or_default();
    render_join(spec, &join, &facts(version), certificates, &resolved(spec)).unwrap()
}

fn resolved(spec: &KubeadmConfigSpec) -> Resolved {
    resolve(spec, Some("v1.36.0"), &|_| Some(&b"from a Secret"[..])).unwrap()
}
