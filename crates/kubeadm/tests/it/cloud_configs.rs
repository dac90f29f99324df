//! Random specifications as cloud-config. Some of them are left for the real cloud-init (`.ci/cloud-init`).

use std::path::Path;

use proptest::prelude::*;
use proptest::strategy::ValueTree as _;
use proptest::test_runner::{RngAlgorithm, RngSeed, TestRunner};
use serde_json::{Value, json};
use windlass_api_kubeadm::bootstrap::KubeadmConfigSpec;

use crate::ignition::random::{flags, lists, object, text, texts};
use crate::machine::Machine;
use crate::samples::join;

/// Specifications that are tried, and how many of them the real cloud-init reads: it takes a third of a second for each.
const TRIED: usize = 300;
const LEFT: usize = 20;

const PATHS: &[&str] = &["/etc/a", "/var/lib/b-c", "/x y/ü"];
const WORDS: &[&str] = &[
    "core",
    "a, b",
    "ALL=(ALL) ALL",
    "x: y",
    "$6$a/b.",
    "#",
    "- a",
    "'",
    "no",
    "0x1f",
    "é\u{1f600}",
];
const COMMANDS: &[&str] = &[
    "echo a",
    "cat <<E\n b\nE\n",
    "a: {b}",
    "[ -f /a ] || exit 1",
    "% &x *y !z",
    "{{ ds.a }}",
];
const DEVICES: &[&str] = &["/dev/sda", "/dev/disk/azure/scsi1/lun0", "ephemeral0.1"];

/// A list of different texts of a few.
fn some(of: &'static [&'static str]) -> BoxedStrategy<Value> {
    let some = prop::sample::subsequence(of, 1..=of.len());
    some.prop_map(|some| json!(some)).boxed()
}

fn one(of: &'static [&'static str]) -> BoxedStrategy<Value> {
    prop::sample::select(of).prop_map(Value::from).boxed()
}

/// An object that has these fields always, and others at times.
fn having(
    always: Vec<(&'static str, BoxedStrategy<Value>)>,
    others: Vec<(&'static str, BoxedStrategy<Value>)>,
) -> BoxedStrategy<Value> {
    let mut all = object(others);
    for (name, value) in always {
        let both = (all, value);
        all = both
            .prop_map(move |(mut object, value)| {
                object[name] = value;
                object
            })
            .boxed();
    }
    all
}

/// A specification that cloud-init knows: with any text where it takes any. Left out are `inactive`, which it takes for a number of days, and
/// numbers of partitions, which its schema does not know and its code does.
fn spec() -> BoxedStrategy<Value> {
    let user = having(
        vec![("name", one(&["core", "capi", "a.b-c"]))],
        vec![
            ("gecos", texts(WORDS)),
            ("groups", one(&["a", "a, b"])),
            ("homeDir", one(PATHS)),
            ("shell", one(&["/bin/bash"])),
            ("passwd", texts(WORDS)),
            ("primaryGroup", one(&["a"])),
            ("lockPassword", flags()),
            ("sudo", texts(WORDS)),
            ("sshAuthorizedKeys", some(WORDS)),
        ],
    );
    let content = text(&[
        "a\nb\n",
        "\n\n",
        "#!/bin/sh\r\n",
        "Zm9v",
        "  a\n b",
        "\ttab",
        "a: b\n- c\n",
        "",
    ]);
    let file = having(
        vec![("path", one(PATHS)), ("content", content.prop_map(Value::from).boxed())],
        vec![
            ("owner", one(&["root:root", "core:core"])),
            ("permissions", one(&["0644", "600", "0777"])),
            ("append", flags()),
        ],
    );
    let layout = having(
        vec![("device", one(DEVICES)), ("layout", flags())],
        vec![("overwrite", flags()), ("tableType", one(&["mbr", "gpt"]))],
    );
    let filesystem = having(
        vec![("device", one(DEVICES)), ("filesystem", one(&["ext4", "xfs"]))],
        vec![
            ("label", texts(WORDS)),
            ("overwrite", flags()),
            ("partition", one(&["auto", "any", "none"])),
            ("replaceFS", one(&["ext4"])),
            ("extraOpts", lists(texts(WORDS))),
        ],
    );
    let mount =
        prop::collection::vec(texts(&["LABEL=a", "/mnt", "auto", "defaults,nofail"]), 2..=4).prop_map(Value::from);
    let commands = || lists(texts(COMMANDS));
    object(vec![
        ("users", lists(user)),
        ("files", lists(file)),
        ("bootCommands", commands()),
        ("preKubeadmCommands", commands()),
        ("postKubeadmCommands", commands()),
        (
            "ntp",
            object(vec![
                ("enabled", flags()),
                ("servers", some(&["pool.ntp.org", "a.example.com"])),
            ]),
        ),
        (
            "diskSetup",
            object(vec![
                ("partitions", layout.prop_map(|one| json!([one])).boxed()),
                ("filesystems", lists(filesystem)),
            ]),
        ),
        ("mounts", lists(mount.boxed())),
    ])
}

#[test]
fn random_specifications_start_a_machine() {
    let seed = std::env::var("WINDLASS_SEED").ok().and_then(|seed| seed.parse().ok());
    let mut runner = TestRunner::new(ProptestConfig {
        rng_algorithm: RngAlgorithm::ChaCha,
        rng_seed: RngSeed::Fixed(seed.unwrap_or(1)),
        ..ProptestConfig::default()
    });
    let left = Path::new(env!("CARGO_TARGET_TMPDIR")).join("cloud-configs");
    let _ = std::fs::remove_dir_all(&left);
    std::fs::create_dir_all(&left).unwrap();
    for number in 0..TRIED {
        let value = spec().new_tree(&mut runner).unwrap().current();
        let spec: KubeadmConfigSpec = serde_json::from_value(value).unwrap();
        let data = join(&spec, "v1.36.0", &[]).value;
        if number < LEFT {
            std::fs::write(left.join(format!("{number}.yaml")), &data).unwrap();
        }
        let root = tempfile::tempdir().unwrap();
        let machine = Machine::start(&data, root.path());
        let own = [
            &spec.boot_commands,
            &spec.pre_kubeadm_commands,
            &spec.post_kubeadm_commands,
        ];
        let own: Vec<&String> = own.into_iter().flatten().collect();
        let is_own = |command: &&String| own.contains(command);
        assert_eq!(
            machine.commands.iter().filter(is_own).collect::<Vec<_>>(),
            own,
            "{data}"
        );
        assert_eq!(machine.users.len(), spec.users.len(), "{data}");
    }
}
