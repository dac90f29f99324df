//! Services that a Container Linux Config has sections for: docker, etcd, flannel, and the updates of the system.

mod options;

use std::fmt::Write as _;

use windlass_gocompat::{duration, quote};

use super::read::{Docker, Locksmith, Service, Update, texts};
use crate::ignition::data_url;
use crate::ignition::document::{Contents, Dropin, File, Node, Unit};
use crate::ignition::findings::Findings;
use crate::ignition::unit;

/// The type of an option.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Text,
    Number,
    Flag,
}

/// A version: `3.5.1`. Pre-releases and builds follow in the text.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Version(u64, u64, u64);

const ETCD_DEFAULT: Version = Version(3, 5, 0);
const ETCD_OLDEST: Version = Version(2, 3, 0);
const FLANNEL_DEFAULT: Version = Version(0, 6, 0);
const FLANNEL_OLDEST: Version = Version(0, 5, 0);

/// Where the system looks for its settings of updates.
const UPDATE_FILE: &str = "/etc/coreos/update.conf";

/// A unit with one drop-in.
fn service_unit(findings: &mut Findings, name: &str, dropin: &str, contents: String) -> Unit {
    findings.error_if("", unit::sections(&contents).err());
    Unit {
        name: name.to_owned(),
        enable: true,
        dropins: vec![Dropin {
            name: dropin.to_owned(),
            contents,
        }],
        ..Unit::default()
    }
}

pub(super) fn docker(findings: &mut Findings, docker: Docker) -> Unit {
    let flags = texts(docker.flags).join(" ");
    let contents = format!("[Service]\nEnvironment=\"DOCKER_OPTS={flags}\"");
    service_unit(findings, "docker.service", "20-clct-docker.conf", contents)
}

pub(super) fn etcd(findings: &mut Findings, mut section: Service) -> Option<Unit> {
    let named = section.remove("version");
    let version = match &named {
        None => ETCD_DEFAULT,
        Some(text) => parsed(findings, text)?,
    };
    let Version(major, minor, _) = version;
    if version < ETCD_OLDEST || major > 3 {
        findings.error("version", "a version of etcd between 2.3 and 3.5 is expected");
        return None;
    }
    let newest = if major == 2 { 3 } else { 5 };
    if minor > newest {
        let why = format!("this version of etcd is newer than known; the options of {major}.{newest} are expected");
        findings.warn("version", &why);
    }
    let number = major * 10 + minor.min(newest);
    let known = options::ETCD
        .iter()
        .filter(|(_, _, first, last)| (*first..=*last).contains(&number))
        .map(|(name, kind, ..)| (*name, name.replace('_', "-"), *kind));
    let arguments = arguments(findings, section, known)?;
    let variable = named.map(|version| format!("ETCD_IMAGE_TAG=v{version}"));
    let lines = service("/usr/lib/coreos/etcd-wrapper $ETCD_OPTS", &arguments, variable);
    Some(service_unit(
        findings,
        "etcd-member.service",
        "20-clct-etcd-member.conf",
        lines,
    ))
}

pub(super) fn flannel(findings: &mut Findings, mut section: Service) -> Option<Unit> {
    let named = section.remove("version");
    let network = section.remove("network_config").filter(|text| !text.is_empty());
    let version = match &named {
        None => FLANNEL_DEFAULT,
        Some(text) => parsed(findings, text)?,
    };
    if version < FLANNEL_OLDEST {
        findings.error("version", "version 0.5 of flannel or later is expected");
        return None;
    }
    let Version(major, minor, _) = version;
    if major == 0 && minor > 7 {
        findings.warn(
            "version",
            "this version of flannel is newer than known; the options of 0.7 are expected",
        );
    }
    if let Some(network) = &network {
        let object: Result<serde_json::Map<String, serde_json::Value>, _> = serde_json::from_str(network);
        if object.is_err() {
            findings.error("network_config", "a JSON object is expected");
        }
        if minor >= 7 && boolean(section.get("kube_subnet_mgr")) == Some(true) {
            findings.error("network_config", "it cannot be combined with kube_subnet_mgr");
        }
    }
    // Versions from 1.0 on have no options that are known.
    let of_etcd = |name: &str| section.get(name).filter(|_| major == 0).map(str::to_owned);
    let access = [
        ("endpoints", of_etcd("etcd_endpoints")),
        ("ca-file", of_etcd("etcd_cafile")),
        ("cert-file", of_etcd("etcd_certfile")),
        ("key-file", of_etcd("etcd_keyfile")),
    ];
    let known = options::FLANNEL
        .iter()
        .filter(|(.., first)| major == 0 && minor >= *first)
        .map(|(name, argument, kind, _)| (*name, (*argument).to_owned(), *kind));
    let arguments = arguments(findings, section, known)?;
    let variable = named.map(|version| format!("FLANNEL_IMAGE_TAG=v{version}"));
    let mut lines = service("/usr/lib/coreos/flannel-wrapper $FLANNEL_OPTS", &arguments, variable);
    if let Some(network) = network {
        // flannel reads its network from etcd, so it has to be there first.
        let mut command = "\nExecStartPre=/usr/bin/etcdctl".to_owned();
        for (name, value) in access {
            if let Some(value) = value {
                let _ = write!(command, " --{name}={}", quote::quoted(&value));
            }
        }
        let _ = write!(command, " set /coreos.com/network/config {}", quote::quoted(&network));
        lines.push_str(&command);
    }
    Some(service_unit(
        findings,
        "flanneld.service",
        "20-clct-flannel.conf",
        lines,
    ))
}

fn parsed(findings: &mut Findings, text: &str) -> Option<Version> {
    let numbers = text.split(['-', '+']).next().unwrap_or_default();
    let mut parts = numbers.split('.').map(|part| part.parse().ok());
    let version = (|| Some(Version(parts.next()??, parts.next()??, parts.next()??)))();
    let is_plain = |c: char| c.is_ascii_alphanumeric() || ".-+".contains(c);
    if version.is_none() || parts.next().is_some() || !text.chars().all(is_plain) {
        findings.error("version", "a version with three numbers is expected, such as 3.5.0");
        return None;
    }
    version
}

/// The arguments of options that are set, in alphabetical order. Without a platform, none can be a template.
fn arguments(
    findings: &mut Findings,
    mut section: Service,
    known: impl Iterator<Item = (&'static str, String, Kind)>,
) -> Option<Vec<String>> {
    let mut arguments = Vec::new();
    let mut is_good = true;
    for (name, argument, kind) in known {
        let Some(value) = section.remove(name) else {
            continue;
        };
        let shown = match kind {
            Kind::Text => Some(quote::quoted(&value)),
            Kind::Number => crate::ignition::integer(&value).map(|number| number.to_string()),
            Kind::Flag => boolean(Some(&value)).map(|flag| flag.to_string()),
        };
        match shown {
            Some(shown) if shown.contains(['{', '}']) => {
                is_good = false;
                findings.error(
                    name,
                    "braces stand for addresses of a platform, which is not known here",
                );
            }
            Some(shown) => arguments.push(format!("--{argument}={shown}")),
            None => {
                is_good = false;
                let expected = if kind == Kind::Flag {
                    "true or false"
                } else {
                    "a whole number"
                };
                findings.error(name, &format!("{expected} is expected"));
            }
        }
    }
    for line in section.lines() {
        findings.warn_of_key(line);
    }
    is_good.then_some(arguments)
}

fn boolean(value: Option<&str>) -> Option<bool> {
    match value?.to_ascii_lowercase().as_str() {
        "true" | "yes" | "on" | "y" => Some(true),
        "false" | "no" | "off" | "n" => Some(false),
        _ => None,
    }
}

/// A drop-in that starts a service with arguments instead of its own ones.
fn service(command: &str, arguments: &[String], variable: Option<String>) -> String {
    let mut out = "[Service]\n".to_owned();
    if let Some(variable) = variable {
        let _ = writeln!(out, "Environment=\"{variable}\"");
    }
    out.push_str("ExecStart=\nExecStart=");
    out.push_str(command);
    for argument in arguments {
        out.push_str(" \\\n  ");
        out.push_str(argument);
    }
    out
}

/// The settings of updates, and of the reboots after them: one file for both.
pub(super) fn update(findings: &mut Findings, update: Option<Update>, locksmith: Option<Locksmith>) -> Option<File> {
    let mut lines = findings.section("update", update, update_lines).unwrap_or_default();
    let reboots = findings
        .section("locksmith", locksmith, locksmith_lines)
        .unwrap_or_default();
    if reboots.is_empty() && lines.iter().all(String::is_empty) {
        return None;
    }
    // The group has the first line, also where there is none.
    if lines.is_empty() {
        lines.push(String::new());
    }
    lines.extend(reboots);
    Some(File {
        node: Node {
            filesystem: "root".to_owned(),
            path: UPDATE_FILE.to_owned(),
            ..Node::default()
        },
        mode: 0o644,
        contents: Contents {
            source: data_url::data(lines.join("\n").as_bytes()),
            ..Contents::default()
        },
        ..File::default()
    })
}

fn update_lines(findings: &mut Findings, update: Update) -> Vec<String> {
    let group = update.group.unwrap_or_default().to_lowercase();
    let server = update.server.filter(|server| !server.is_empty());
    if !matches!(group.as_str(), "stable" | "beta" | "alpha") && server.is_none() {
        findings.warn("group", "stable, beta or alpha is expected where no server is set");
    }
    findings.error_if("server", server.as_deref().and_then(data_url::malformed));
    let mut lines = vec![if group.is_empty() {
        group
    } else {
        format!("GROUP={group}")
    }];
    for (name, value) in [
        ("SERVER", server),
        ("PCR_POLICY_SERVER", update.pcr_policy_server),
        ("DOWNLOAD_USER", update.download_user),
        ("DOWNLOAD_PASSWORD", update.download_password),
        ("MACHINE_ALIAS", update.machine_alias),
    ] {
        if let Some(value) = value.filter(|value| !value.is_empty()) {
            lines.push(format!("{name}={value}"));
        }
    }
    lines
}

fn locksmith_lines(findings: &mut Findings, locksmith: Locksmith) -> Vec<String> {
    let set = |text: &Option<String>| text.clone().filter(|text| !text.is_empty());
    if let Some(strategy) = set(&locksmith.reboot_strategy)
        && !matches!(strategy.to_lowercase().as_str(), "reboot" | "etcd-lock" | "off")
    {
        findings.error("reboot_strategy", "reboot, etcd-lock or off is expected");
    }
    let (start, length) = (set(&locksmith.window_start), set(&locksmith.window_length));
    if start.is_some() != length.is_some() {
        findings.error("", "window_start and window_length need one another");
    }
    if start.is_some_and(|start| !is_window_start(&start)) {
        findings.error("window_start", "a time is expected, such as 23:00 or Thu 23:00");
    }
    if length.is_some_and(|length| duration::parse(&length).is_none()) {
        findings.error("window_length", "a duration is expected, such as 1h30m");
    }
    [
        ("REBOOT_STRATEGY", locksmith.reboot_strategy),
        ("LOCKSMITHD_REBOOT_WINDOW_START", locksmith.window_start),
        ("LOCKSMITHD_REBOOT_WINDOW_LENGTH", locksmith.window_length),
        ("LOCKSMITHD_GROUP", locksmith.group),
        ("LOCKSMITHD_ENDPOINT", locksmith.etcd_endpoints),
        ("LOCKSMITHD_ETCD_CAFILE", locksmith.etcd_cafile),
        ("LOCKSMITHD_ETCD_CERTFILE", locksmith.etcd_certfile),
        ("LOCKSMITHD_ETCD_KEYFILE", locksmith.etcd_keyfile),
    ]
    .into_iter()
    .filter_map(|(name, value)| Some(format!("{name}={}", quote::quoted(&value?))))
    .collect()
}

/// `HH:MM`, or a day and `HH:MM`.
fn is_window_start(text: &str) -> bool {
    const DAYS: [&str; 7] = ["sun", "mon", "tue", "wed", "thu", "fri", "sat"];
    let mut words = text.split_whitespace();
    let time = match (words.next(), words.next()) {
        (Some(day), Some(time)) if DAYS.contains(&day.to_lowercase().as_str()) => time,
        (Some(_), None) => text,
        _ => return false,
    };
    let Some((hour, minute)) = time.split_once(':') else {
        return false;
    };
    let below = |text: &str, most: u8, lengths: &[usize]| {
        lengths.contains(&text.len())
            && text.bytes().all(|byte| byte.is_ascii_digit())
            && text.parse().is_ok_and(|number: u8| number < most)
    };
    below(hour, 24, &[1, 2]) && below(minute, 60, &[2])
}
