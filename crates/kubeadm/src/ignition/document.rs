//! An Ignition configuration of version 2.3.0, as data. Names and defaults of fields are those of its JSON schema.
//!
//! No type has `Debug`: contents of files and password hashes are secret.

use serde::Serialize;

/// The version that is written.
const VERSION: &str = "2.3.0";

/// A whole configuration.
#[derive(Clone, Default, Serialize)]
pub(crate) struct Document {
    pub ignition: Ignition,
    pub networkd: Units<NetworkUnit>,
    pub passwd: Passwd,
    pub storage: Storage,
    pub systemd: Units<Unit>,
}

/// Settings of Ignition itself.
#[derive(Clone, Serialize)]
pub(crate) struct Ignition {
    pub config: References,
    pub security: Security,
    pub timeouts: Timeouts,
    pub version: &'static str,
}

impl Default for Ignition {
    fn default() -> Self {
        Self {
            config: References::default(),
            security: Security::default(),
            timeouts: Timeouts::default(),
            version: VERSION,
        }
    }
}

/// Other configurations that a machine reads.
#[derive(Clone, Default, Serialize)]
pub(crate) struct References {
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub append: Vec<Resource>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub replace: Option<Resource>,
}

/// Something that a machine downloads.
#[derive(Clone, Default, Serialize)]
pub(crate) struct Resource {
    pub source: String,
    pub verification: Verification,
}

/// How a download is checked.
#[derive(Clone, Default, Serialize)]
pub(crate) struct Verification {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hash: Option<String>,
}

#[derive(Clone, Default, Serialize)]
pub(crate) struct Security {
    pub tls: Tls,
}

#[derive(Clone, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Tls {
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub certificate_authorities: Vec<Resource>,
}

/// Seconds.
#[derive(Clone, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Timeouts {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub http_response_headers: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub http_total: Option<i64>,
}

#[derive(Clone, Default, Serialize)]
pub(crate) struct Passwd {
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub groups: Vec<Group>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub users: Vec<User>,
}

#[derive(Clone, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Group {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gid: Option<i64>,
    pub name: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub password_hash: String,
    #[serde(skip_serializing_if = "is_default")]
    pub system: bool,
}

#[derive(Clone, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct User {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub create: Option<Account>,
    #[serde(flatten)]
    pub account: Account,
    pub name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub password_hash: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub ssh_authorized_keys: Vec<String>,
}

/// What `useradd` needs to know.
#[derive(Clone, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Account {
    #[serde(skip_serializing_if = "String::is_empty")]
    pub gecos: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub groups: Vec<String>,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub home_dir: String,
    #[serde(skip_serializing_if = "is_default")]
    pub no_create_home: bool,
    #[serde(skip_serializing_if = "is_default")]
    pub no_log_init: bool,
    #[serde(skip_serializing_if = "is_default")]
    pub no_user_group: bool,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub primary_group: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub shell: String,
    #[serde(skip_serializing_if = "is_default")]
    pub system: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub uid: Option<i64>,
}

#[derive(Clone, Default, Serialize)]
pub(crate) struct Storage {
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub directories: Vec<Directory>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub disks: Vec<Disk>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<File>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub filesystems: Vec<Filesystem>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub links: Vec<Link>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub raid: Vec<Raid>,
}

/// A place in a file system: of a file, a folder or a link.
#[derive(Clone, Default, Serialize)]
pub(crate) struct Node {
    pub filesystem: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub group: Option<Owner>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub overwrite: Option<bool>,
    pub path: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub user: Option<Owner>,
}

/// A user or a group, by number or by name.
#[derive(Clone, Default, Serialize)]
pub(crate) struct Owner {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<i64>,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub name: String,
}

#[derive(Clone, Default, Serialize)]
pub(crate) struct File {
    #[serde(flatten)]
    pub node: Node,
    #[serde(skip_serializing_if = "is_default")]
    pub append: bool,
    pub contents: Contents,
    pub mode: i64,
}

#[derive(Clone, Default, Serialize)]
pub(crate) struct Contents {
    #[serde(skip_serializing_if = "String::is_empty")]
    pub compression: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub source: String,
    pub verification: Verification,
}

#[derive(Clone, Default, Serialize)]
pub(crate) struct Directory {
    #[serde(flatten)]
    pub node: Node,
    pub mode: i64,
}

#[derive(Clone, Default, Serialize)]
pub(crate) struct Link {
    #[serde(flatten)]
    pub node: Node,
    #[serde(skip_serializing_if = "is_default")]
    pub hard: bool,
    pub target: String,
}

#[derive(Clone, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Disk {
    pub device: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub partitions: Vec<Partition>,
    #[serde(skip_serializing_if = "is_default")]
    pub wipe_table: bool,
}

#[derive(Clone, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Partition {
    #[serde(skip_serializing_if = "String::is_empty")]
    pub guid: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    #[serde(skip_serializing_if = "is_default")]
    pub number: i64,
    #[serde(rename = "sizeMiB", skip_serializing_if = "Option::is_none")]
    pub size: Option<u64>,
    #[serde(rename = "startMiB", skip_serializing_if = "Option::is_none")]
    pub start: Option<u64>,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub type_guid: String,
}

#[derive(Clone, Default, Serialize)]
pub(crate) struct Filesystem {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mount: Option<Mount>,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
}

/// How a file system is made. Ignition mounts it only to write files.
#[derive(Clone, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Mount {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub create: Option<Create>,
    pub device: String,
    pub format: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub options: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub uuid: Option<String>,
    #[serde(skip_serializing_if = "is_default")]
    pub wipe_filesystem: bool,
}

#[derive(Clone, Default, Serialize)]
pub(crate) struct Create {
    #[serde(skip_serializing_if = "is_default")]
    pub force: bool,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub options: Vec<String>,
}

#[derive(Clone, Default, Serialize)]
pub(crate) struct Raid {
    pub devices: Vec<String>,
    pub level: String,
    pub name: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub options: Vec<String>,
    #[serde(skip_serializing_if = "is_default")]
    pub spares: i64,
}

#[derive(Clone, Serialize)]
pub(crate) struct Units<T: Serialize> {
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub units: Vec<T>,
}

impl<T: Serialize> Default for Units<T> {
    fn default() -> Self {
        Self { units: Vec::new() }
    }
}

/// A unit of systemd.
#[derive(Clone, Default, Serialize)]
pub(crate) struct Unit {
    #[serde(skip_serializing_if = "String::is_empty")]
    pub contents: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub dropins: Vec<Dropin>,
    /// The older name of `enabled`.
    #[serde(skip_serializing_if = "is_default")]
    pub enable: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub enabled: Option<bool>,
    #[serde(skip_serializing_if = "is_default")]
    pub mask: bool,
    pub name: String,
}

#[derive(Clone, Default, Serialize)]
pub(crate) struct NetworkUnit {
    #[serde(skip_serializing_if = "String::is_empty")]
    pub contents: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub dropins: Vec<Dropin>,
    pub name: String,
}

#[derive(Clone, Default, Serialize)]
pub(crate) struct Dropin {
    #[serde(skip_serializing_if = "String::is_empty")]
    pub contents: String,
    pub name: String,
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

impl Document {
    /// Appends another configuration as Ignition does: lists are joined, references to other configurations are replaced, and a timeout
    /// of the other one counts.
    pub(crate) fn append(&mut self, other: Self) {
        let Self {
            ignition,
            networkd,
            passwd,
            storage,
            systemd,
        } = other;
        self.ignition.config = ignition.config;
        let authorities = ignition.security.tls.certificate_authorities;
        self.ignition.security.tls.certificate_authorities.extend(authorities);
        let timeouts = &mut self.ignition.timeouts;
        let headers = ignition.timeouts.http_response_headers;
        timeouts.http_response_headers = headers.or(timeouts.http_response_headers);
        timeouts.http_total = ignition.timeouts.http_total.or(timeouts.http_total);
        self.networkd.units.extend(networkd.units);
        self.passwd.groups.extend(passwd.groups);
        self.passwd.users.extend(passwd.users);
        self.storage.directories.extend(storage.directories);
        self.storage.disks.extend(storage.disks);
        self.storage.files.extend(storage.files);
        self.storage.filesystems.extend(storage.filesystems);
        self.storage.links.extend(storage.links);
        self.storage.raid.extend(storage.raid);
        self.systemd.units.extend(systemd.units);
    }
}
