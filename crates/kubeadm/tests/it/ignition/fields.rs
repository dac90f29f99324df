//! What each field of a specification is on the machine.

use serde_json::{Value, json};

use super::{
    ADDITIONAL, EVERYTHING, additional, content, document, file, rendered, spec, unit, with_additional, worker,
};

fn names(list: &Value, key: &str) -> Vec<String> {
    let items = list.as_array().unwrap().iter();
    items.map(|item| item[key].as_str().unwrap().to_owned()).collect()
}

#[test]
fn the_script_runs_kubeadm_once_between_the_commands() {
    let document = worker(EVERYTHING);
    assert_eq!(
        content(&document, "/etc/kubeadm.sh"),
        "#!/bin/bash\nset -e\n\nmodprobe overlay\ncat <<EOF > /etc/motd\nhello\n  there\nEOF\n\n\n\
         kubeadm join --config /etc/kubeadm.yml --v 5\n\
         mkdir -p /run/cluster-api && echo success > /run/cluster-api/bootstrap-success.complete\n\
         mv /etc/kubeadm.yml /tmp/\n\ntouch /done\n"
    );
    assert_eq!(file(&document, "/etc/kubeadm.sh")["mode"], 0o700);
    assert_eq!(file(&document, "/etc/kubeadm.yml")["mode"], 0o600);
    let kubeadm: Value = serde_saphyr::from_str(&content(&document, "/etc/kubeadm.yml")).unwrap();
    assert_eq!(kubeadm["kind"], "JoinConfiguration");
    assert_eq!(
        kubeadm["discovery"]["bootstrapToken"]["token"],
        "abcdef.0123456789abcdef"
    );
    let service = unit(&document, "kubeadm.service");
    assert_eq!(service["enabled"], true);
    for line in [
        "ConditionPathExists=/etc/kubeadm.yml",
        "After=network.target",
        "Type=oneshot",
        "ExecStart=/etc/kubeadm.sh",
        "WantedBy=multi-user.target",
    ] {
        assert!(
            service["contents"].as_str().unwrap().lines().any(|found| found == line),
            "{line}"
        );
    }
    // Without commands, as v1.14 leaves it.
    assert_eq!(
        content(&worker("verbosity: 0"), "/etc/kubeadm.sh"),
        "#!/bin/bash\nset -e\n\n\nkubeadm join --config /etc/kubeadm.yml --v 0\n\
         mkdir -p /run/cluster-api && echo success > /run/cluster-api/bootstrap-success.complete\nmv /etc/kubeadm.yml /tmp/\n"
    );
}

#[test]
fn users_get_accounts_rules_and_logins() {
    let document = worker(EVERYTHING);
    assert_eq!(
        document["passwd"]["users"],
        json!([
            {
                "name": "capi", "passwordHash": "$6$secret", "gecos": "A User", "groups": ["docker", "sudo"],
                "homeDir": "/home/capi", "shell": "/bin/bash", "primaryGroup": "users",
                "sshAuthorizedKeys": ["ssh-ed25519 AAAA capi@example.com"],
            },
            {"name": "other"},
        ])
    );
    assert_eq!(
        content(&document, "/etc/sudoers.d/capi"),
        "capi ALL=(ALL) NOPASSWD:ALL\n"
    );
    assert_eq!(file(&document, "/etc/sudoers.d/capi")["mode"], 0o600);
    let sshd = content(&document, "/etc/ssh/sshd_config");
    assert!(
        sshd.ends_with("\nMatch User capi\n  PasswordAuthentication yes\n"),
        "{sshd}"
    );
    let locked = worker("users: [{name: a, lockPassword: true}, {name: b}]");
    assert_eq!(
        names(&locked["storage"]["files"], "path"),
        ["/etc/kubeadm.sh", "/etc/kubeadm.yml"]
    );
}

#[test]
fn files_come_in_the_order_of_v1_14() {
    let document = worker(EVERYTHING);
    assert_eq!(
        names(&document["storage"]["files"], "path"),
        [
            "/etc/sudoers.d/capi",
            "/etc/ssh/sshd_config",
            "/etc/plain",
            "/etc/encoded",
            "/etc/appended",
            "/etc/version",
            "/etc/kubeadm.sh",
            "/etc/kubeadm.yml",
            "/etc/ntp.conf",
        ]
    );
    assert_eq!(
        names(&document["systemd"]["units"], "name"),
        [
            "kubeadm.service",
            "ntpd.service",
            "var-lib-etcd.mount",
            "var-lib-my\\x2ddata.mount",
            "mnt.mount"
        ]
    );
}

#[test]
fn files_have_owner_mode_and_content() {
    let document = worker(EVERYTHING);
    let plain = file(&document, "/etc/plain");
    assert_eq!(
        (&plain["user"], &plain["group"], &plain["mode"], &plain["filesystem"]),
        (
            &json!({"name": "core"}),
            &json!({"name": "core"}),
            &json!(0o644),
            &json!("root")
        )
    );
    assert_eq!(content(&document, "/etc/plain"), "a: b\n  {{ kept }}\n");
    let encoded = file(&document, "/etc/encoded");
    assert_eq!(encoded["contents"]["source"], "data:,%00%FF%01");
    assert_eq!(
        (&encoded["user"], encoded.get("group")),
        (&json!({"name": "root"}), None)
    );
    let appended = file(&document, "/etc/appended");
    assert_eq!((&appended["append"], &appended["mode"]), (&json!(true), &json!(0o640)));
    assert_eq!(content(&document, "/etc/appended"), "from a Secret\n");
    assert_eq!(content(&document, "/etc/version"), "v1.35.1\n");
    assert_eq!(file(&document, "/etc/version")["mode"], 0o644);
    // Octal, however it is written.
    for permissions in ["640", "0640", "0o640"] {
        let yaml = format!("files: [{{path: /a, permissions: '{permissions}', content: ''}}]");
        let document = worker(&yaml);
        assert_eq!(file(&document, "/a")["mode"], 0o640);
        assert_eq!(content(&document, "/a"), "");
    }
}

#[test]
fn disks_are_made_and_mounted() {
    let document = worker(EVERYTHING);
    assert_eq!(
        document["storage"]["disks"],
        json!([{"device": "/dev/sdb", "partitions": [{}], "wipeTable": true}, {"device": "/dev/sdc"}])
    );
    assert_eq!(
        document["storage"]["filesystems"],
        json!([
            {"name": "etcd", "mount": {
                "device": "/dev/sdb1", "format": "ext4", "label": "etcd", "wipeFilesystem": true,
                "options": ["-E", "lazy_itable_init=1"],
            }},
            {"name": "data", "mount": {"device": "/dev/sdc", "format": "xfs", "label": "data"}},
        ])
    );
    let mount = unit(&document, "var-lib-my\\x2ddata.mount");
    assert_eq!(mount["enabled"], true);
    assert_eq!(
        mount["contents"],
        "[Unit]\nDescription=Mount data\n\n[Mount]\nWhat=/dev/sdc\nWhere=/var/lib/my-data\nOptions=defaults,noatime\n\n\
         [Install]\nWantedBy=multi-user.target\n"
    );
    assert!(
        unit(&document, "mnt.mount")["contents"]
            .as_str()
            .unwrap()
            .contains("What=/dev/sdd\n")
    );
    let whole = worker("diskSetup: {partitions: [{device: /dev/sdb, diskLayout: [{percentage: 100}]}]}");
    assert_eq!(whole["storage"]["disks"][0]["partitions"], json!([{}]));
}

#[test]
fn ntp_runs_only_where_it_is_enabled() {
    let document = worker(EVERYTHING);
    assert_eq!(unit(&document, "ntpd.service")["enabled"], true);
    let conf = content(&document, "/etc/ntp.conf");
    assert!(conf.starts_with("server pool.ntp.org\nserver 192.0.2.1\n"), "{conf}");
    assert!(
        conf.contains("\nrestrict default nomodify nopeer noquery notrap limited kod\n"),
        "{conf}"
    );
    assert_eq!(file(&document, "/etc/ntp.conf")["mode"], 0o644);
    let off = worker("ntp: {enabled: false, servers: [a]}");
    assert_eq!(names(&off["systemd"]["units"], "name"), ["kubeadm.service"]);
    let bare = worker("ntp: {enabled: true}");
    assert_eq!(
        names(&bare["systemd"]["units"], "name"),
        ["kubeadm.service", "ntpd.service"]
    );
    assert_eq!(
        names(&bare["storage"]["files"], "path"),
        ["/etc/kubeadm.sh", "/etc/kubeadm.yml"]
    );
}

#[test]
fn a_container_linux_config_is_appended() {
    let mut both = spec(EVERYTHING);
    both.ignition = with_additional(&additional(), true).ignition;
    let (own, all) = (
        worker(EVERYTHING),
        document(&rendered(&both).unwrap_or_else(|error| panic!("{error}"))),
    );
    for (section, key) in [
        ("passwd", "users"),
        ("storage", "files"),
        ("storage", "disks"),
        ("systemd", "units"),
    ] {
        let (own, all) = (
            own[section][key].as_array().unwrap(),
            all[section][key].as_array().unwrap(),
        );
        assert_eq!(all[..own.len()], own[..], "{section}.{key}");
        assert!(all.len() > own.len(), "{section}.{key}");
    }
    assert_eq!(
        all["ignition"]["config"]["append"][0]["source"],
        "https://example.com/more.ign"
    );
    assert_eq!(all["ignition"]["timeouts"], json!({"httpTotal": 60}));
    let units: Vec<String> = names(&all["systemd"]["units"], "name").split_off(5);
    assert_eq!(
        units,
        [
            "docker.service",
            "etcd-member.service",
            "flanneld.service",
            "kubeadm.service"
        ]
    );
}

#[test]
fn services_of_a_container_linux_config_are_dropins() {
    let document = document(&rendered(&with_additional(&additional(), true)).unwrap_or_else(|error| panic!("{error}")));
    let dropin = |name: &str| {
        unit(&document, name)["dropins"][0]["contents"]
            .as_str()
            .unwrap()
            .to_owned()
    };
    assert_eq!(
        dropin("docker.service"),
        "[Service]\nEnvironment=\"DOCKER_OPTS=--iptables=false --bip=10.0.0.1/24\""
    );
    assert_eq!(
        dropin("etcd-member.service"),
        "[Service]\nEnvironment=\"ETCD_IMAGE_TAG=v3.5.1\"\nExecStart=\nExecStart=/usr/lib/coreos/etcd-wrapper $ETCD_OPTS \
         \\\n  --data-dir=\"/var/lib/etcd2\" \\\n  --enable-v2=false \\\n  --name=\"node1\" \\\n  --snapshot-count=16"
    );
    let flannel = dropin("flanneld.service");
    assert!(flannel.ends_with(
        "\nExecStartPre=/usr/bin/etcdctl --endpoints=\"http://127.0.0.1:2379\" set /coreos.com/network/config \
         \"{\\\"Network\\\": \\\"10.2.0.0/16\\\"}\""
    ));
    assert_eq!(
        content(&document, "/etc/coreos/update.conf"),
        "GROUP=stable\nSERVER=https://update.example.com\nREBOOT_STRATEGY=\"etcd-lock\"\n\
         LOCKSMITHD_REBOOT_WINDOW_START=\"Thu 23:00\"\nLOCKSMITHD_REBOOT_WINDOW_LENGTH=\"1h30m\""
    );
    // A text stays as it is written, also where it looks like a truth value.
    assert!(ADDITIONAL.contains("inline: yes"));
    assert_eq!(content(&document, "/etc/inline"), "yes");
    let partition = &document["storage"]["disks"][0]["partitions"][0];
    assert_eq!(
        (&partition["sizeMiB"], &partition["startMiB"]),
        (&json!(1536), &json!(1))
    );
    assert_eq!(partition["typeGuid"], "a19d880f-05fc-4d3b-a006-743f0f84911e");
}
