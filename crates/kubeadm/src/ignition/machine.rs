//! What the specification of a machine is in Ignition: users, files, units, disks.

use base64::Engine as _;
use base64::alphabet;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use windlass_api_kubeadm::bootstrap::{DiskSetup, KubeadmConfigSpec, NTP, User as SpecUser};

use super::document::{
    Account, Contents, Disk, Document, File, Filesystem, Mount, Node, Owner, Partition, Passwd, Storage, Unit, Units,
    User,
};
use super::{KUBEADM_FILE, check, data_url, unit};
use crate::render::{SENTINEL, WriteFile};
use crate::{KubeadmError, Resolved};

const SCRIPT: &str = "/etc/kubeadm.sh";
/// The mode of a file without permissions, as cloud-init's.
const FILE_MODE: i64 = 0o644;

const KUBEADM_UNIT: &str = "[Unit]
Description=kubeadm
# The script moves this file away at its end, so it runs once.
ConditionPathExists=/etc/kubeadm.yml
After=network.target
[Service]
Type=oneshot
ExecStart=/etc/kubeadm.sh
[Install]
WantedBy=multi-user.target
";

/// Settings of sshd, without the users that may log in with a password.
const SSHD: &str = "Subsystem sftp internal-sftp
ClientAliveInterval 180
UseDNS no
UsePAM yes
PrintLastLog no
PrintMotd no

";

/// The rights of clients of ntpd: to ask for the time; to do everything on this machine itself.
const NTP_ACCESS: &str = "
restrict default nomodify nopeer noquery notrap limited kod
restrict 127.0.0.1
restrict [::1]
";

/// Lenient as Go's decoder: line breaks were taken out before.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &alphabet::STANDARD,
    GeneralPurposeConfig::new()
        .with_decode_allow_trailing_bits(true)
        .with_decode_padding_mode(DecodePaddingMode::RequireCanonical),
);

fn refused<T>(field: impl Into<String>, why: impl Into<String>) -> Result<T, KubeadmError> {
    Err(KubeadmError::Field {
        field: field.into(),
        why: why.into(),
    })
}

fn checked(field: impl FnOnce() -> String, problem: Option<&str>) -> Result<(), KubeadmError> {
    problem.map_or(Ok(()), |why| refused(field(), why))
}

/// The configuration of a machine.
pub(super) fn document(
    spec: &KubeadmConfigSpec,
    certificates: &[WriteFile],
    resolved: &Resolved,
    documents: &str,
    command: &str,
) -> Result<Document, KubeadmError> {
    if !spec.boot_commands.is_empty() {
        return refused(
            "spec.bootCommands",
            "not supported by the format ignition; use a unit in spec.ignition.containerLinuxConfig.additionalConfig",
        );
    }
    let setup = spec.disk_setup.clone().unwrap_or_default();
    let mut files = sudoers(&resolved.users)?;
    files.extend(sshd(&resolved.users));
    for file in certificates {
        files.push(written(&file.path, file)?);
    }
    for (index, file) in resolved.files.iter().enumerate() {
        files.push(written(&format!("spec.files[{index}]"), file)?);
    }
    files.push(own_file(SCRIPT, 0o700, &script(spec, command)));
    files.push(own_file(KUBEADM_FILE, 0o600, &block(&format!("---\n{documents}"))));
    let mut units = vec![Unit {
        name: "kubeadm.service".to_owned(),
        enabled: Some(true),
        contents: KUBEADM_UNIT.to_owned(),
        ..Unit::default()
    }];
    if let Some(ntp) = spec.ntp.as_ref().filter(|ntp| ntp.enabled == Some(true)) {
        units.push(Unit {
            name: "ntpd.service".to_owned(),
            enabled: Some(true),
            ..Unit::default()
        });
        files.extend(ntp_file(ntp));
    }
    for (index, mount) in spec.mounts.iter().enumerate() {
        units.push(mount_unit(&format!("spec.mounts[{index}]"), mount, &setup)?);
    }
    Ok(Document {
        passwd: Passwd {
            users: resolved.users.iter().map(user).collect(),
            ..Passwd::default()
        },
        storage: Storage {
            disks: disks(&setup)?,
            filesystems: filesystems(&setup)?,
            files,
            ..Storage::default()
        },
        systemd: Units { units },
        ..Document::default()
    })
}

fn user(user: &SpecUser) -> User {
    let groups = user.groups.as_deref().unwrap_or_default().split(',');
    let groups = groups.map(str::trim).filter(|group| !group.is_empty());
    User {
        account: Account {
            gecos: user.gecos.clone().unwrap_or_default(),
            groups: groups.map(str::to_owned).collect(),
            home_dir: user.home_dir.clone().unwrap_or_default(),
            primary_group: user.primary_group.clone().unwrap_or_default(),
            shell: user.shell.clone().unwrap_or_default(),
            ..Account::default()
        },
        name: user.name.clone(),
        password_hash: user.passwd.clone().filter(|hash| !hash.is_empty()),
        ssh_authorized_keys: user.ssh_authorized_keys.clone(),
        ..User::default()
    }
}

/// The rules of users for sudo. A user that the format cannot describe is refused here.
fn sudoers(users: &[SpecUser]) -> Result<Vec<File>, KubeadmError> {
    let mut files = Vec::new();
    for (index, user) in users.iter().enumerate() {
        if user.inactive == Some(true) {
            return refused(
                format!("spec.users[{index}].inactive"),
                "not supported by the format ignition; leave the user out, or give it the shell /sbin/nologin",
            );
        }
        if user.name.chars().any(|c| c.is_control() || c == '/') {
            return refused(
                format!("spec.users[{index}].name"),
                "a user name cannot have control characters or slashes",
            );
        }
        if let Some(rule) = user.sudo.as_deref().filter(|rule| !rule.is_empty()) {
            let path = format!("/etc/sudoers.d/{}", user.name);
            files.push(own_file(&path, 0o600, &block(&format!("{} {rule}", user.name))));
        }
    }
    Ok(files)
}

/// The settings of sshd, when users may log in with a password.
fn sshd(users: &[SpecUser]) -> Option<File> {
    let unlocked: Vec<&str> = users
        .iter()
        .filter(|user| user.lock_password == Some(false))
        .map(|user| user.name.as_str())
        .collect();
    (!unlocked.is_empty()).then(|| {
        let text = format!(
            "{SSHD}Match User {}\n  PasswordAuthentication yes\n",
            unlocked.join(",")
        );
        own_file("/etc/ssh/sshd_config", 0o600, &text)
    })
}

fn own_file(path: &str, mode: i64, content: &str) -> File {
    File {
        node: Node {
            filesystem: "root".to_owned(),
            path: path.to_owned(),
            ..Node::default()
        },
        contents: Contents {
            source: data_url::data(content.as_bytes()),
            ..Contents::default()
        },
        mode,
        ..File::default()
    }
}

/// A file of the specification or of the cluster; `field` names it in errors.
fn written(field: &str, file: &WriteFile) -> Result<File, KubeadmError> {
    checked(|| format!("{field}.path"), check::path(&file.path))?;
    let content = match file.encoding.as_str() {
        "" => block(&file.content).into_bytes(),
        "base64" => {
            let text = file.content.replace(['\r', '\n'], "");
            match BASE64.decode(text) {
                Ok(content) => content,
                Err(_) => {
                    return refused(
                        format!("{field}.content"),
                        "the content is not base64, as encoding says",
                    );
                }
            }
        }
        _ => {
            return refused(
                format!("{field}.encoding"),
                "not supported by the format ignition; use base64, or no encoding",
            );
        }
    };
    let mode = match file.permissions.as_str() {
        "" => FILE_MODE,
        text => match permissions(text) {
            Some(mode) => mode,
            None => {
                return refused(
                    format!("{field}.permissions"),
                    "octal permissions are expected, such as 0640",
                );
            }
        },
    };
    let mut owners = file.owner.split(':').map(|name| {
        let name = name.trim();
        (!name.is_empty()).then(|| Owner {
            name: name.to_owned(),
            ..Owner::default()
        })
    });
    Ok(File {
        node: Node {
            filesystem: "root".to_owned(),
            user: owners.next().flatten(),
            group: owners.next().flatten(),
            path: file.path.clone(),
            ..Node::default()
        },
        append: file.append,
        contents: Contents {
            source: data_url::data(&content),
            ..Contents::default()
        },
        mode,
    })
}

/// `0640`, `640` and `0o640` are the same.
fn permissions(text: &str) -> Option<i64> {
    let digits = text.strip_prefix("0o").unwrap_or(text);
    let is_octal = !digits.is_empty() && digits.bytes().all(|byte| (b'0'..=b'7').contains(&byte));
    let mode = is_octal.then(|| i64::from_str_radix(digits, 8).ok()).flatten()?;
    check::mode(mode).is_none().then_some(mode)
}

/// A text as a block of YAML keeps it: with one line break at its end.
fn block(text: &str) -> String {
    let text = text.replace("\r\n", "\n");
    let content = text.trim_end_matches('\n');
    if content.is_empty() {
        String::new()
    } else {
        format!("{content}\n")
    }
}

/// The script that runs kubeadm between the commands of the specification. An error of any of them ends it.
fn script(spec: &KubeadmConfigSpec, command: &str) -> String {
    let mut parts = vec!["#!/bin/bash", "set -e", ""];
    parts.extend(spec.pre_kubeadm_commands.iter().map(String::as_str));
    let sentinel = format!("mkdir -p /run/cluster-api && {SENTINEL}");
    let done = format!("mv {KUBEADM_FILE} /tmp/");
    parts.extend(["", command, sentinel.as_str(), done.as_str(), ""]);
    parts.extend(spec.post_kubeadm_commands.iter().map(String::as_str));
    block(&parts.join("\n"))
}

fn ntp_file(ntp: &NTP) -> Option<File> {
    let servers = ntp.servers.iter().map(|server| format!("server {server}\n"));
    let servers: String = servers.collect();
    (!servers.is_empty()).then(|| own_file("/etc/ntp.conf", 0o644, &format!("{servers}{NTP_ACCESS}")))
}

/// The unit of a mount: the label of a file system of `diskSetup` (or something else that systemd mounts), the path, and options.
fn mount_unit(field: &str, mount: &[String], setup: &DiskSetup) -> Result<Unit, KubeadmError> {
    let [label, path, options @ ..] = mount else {
        return refused(field, "a label and a path are expected, and options after them");
    };
    if mount.iter().any(|part| part.chars().any(char::is_control)) {
        return refused(field, "a mount cannot have control characters");
    }
    checked(|| format!("{field}[1]"), check::path(path))?;
    let made = setup
        .filesystems
        .iter()
        .rev()
        .find(|made| made.label.as_deref() == Some(label));
    let device = match made {
        Some(made) => made.device.as_str(),
        None if label.starts_with('/') || label.contains('=') => label,
        None => {
            return refused(
                format!("{field}[0]"),
                format!("no file system of spec.diskSetup.filesystems has the label {label:?}"),
            );
        }
    };
    let contents = format!(
        "[Unit]\nDescription=Mount {label}\n\n[Mount]\nWhat={device}\nWhere={path}\nOptions={}\n\n\
         [Install]\nWantedBy=multi-user.target\n",
        options.join(",")
    );
    checked(|| field.to_owned(), unit::sections(&contents).err())?;
    Ok(Unit {
        name: unit::mount_name(path),
        enabled: Some(true),
        contents,
        ..Unit::default()
    })
}

fn disks(setup: &DiskSetup) -> Result<Vec<Disk>, KubeadmError> {
    let disk = |(index, partition): (usize, &windlass_api_kubeadm::bootstrap::Partition)| {
        let field = format!("spec.diskSetup.partitions[{index}]");
        checked(|| format!("{field}.device"), check::path(&partition.device))?;
        if partition
            .table_type
            .as_deref()
            .is_some_and(|table| !matches!(table, "" | "gpt"))
        {
            return refused(format!("{field}.tableType"), "the format ignition has gpt only");
        }
        let is_whole = match partition.disk_layout.as_slice() {
            [] => partition.layout == Some(true),
            [only] if only.percentage == 100 && matches!(only.partition_type.as_deref(), None | Some("" | "Linux")) => {
                true
            }
            _ => {
                return refused(
                    format!("{field}.diskLayout"),
                    "the format ignition has no sizes in percent; describe the partitions in \
                     spec.ignition.containerLinuxConfig.additionalConfig",
                );
            }
        };
        Ok(Disk {
            device: partition.device.clone(),
            // One partition without a size takes the whole disk.
            partitions: is_whole.then(Partition::default).into_iter().collect(),
            wipe_table: partition.overwrite == Some(true),
        })
    };
    setup.partitions.iter().enumerate().map(disk).collect()
}

fn filesystems(setup: &DiskSetup) -> Result<Vec<Filesystem>, KubeadmError> {
    let filesystem = |(index, made): (usize, &windlass_api_kubeadm::bootstrap::Filesystem)| {
        let field = |part: &str| format!("spec.diskSetup.filesystems[{index}].{part}");
        for (part, value) in [("partition", &made.partition), ("replaceFS", &made.replace_fs)] {
            if value.as_deref().is_some_and(|value| !value.is_empty()) {
                return refused(field(part), "not supported by the format ignition; leave it out");
            }
        }
        let label = made.label.clone().filter(|label| !label.is_empty());
        checked(|| field("device"), check::path(&made.device))?;
        checked(|| field("filesystem"), check::format(&made.filesystem))?;
        let problem = label.as_deref().and_then(|label| check::label(&made.filesystem, label));
        checked(|| field("label"), problem.as_deref())?;
        Ok(Filesystem {
            name: label.clone().unwrap_or_default(),
            mount: Some(Mount {
                device: made.device.clone(),
                format: made.filesystem.clone(),
                label,
                options: made.extra_opts.clone(),
                wipe_filesystem: made.overwrite == Some(true),
                ..Mount::default()
            }),
            ..Filesystem::default()
        })
    };
    setup.filesystems.iter().enumerate().map(filesystem).collect()
}
