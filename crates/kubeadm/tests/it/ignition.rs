//! Bootstrap data in the format ignition: golden files (`testdata/ignition-*.json`), each field on its own, what is refused, and random
//! specifications. Everything that is rendered goes through Ignition's own validator.

mod fields;
pub(crate) mod random;
mod refused;

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;
use windlass_api_kubeadm::bootstrap::KubeadmConfigSpec;
use windlass_envtest::Tools;
use windlass_kubeadm::{BootstrapData, ClusterFacts, KubeadmError, WriteFile, render_init, render_join, resolve};

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
        ("sa.pub", "0640", "PUBLIC KEY"),
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

fn spec(yaml: &str) -> KubeadmConfigSpec {
    let mut spec: KubeadmConfigSpec = serde_saphyr::from_str(yaml).unwrap();
    spec.format = Some("ignition".to_owned());
    spec
}

/// Data of a worker that joins, with a Secret `s` that has the keys `content` and `hash`.
fn rendered(spec: &KubeadmConfigSpec) -> Result<BootstrapData, KubeadmError> {
    let resolved = resolve(spec, Some("v1.35.1"), &|reference| match reference.key.as_str() {
        "content" => Some(&b"from a Secret"[..]),
        "hash" => Some(&b"$6$secret"[..]),
        _ => None,
    })?;
    let join = spec.join_configuration.clone().unwrap_or_default();
    render_join(spec, &join, &facts(), &[], &resolved)
}

fn document(data: &BootstrapData) -> Value {
    assert_eq!(data.format, "ignition");
    serde_json::from_str(&data.value).unwrap()
}

/// The document of a worker.
fn worker(yaml: &str) -> Value {
    match rendered(&spec(yaml)) {
        Ok(data) => document(&data),
        Err(error) => panic!("{error}"),
    }
}

/// The content of a file on the machine.
pub(crate) fn content(document: &Value, path: &str) -> String {
    let file = file(document, path);
    let url = file["contents"]["source"].as_str().unwrap();
    let encoded = url.strip_prefix("data:,").unwrap();
    let mut bytes = Vec::new();
    let mut rest = encoded.bytes();
    while let Some(byte) = rest.next() {
        if byte == b'%' {
            let digits = [rest.next().unwrap(), rest.next().unwrap()];
            bytes.push(u8::from_str_radix(std::str::from_utf8(&digits).unwrap(), 16).unwrap());
        } else {
            bytes.push(byte);
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

fn file<'a>(document: &'a Value, path: &str) -> &'a Value {
    let files = document["storage"]["files"].as_array().unwrap();
    let found = files.iter().find(|file| file["path"] == path);
    found.unwrap_or_else(|| panic!("there is no {path}"))
}

fn unit<'a>(document: &'a Value, name: &str) -> &'a Value {
    let units = document["systemd"]["units"].as_array().unwrap();
    let found = units.iter().find(|unit| unit["name"] == name);
    found.unwrap_or_else(|| panic!("there is no {name}: {units:?}"))
}

/// Ignition's validator, or the reason why it refuses a configuration.
struct Validator(PathBuf);

impl Validator {
    /// `None` where the program is not built: the test is left out.
    fn find() -> Option<Self> {
        Tools::required("ignition-validate").map(Self)
    }

    fn check(&self, text: &str) -> Result<(), String> {
        let mut child = Command::new(&self.0)
            .arg("-")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        // It reads everything before it writes.
        std::io::Write::write_all(&mut child.stdin.take().unwrap(), text.as_bytes()).unwrap();
        let out = child.wait_with_output().unwrap();
        let words = [out.stdout, out.stderr].concat();
        if out.status.success() {
            Ok(())
        } else {
            Err(String::from_utf8_lossy(&words).into_owned())
        }
    }
}

/// The specification with every field that the format knows.
const EVERYTHING: &str = r#"
verbosity: 5
preKubeadmCommands: ["modprobe overlay", "cat <<EOF > /etc/motd\nhello\n  there\nEOF\n"]
postKubeadmCommands: ["touch /done"]
ntp: {enabled: true, servers: [pool.ntp.org, 192.0.2.1]}
users:
- name: capi
  passwdFrom: {secret: {name: s, key: hash}}
  gecos: A User
  groups: docker, sudo
  homeDir: /home/capi
  inactive: false
  lockPassword: false
  shell: /bin/bash
  primaryGroup: users
  sudo: ALL=(ALL) NOPASSWD:ALL
  sshAuthorizedKeys: [ssh-ed25519 AAAA capi@example.com]
- {name: other, lockPassword: true}
files:
- {path: /etc/plain, owner: "core:core", permissions: "0644", content: "a: b\n  {{ kept }}\n\n\n"}
- {path: /etc/encoded, owner: root, permissions: "0600", encoding: base64, content: "AP8B"}
- {path: /etc/appended, append: true, permissions: "0640", contentFrom: {secret: {name: s, key: content}}}
- {path: /etc/version, contentFormat: Template, content: "{{ .controlPlane.version }}"}
diskSetup:
  partitions:
  - {device: /dev/sdb, layout: true, overwrite: true, tableType: gpt}
  - {device: /dev/sdc, layout: false}
  filesystems:
  - {device: /dev/sdb1, filesystem: ext4, label: etcd, overwrite: true, extraOpts: [-E, "lazy_itable_init=1"]}
  - {device: /dev/sdc, filesystem: xfs, label: data}
mounts:
- [etcd, /var/lib/etcd]
- [data, /var/lib/my-data, defaults, noatime]
- [/dev/sdd, /mnt]
joinConfiguration:
  nodeRegistration: {criSocket: "unix:///var/run/containerd/containerd.sock"}
  discovery: {bootstrapToken: {apiServerEndpoint: "127.0.0.1:20000", token: abcdef.0123456789abcdef, unsafeSkipCAVerification: true}}
"#;

/// A Container Linux Config with every section.
const ADDITIONAL: &str = r#"
ignition:
  config: {append: [{source: "https://example.com/more.ign", verification: {hash: {function: sha512, sum: "SUM"}}}]}
  timeouts: {http_total: 60}
  security: {tls: {certificate_authorities: [{source: "https://example.com/ca.pem"}]}}
storage:
  disks:
  - device: /dev/sde
    wipe_table: true
    partitions:
    - {label: ROOT, number: 1, size: 1GiB512MiB, start: 1MiB, type_guid: raid_partition}
  raid: [{name: md0, level: raid1, devices: [/dev/sdf, /dev/sdg], spares: 0}]
  filesystems:
  - {name: logs, mount: {device: /dev/md0, format: btrfs, label: LOGS, wipe_filesystem: true, options: [--force]}}
  - {name: oem, path: /usr/share/oem}
  files:
  - {path: /etc/inline, mode: 0644, user: {id: 500}, group: {name: core}, contents: {inline: yes}}
  - {path: /a, filesystem: logs, mode: 0600, append: true, contents: {remote: {url: "https://example.com/a.gz", compression: gzip}}}
  directories: [{path: /srv, mode: 0750}]
  links: [{path: /etc/link, target: /etc/inline, hard: false, overwrite: true}]
systemd:
  units:
  - name: kubeadm.service
    dropins:
    - name: 10-after.conf
      contents: |
        [Unit]
        After=containerd.service
networkd:
  units: [{name: 00-eth0.network, contents: "[Match]\nName=eth0\n"}]
passwd:
  users: [{name: core, ssh_authorized_keys: [ssh-rsa AAAA], groups: [docker]}]
  groups: [{name: extra, gid: 900}]
docker: {flags: [--iptables=false, --bip=10.0.0.1/24]}
etcd: {version: 3.5.1, name: node1, data_dir: /var/lib/etcd2, snapshot_count: 0x10, enable_v2: off}
flannel: {version: 0.7.0, network_config: '{"Network": "10.2.0.0/16"}', etcd_endpoints: "http://127.0.0.1:2379"}
update: {group: Stable, server: "https://update.example.com"}
locksmith: {reboot_strategy: etcd-lock, window_start: Thu 23:00, window_length: 1h30m}
"#;

fn additional() -> String {
    ADDITIONAL.replace("SUM", &"0123456789abcdef".repeat(8))
}

/// A specification with a Container Linux Config.
fn with_additional(text: &str, strict: bool) -> KubeadmConfigSpec {
    let config = serde_json::json!({"additionalConfig": text, "strict": strict});
    let spec = serde_json::json!({"format": "ignition", "ignition": {"containerLinuxConfig": config}});
    serde_json::from_value(spec).unwrap()
}

/// What is rendered for each shape, by the name of its golden file.
fn shapes() -> Vec<(&'static str, BootstrapData)> {
    let of_init = spec("initConfiguration: {nodeRegistration: {name: first}}\nclusterConfiguration: {}");
    let of_join = spec(
        "joinConfiguration: {controlPlane: {}, discovery: {bootstrapToken: {apiServerEndpoint: '127.0.0.1:20000', \
         token: abcdef.0123456789abcdef, caCertHashes: ['sha256:00']}}}",
    );
    let join = of_join.join_configuration.clone().unwrap();
    let resolved = windlass_kubeadm::Resolved::default();
    [
        ("init", render_init(&of_init, &facts(), &certificates(), &resolved)),
        (
            "join-control-plane",
            render_join(&of_join, &join, &facts(), &certificates(), &resolved),
        ),
        (
            "join-worker",
            rendered(&spec("joinConfiguration: {nodeRegistration: {name: w}}")),
        ),
        ("everything", rendered(&spec(EVERYTHING))),
        ("additional", rendered(&with_additional(&additional(), false))),
    ]
    .map(|(name, result)| (name, result.unwrap_or_else(|error| panic!("{name}: {error}"))))
    .into()
}

#[test]
fn data_has_the_recorded_shapes() {
    let mut differing = String::new();
    for (name, data) in shapes() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("testdata/ignition-{name}.json"));
        let expected: Value =
            serde_json::from_str(&std::fs::read_to_string(&path).unwrap_or_default()).unwrap_or_default();
        let got = document(&data);
        if got != expected {
            let text = serde_json::to_string_pretty(&got).unwrap();
            let _ = writeln!(differing, "{}: expected\n{text}", path.display());
        }
    }
    assert!(differing.is_empty(), "{differing}");
}

#[test]
fn ignition_accepts_every_shape() {
    let Some(validator) = Validator::find() else {
        return;
    };
    for (name, data) in shapes() {
        assert_eq!(validator.check(&data.value), Ok(()), "{name}");
    }
    // It does refuse what is wrong.
    let wrong =
        r#"{"ignition": {"version": "2.3.0"}, "storage": {"files": [{"path": "relative", "filesystem": "root"}]}}"#;
    assert!(validator.check(wrong).is_err());
}
