//! Rendering compared with the data of real machines (`testdata/`), and every directive on its own.

use serde_json::json;
use windlass_api_kubeadm::bootstrap::{JoinConfiguration, KubeadmConfigSpec};

use super::*;
use crate::convert::{self, ClusterFacts};
use crate::{KubeadmVersion, SecretReference, render_init, render_join, resolve};

fn spec(yaml: &str) -> KubeadmConfigSpec {
    serde_saphyr::from_str(yaml).unwrap()
}

fn facts() -> ClusterFacts {
    ClusterFacts {
        name: "demo000".to_owned(),
        kubernetes_version: "v1.35.0".to_owned(),
        control_plane_endpoint: Some("127.0.0.1:20000".to_owned()),
        dns_domain: Some("cluster.local".to_owned()),
        pod_subnets: vec!["192.168.0.0/16".to_owned()],
        service_subnets: vec!["10.128.0.0/12".to_owned()],
    }
}

fn certificates() -> Vec<WriteFile> {
    [
        ("ca.crt", "0640", "CERTIFICATE"),
        ("ca.key", "0600", "RSA PRIVATE KEY"),
        ("etcd/ca.crt", "0640", "CERTIFICATE"),
        ("etcd/ca.key", "0600", "RSA PRIVATE KEY"),
        ("front-proxy-ca.crt", "0640", "CERTIFICATE"),
        ("front-proxy-ca.key", "0600", "RSA PRIVATE KEY"),
        ("sa.pub", "0640", "PUBLIC KEY"),
        ("sa.key", "0600", "RSA PRIVATE KEY"),
    ]
    .map(|(name, permissions, label)| WriteFile {
        path: format!("/etc/kubernetes/pki/{name}"),
        owner: "root:root".to_owned(),
        permissions: permissions.to_owned(),
        content: format!("PEM {label}\n"),
        ..WriteFile::default()
    })
    .into()
}

const REGISTRATION: &str = "
  nodeRegistration:
    criSocket: unix:///var/run/containerd/containerd.sock
    kubeletExtraArgs:
    - name: eviction-hard
      value: nodefs.available<0%,nodefs.inodesFree<0%,imagefs.available<0%
";

const DISCOVERY: &str = "
  discovery:
    bootstrapToken:
      apiServerEndpoint: 127.0.0.1:20000
      caCertHashes: ['sha256:0000000000000000000000000000000000000000000000000000000000000000']
      token: abcdef.0123456789abcdef
";

#[test]
fn init_data_has_the_recorded_shape() {
    let spec = spec(&format!(
        "clusterConfiguration:
  apiServer:
    certSANs: [localhost, 127.0.0.1, 0.0.0.0, host.docker.internal]
  featureGates:
    ControlPlaneKubeletLocalMode: true
initConfiguration:{REGISTRATION}"
    ));
    let data = render_init(&spec, &facts(), &certificates(), &Resolved::default()).unwrap();
    assert_eq!(data.format, "cloud-config");
    assert_eq!(data.value, include_str!("../../testdata/init.yaml"));
}

#[test]
fn a_joining_control_plane_machine_gets_the_recorded_shape() {
    let spec = spec(&format!(
        "joinConfiguration:\n  controlPlane: {{}}{REGISTRATION}{}",
        DISCOVERY.trim_start_matches('\n')
    ));
    let join = spec.join_configuration.clone().unwrap();
    let data = render_join(&spec, &join, &facts(), &certificates(), &Resolved::default()).unwrap();
    assert_eq!(data.value, include_str!("../../testdata/join-control-plane.yaml"));
}

#[test]
fn a_joining_worker_gets_the_recorded_shape() {
    let spec = spec(&format!(
        "joinConfiguration:{REGISTRATION}    taints:
    - key: node.cluster.x-k8s.io/uninitialized
      effect: NoSchedule
{}",
        DISCOVERY.trim_start_matches('\n')
    ));
    let join = spec.join_configuration.clone().unwrap();
    let data = render_join(&spec, &join, &facts(), &[], &Resolved::default()).unwrap();
    assert_eq!(data.value, include_str!("../../testdata/join-worker.yaml"));
}

/// Renders a worker with the given spec and parses the cloud-config.
fn read_back(text: &str) -> serde_json::Value {
    let spec = spec(text);
    let secrets = |reference: &SecretReference| match (reference.name.as_str(), reference.key.as_str()) {
        ("s", "k") => Some(&b"from secret"[..]),
        ("s", "template") => Some(&b"v={{ .controlPlane.version }}"[..]),
        _ => None,
    };
    let resolved = resolve(&spec, Some("v1.35.1+build"), &secrets).unwrap();
    let data = render_join(&spec, &JoinConfiguration::default(), &facts(), &[], &resolved).unwrap();
    let (header, _) = data.value.split_once('\n').unwrap();
    assert_eq!(header, "## template: jinja");
    serde_saphyr::from_str(&data.value).unwrap_or_else(|error| panic!("{error}\n{}", data.value))
}

#[test]
fn files_keep_their_content_whatever_it_is() {
    let config = read_back(
        r#"
files:
- path: /etc/a
  owner: root:root
  permissions: "0644"
  content: "a: b\n  c: {{ jinja }}\n\nlast"
- path: /etc/b
  append: true
  encoding: gzip+base64
  contentFrom: {secret: {name: s, key: k}}
- path: /etc/c
  contentFormat: Template
  contentFrom: {secret: {name: s, key: template}}
- path: "/etc/d: e"
  content: "  indented\nnot\u0001"
"#,
    );
    let files = &config["write_files"];
    assert_eq!(
        files[0],
        json!({"path": "/etc/a", "owner": "root:root", "permissions": "0644", "content": "a: b\n  c: {{ jinja }}\n\nlast\n"})
    );
    assert_eq!(
        files[1],
        json!({"path": "/etc/b", "append": true, "encoding": "gzip+base64", "content": "from secret\n"})
    );
    assert_eq!(files[2]["content"], "v=v1.35.1+build\n");
    assert_eq!(
        files[3],
        json!({"path": "/etc/d: e", "content": "  indented\nnot\u{1}"})
    );
}

#[test]
fn commands_run_around_kubeadm_and_sentinel() {
    let config = read_back(
        "
verbosity: 5
bootCommands: ['echo \"boot\"']
preKubeadmCommands: ['a: b', 'printf %s\\n']
postKubeadmCommands: [done]
",
    );
    assert_eq!(config["bootcmd"], json!(["echo \"boot\""]));
    assert_eq!(
        config["runcmd"],
        json!([
            "a: b",
            "printf %s\\n",
            "kubeadm join --config /run/kubeadm/kubeadm-join-config.yaml --v 5 && echo success > /run/cluster-api/bootstrap-success.complete",
            "done",
        ])
    );
}

#[test]
fn users_ntp_and_mounts_are_rendered() {
    let config = read_back(
        "
ntp: {enabled: true, servers: [pool.ntp.org, '1.2.3.4']}
users:
- name: capi
  passwdFrom: {secret: {name: s, key: k}}
  gecos: A User
  groups: a, b
  homeDir: /h
  inactive: true
  lockPassword: false
  shell: /bin/bash
  primaryGroup: g
  sudo: ALL=(ALL) NOPASSWD:ALL
  sshAuthorizedKeys: [ssh-rsa AAAA]
- {name: active, inactive: false}
mounts:
- [/dev/sdc, /data]
- [LABEL=etcd_disk, /var/lib/etcddisk]
",
    );
    assert_eq!(
        config["ntp"],
        json!({"enabled": true, "servers": ["pool.ntp.org", "1.2.3.4"]})
    );
    assert_eq!(
        config["users"],
        json!([{
            "name": "capi", "passwd": "from secret", "gecos": "A User", "groups": "a, b", "homedir": "/h",
            "inactive": true, "lock_passwd": false, "shell": "/bin/bash", "primary_group": "g",
            "sudo": "ALL=(ALL) NOPASSWD:ALL", "ssh_authorized_keys": ["ssh-rsa AAAA"],
        }, {"name": "active", "inactive": false}])
    );
    assert_eq!(
        config["mounts"],
        json!([["/dev/sdc", "/data"], ["LABEL=etcd_disk", "/var/lib/etcddisk"]])
    );
}

#[test]
fn disks_are_partitioned_and_formatted() {
    let config = read_back(
        "
diskSetup:
  partitions:
  - {device: /dev/sda, layout: true, overwrite: false, tableType: gpt}
  - device: /dev/sdb
    diskLayout: [{percentage: 30}, {percentage: 70, partitionType: LinuxSwap}]
  filesystems:
  - {device: /dev/sda, filesystem: ext4, label: etcd, partition: auto, overwrite: true, replaceFS: ntfs, extraOpts: ['-E', 'lazy_itable_init=1']}
",
    );
    assert_eq!(
        config["disk_setup"],
        json!({
            "/dev/sda": {"table_type": "gpt", "layout": true, "overwrite": false},
            "/dev/sdb": {"layout": [30, [70, 82]]},
        })
    );
    assert_eq!(
        config["fs_setup"],
        json!([{
            "label": "etcd", "filesystem": "ext4", "device": "/dev/sda", "partition": "auto", "overwrite": true,
            "replace_fs": "ntfs", "extra_opts": ["-E", "lazy_itable_init=1"],
        }])
    );
}

#[test]
fn templates_see_the_whole_version_of_the_control_plane() {
    let spec = spec("files: [{path: /a, content: '{{ .controlPlane.version }}', contentFormat: Template}]");
    let rendered = |version: Option<&str>| {
        let resolved = resolve(&spec, version, &|_| None);
        resolved
            .map(|resolved| resolved.files[0].content.clone())
            .map_err(|error| error.to_string())
    };
    for (version, text) in [
        ("v1.35.2", "v1.35.2"),
        ("1.35", "v1.35.0"),
        ("v1.35.2-rc.1", "v1.35.2-rc.1"),
        ("v1.35.2+rke2r1", "v1.35.2+rke2r1"),
    ] {
        assert_eq!(rendered(Some(version)).as_deref(), Ok(text));
    }
    assert!(rendered(Some("latest")).unwrap_err().contains("latest"));
    // Without a version there is nothing to test for.
    let with = "{{ if .controlPlane }}{{ .controlPlane.version }}{{ else }}none{{ end }}";
    let spec = json!({"files": [{"path": "/a", "content": with, "contentFormat": "Template"}]});
    let spec = serde_json::from_value(spec).unwrap();
    let resolved = resolve(&spec, None, &|_| None).ok().unwrap();
    assert_eq!(resolved.files[0].content, "none");
}

#[test]
fn partition_types_are_written_as_codes() {
    let guid = "0fc63daf-8483-4772-8e79-3d69d8477de4";
    let kinds = [
        "Linux",
        "LinuxSwap",
        "LinuxRAID",
        "LVM",
        "Fat32",
        "NTFS",
        "LinuxExtended",
        guid,
    ];
    let layout: Vec<serde_json::Value> = kinds
        .iter()
        .map(|kind| json!({"percentage": 10, "partitionType": kind}))
        .collect();
    let spec = json!({"diskSetup": {"partitions": [{"device": "/dev/sdb", "layout": true, "diskLayout": layout}]}});
    let config = read_back(&spec.to_string());
    let codes = config["disk_setup"]["/dev/sdb"]["layout"].as_array().unwrap().iter();
    let text = |code: &serde_json::Value| match code.as_f64() {
        Some(number) => format!("{number:02.0}"),
        None => code.as_str().unwrap().to_owned(),
    };
    let codes: Vec<String> = codes.map(|part| text(&part[1])).collect();
    assert_eq!(codes, ["83", "82", "fd", "8e", "0c", "07", "85", guid]);
}

fn fails(text: &str, parts: &[&str]) {
    let spec = spec(text);
    let result = resolve(&spec, None, &|_| None)
        .and_then(|resolved| render_join(&spec, &JoinConfiguration::default(), &facts(), &[], &resolved));
    let error = result.err().map(|error| error.to_string()).unwrap_or_default();
    for part in parts {
        assert!(error.contains(part), "{text}: {error:?} lacks {part:?}");
    }
}

#[test]
fn what_cannot_be_rendered_is_said_with_field_and_remedy() {
    fails("format: butane", &["spec.format", "butane", "cloud-config", "ignition"]);
    fails(
        "files: [{path: /a, contentFrom: {secret: {name: s, key: k}}}]",
        &["spec.files[0].contentFrom.secret", "Secret s", "\"k\""],
    );
    fails(
        "users: [{name: u, passwdFrom: {secret: {name: p, key: k}}}]",
        &["spec.users[0].passwdFrom.secret", "Secret p"],
    );
    fails(
        "files: [{path: /a, content: '{{ if }}', contentFormat: Template}]",
        &["spec.files[0]", "/a", "template"],
    );
}

#[test]
fn kubernetes_versions_choose_the_format() {
    let check = |version: &str, want: Result<&str, &str>| {
        let got = KubeadmVersion::for_kubernetes(version).map(KubeadmVersion::api_version);
        match (got, want) {
            (Ok(got), Ok(want)) => assert_eq!(got, want, "{version}"),
            (Err(error), Err(part)) => assert!(error.to_string().contains(part), "{version}: {error}"),
            (got, want) => panic!("{version}: {got:?}, expected {want:?}"),
        }
    };
    check("v1.21.9", Err("too old"));
    check("v1.22.0", Ok("kubeadm.k8s.io/v1beta3"));
    check("v1.30.9+build", Ok("kubeadm.k8s.io/v1beta3"));
    check("v1.31.0-rc.1", Ok("kubeadm.k8s.io/v1beta4"));
    check("1.36.0", Ok("kubeadm.k8s.io/v1beta4"));
    check("latest", Err("not a Kubernetes version"));
}

const EVERYTHING: &str = "
clusterConfiguration:
  caCertificateValidityPeriodDays: 3650
  certificateValidityPeriodDays: 100
  encryptionAlgorithm: ECDSA-P256
  certificatesDir: /pki
  imageRepository: registry.k8s.io
  dns: {imageTag: v1}
  etcd:
    local: {dataDir: /d, imageTag: '3.6', extraArgs: [{name: a, value: '1'}], serverCertSANs: [x]}
  controllerManager:
    extraArgs: [{name: b, value: 'true'}]
    extraEnvs: [{name: E, value: v}]
    extraVolumes: [{name: v, hostPath: /h, mountPath: /m, readOnly: true, pathType: File}]
initConfiguration:
  bootstrapTokens: [{token: abcdef.0123456789abcdef, ttlSeconds: 3600, groups: [g]}]
  localAPIEndpoint: {advertiseAddress: 1.2.3.4, bindPort: 6443}
  nodeRegistration: {name: '{{ ds.meta_data.hostname }}', imagePullPolicy: Always, imagePullSerial: false, taints: []}
  patches: {directory: /p}
  skipPhases: [addon/kube-proxy]
  timeouts: {controlPlaneComponentHealthCheckSeconds: 240, kubernetesAPICallSeconds: 30}
";

fn documents(version: &str) -> Vec<serde_json::Value> {
    let facts = ClusterFacts {
        kubernetes_version: version.to_owned(),
        ..ClusterFacts::default()
    };
    let data = render_init(&spec(EVERYTHING), &facts, &[], &Resolved::default()).unwrap();
    let config: serde_json::Value = serde_saphyr::from_str(&data.value).unwrap();
    serde_saphyr::from_multiple(config["write_files"][0]["content"].as_str().unwrap()).unwrap()
}

#[test]
fn v1beta4_takes_every_field() {
    let documents = documents("v1.31.0");
    assert_eq!(
        documents[0],
        json!({
            "apiVersion": "kubeadm.k8s.io/v1beta4", "kind": "ClusterConfiguration",
            "apiServer": {}, "scheduler": {}, "proxy": {}, "networking": {},
            "caCertificateValidityPeriod": "87600h0m0s", "certificateValidityPeriod": "2400h0m0s",
            "encryptionAlgorithm": "ECDSA-P256", "certificatesDir": "/pki", "imageRepository": "registry.k8s.io",
            "dns": {"imageTag": "v1"}, "kubernetesVersion": "v1.31.0",
            "etcd": {"local": {
                "dataDir": "/d", "imageTag": "3.6", "extraArgs": [{"name": "a", "value": "1"}], "serverCertSANs": ["x"],
            }},
            "controllerManager": {
                "extraArgs": [{"name": "b", "value": "true"}], "extraEnvs": [{"name": "E", "value": "v"}],
                "extraVolumes": [{"name": "v", "hostPath": "/h", "mountPath": "/m", "readOnly": true, "pathType": "File"}],
            },
        })
    );
    assert_eq!(
        documents[1],
        json!({
            "apiVersion": "kubeadm.k8s.io/v1beta4", "kind": "InitConfiguration",
            "bootstrapTokens": [{"token": "abcdef.0123456789abcdef", "ttl": "1h0m0s", "groups": ["g"]}],
            "localAPIEndpoint": {"advertiseAddress": "1.2.3.4", "bindPort": 6443},
            "nodeRegistration": {
                "name": "{{ ds.meta_data.hostname }}", "imagePullPolicy": "Always", "imagePullSerial": false, "taints": [],
            },
            "patches": {"directory": "/p"}, "skipPhases": ["addon/kube-proxy"],
            "timeouts": {"controlPlaneComponentHealthCheck": "4m0s", "kubernetesAPICall": "30s"},
        })
    );
}

#[test]
fn v1beta3_has_maps_and_its_own_place_for_time_outs() {
    let documents = documents("v1.30.0");
    let cluster = &documents[0];
    assert_eq!(cluster["apiVersion"], "kubeadm.k8s.io/v1beta3");
    assert_eq!(cluster["apiServer"], json!({"timeoutForControlPlane": "4m0s"}));
    assert_eq!(cluster["controllerManager"]["extraArgs"], json!({"b": "true"}));
    assert_eq!(cluster["etcd"]["local"]["extraArgs"], json!({"a": "1"}));
    for gone in [
        "proxy",
        "encryptionAlgorithm",
        "certificateValidityPeriod",
        "caCertificateValidityPeriod",
    ] {
        assert!(cluster.get(gone).is_none(), "{gone}");
    }
    assert!(cluster["controllerManager"].get("extraEnvs").is_none());
    assert!(documents[1].get("timeouts").is_none());
    assert!(documents[1]["nodeRegistration"].get("imagePullSerial").is_none());

    let join: JoinConfiguration =
        serde_json::from_value(json!({"timeouts": {"tlsBootstrapSeconds": 90}, "caCertPath": "/ca"})).unwrap();
    let text = convert::join_configuration(KubeadmVersion::V1Beta3, &join);
    let document: serde_json::Value = serde_saphyr::from_str(&text).unwrap();
    assert_eq!(document["discovery"], json!({"timeout": "1m30s"}));
    assert_eq!(document["caCertPath"], "/ca");
}

#[test]
fn file_discovery_writes_a_kubeconfig_with_the_cluster_filled_in() {
    let discovery = serde_json::from_value(json!({
        "kubeConfigPath": "/etc/kubernetes/discovery.yaml",
        "kubeConfig": {"user": {"exec": {"command": "aws", "args": ["token"], "env": [{"name": "A", "value": "b"}]}}},
    }))
    .unwrap();
    let file = crate::discovery::kubeconfig_file(&discovery, "10.0.0.1:6443", "PEM").unwrap();
    assert_eq!(file.path, "/etc/kubernetes/discovery.yaml");
    let config: serde_json::Value = serde_saphyr::from_str(&file.content).unwrap();
    assert_eq!(
        config["clusters"][0]["cluster"],
        json!({"server": "https://10.0.0.1:6443", "certificate-authority-data": "UEVN"})
    );
    assert_eq!(
        config["users"][0]["user"]["exec"],
        json!({
            "apiVersion": "client.authentication.k8s.io/v1", "command": "aws", "args": ["token"],
            "env": [{"name": "A", "value": "b"}], "interactiveMode": "Never", "provideClusterInfo": false,
        })
    );
    let bare = serde_json::from_value(json!({"kubeConfigPath": "/x"})).unwrap();
    assert!(crate::discovery::kubeconfig_file(&bare, "e", "c").is_none());
}
