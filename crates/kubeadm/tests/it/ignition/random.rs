//! Random specifications: none panics, and what is rendered is valid.

use proptest::prelude::*;
use serde_json::{Value, json};
use windlass_api_kubeadm::bootstrap::KubeadmConfigSpec;

use super::{Validator, content, document, rendered};

/// A text: one that fits its field more often than not.
pub(crate) fn text(fitting: &'static [&'static str]) -> impl Strategy<Value = String> {
    prop_oneof![
        12 => prop::sample::select(fitting).prop_map(str::to_owned),
        1 => "\\PC{0,12}",
        1 => "[ -~\n\t]{0,40}",
    ]
}

/// An object of some of the given fields.
pub(crate) fn object(fields: Vec<(&'static str, BoxedStrategy<Value>)>) -> BoxedStrategy<Value> {
    let fields: Vec<_> = fields
        .into_iter()
        .map(|(name, value)| prop::option::weighted(0.6, value.prop_map(move |value| (name.to_owned(), value))))
        .collect();
    let object = fields.prop_map(|fields| Value::Object(fields.into_iter().flatten().collect()));
    object.boxed()
}

pub(crate) fn texts(fitting: &'static [&'static str]) -> BoxedStrategy<Value> {
    text(fitting).prop_map(Value::from).boxed()
}

pub(crate) fn flags() -> BoxedStrategy<Value> {
    any::<bool>().prop_map(Value::from).boxed()
}

fn numbers(most: i64) -> BoxedStrategy<Value> {
    prop_oneof![9 => 0..most, 1 => any::<i64>()]
        .prop_map(Value::from)
        .boxed()
}

pub(crate) fn lists(item: BoxedStrategy<Value>) -> BoxedStrategy<Value> {
    prop::collection::vec(item, 0..4).prop_map(Value::from).boxed()
}

const PATHS: &[&str] = &["/etc/a", "/var/lib/b-c", "/dev/sda", "/", "/x y/ü"];
const WORDS: &[&str] = &["core", "a, b", "ALL=(ALL) ALL", "x: y", "$6$a/b."];
const LABELS: &[&str] = &["data", "logs"];
const UNITS: &[&str] = &["[Unit]\nA=b\n[Install]\nWantedBy=x\n", "[A]\nb=c \\\n d\n", "", "# c"];
const URLS: &[&str] = &[
    "https://example.com/a",
    "data:,a%20b",
    "s3://a/b?versionId=1",
    "tftp://a/b",
    "",
];

fn spec() -> impl Strategy<Value = Value> {
    let user = object(vec![
        ("name", texts(&["core", "capi"])),
        ("gecos", texts(WORDS)),
        ("groups", texts(WORDS)),
        ("passwd", texts(WORDS)),
        ("sudo", texts(WORDS)),
        ("lockPassword", flags()),
        ("sshAuthorizedKeys", lists(texts(WORDS))),
    ]);
    let file = object(vec![
        ("path", texts(PATHS)),
        ("owner", texts(&["root:root", "core", ":a", ""])),
        ("permissions", texts(&["0644", "600", "07777"])),
        ("append", flags()),
        ("content", texts(&["a\nb\n", "\n\n", "#!/bin/sh\r\n", "Zm9v"])),
    ]);
    let partition = object(vec![
        ("device", texts(PATHS)),
        ("layout", flags()),
        ("overwrite", flags()),
    ]);
    let filesystem = object(vec![
        ("device", texts(PATHS)),
        ("filesystem", texts(&["ext4", "xfs", "vfat"])),
        ("label", texts(LABELS)),
        ("overwrite", flags()),
        ("extraOpts", lists(texts(WORDS))),
    ]);
    let mount = (
        texts(&["/dev/sdb", "LABEL=a", "data"]),
        texts(PATHS),
        lists(texts(WORDS)),
    );
    let mount = mount.prop_map(|(label, path, mut options)| {
        if let Value::Array(parts) = &mut options {
            parts.splice(0..0, [label, path]);
        }
        options
    });
    let additional = prop_oneof![
        4 => container_linux().prop_map(|config| config.to_string()),
        1 => "\\PC{0,60}",
    ];
    let ignition = (additional, any::<bool>())
        .prop_map(|(config, strict)| json!({"containerLinuxConfig": {"additionalConfig": config, "strict": strict}}));
    object(vec![
        ("users", lists(user)),
        ("files", lists(file)),
        ("preKubeadmCommands", lists(texts(&["echo a", "cat <<E\n b\nE\n"]))),
        ("postKubeadmCommands", lists(texts(&["echo z"]))),
        (
            "ntp",
            object(vec![("enabled", flags()), ("servers", lists(texts(&["pool.ntp.org"])))]),
        ),
        (
            "diskSetup",
            object(vec![
                ("partitions", lists(partition)),
                ("filesystems", lists(filesystem)),
            ]),
        ),
        ("mounts", lists(mount.boxed())),
        ("ignition", ignition.boxed()),
    ])
}

fn systemd_unit() -> BoxedStrategy<Value> {
    let dropin = object(vec![("name", texts(&["10-a.conf"])), ("contents", texts(UNITS))]);
    object(vec![
        ("name", texts(&["a.service", "b.mount"])),
        ("enabled", flags()),
        ("mask", flags()),
        ("contents", texts(UNITS)),
        ("dropins", lists(dropin)),
    ])
}

fn container_linux() -> BoxedStrategy<Value> {
    let owner = || object(vec![("id", numbers(100))]);
    let node = |more: Vec<(&'static str, BoxedStrategy<Value>)>| {
        let common = vec![
            ("path", texts(PATHS)),
            ("mode", numbers(0o7777)),
            ("user", owner()),
            ("overwrite", flags()),
            ("filesystem", texts(&["root", "data"])),
        ];
        object(common.into_iter().chain(more).collect())
    };
    let remote = object(vec![("url", texts(URLS)), ("compression", texts(&["gzip", ""]))]);
    let contents = prop_oneof![object(vec![("inline", texts(WORDS))]), object(vec![("remote", remote)])];
    let partition = object(vec![
        ("number", numbers(200)),
        ("size", texts(&["1GiB", "512MB", "0", ""])),
        ("label", texts(&["ROOT", "a:b"])),
        (
            "type_guid",
            texts(&["swap_partition", "01234567-89AB-CDEF-EDCB-A98765432101"]),
        ),
    ]);
    let mount = object(vec![
        ("device", texts(PATHS)),
        ("format", texts(&["ext4", "btrfs"])),
        ("label", texts(LABELS)),
        ("wipe_filesystem", flags()),
    ]);
    let storage = object(vec![
        (
            "disks",
            lists(object(vec![("device", texts(PATHS)), ("partitions", lists(partition))])),
        ),
        (
            "filesystems",
            lists(object(vec![("name", texts(LABELS)), ("mount", mount)])),
        ),
        (
            "files",
            lists(node(vec![("contents", contents.boxed()), ("append", flags())])),
        ),
        ("directories", lists(node(vec![]))),
        (
            "links",
            lists(object(vec![
                ("path", texts(PATHS)),
                ("target", texts(PATHS)),
                ("hard", flags()),
            ])),
        ),
        (
            "raid",
            lists(object(vec![
                ("name", texts(WORDS)),
                ("level", texts(&["raid1", "0"])),
                ("devices", lists(texts(PATHS))),
            ])),
        ),
    ]);
    let user = object(vec![
        ("name", texts(WORDS)),
        ("uid", numbers(100)),
        ("groups", lists(texts(WORDS))),
    ]);
    object(vec![
        ("storage", storage),
        ("systemd", object(vec![("units", lists(systemd_unit()))])),
        ("passwd", object(vec![("users", lists(user))])),
        (
            "ignition",
            object(vec![("timeouts", object(vec![("http_total", numbers(100))]))]),
        ),
        (
            "etcd",
            object(vec![
                ("version", texts(&["3.5.0", "2.3.7"])),
                ("name", texts(WORDS)),
                ("snapshot_count", numbers(9)),
            ]),
        ),
        ("docker", object(vec![("flags", lists(texts(WORDS)))])),
        (
            "update",
            object(vec![("group", texts(&["stable"])), ("server", texts(URLS))]),
        ),
        (
            "locksmith",
            object(vec![
                ("reboot_strategy", texts(&["off"])),
                ("window_start", texts(&["23:00"])),
            ]),
        ),
    ])
}

#[test]
fn what_is_rendered_is_valid() {
    let validator = Validator::find();
    let mut runner = proptest::test_runner::TestRunner::new(ProptestConfig {
        cases: 600,
        failure_persistence: None,
        ..ProptestConfig::default()
    });
    let good = std::cell::Cell::new(0);
    let result = runner.run(&spec(), |value| {
        let mut spec: KubeadmConfigSpec = serde_json::from_value(value.clone()).unwrap();
        spec.format = Some("ignition".to_owned());
        let Ok(data) = rendered(&spec) else {
            return Ok(());
        };
        good.set(good.get() + 1);
        let document = document(&data);
        let script = content(&document, "/etc/kubeadm.sh");
        for command in spec.pre_kubeadm_commands.iter().chain(&spec.post_kubeadm_commands) {
            let command = command.replace("\r\n", "\n");
            prop_assert!(
                script.contains(command.trim_end_matches('\n')),
                "{script:?} lacks {command:?}"
            );
        }
        if let Some(validator) = &validator {
            prop_assert_eq!(validator.check(&data.value), Ok(()), "{}", data.value);
        }
        Ok(())
    });
    assert!(result.is_ok(), "{result:?}");
    assert!(good.get() > 60, "only {} specifications could be rendered", good.get());
}
