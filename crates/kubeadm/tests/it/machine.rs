//! A machine without a disk of its own: cloud-init's modules as far as bootstrap data uses them, with a folder as root.
//!
//! It takes what cloud-init takes and refuses keys that cloud-init does not know.

use std::fs;
use std::io::Read as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use serde::Deserialize;
use serde_json::Value;

/// A cloud-config.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct CloudConfig {
    write_files: Vec<WriteFile>,
    #[serde(default)]
    bootcmd: Vec<String>,
    runcmd: Vec<String>,
    #[serde(default)]
    ntp: Value,
    #[serde(default)]
    users: Vec<Value>,
    #[serde(default)]
    disk_setup: std::collections::BTreeMap<String, Disk>,
    #[serde(default)]
    fs_setup: Vec<Value>,
    #[serde(default)]
    mounts: Vec<Vec<String>>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct WriteFile {
    path: String,
    #[serde(default)]
    content: String,
    #[serde(default)]
    encoding: Option<String>,
    #[serde(default)]
    owner: Option<String>,
    #[serde(default)]
    permissions: Option<String>,
    #[serde(default)]
    append: bool,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Disk {
    #[serde(default)]
    table_type: Option<String>,
    layout: Layout,
    #[serde(default)]
    overwrite: bool,
}

#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Layout {
    Whole(bool),
    Parts(Vec<Part>),
}

#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Part {
    Size(u32),
    Typed(u32, Value),
}

/// A partition that was made.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Made {
    pub(crate) device: String,
    pub(crate) table: String,
    /// Percent of the disk.
    pub(crate) size: u32,
    /// As `sfdisk` and `sgdisk` take it.
    pub(crate) kind: String,
    pub(crate) overwrite: bool,
}

/// A file that was written.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Written {
    pub(crate) path: String,
    pub(crate) mode: u32,
    pub(crate) owner: String,
}

/// A machine after its first start.
#[derive(Debug)]
pub(crate) struct Machine {
    root: PathBuf,
    /// Files in the order in which they were written.
    pub(crate) files: Vec<Written>,
    pub(crate) partitions: Vec<Made>,
    pub(crate) file_systems: Vec<Value>,
    pub(crate) mounts: Vec<Vec<String>>,
    pub(crate) users: Vec<Value>,
    pub(crate) ntp: Value,
    /// All commands in the order in which they run: those of each boot first.
    pub(crate) commands: Vec<String>,
}

impl Machine {
    /// Starts a machine with its data. `root` is where its files go.
    pub(crate) fn start(data: &str, root: &Path) -> Self {
        assert!(data.starts_with("## template: jinja\n#cloud-config\n"), "{data}");
        let config: CloudConfig = serde_saphyr::from_str(data).unwrap_or_else(|error| panic!("{error}\n{data}"));
        let mut machine = Self {
            root: root.to_owned(),
            files: Vec::new(),
            partitions: config
                .disk_setup
                .iter()
                .flat_map(|(device, disk)| partitions(device, disk))
                .collect(),
            file_systems: config.fs_setup,
            mounts: config.mounts,
            users: config.users,
            ntp: config.ntp,
            commands: config.bootcmd.into_iter().chain(config.runcmd).collect(),
        };
        for file in &config.write_files {
            machine.write(file);
        }
        machine
    }

    /// A file of the machine.
    pub(crate) fn read(&self, path: &str) -> Vec<u8> {
        fs::read(self.place(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
    }

    /// A file of text.
    pub(crate) fn text(&self, path: &str) -> String {
        String::from_utf8(self.read(path)).unwrap()
    }

    /// Where a file of the machine is.
    pub(crate) fn place(&self, path: &str) -> PathBuf {
        self.root.join(
            path.strip_prefix('/')
                .unwrap_or_else(|| panic!("{path} is not absolute")),
        )
    }

    fn write(&mut self, file: &WriteFile) {
        let base64 = |text: &str| {
            BASE64_STANDARD
                .decode(text.split_whitespace().collect::<String>())
                .unwrap()
        };
        let content = match file.encoding.as_deref().unwrap_or_default() {
            "" | "text/plain" => file.content.clone().into_bytes(),
            "b64" | "base64" => base64(&file.content),
            "gz+b64" | "gzip+base64" => {
                let mut plain = Vec::new();
                let packed = base64(&file.content);
                flate2::read::GzDecoder::new(packed.as_slice())
                    .read_to_end(&mut plain)
                    .unwrap();
                plain
            }
            other => panic!("{}: unknown encoding {other}", file.path),
        };
        let place = self.place(&file.path);
        fs::create_dir_all(place.parent().unwrap()).unwrap();
        let mut all = if file.append {
            fs::read(&place).unwrap_or_default()
        } else {
            Vec::new()
        };
        all.extend(content);
        fs::write(&place, all).unwrap();
        let mode = u32::from_str_radix(file.permissions.as_deref().unwrap_or("0644"), 8).unwrap();
        fs::set_permissions(&place, fs::Permissions::from_mode(mode)).unwrap();
        assert_eq!(fs::metadata(&place).unwrap().permissions().mode() & 0o7777, mode);
        let owner = file.owner.clone().unwrap_or_else(|| "root:root".to_owned());
        assert!(
            owner.split(':').all(|part| !part.is_empty()),
            "{}: owner {owner}",
            file.path
        );
        let path = file.path.clone();
        self.files.push(Written { path, mode, owner });
    }
}

/// The partitions that cloud-init would make, by the types that the tools of the table take.
fn partitions(device: &str, disk: &Disk) -> Vec<Made> {
    let table = disk.table_type.clone().unwrap_or_else(|| "mbr".to_owned());
    assert!(["mbr", "gpt"].contains(&table.as_str()), "{device}: table {table}");
    let made = |size: u32, kind: String| Made {
        device: device.to_owned(),
        table: table.clone(),
        size,
        kind,
        overwrite: disk.overwrite,
    };
    match &disk.layout {
        Layout::Whole(false) => Vec::new(),
        Layout::Whole(true) => vec![made(100, "83".to_owned())],
        Layout::Parts(parts) => parts
            .iter()
            .map(|part| match part {
                Part::Size(size) => made(*size, "83".to_owned()),
                Part::Typed(size, kind) => made(*size, partition_type(kind)),
            })
            .collect(),
    }
}

/// A code of two hexadecimal digits, or a GUID.
fn partition_type(kind: &Value) -> String {
    let text = match kind {
        Value::Number(number) => format!("{:02.0}", number.as_f64().unwrap()),
        Value::String(text) => text.clone(),
        other => panic!("partition type {other}"),
    };
    let is_hex = |part: &str| part.chars().all(|c| c.is_ascii_hexdigit());
    let lengths: Vec<usize> = text.split('-').map(str::len).collect();
    let known = lengths == [2] || lengths == [8, 4, 4, 4, 12];
    assert!(known && text.split('-').all(is_hex), "partition type {text}");
    text
}
