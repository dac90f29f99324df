//! Bootstrap data of Machines whose KubeadmConfigs use every directive, from the fields of a control plane to the stored Secrets.

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use k8s_openapi::api::core::v1::Secret;
use kube::api::PostParams;
use serde_json::{Value, json};
use windlass_api::core::Machine;
use windlass_testkit::{ByHand, Env};

/// What Machines of all kinds have.
const DIRECTIVES: &str = r#"
bootCommands: [echo boot]
preKubeadmCommands: ['hostname "{{ ds.meta_data.hostname }}"', echo before]
postKubeadmCommands: ["echo after # it"]
verbosity: 4
ntp: {enabled: true, servers: [ntp.example.com]}
mounts: [[LABEL=etcd_disk, /var/lib/etcddisk]]
diskSetup:
  partitions: [{device: /dev/vdb, layout: true, overwrite: false, tableType: gpt}]
  filesystems: [{device: /dev/vdb, filesystem: ext4, label: etcd_disk, extraOpts: [-F]}]
users:
- {name: admin, groups: wheel, sudo: "ALL=(ALL) ALL", sshAuthorizedKeys: [ssh-ed25519 AAAA], passwdFrom: {secret: {name: given, key: hash}}}
files:
- {path: /etc/plain, owner: "root:root", permissions: "0600", content: "a: b\n"}
- {path: /etc/binary, encoding: base64, content: AAEC/w==}
- {path: /etc/given, contentFrom: {secret: {name: given, key: text}}}
- {path: /etc/version, contentFormat: Template, content: "v={{ .controlPlane.version }}"}
- {path: /etc/given-version, contentFormat: Template, contentFrom: {secret: {name: given, key: template}}}
"#;

/// How workers find the cluster: by a kubeconfig whose user asks a program for credentials.
const DISCOVERY: &str = r"
file:
  kubeConfigPath: /etc/kubernetes/discovery.yaml
  kubeConfig: {user: {exec: {command: get-token, args: [--now], env: [{name: A, value: b}]}}}
";

/// The file of that kubeconfig.
const KUBECONFIG: &str = "/etc/kubernetes/discovery.yaml";

fn yaml(text: &str) -> Value {
    serde_saphyr::from_str(text).unwrap()
}

/// The cluster, in which all Machines have all directives.
async fn apply(env: &Env, cluster: &ByHand) {
    let given = json!({
        "metadata": { "name": "given" },
        "stringData": { "hash": "$6$hash", "text": "from a Secret", "template": "of {{ .controlPlane.version }}" },
    });
    let given: Secret = serde_json::from_value(given).unwrap();
    let secrets = env.api::<Secret>();
    secrets.create(&PostParams::default(), &given).await.unwrap();
    for mut object in cluster.objects() {
        let spec = match object["kind"].as_str() {
            Some("KubeadmControlPlane") => &mut object["spec"]["kubeadmConfigSpec"],
            Some("KubeadmConfigTemplate") => {
                let spec = &mut object["spec"]["template"]["spec"];
                spec["joinConfiguration"]["discovery"] = yaml(DISCOVERY);
                spec
            }
            _ => {
                env.apply(&object).await;
                continue;
            }
        };
        let directives = yaml(DIRECTIVES);
        spec.as_object_mut()
            .unwrap()
            .extend(directives.as_object().unwrap().clone());
        env.apply(&object).await;
    }
}

/// A file of a cloud-config; null if it has none.
fn file<'a>(data: &'a Value, path: &str) -> &'a Value {
    let mut files = data["write_files"].as_array().unwrap().iter();
    files.find(|file| file["path"] == path).unwrap_or(&Value::Null)
}

/// The content of a file, without the lines at its end that cloud-config adds.
fn content<'a>(data: &'a Value, path: &str) -> &'a str {
    file(data, path)["content"].as_str().unwrap_or_default().trim_end()
}

fn check_directives(data: &Value, command: &str) {
    assert_eq!(content(data, "/etc/plain"), "a: b");
    let plain = file(data, "/etc/plain");
    assert_eq!([&plain["owner"], &plain["permissions"]], ["root:root", "0600"]);
    assert_eq!(file(data, "/etc/binary")["encoding"], "base64");
    let bytes = BASE64_STANDARD.decode(content(data, "/etc/binary")).unwrap();
    assert_eq!(bytes, [0, 1, 2, 255]);
    assert_eq!(content(data, "/etc/given"), "from a Secret");
    assert_eq!(content(data, "/etc/version"), "v=v1.36.0");
    assert_eq!(content(data, "/etc/given-version"), "of v1.36.0");

    assert_eq!(data["bootcmd"], json!(["echo boot"]));
    let commands = data["runcmd"].as_array().unwrap();
    let [name, before, kubeadm, after] = commands.as_slice() else {
        panic!("{commands:?}");
    };
    assert_eq!(
        [name, before, after],
        [
            "hostname \"{{ ds.meta_data.hostname }}\"",
            "echo before",
            "echo after # it"
        ]
    );
    let kubeadm = kubeadm.as_str().unwrap();
    assert!(kubeadm.starts_with(command) && kubeadm.contains("--v 4 "), "{kubeadm}");

    assert_eq!(data["ntp"], json!({ "enabled": true, "servers": ["ntp.example.com"] }));
    assert_eq!(data["mounts"], json!([["LABEL=etcd_disk", "/var/lib/etcddisk"]]));
    assert_eq!(
        data["disk_setup"],
        json!({ "/dev/vdb": { "table_type": "gpt", "layout": true, "overwrite": false } })
    );
    let made = &data["fs_setup"][0];
    assert_eq!(
        [
            &made["label"],
            &made["filesystem"],
            &made["device"],
            &made["extra_opts"]
        ],
        [&json!("etcd_disk"), &json!("ext4"), &json!("/dev/vdb"), &json!(["-F"])]
    );
    let user = &data["users"][0];
    assert_eq!(
        [&user["name"], &user["passwd"], &user["groups"], &user["sudo"]],
        ["admin", "$6$hash", "wheel", "ALL=(ALL) ALL"]
    );
    assert_eq!(user["ssh_authorized_keys"], json!(["ssh-ed25519 AAAA"]));
}

#[tokio::test]
async fn every_directive_of_a_kubeadm_config_arrives_in_the_stored_data() {
    let env = Env::start().await;
    let cluster = ByHand::new("directives", 3, 1).managed().version("v1.36.0");
    apply(&env, &cluster).await;
    cluster.wait_running(&env).await;

    let secrets = env.api::<Secret>();
    let mut commands = Vec::new();
    for machine in env.list::<Machine>().await {
        let name = machine.spec.bootstrap.data_secret_name.clone().unwrap();
        let secret = secrets.get(&name).await.unwrap();
        assert_eq!(secret.type_.as_deref(), Some("cluster.x-k8s.io/secret"));
        let stored = secret.data.unwrap();
        assert_eq!(stored["format"].0, b"cloud-config");
        let text = String::from_utf8(stored["value"].0.clone()).unwrap();
        assert!(text.starts_with("## template: jinja\n#cloud-config\n"), "{text}");
        let data = yaml(&text);
        let is_init = text.contains("/run/kubeadm/kubeadm.yaml");
        let is_worker = !file(&data, KUBECONFIG).is_null();
        let command = if is_init { "kubeadm init" } else { "kubeadm join" };
        check_directives(&data, command);
        if is_worker {
            check_discovery(&env, &data).await;
        }
        commands.push((command, is_worker));
    }
    commands.sort_unstable();
    assert_eq!(
        commands,
        [
            ("kubeadm init", false),
            ("kubeadm join", false),
            ("kubeadm join", false),
            ("kubeadm join", true)
        ]
    );
    env.stop().await;
}

/// The kubeconfig has the address and the authority of the cluster, and kubeadm reads it instead of a token.
async fn check_discovery(env: &Env, data: &Value) {
    let join = content(data, "/run/kubeadm/kubeadm-join-config.yaml");
    let join = yaml(join.trim_start_matches("---\n"));
    assert_eq!(join["discovery"]["file"]["kubeConfigPath"], KUBECONFIG);
    assert!(join["discovery"].get("bootstrapToken").is_none(), "{join}");
    let kubeconfig = yaml(content(data, KUBECONFIG));
    let cluster = &kubeconfig["clusters"][0]["cluster"];
    let endpoint = env.dynamic("Cluster").get("directives").await.unwrap().data["spec"]["controlPlaneEndpoint"].clone();
    let server = format!("https://{}:{}", endpoint["host"].as_str().unwrap(), endpoint["port"]);
    assert_eq!(cluster["server"], server);
    let authority = env.api::<Secret>().get("directives-ca").await.unwrap().data.unwrap();
    let trusted = cluster["certificate-authority-data"].as_str().unwrap();
    assert_eq!(BASE64_STANDARD.decode(trusted).unwrap(), authority["tls.crt"].0);
    let user = &kubeconfig["users"][0]["user"]["exec"];
    assert_eq!([&user["command"], &user["args"][0]], ["get-token", "--now"]);
    assert_eq!(user["env"], json!([{ "name": "A", "value": "b" }]));
}
