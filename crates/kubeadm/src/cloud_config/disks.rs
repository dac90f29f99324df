//! Partitions and file systems.

use windlass_api_kubeadm::bootstrap::{DiskSetup, Filesystem, Partition};

use super::line;
use windlass_gocompat::yaml::scalar;

pub(super) fn write(out: &mut String, setup: &DiskSetup) {
    if !setup.partitions.is_empty() {
        out.push_str("disk_setup:\n");
        for partition in &setup.partitions {
            write_partition(out, partition);
        }
    }
    if !setup.filesystems.is_empty() {
        out.push_str("fs_setup:\n");
        for filesystem in &setup.filesystems {
            write_filesystem(out, filesystem);
        }
    }
}

fn write_partition(out: &mut String, partition: &Partition) {
    line(out, format_args!("  {}:", scalar(&partition.device, 2)));
    if let Some(table) = &partition.table_type {
        line(out, format_args!("    table_type: {}", scalar(table, 3)));
    }
    if partition.disk_layout.is_empty() {
        line(out, format_args!("    layout: {}", partition.layout == Some(true)));
    } else {
        out.push_str("    layout:\n");
        for part in &partition.disk_layout {
            // A size alone, or a size with the type of the partition.
            match part.partition_type.as_deref() {
                None | Some("") => line(out, format_args!("      - {}", part.percentage)),
                Some(kind) => line(
                    out,
                    format_args!("      - [{}, {}]", part.percentage, flow_scalar(code(kind))),
                ),
            }
        }
    }
    if let Some(overwrite) = partition.overwrite {
        line(out, format_args!("    overwrite: {overwrite}"));
    }
}

/// The code by which cloud-init knows a type of partition that has a name in the API. Others are GUIDs, which cloud-init takes as they are.
fn code(kind: &str) -> &str {
    match kind {
        "Linux" => "83",
        "LinuxSwap" => "82",
        "LinuxRAID" => "fd",
        "LVM" => "8e",
        "Fat32" => "0c",
        "NTFS" => "07",
        "LinuxExtended" => "85",
        other => other,
    }
}

/// Inside brackets, commas and brackets need quotes, too. Codes of digits are numbers, which is what the schema of cloud-init has for types:
/// it takes `fd` or a GUID with a warning. `07` is the same number in octal.
fn flow_scalar(text: &str) -> String {
    if text.chars().all(|c| c.is_ascii_digit()) {
        text.to_owned()
    } else if text.contains([',', '[', ']', '{', '}']) {
        windlass_gocompat::yaml::double_quoted(text)
    } else {
        scalar(text, 4)
    }
}

fn write_filesystem(out: &mut String, filesystem: &Filesystem) {
    let label = filesystem.label.as_deref().unwrap_or_default();
    line(out, format_args!("  - label: {}", scalar(label, 3)));
    line(
        out,
        format_args!("    filesystem: {}", scalar(&filesystem.filesystem, 3)),
    );
    line(out, format_args!("    device: {}", scalar(&filesystem.device, 3)));
    if let Some(partition) = &filesystem.partition {
        line(out, format_args!("    partition: {}", scalar(partition, 3)));
    }
    if let Some(overwrite) = filesystem.overwrite {
        line(out, format_args!("    overwrite: {overwrite}"));
    }
    if let Some(replace) = &filesystem.replace_fs {
        line(out, format_args!("    replace_fs: {}", scalar(replace, 3)));
    }
    if !filesystem.extra_opts.is_empty() {
        out.push_str("    extra_opts:\n");
        for option in &filesystem.extra_opts {
            line(out, format_args!("      - {}", scalar(option, 4)));
        }
    }
}
