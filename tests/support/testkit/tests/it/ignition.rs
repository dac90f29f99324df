//! Clusters whose machines have Ignition instead of cloud-init.

use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

use k8s_openapi::api::core::v1::Secret;
use kube::api::PostParams;
use serde_json::{Value, json};
use windlass_api::core::Machine;
use windlass_api_kubeadm::bootstrap::KubeadmConfig;
use windlass_envtest::Tools;
use windlass_meta::ObjectKey;
use windlass_testkit::{ByHand, Env, NAMESPACE, leaks};

/// What is in a Secret of the user, for files and users of the machines.
const BANNER: &str = "marked-welcome-in-a-secret";
const HASH: &str = "$6$marked$hash-of-a-password";

/// Ignition's own validator on a configuration.
fn validate(program: &Path, configuration: &[u8]) {
    let mut command = Command::new(program);
    command.arg("-").stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.spawn().unwrap();
    child.stdin.take().unwrap().write_all(configuration).unwrap();
    let out = child.wait_with_output().unwrap();
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stdout));
}

#[tokio::test]
async fn machines_of_a_cluster_start_with_ignition() {
    let env = Env::start().await;
    let cluster = ByHand::new("flatcar", 3, 1).managed();
    let additional = "systemd: {units: [{name: update-engine.service, mask: true}]}";
    leaks::mark(BANNER);
    leaks::mark(HASH);
    let contents = json!({"text": BANNER, "hash": HASH});
    let secret: Secret =
        serde_json::from_value(json!({"metadata": {"name": "banner"}, "stringData": contents})).unwrap();
    env.api::<Secret>()
        .create(&PostParams::default(), &secret)
        .await
        .unwrap();
    for mut object in cluster.objects() {
        let spec = match object["kind"].as_str() {
            Some("KubeadmControlPlane") => &mut object["spec"]["kubeadmConfigSpec"],
            Some("KubeadmConfigTemplate") => &mut object["spec"]["template"]["spec"],
            _ => {
                env.apply(&object).await;
                continue;
            }
        };
        spec["format"] = "ignition".into();
        spec["ignition"] = json!({"containerLinuxConfig": {"additionalConfig": additional, "strict": true}});
        spec["preKubeadmCommands"] = json!(["modprobe overlay"]);
        spec["files"] = json!([
            {"path": "/etc/banner", "permissions": "0644", "contentFrom": {"secret": {"name": "banner", "key": "text"}}},
        ]);
        spec["users"] = json!([{"name": "admin", "passwdFrom": {"secret": {"name": "banner", "key": "hash"}}}]);
        env.apply(&object).await;
    }
    cluster.shape().wait_running(&env).await;

    let validator = Tools::required("ignition-validate");
    let mut inits = 0;
    for machine in env.list::<Machine>().await {
        let name = machine.metadata.name.clone().unwrap();
        let labels = machine.metadata.labels.unwrap_or_default();
        let is_control_plane = labels.contains_key("cluster.x-k8s.io/control-plane");
        let key = ObjectKey::new(NAMESPACE, &name);
        let data = env.wait_for::<Secret>(&key, "there", |_| true).await.data.unwrap();
        assert_eq!(data["format"].0, b"ignition");
        if let Some(validator) = &validator {
            validate(validator, &data["value"].0);
        }
        let document: Value = serde_json::from_slice(&data["value"].0).unwrap();
        assert_eq!(document["ignition"]["version"], "2.3.0");
        let units = document["systemd"]["units"].as_array().unwrap();
        let units: Vec<&str> = units.iter().filter_map(|unit| unit["name"].as_str()).collect();
        assert_eq!(units, ["kubeadm.service", "update-engine.service"]);
        let files = document["storage"]["files"].as_array().unwrap();
        let source = |path: &str| {
            let file = files.iter().find(|file| file["path"] == path);
            file.map(|file| file["contents"]["source"].as_str().unwrap().to_owned())
        };
        assert_eq!(source("/etc/banner"), Some(format!("data:,{BANNER}%0A")));
        assert_eq!(document["passwd"]["users"][0]["passwordHash"], HASH);
        assert_eq!(
            source("/etc/kubernetes/pki/ca.key").is_some(),
            is_control_plane,
            "{name}"
        );
        let script = source("/etc/kubeadm.sh").unwrap();
        let is_init = script.contains("kubeadm%20init%20--config%20%2Fetc%2Fkubeadm.yml");
        assert!(
            is_init || script.contains("kubeadm%20join%20--config%20%2Fetc%2Fkubeadm.yml"),
            "{script}"
        );
        let configuration = source("/etc/kubeadm.yml").unwrap();
        let kind = if is_init {
            "InitConfiguration"
        } else {
            "JoinConfiguration"
        };
        assert!(configuration.contains(kind), "{configuration}");
        inits += usize::from(is_init);
        let config = env.wait_for::<KubeadmConfig>(&key, "there", |_| true).await;
        let join = config.spec.and_then(|spec| spec.join_configuration);
        let token = join.and_then(|join| join.discovery?.bootstrap_token?.token);
        assert_eq!(token.is_some(), !is_init, "{name}");
        if let Some(token) = token {
            assert!(leaks::would_find(&format!("a line with {token} in it")), "{name}");
        }
    }
    assert_eq!(inits, 1);
    env.stop().await;
}
