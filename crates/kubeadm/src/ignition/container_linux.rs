//! A user's Container Linux Config, converted to Ignition 2.3.
//!
//! The format and its rules are those of the transpiler that v1.14 uses, without a platform: `{PRIVATE_IPV4}` and the like, and files of
//! the computer that converts, are refused. What Ignition itself would refuse on a machine is refused here.

mod read;
mod services;
mod storage;

use std::collections::BTreeSet;

use super::data_url;
use super::document::{
    Account, Document, Dropin, Group, Ignition, NetworkUnit, Passwd, References, Resource, Timeouts, Units, User,
    Verification,
};
use super::findings::Findings;
use super::unit;
use read::texts;

/// Extensions of units of systemd.
const UNITS: [&str; 12] = [
    "service",
    "socket",
    "device",
    "mount",
    "automount",
    "swap",
    "target",
    "path",
    "timer",
    "snapshot",
    "slice",
    "scope",
];
/// Extensions of units of networkd.
const NETWORK_UNITS: [&str; 3] = ["link", "netdev", "network"];

/// Converts a configuration. Returns its warnings, too; the error has all problems.
pub(super) fn convert(text: &str, is_strict: bool) -> Result<(Document, Vec<String>), String> {
    let mut findings = Findings::default();
    let document = if let Some((config, lines_before)) = read::read(text)? {
        findings.lines_before = lines_before;
        document(&mut findings, config)
    } else {
        findings.warn("", "the configuration is empty");
        Document::default()
    };
    findings.verdict(is_strict).map(|warnings| (document, warnings))
}

fn document(findings: &mut Findings, config: read::Config) -> Document {
    findings.unknown(&config);
    if config.version.is_some_and(|version| version != 0) {
        findings.error("version", "only version 0 of the format is known");
    }
    let mut document = Document {
        ignition: findings
            .section("ignition", config.ignition, ignition)
            .unwrap_or_default(),
        networkd: Units {
            units: findings
                .section("networkd", config.networkd, |findings, networkd| {
                    findings.sections("units", networkd.units, network_unit)
                })
                .unwrap_or_default(),
        },
        passwd: findings.section("passwd", config.passwd, passwd).unwrap_or_default(),
        storage: findings
            .section("storage", config.storage, storage::storage)
            .unwrap_or_default(),
        ..Document::default()
    };
    let units = &mut document.systemd.units;
    units.extend(findings.section("docker", config.docker, services::docker));
    units.extend(
        config
            .etcd
            .and_then(|etcd| findings.within("etcd", |findings| services::etcd(findings, etcd))),
    );
    units.extend(
        config
            .flannel
            .and_then(|flannel| findings.within("flannel", |findings| services::flannel(findings, flannel))),
    );
    let own = findings.section("systemd", config.systemd, |findings, systemd| {
        findings.sections("units", systemd.units, systemd_unit)
    });
    units.extend(own.unwrap_or_default());
    let update = services::update(findings, config.update, config.locksmith);
    document.storage.files.extend(update);
    file_systems_exist(findings, &document);
    document
}

fn ignition(findings: &mut Findings, section: read::Ignition) -> Ignition {
    let config = findings.section("config", section.config, |findings, config| References {
        append: findings.sections("append", config.append, resource),
        replace: findings.section("replace", config.replace, resource),
    });
    let timeouts = findings.section("timeouts", section.timeouts, |_, timeouts| Timeouts {
        http_response_headers: timeouts.http_response_headers,
        http_total: timeouts.http_total,
    });
    let authorities = findings.section("security", section.security, |findings, security| {
        findings.section("tls", security.tls, |findings, tls| {
            findings.sections("certificate_authorities", tls.certificate_authorities, resource)
        })
    });
    let mut ignition = Ignition {
        config: config.unwrap_or_default(),
        timeouts: timeouts.unwrap_or_default(),
        ..Ignition::default()
    };
    ignition.security.tls.certificate_authorities = authorities.flatten().unwrap_or_default();
    ignition
}

fn resource(findings: &mut Findings, resource: read::Resource) -> Resource {
    let source = resource.source.unwrap_or_default();
    findings.error_if("source", data_url::problem(&source));
    Resource {
        source,
        verification: verification(findings, resource.verification),
    }
}

/// The hash of a download, if both its function and its sum are there.
fn verification(findings: &mut Findings, verification: Option<read::Verification>) -> Verification {
    let hash = findings.section("verification", verification, |findings, verification| {
        findings.section("hash", verification.hash, |findings, hash| {
            let function = hash.function.filter(|function| !function.is_empty())?;
            let sum = hash.sum.filter(|sum| !sum.is_empty())?;
            if function != "sha512" {
                findings.error("function", "only sha512 is known");
            } else if sum.len() != 128 {
                findings.error("sum", "a sum of 128 hexadecimal digits is expected");
            }
            Some(format!("{function}-{sum}"))
        })
    });
    Verification {
        hash: hash.flatten().flatten(),
    }
}

fn systemd_unit(findings: &mut Findings, section: read::Unit) -> super::document::Unit {
    let name = section.name.unwrap_or_default();
    let contents = section.contents.unwrap_or_default();
    let enable = section.enable == Some(true);
    if !has_extension(&name, &UNITS) {
        findings.error(
            "name",
            "the extension of a unit is expected, such as .service or .mount",
        );
    }
    let sections = checked(findings, &contents);
    let is_enabled = enable || section.enabled == Some(true);
    if is_enabled && !sections.is_empty() && !sections.contains(&"Install") {
        findings.warn(
            "contents",
            "the unit is enabled, but has no section Install: enabling it has no effect",
        );
    }
    super::document::Unit {
        dropins: findings.sections("dropins", section.dropins, dropin),
        enable,
        enabled: section.enabled,
        mask: section.mask == Some(true),
        name,
        contents,
    }
}

fn network_unit(findings: &mut Findings, section: read::NetworkUnit) -> NetworkUnit {
    let name = section.name.unwrap_or_default();
    let contents = section.contents.unwrap_or_default();
    if !has_extension(&name, &NETWORK_UNITS) {
        findings.error("name", "the extension .link, .netdev or .network is expected");
    }
    checked(findings, &contents);
    NetworkUnit {
        dropins: findings.sections("dropins", section.dropins, dropin),
        name,
        contents,
    }
}

fn dropin(findings: &mut Findings, section: read::Dropin) -> Dropin {
    let name = section.name.unwrap_or_default();
    let contents = section.contents.unwrap_or_default();
    if !has_extension(&name, &["conf"]) {
        findings.error("name", "the extension .conf is expected");
    }
    checked(findings, &contents);
    Dropin { contents, name }
}

/// The sections of a unit's options.
fn checked<'a>(findings: &mut Findings, contents: &'a str) -> Vec<&'a str> {
    unit::sections(contents).unwrap_or_else(|why| {
        findings.error("contents", why);
        Vec::new()
    })
}

fn has_extension(name: &str, extensions: &[&str]) -> bool {
    let file = name.rsplit('/').next().unwrap_or_default();
    file.rsplit_once('.')
        .is_some_and(|(_, extension)| extensions.contains(&extension))
}

fn passwd(findings: &mut Findings, section: read::Passwd) -> Passwd {
    Passwd {
        users: findings.sections("users", section.users, user),
        groups: findings.sections("groups", section.groups, |findings, group| Group {
            name: group.name.unwrap_or_default(),
            gid: number(findings, "gid", group.gid),
            password_hash: group.password_hash.unwrap_or_default(),
            system: group.system == Some(true),
        }),
    }
}

fn user(findings: &mut Findings, user: read::User) -> User {
    let account = Account {
        gecos: user.gecos.unwrap_or_default(),
        groups: texts(user.groups),
        home_dir: user.home_dir.unwrap_or_default(),
        no_create_home: user.no_create_home == Some(true),
        no_log_init: user.no_log_init == Some(true),
        no_user_group: user.no_user_group == Some(true),
        primary_group: user.primary_group.unwrap_or_default(),
        shell: user.shell.unwrap_or_default(),
        system: user.system == Some(true),
        uid: user.uid,
    };
    let create = findings.section("create", user.create, |findings, create| {
        findings.warn("", "create is the older form; set its fields at the user itself");
        if account != Account::default() {
            findings.error("", "create cannot be combined with the same fields at the user itself");
        }
        Account {
            gecos: create.gecos.unwrap_or_default(),
            groups: texts(create.groups),
            home_dir: create.home_dir.unwrap_or_default(),
            no_create_home: create.no_create_home == Some(true),
            no_log_init: create.no_log_init == Some(true),
            no_user_group: create.no_user_group == Some(true),
            primary_group: create.primary_group.unwrap_or_default(),
            shell: create.shell.unwrap_or_default(),
            system: create.system == Some(true),
            uid: number(findings, "uid", create.uid),
        }
    });
    User {
        create,
        account,
        name: user.name.unwrap_or_default(),
        password_hash: user.password_hash,
        ssh_authorized_keys: texts(user.ssh_authorized_keys),
    }
}

/// The number of a user or a group.
fn number(findings: &mut Findings, part: &str, number: Option<u64>) -> Option<i64> {
    let number = i64::try_from(number?);
    if number.is_err() {
        findings.error(part, "the number is too large");
    }
    number.ok()
}

/// Files in file systems that this configuration does not describe, and file systems with the same name.
fn file_systems_exist(findings: &mut Findings, document: &Document) {
    let mut known = BTreeSet::from(["root"]);
    for (index, filesystem) in document.storage.filesystems.iter().enumerate() {
        if !known.insert(&filesystem.name) {
            let part = format!("storage.filesystems[{index}].name");
            findings.warn(&part, "another file system has this name, too");
        }
    }
    let storage = &document.storage;
    let files = storage.files.iter().map(|file| ("files", &file.node));
    let links = storage.links.iter().map(|link| ("links", &link.node));
    let directories = storage
        .directories
        .iter()
        .map(|directory| ("directories", &directory.node));
    for (kind, node) in files.chain(links).chain(directories) {
        if !node.filesystem.is_empty() && !known.contains(node.filesystem.as_str()) {
            findings.warn(
                &format!("storage.{kind}"),
                &format!(
                    "{:?} is in the file system {:?}, which this configuration does not describe",
                    node.path, node.filesystem
                ),
            );
        }
    }
}
