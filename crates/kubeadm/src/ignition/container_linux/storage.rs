//! Disks, file systems, and what is in them.

use std::collections::BTreeSet;

use super::read::{self, texts};
use super::verification;
use crate::ignition::check;
use crate::ignition::data_url;
use crate::ignition::document::{
    Contents, Create, Directory, Disk, File, Filesystem, Link, Mount, Node, Owner, Partition, Raid, Storage,
};
use crate::ignition::findings::Findings;

const FILE_MODE: i64 = 0o644;
const DIRECTORY_MODE: i64 = 0o755;
const BOTH_ID_AND_NAME: &str = "id and name cannot be combined";

/// Types of partitions that have names.
const TYPES: [(&str, &str); 4] = [
    ("raid_containing_root", "be9067b9-ea49-4f15-b4f6-f36f8c9e1818"),
    ("linux_filesystem_data", "0fc63daf-8483-4772-8e79-3d69d8477de4"),
    ("swap_partition", "0657fd6d-a4ab-43c4-84e5-0933c84b4f4f"),
    ("raid_partition", "a19d880f-05fc-4d3b-a006-743f0f84911e"),
];

pub(super) fn storage(findings: &mut Findings, section: read::Storage) -> Storage {
    Storage {
        disks: findings.sections("disks", section.disks, disk),
        raid: findings.sections("raid", section.raid, raid),
        filesystems: findings.sections("filesystems", section.filesystems, filesystem),
        files: findings.sections("files", section.files, file),
        directories: findings.sections("directories", section.directories, directory),
        links: findings.sections("links", section.links, link),
    }
}

fn disk(findings: &mut Findings, disk: read::Disk) -> Disk {
    let device = disk.device.unwrap_or_default();
    findings.error_if("device", check::path(&device));
    let partitions = findings.sections("partitions", disk.partitions, partition);
    let mut numbers = BTreeSet::new();
    let mut named = partitions.iter().map(|partition| partition.number);
    if named.any(|number| number != 0 && !numbers.insert(number)) {
        findings.error("partitions", "two partitions have the same number");
    }
    Disk {
        device,
        partitions,
        wipe_table: disk.wipe_table == Some(true),
    }
}

fn partition(findings: &mut Findings, partition: read::Partition) -> Partition {
    let guid = partition.guid.unwrap_or_default();
    let kind = partition.type_guid.unwrap_or_default();
    let named = TYPES.iter().find(|(name, _)| *name == kind);
    let type_guid = named.map_or(kind, |(_, guid)| (*guid).to_owned());
    findings.error_if("guid", check::guid(&guid));
    findings.error_if("type_guid", check::guid(&type_guid));
    if let Some(label) = &partition.label {
        if label.len() > 36 {
            findings.error("label", "the label of a partition has at most 36 bytes");
        }
        if label.contains(':') {
            findings.warn("label", "the label ends before its first colon");
        }
    }
    Partition {
        guid,
        label: partition.label,
        number: partition.number.unwrap_or_default(),
        size: dimension(findings, "size", partition.size),
        start: dimension(findings, "start", partition.start),
        type_guid,
    }
}

/// A size or a position in MiB.
fn dimension(findings: &mut Findings, part: &str, text: Option<String>) -> Option<u64> {
    let text = text.filter(|text| !text.is_empty())?;
    match check::mebibytes(&text) {
        Ok(size) => Some(size),
        Err(why) => {
            findings.error(part, why);
            None
        }
    }
}

fn raid(findings: &mut Findings, raid: read::Raid) -> Raid {
    let (level, devices) = (raid.level.unwrap_or_default(), texts(raid.devices));
    let spares = raid.spares.unwrap_or_default();
    match level.as_str() {
        "linear" | "raid0" | "0" | "stripe" if spares != 0 => {
            findings.error("spares", "an array of this level has no spare devices");
        }
        "linear" | "raid0" | "0" | "stripe" | "raid1" | "1" | "mirror" | "raid4" | "4" | "raid5" | "5" | "raid6"
        | "6" | "raid10" | "10" => {}
        _ => findings.error(
            "level",
            "linear, raid0, raid1, raid4, raid5, raid6 or raid10 is expected",
        ),
    }
    for (index, device) in devices.iter().enumerate() {
        findings.error_if(&format!("devices[{index}]"), check::path(device));
    }
    Raid {
        devices,
        level,
        name: raid.name.unwrap_or_default(),
        options: texts(raid.options),
        spares,
    }
}

fn filesystem(findings: &mut Findings, filesystem: read::Filesystem) -> Filesystem {
    if let Some(path) = &filesystem.path {
        findings.error_if("path", check::path(path));
    }
    match (&filesystem.mount, &filesystem.path) {
        (None, None) => findings.error("", "either mount or path is needed"),
        (Some(_), Some(_)) => findings.error("", "mount and path cannot be combined"),
        _ => {}
    }
    Filesystem {
        mount: findings.section("mount", filesystem.mount, mount),
        name: filesystem.name.unwrap_or_default(),
        path: filesystem.path,
    }
}

fn mount(findings: &mut Findings, mount: read::Mount) -> Mount {
    let (device, format) = (mount.device.unwrap_or_default(), mount.format.unwrap_or_default());
    findings.error_if("device", check::path(&device));
    findings.error_if("format", check::format(&format));
    if let Some(label) = &mount.label {
        findings.error_if("label", check::label(&format, label).as_deref());
    }
    let options = texts(mount.options);
    let wipe_filesystem = mount.wipe_filesystem == Some(true);
    let create = findings.section("create", mount.create, |findings, create| {
        findings.warn("", "create is the older form; use wipe_filesystem and options of mount");
        if wipe_filesystem {
            findings.error("", "create and wipe_filesystem cannot be combined");
        }
        if !options.is_empty() {
            findings.error("", "create cannot be combined with options of mount");
        }
        Create {
            force: create.force == Some(true),
            options: texts(create.options),
        }
    });
    Mount {
        create,
        device,
        format,
        label: mount.label,
        options,
        uuid: mount.uuid,
        wipe_filesystem,
    }
}

fn file(findings: &mut Findings, file: read::File) -> File {
    let append = file.append == Some(true);
    if append && file.overwrite == Some(true) {
        findings.error("", "append and overwrite cannot be combined");
    }
    match file.mode {
        None if append => findings.warn("mode", "the mode is unset: a file that does not exist gets 0644"),
        None => findings.warn("mode", "the mode is unset: the file gets 0644"),
        Some(mode) => findings.error_if("mode", check::mode(mode)),
    }
    let owners = (file.user, file.group);
    let place = (file.filesystem, file.path, file.overwrite);
    File {
        node: node(findings, place, owners),
        append,
        contents: findings
            .section("contents", file.contents, contents)
            .unwrap_or_else(|| Contents {
                source: data_url::data(b""),
                ..Contents::default()
            }),
        mode: file.mode.unwrap_or(FILE_MODE),
    }
}

fn contents(findings: &mut Findings, section: read::Contents) -> Contents {
    let inline = section.inline.filter(|text| !text.is_empty());
    let has_local = section.local.is_some_and(|path| !path.is_empty());
    let remote = findings.section("remote", section.remote, |findings, remote| {
        let url = remote.url.filter(|url| !url.is_empty());
        findings.error_if("url", url.as_deref().and_then(data_url::problem));
        let compression = remote.compression.unwrap_or_default();
        if !matches!(compression.as_str(), "" | "gzip") {
            findings.error("compression", "gzip is the only compression");
        }
        let source = url.as_deref().map(data_url::printed).unwrap_or_default();
        Contents {
            compression,
            source,
            verification: verification(findings, remote.verification),
        }
    });
    let mut contents = remote.unwrap_or_default();
    if has_local {
        findings.error(
            "local",
            "the file is on the computer of the author, which is not here; use inline or remote.url",
        );
    }
    match (inline, contents.source.is_empty()) {
        (Some(_), false) => findings.error("", "inline and remote.url cannot be combined"),
        (inline, true) => contents.source = data_url::data(inline.unwrap_or_default().as_bytes()),
        (None, false) => {}
    }
    contents
}

fn directory(findings: &mut Findings, directory: read::Directory) -> Directory {
    match directory.mode {
        None => findings.warn("mode", "the mode is unset: the folder gets 0755"),
        Some(mode) => findings.error_if("mode", check::mode(mode)),
    }
    let owners = (directory.user, directory.group);
    let place = (directory.filesystem, directory.path, directory.overwrite);
    Directory {
        node: node(findings, place, owners),
        mode: directory.mode.unwrap_or(DIRECTORY_MODE),
    }
}

fn link(findings: &mut Findings, link: read::Link) -> Link {
    let place = (link.filesystem, link.path, link.overwrite);
    Link {
        node: node(findings, place, (link.user, link.group)),
        hard: link.hard == Some(true),
        target: link.target.unwrap_or_default(),
    }
}

fn node(
    findings: &mut Findings,
    (filesystem, path, overwrite): (Option<String>, Option<String>, Option<bool>),
    (user, group): (Option<read::Owner>, Option<read::Owner>),
) -> Node {
    let path = path.unwrap_or_default();
    findings.error_if("path", check::path(&path));
    Node {
        filesystem: filesystem
            .filter(|name| !name.is_empty())
            .unwrap_or_else(|| "root".to_owned()),
        group: findings.section("group", group, owner),
        overwrite,
        path,
        user: findings.section("user", user, owner),
    }
}

fn owner(findings: &mut Findings, owner: read::Owner) -> Owner {
    let name = owner.name.unwrap_or_default();
    if owner.id.is_some() && !name.is_empty() {
        findings.error("", BOTH_ID_AND_NAME);
    }
    Owner { id: owner.id, name }
}
