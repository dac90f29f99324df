//! What a machine has after its first start.

use serde_json::json;
use windlass_kubeadm::WriteFile;

use crate::machine::{Machine, Made, Written};
use crate::samples::{directives, init, join, spec};

#[test]
fn files_arrive_with_content_mode_owner_and_in_order() {
    let root = tempfile::tempdir().unwrap();
    let spec = spec(
        r#"
files:
- {path: /etc/plain, content: "a: b\n\tc {{ ds.meta_data }}\n", owner: "svc:grp", permissions: "0600"}
- {path: /etc/b64, encoding: base64, content: AAEC/w==}
- {path: /etc/packed, encoding: gzip+base64, content: H4sIAAAAAAAAA0tMSgYAwkEkNQMAAAA=}
- {path: /etc/secret, contentFrom: {secret: {name: s, key: k}}, permissions: "0400"}
- {path: /etc/grown, content: "1"}
- {path: /etc/grown, content: "2", append: true}
- {path: /run/kubeadm/kubeadm.yaml, content: "of the user"}
- {path: "/etc/with space: and # sign", content: "  indented\n\n\u0001"}
- {path: /etc/empty, content: ""}
"#,
    );
    let certificate = WriteFile {
        path: "/etc/kubernetes/pki/ca.crt".to_owned(),
        owner: "root:root".to_owned(),
        permissions: "0640".to_owned(),
        content: "PEM\n".to_owned(),
        ..WriteFile::default()
    };
    let machine = Machine::start(&init(&spec, "v1.36.0", &[certificate]).value, root.path());
    let written: Vec<(&str, u32, &str)> = machine
        .files
        .iter()
        .map(|Written { path, mode, owner }| (path.as_str(), *mode, owner.as_str()))
        .collect();
    let root = "root:root";
    assert_eq!(
        written,
        [
            ("/etc/kubernetes/pki/ca.crt", 0o640, root),
            ("/etc/plain", 0o600, "svc:grp"),
            ("/etc/b64", 0o644, root),
            ("/etc/packed", 0o644, root),
            ("/etc/secret", 0o400, root),
            ("/etc/grown", 0o644, root),
            ("/etc/grown", 0o644, root),
            ("/run/kubeadm/kubeadm.yaml", 0o644, root),
            ("/etc/with space: and # sign", 0o644, root),
            ("/etc/empty", 0o644, root),
            ("/run/kubeadm/kubeadm.yaml", 0o640, root),
            ("/run/cluster-api/placeholder", 0o640, root),
        ]
    );
    assert_eq!(machine.text("/etc/plain"), "a: b\n\tc {{ ds.meta_data }}\n");
    assert_eq!(machine.read("/etc/b64"), [0, 1, 2, 255]);
    assert_eq!(machine.text("/etc/packed"), "abc");
    assert_eq!(machine.text("/etc/secret"), "from a Secret\n");
    // A block of cloud-config ends with a line break, and each part of an appended file is one.
    assert_eq!(machine.text("/etc/grown"), "1\n2\n");
    assert_eq!(machine.text("/etc/with space: and # sign"), "  indented\n\n\u{1}");
    // kubeadm's own file is the last one with its name.
    assert!(
        machine
            .text("/run/kubeadm/kubeadm.yaml")
            .contains("kind: InitConfiguration")
    );
}

/// The golden file is also read by the real cloud-init (`.ci/cloud-init`).
#[test]
fn every_directive_of_cloud_config_has_the_recorded_shape() {
    let data = join(&directives(), "v1.36.0", &[]);
    assert_eq!(data.value, include_str!("../../testdata/every-directive.yaml"));
    let root = tempfile::tempdir().unwrap();
    let machine = Machine::start(&data.value, root.path());
    assert_eq!(machine.text("/etc/a"), "a: b\n  c: d\nmore\n");
    assert_eq!(machine.text("/etc/e"), "  v=v1.36.0");
}

#[test]
fn commands_run_in_their_order() {
    let root = tempfile::tempdir().unwrap();
    let spec = spec(
        r#"{bootCommands: ["mount \"/a\""], preKubeadmCommands: ["x: y", "- z"], postKubeadmCommands: ["printf '%s\\n' #"], verbosity: 2}"#,
    );
    let machine = Machine::start(&join(&spec, "v1.36.0", &[]).value, root.path());
    assert_eq!(
        machine.commands,
        [
            "mount \"/a\"",
            "x: y",
            "- z",
            "kubeadm join --config /run/kubeadm/kubeadm-join-config.yaml --v 2 && echo success > /run/cluster-api/bootstrap-success.complete",
            "printf '%s\\n' #",
        ]
    );
    assert!(
        machine
            .text("/run/kubeadm/kubeadm-join-config.yaml")
            .contains("kind: JoinConfiguration")
    );
}

#[test]
fn every_type_of_partition_is_one_that_the_tools_of_its_table_know() {
    let root = tempfile::tempdir().unwrap();
    let guid = "0FC63DAF-8483-4772-8E79-3D69D8477DE4";
    let spec = spec(&format!(
        "
diskSetup:
  partitions:
  - device: /dev/vda
    tableType: gpt
    overwrite: true
    diskLayout:
    - {{percentage: 10}}
    - {{percentage: 11, partitionType: Linux}}
    - {{percentage: 12, partitionType: LinuxSwap}}
    - {{percentage: 13, partitionType: LinuxRAID}}
    - {{percentage: 14, partitionType: LVM}}
    - {{percentage: 15, partitionType: Fat32}}
    - {{percentage: 3, partitionType: NTFS}}
    - {{percentage: 2, partitionType: LinuxExtended}}
    - {{percentage: 1, partitionType: {guid}}}
  - {{device: /dev/vdb, layout: true, tableType: mbr}}
  - {{device: /dev/vdc, layout: false}}
  filesystems:
  - {{device: /dev/vda1, filesystem: ext4, label: etcd_disk, partition: auto, overwrite: false, replaceFS: vfat, extraOpts: [-E, 'lazy_itable_init=1,a=b']}}
mounts:
- [LABEL=etcd_disk, /var/lib/etcddisk, auto, 'defaults,nofail']
"
    ));
    let machine = Machine::start(&join(&spec, "v1.36.0", &[]).value, root.path());
    let on_vda = machine.partitions.iter().filter(|made| made.device == "/dev/vda");
    let kinds: Vec<(u32, &str)> = on_vda.map(|made| (made.size, made.kind.as_str())).collect();
    let codes = ["83", "83", "82", "fd", "8e", "0c", "07", "85", guid];
    let sizes = [10, 11, 12, 13, 14, 15, 3, 2, 1];
    assert_eq!(kinds, sizes.into_iter().zip(codes).collect::<Vec<_>>());
    let whole = Made {
        device: "/dev/vdb".to_owned(),
        table: "mbr".to_owned(),
        size: 100,
        kind: "83".to_owned(),
        overwrite: false,
    };
    assert_eq!(machine.partitions[9..], [whole]);
    assert_eq!(
        machine.file_systems,
        [json!({
            "label": "etcd_disk", "filesystem": "ext4", "device": "/dev/vda1", "partition": "auto",
            "overwrite": false, "replace_fs": "vfat", "extra_opts": ["-E", "lazy_itable_init=1,a=b"],
        })]
    );
    assert_eq!(
        machine.mounts,
        [["LABEL=etcd_disk", "/var/lib/etcddisk", "auto", "defaults,nofail"]]
    );
}

#[test]
fn users_and_time_servers_are_those_of_the_specification() {
    let root = tempfile::tempdir().unwrap();
    let spec = spec(
        "
ntp: {enabled: false, servers: [pool.ntp.org]}
users:
- {name: a, inactive: false, lockPassword: true, passwdFrom: {secret: {name: s, key: k}}}
- {name: 'b: c', groups: 'x, y', sshAuthorizedKeys: ['ssh-rsa AAAA a@b']}
",
    );
    let machine = Machine::start(&join(&spec, "v1.36.0", &[]).value, root.path());
    assert_eq!(machine.ntp, json!({"enabled": false, "servers": ["pool.ntp.org"]}));
    assert_eq!(machine.users[0]["passwd"], "from a Secret");
    assert_eq!(machine.users[0]["lock_passwd"], true);
    assert_eq!(machine.users[0]["inactive"], false);
    assert_eq!(
        machine.users[1],
        json!({"name": "b: c", "groups": "x, y", "ssh_authorized_keys": ["ssh-rsa AAAA a@b"]})
    );
}
