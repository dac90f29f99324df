//! The sections of a Container Linux Config, as a user writes them in YAML.
//!
//! Every field may be missing or null. Of keys that a section does not have, the lines are kept for a warning.

use std::collections::BTreeMap;
use std::fmt;

use serde::de::{Deserialize, Deserializer, IgnoredAny, MapAccess, Visitor};
use serde_saphyr::{Error, Spanned};
use windlass_gocompat::yaml;

use crate::ignition::findings::Findings;

/// A section that was read.
pub(super) trait Section {
    /// The lines of keys that it does not have.
    fn unknown(&self) -> &[u64];
}

/// A list of sections or texts. Null entries count as missing.
pub(super) type List<T> = Vec<Option<T>>;

macro_rules! section {
    ($($(#[$attribute:meta])* $name:ident { $($field:ident: $kind:ty,)* })*) => {$(
        $(#[$attribute])*
        #[derive(Default)]
        pub(super) struct $name {
            $(pub $field: Option<$kind>,)*
            unknown: Vec<u64>,
        }

        impl Section for $name {
            fn unknown(&self) -> &[u64] {
                &self.unknown
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                struct Fields;

                impl<'de> Visitor<'de> for Fields {
                    type Value = $name;

                    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                        f.write_str("a mapping")
                    }

                    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<$name, A::Error> {
                        let mut section = $name::default();
                        while let Some(key) = map.next_key::<Spanned<String>>()? {
                            match key.value.as_str() {
                                $(stringify!($field) => section.$field = map.next_value()?,)*
                                _ => {
                                    map.next_value::<IgnoredAny>()?;
                                    section.unknown.push(key.referenced.line());
                                }
                            }
                        }
                        Ok(section)
                    }
                }

                deserializer.deserialize_map(Fields)
            }
        }
    )*};
}

section! {
    /// The whole configuration.
    Config {
        version: i64,
        ignition: Ignition,
        storage: Storage,
        systemd: Systemd,
        networkd: Networkd,
        passwd: Passwd,
        etcd: Service,
        flannel: Service,
        update: Update,
        docker: Docker,
        locksmith: Locksmith,
    }
    Ignition { config: References, timeouts: Timeouts, security: Security, }
    References { append: List<Resource>, replace: Resource, }
    Resource { source: String, verification: Verification, }
    Verification { hash: Hash, }
    Hash { function: String, sum: String, }
    Timeouts { http_response_headers: i64, http_total: i64, }
    Security { tls: Tls, }
    Tls { certificate_authorities: List<Resource>, }
    Storage {
        disks: List<Disk>,
        raid: List<Raid>,
        filesystems: List<Filesystem>,
        files: List<File>,
        directories: List<Directory>,
        links: List<Link>,
    }
    Disk { device: String, wipe_table: bool, partitions: List<Partition>, }
    Partition { label: String, number: i64, size: String, start: String, guid: String, type_guid: String, }
    Raid { name: String, level: String, devices: List<String>, spares: i64, options: List<String>, }
    Filesystem { name: String, mount: Mount, path: String, }
    Mount {
        device: String,
        format: String,
        create: Create,
        wipe_filesystem: bool,
        label: String,
        uuid: String,
        options: List<String>,
    }
    Create { force: bool, options: List<String>, }
    File {
        filesystem: String,
        path: String,
        user: Owner,
        group: Owner,
        mode: i64,
        contents: Contents,
        overwrite: bool,
        append: bool,
    }
    Contents { remote: Remote, inline: String, local: String, }
    Remote { url: String, compression: String, verification: Verification, }
    Directory { filesystem: String, path: String, user: Owner, group: Owner, mode: i64, overwrite: bool, }
    Link {
        filesystem: String,
        path: String,
        user: Owner,
        group: Owner,
        hard: bool,
        target: String,
        overwrite: bool,
    }
    Owner { id: i64, name: String, }
    Systemd { units: List<Unit>, }
    Unit { name: String, enable: bool, enabled: bool, mask: bool, contents: String, dropins: List<Dropin>, }
    Dropin { name: String, contents: String, }
    Networkd { units: List<NetworkUnit>, }
    NetworkUnit { name: String, contents: String, dropins: List<Dropin>, }
    Passwd { users: List<User>, groups: List<Group>, }
    User {
        name: String,
        password_hash: String,
        ssh_authorized_keys: List<String>,
        create: Account,
        uid: i64,
        gecos: String,
        home_dir: String,
        no_create_home: bool,
        primary_group: String,
        groups: List<String>,
        no_user_group: bool,
        system: bool,
        no_log_init: bool,
        shell: String,
    }
    Account {
        uid: u64,
        gecos: String,
        home_dir: String,
        no_create_home: bool,
        primary_group: String,
        groups: List<String>,
        no_user_group: bool,
        system: bool,
        no_log_init: bool,
        shell: String,
    }
    Group { name: String, gid: u64, password_hash: String, system: bool, }
    Update {
        group: String,
        server: String,
        pcr_policy_server: String,
        download_user: String,
        download_password: String,
        machine_alias: String,
    }
    Docker { flags: List<String>, }
    Locksmith {
        reboot_strategy: String,
        window_start: String,
        window_length: String,
        group: String,
        etcd_endpoints: String,
        etcd_cafile: String,
        etcd_certfile: String,
        etcd_keyfile: String,
    }
}

/// A section whose keys depend on the version of the service.
#[derive(Default)]
pub(super) struct Service(BTreeMap<String, (u64, Option<String>)>);

impl Service {
    /// A value; nothing is there if the key is missing or null.
    pub(super) fn get(&self, key: &str) -> Option<&str> {
        self.0.get(key)?.1.as_deref()
    }

    /// Takes a value out.
    pub(super) fn remove(&mut self, key: &str) -> Option<String> {
        self.0.remove(key)?.1
    }

    /// The lines of what is left.
    pub(super) fn lines(&self) -> impl Iterator<Item = u64> {
        let mut lines: Vec<u64> = self.0.values().map(|(line, _)| *line).collect();
        lines.sort_unstable();
        lines.into_iter()
    }
}

impl<'de> Deserialize<'de> for Service {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Values;

        impl<'de> Visitor<'de> for Values {
            type Value = Service;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a mapping")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Service, A::Error> {
                let mut service = Service::default();
                while let Some(key) = map.next_key::<Spanned<String>>()? {
                    let value = map.next_value()?;
                    service.0.insert(key.value, (key.referenced.line(), value));
                }
                Ok(service)
            }
        }

        deserializer.deserialize_map(Values)
    }
}

impl Findings {
    /// Reads a section in its place.
    pub(super) fn section<S: Section, T>(
        &mut self,
        name: &str,
        section: Option<S>,
        read: impl FnOnce(&mut Self, S) -> T,
    ) -> Option<T> {
        let section = section?;
        Some(self.within(name, |findings| {
            findings.unknown(&section);
            read(findings, section)
        }))
    }

    /// Reads each section of a list in its place.
    pub(super) fn sections<S: Section, T>(
        &mut self,
        name: &str,
        list: Option<List<S>>,
        mut read: impl FnMut(&mut Self, S) -> T,
    ) -> Vec<T> {
        let items = list.into_iter().flatten().enumerate();
        items
            .filter_map(|(index, section)| self.section(&format!("{name}[{index}]"), section, &mut read))
            .collect()
    }

    /// Warns of the keys that a section does not have.
    pub(super) fn unknown(&mut self, section: &impl Section) {
        for line in section.unknown() {
            self.warn_of_key(*line);
        }
    }

    /// Warns of a key that is not known. It may be a value in the wrong place, so that only its line is shown.
    pub(super) fn warn_of_key(&mut self, line: u64) {
        let line = self.lines_before + line;
        self.warn("", &format!("the key in line {line} is unknown here"));
    }
}

/// The texts of a list.
pub(super) fn texts(list: Option<List<String>>) -> Vec<String> {
    list.into_iter().flatten().flatten().collect()
}

/// Levels of a document.
const MOST_LEVELS: usize = 32;

/// Reads a configuration, with the number of lines before it; nothing is there if the text has no content. As in v1.14, documents after
/// the first do not count.
pub(super) fn read(text: &str) -> Result<Option<(Config, u64)>, String> {
    let Some(document) = yaml::documents(text).into_iter().next() else {
        return Ok(None);
    };
    let config: Result<Option<Config>, _> = yaml::read_as(document.text, yaml::manifest(MOST_LEVELS));
    let lines_before = u64::try_from(document.line - 1).unwrap_or_default();
    let config = config.map(|config| Some((config.unwrap_or_default(), lines_before)));
    config.map_err(|error| {
        let problem = yaml::problem(&error);
        let line = problem.line + document.line - 1;
        let words = match problem.text.as_str() {
            // The words of the parser have the key.
            _ if matches!(error.without_snippet(), Error::DuplicateMappingKey { .. }) => "the key is there twice",
            "invalid i64" | "invalid u64" => "a whole number is expected",
            "invalid boolean" => "true or false is expected",
            text if text.starts_with("!!binary scalar") => {
                "a text is expected; remote.url can carry other contents as data:;base64,CONTENT"
            }
            text => text,
        };
        format!("line {line}, column {}: {words}", problem.column)
    })
}
