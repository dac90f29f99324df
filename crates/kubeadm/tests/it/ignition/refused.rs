//! What is refused, with its field, and what only counts as an error where `strict` is set.

use std::fmt::Write as _;

use super::{rendered, spec, with_additional};

const FIELD: &str = "spec.ignition.containerLinuxConfig.additionalConfig";

fn fails(yaml: &str, parts: &[&str]) {
    let error = rendered(&spec(yaml))
        .err()
        .map(|error| error.to_string())
        .unwrap_or_default();
    for part in parts {
        assert!(error.contains(part), "{yaml}: {error:?} lacks {part:?}");
    }
}

#[test]
fn what_the_format_cannot_express_is_refused_with_its_field() {
    let setup = |part: &str| format!("diskSetup: {{{part}}}");
    for (yaml, field) in [
        ("bootCommands: [a]".to_owned(), "spec.bootCommands"),
        (
            "users: [{name: a}, {name: b, inactive: true}]".to_owned(),
            "spec.users[1].inactive",
        ),
        ("users: [{name: \"a\\nb\"}]".to_owned(), "spec.users[0].name"),
        (
            "files: [{path: /a, encoding: gzip, content: a}]".to_owned(),
            "spec.files[0].encoding",
        ),
        (
            "files: [{path: /a, encoding: gzip+base64, content: a}]".to_owned(),
            "spec.files[0].encoding",
        ),
        (
            "files: [{path: /a, encoding: base64, content: '%'}]".to_owned(),
            "spec.files[0].content",
        ),
        ("files: [{path: a, content: a}]".to_owned(), "spec.files[0].path"),
        (
            "files: [{path: /a, permissions: u+x, content: a}]".to_owned(),
            "spec.files[0].permissions",
        ),
        (
            "files: [{path: /a, permissions: '0999', content: a}]".to_owned(),
            "spec.files[0].permissions",
        ),
        ("mounts: [[none]]".to_owned(), "spec.mounts[0]"),
        ("mounts: [[a, /b]]".to_owned(), "spec.mounts[0][0]"),
        ("mounts: [[/dev/a, b]]".to_owned(), "spec.mounts[0][1]"),
        ("mounts: [[/dev/a, \"/b\\nc\"]]".to_owned(), "spec.mounts[0]"),
        (
            setup("partitions: [{device: sda}]"),
            "spec.diskSetup.partitions[0].device",
        ),
        (
            setup("partitions: [{device: /a, tableType: mbr}]"),
            "spec.diskSetup.partitions[0].tableType",
        ),
        (
            setup("partitions: [{device: /a, diskLayout: [{percentage: 50}]}]"),
            "spec.diskSetup.partitions[0].diskLayout",
        ),
        (
            setup("partitions: [{device: /a, diskLayout: [{percentage: 100, partitionType: LVM}]}]"),
            "spec.diskSetup.partitions[0].diskLayout",
        ),
        (
            setup("filesystems: [{device: /a, filesystem: ext4, replaceFS: ntfs}]"),
            "spec.diskSetup.filesystems[0].replaceFS",
        ),
        (
            setup("filesystems: [{device: /a, filesystem: ext4, partition: auto}]"),
            "spec.diskSetup.filesystems[0].partition",
        ),
        (
            setup("filesystems: [{device: /a, filesystem: ntfs}]"),
            "spec.diskSetup.filesystems[0].filesystem",
        ),
        (
            setup("filesystems: [{device: /a, filesystem: xfs, label: averylonglabel}]"),
            "spec.diskSetup.filesystems[0].label",
        ),
        (
            setup("filesystems: [{device: a, filesystem: xfs}]"),
            "spec.diskSetup.filesystems[0].device",
        ),
    ] {
        fails(&yaml, &[&format!("{field}: ")]);
    }
}

/// The error of a Container Linux Config; empty if there is none.
fn error(config: &str, strict: bool) -> String {
    let result = rendered(&with_additional(config, strict));
    result.err().map(|error| error.to_string()).unwrap_or_default()
}

#[test]
fn warnings_count_as_errors_where_strict_is_set() {
    for (config, warning) in [
        (
            "storage: {files: [{path: /a}]}",
            "storage.files[0].mode: the mode is unset",
        ),
        (
            "storage: {directories: [{path: /a}]}",
            "storage.directories[0].mode: the mode is unset",
        ),
        (
            "storage: {disks: [{device: /a, partitions: [{label: 'a:b'}]}]}",
            "storage.disks[0].partitions[0].label",
        ),
        (
            "storage: {files: [{path: /a, mode: 0600, filesystem: x}]}",
            "storage.files: \"/a\" is in the file system \"x\"",
        ),
        (
            "storage: {flies: [{path: /a}]}",
            "storage: the key in line 1 is unknown here",
        ),
        ("etcd: {naem: x}", "etcd: the key in line 1 is unknown here"),
        (
            "systemd: {units: [{name: a.service, enabled: true, contents: \"[A]\\nb=c\"}]}",
            "systemd.units[0].contents",
        ),
        ("# nothing", "the configuration is empty"),
        ("update: {group: foo}", "update.group"),
    ] {
        let data = rendered(&with_additional(config, false)).unwrap_or_else(|error| panic!("{error}"));
        let warnings = data.warnings.join("\n");
        assert!(warnings.starts_with(&format!("{FIELD}: {warning}")), "{warnings}");
        let error = error(config, true);
        assert!(error.starts_with(&format!("{FIELD}: {warning}")), "{error}");
        assert!(error.contains("strict is set"), "{error}");
    }
}

#[test]
fn an_unknown_key_is_shown_by_its_line_alone() {
    // Each may be a value in the wrong place.
    let config = "\n---\nstorage:\n  hunter1: {}\n  \"hunter2\":\n    hunter3: x\netcd:\n  name: a\n  hunter4: |\n    x\nhunter5: y\n";
    let data = rendered(&with_additional(config, false)).unwrap_or_else(|error| panic!("{error}"));
    let warnings = data.warnings.join("\n");
    assert!(!warnings.contains("hunter"), "{warnings}");
    let expected = ["storage: ", "storage: ", "etcd: ", ""];
    for (place, line) in expected.into_iter().zip([4, 5, 9, 11]) {
        let warning = format!("{FIELD}: {place}the key in line {line} is unknown here");
        assert!(data.warnings.contains(&warning), "{warning}: {warnings}");
    }
    assert_eq!(data.warnings.len(), expected.len(), "{warnings}");
}

#[test]
fn errors_of_the_text_have_none_of_it() {
    for (config, place) in [
        ("storage:\n  hunter2: a\n  hunter2: b\n", "line 3"),
        ("etcd:\n  hunter2: a\n  hunter2: b\n", "line 3"),
        ("storage: hunter2\n", "line 1"),
        ("etcd: {name: {hunter2: a}}\n", "line 1"),
        ("systemd: {units: [{enabled: hunter2}]}\n", "line 1"),
        ("storage: *hunter2\n", "line 1"),
        ("storage: !hunter2 {}\nhunter2: [\n", "line "),
        ("{hunter2\n", "line "),
        ("? {hunter2: a}\n: b\n", "line 1"),
    ] {
        let error = error(config, false);
        assert!(error.contains(place), "{config:?}: {error}");
        assert!(!error.contains("hunter2"), "{config:?}: {error}");
    }
}

#[test]
fn errors_of_a_container_linux_config_have_a_place() {
    for (config, place) in [
        ("version: 1", "version: "),
        ("storage: {files: [{path: a, mode: 0600}]}", "storage.files[0].path: "),
        (
            "storage: {files: [{path: /a, mode: 010000}]}",
            "storage.files[0].mode: ",
        ),
        (
            "storage: {files: [{path: /a, mode: 0600, contents: {local: b}}]}",
            "storage.files[0].contents.local: ",
        ),
        (
            "storage: {files: [{path: /a, mode: 0600, contents: {inline: b, remote: {url: 'http://a'}}}]}",
            "storage.files[0].contents: ",
        ),
        (
            "storage: {files: [{path: /a, mode: 0600, user: {id: 1, name: b}}]}",
            "storage.files[0].user: ",
        ),
        (
            "storage: {files: [{path: /a, mode: 0600, append: true, overwrite: true}]}",
            "storage.files[0]: ",
        ),
        (
            "storage: {disks: [{device: /a, partitions: [{size: 1KiB}]}]}",
            "storage.disks[0].partitions[0].size: ",
        ),
        (
            "storage: {disks: [{device: /a, partitions: [{number: 1}, {number: 1}]}]}",
            "storage.disks[0].partitions: ",
        ),
        ("storage: {raid: [{name: a, level: raid9}]}", "storage.raid[0].level: "),
        ("storage: {filesystems: [{name: a}]}", "storage.filesystems[0]: "),
        (
            "storage: {filesystems: [{name: a, mount: {device: /a, format: ntfs}}]}",
            "storage.filesystems[0].mount.format: ",
        ),
        ("systemd: {units: [{name: a}]}", "systemd.units[0].name: "),
        (
            "systemd: {units: [{name: a.service, dropins: [{name: a}]}]}",
            "systemd.units[0].dropins[0].name: ",
        ),
        (
            "networkd: {units: [{name: a.network, contents: '[A'}]}",
            "networkd.units[0].contents: ",
        ),
        (
            "passwd: {users: [{name: a, gecos: b, create: {}}]}",
            "passwd.users[0].create: ",
        ),
        (
            "ignition: {config: {replace: {source: 'ftp://a'}}}",
            "ignition.config.replace.source: ",
        ),
        ("etcd: {version: 4.0.0}", "etcd.version: "),
        ("etcd: {snapshot_count: many}", "etcd.snapshot_count: "),
        ("etcd: {name: '{HOSTNAME}'}", "etcd.name: "),
        ("flannel: {network_config: x}", "flannel.network_config: "),
        (
            "locksmith: {window_start: '25:00', window_length: 1h}",
            "locksmith.window_start: ",
        ),
        ("locksmith: {window_length: 1h}", "locksmith: "),
        ("storage: [", "line "),
        ("a: b\na: c", "line 2, "),
        (
            "storage: {files: [{mode: x}]}",
            "line 1, column 26: a whole number is expected",
        ),
        (
            "systemd: {units: [{enable: x}]}",
            "line 1, column 28: true or false is expected",
        ),
        (
            "storage: {files: [{contents: {inline: !!binary /w==}}]}",
            "remote.url can carry other contents",
        ),
        ("storage: text", "line 1, "),
    ] {
        let error = error(config, false);
        assert!(
            error.contains(&format!("{FIELD}: ")) && error.contains(place),
            "{config}: {error:?} lacks {place:?}"
        );
    }
}

#[test]
fn errors_do_not_have_contents() {
    for config in [
        "passwd: {users: [{name: a, password_hash: [hidden-value]}]}",
        "storage: {files: [{path: /a, mode: hidden-value}]}",
        "storage: {files: [{path: /a, mode: 0600, contents: {inline: hidden-value, local: hidden-value}}]}",
        "etcd: {snapshot_count: hidden-value}",
        "update: {download_password: hidden-value, server: \"a\\u0001hidden-value\"}",
        "systemd: {units: [{name: a.service, contents: \"[A]\\nhidden-value\"}]}",
        "hidden: 'hidden-value",
    ] {
        let error = error(config, true);
        assert!(
            !error.is_empty() && !error.contains("hidden-value"),
            "{config}: {error}"
        );
    }
    let spec = spec("files: [{path: /a, encoding: base64, content: hidden-value%}]");
    let error = rendered(&spec).err().map(|error| error.to_string()).unwrap_or_default();
    assert!(!error.is_empty() && !error.contains("hidden-value"), "{error}");
}

#[test]
fn depth_and_size_are_bounded() {
    let deep = format!("a: {}{}", "[".repeat(10_000), "]".repeat(10_000));
    assert!(error(&deep, false).contains("line 1"));
    // What aliases make of a short text.
    let mut bomb = "a0: &a0 [x, x, x, x, x, x, x, x]\n".to_owned();
    for level in 1..12 {
        let before = format!("*a{}, ", level - 1).repeat(8);
        let _ = writeln!(bomb, "a{level}: &a{level} [{}]", before.trim_end_matches(", "));
    }
    assert!(!error(&bomb, false).is_empty());
    // Many problems are one message of a moderate length.
    let many = format!("storage: {{files: [{}]}}", "{path: a, mode: 0600},".repeat(500));
    let error = error(&many, false);
    assert!(error.contains("and 480 more") && error.len() < 2_500, "{error}");
}
