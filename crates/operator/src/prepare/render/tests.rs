use std::sync::LazyLock;

use windlass_api_operator::{ProviderObject, management, operator};
use windlass_fake_providers::LookAlike;
use windlass_pki::{KeyAlgorithm, KeyPool};
use windlass_provider_repository::{Client, Files};

use super::*;
use crate::kept::walk;
use crate::provider::plan::tests::{facts, now};

/// A client reads the authorities of the machine, which takes its time.
static CLIENT: LazyLock<Client> = LazyLock::new(Client::default);

/// What becomes of a look-alike without webhooks.
fn rendered<P: ProviderObject>(
    provider: &LookAlike,
    spec: &Value,
    secret: &[(&str, &str)],
    environment: &[(&str, &str)],
) -> Result<Vec<Value>, Blocked> {
    rendered_from::<P>(provider, provider.components(), spec, secret, environment)
}

/// The same with other components.
fn rendered_from<P: ProviderObject>(
    provider: &LookAlike,
    components: String,
    spec: &Value,
    secret: &[(&str, &str)],
    environment: &[(&str, &str)],
) -> Result<Vec<Value>, Blocked> {
    let map = |all: &[(&str, &str)]| -> BTreeMap<String, String> {
        all.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect()
    };
    let operator = Operator::new(CLIENT.clone(), KeyPool::new(1, KeyAlgorithm::EcdsaP256, 1));
    let operator = operator.environment(map(environment));
    let facts = facts::<P>(provider.name(), spec);
    let fetched = Fetched {
        version: provider.release().to_owned(),
        contract: "v1beta2".to_owned(),
        files: Files {
            components,
            metadata: provider.metadata(),
            from: "the shelf".to_owned(),
        },
        variables: map(secret),
        recipe: Err(Blocked::new(Stage::Install, "Unused", "the recipe is given beside")),
    };
    let sealed = render(&Input {
        operator: &operator,
        facts: &facts,
        declared: facts.declared.as_ref().unwrap(),
        desired: &DesiredRelease {
            version: None,
            occasion: Occasion::Install,
            paused: false,
            unless: None,
        },
        fetched: &fetched,
        recipe: &Recipe {
            additional: None,
            content: String::new(),
        },
        cert_manager: false,
        live: BTreeMap::new(),
        now: now(),
    })?;
    Ok(walk(&sealed.packed).map(Result::unwrap).collect())
}

fn manager(objects: &[Value]) -> &Value {
    let mut all = objects.iter().filter(|object| object["kind"] == "Deployment");
    &all.next().unwrap()["spec"]["template"]["spec"]["containers"][0]
}

fn has(objects: &[Value], argument: &str) -> bool {
    manager(objects)["args"]
        .as_array()
        .unwrap()
        .iter()
        .any(|arg| arg == argument)
}

// OP-018, OP-069, OP-070
#[test]
fn a_variable_is_what_the_secret_says_else_the_environment_else_its_default() {
    fn check<P: ProviderObject>(provider: LookAlike) {
        let provider = provider.without_required_variables().without_webhooks();
        let level = |secret: &[(&str, &str)], environment: &[(&str, &str)], expect: &str| {
            let objects = rendered::<P>(&provider, &json!({}), secret, environment).unwrap();
            assert!(has(&objects, expect), "{expect} is not in {}", manager(&objects));
        };
        level(&[], &[], "--v=0");
        level(&[], &[("RIG_LOG_LEVEL", "3")], "--v=3");
        level(&[("RIG_LOG_LEVEL", "4")], &[("RIG_LOG_LEVEL", "3")], "--v=4");
        // What only looks like another key of the same name is another one.
        level(&[("rig_log_level", "4")], &[], "--v=0");
    }
    check::<operator::CoreProvider>(LookAlike::core());
    check::<operator::BootstrapProvider>(LookAlike::bootstrap("rig"));
    check::<operator::ControlPlaneProvider>(LookAlike::control_plane("rig"));
    check::<operator::InfrastructureProvider>(LookAlike::infrastructure("rig"));
}

// OP-067, OP-068
#[test]
fn an_image_that_is_declared_outweighs_one_from_variables() {
    let image = |variables: &[(&str, &str)], spec: &Value| {
        let provider = LookAlike::core().without_webhooks();
        let variable = "image: ${RIG_IMAGES:=registry.example.com/rigs}/";
        let components = provider
            .components()
            .replace("image: registry.example.com/rigs/", variable);
        let objects = rendered_from::<management::CoreProvider>(&provider, components, spec, variables, &[]).unwrap();
        manager(&objects)["image"].clone()
    };
    let declared = json!({"deployment": {"containers": [{"name": "manager", "image": {"repository": "own"}}]}});
    let variables = [("RIG_IMAGES", "mirror.example.com")];
    assert_eq!(
        image(&[], &json!({})),
        "registry.example.com/rigs/cluster-api-controller:v1.0.0"
    );
    assert_eq!(
        image(&variables, &json!({})),
        "mirror.example.com/cluster-api-controller:v1.0.0"
    );
    assert_eq!(image(&variables, &declared), "own/cluster-api-controller:v1.0.0");
}

// OP-137, OP-141, OP-224: see the tests of the status for the rest.
#[test]
fn what_cannot_be_rendered_has_a_reason_and_names_what_is_missing() {
    let check = |provider: &LookAlike, spec: Value, reason: &str, words: &[&str]| {
        let secret = [("SOME_TOKEN", "hush-hush")];
        let blocked = rendered::<operator::InfrastructureProvider>(provider, &spec, &secret, &[]).unwrap_err();
        assert_eq!(blocked.reason, reason, "{}", blocked.message);
        for word in words {
            assert!(blocked.message.contains(word), "no {word} in {}", blocked.message);
        }
        assert!(!blocked.message.contains("hush"), "{}", blocked.message);
    };
    let rig = LookAlike::infrastructure("rig").without_webhooks();
    check(
        &rig,
        json!({"configSecret": {"name": "variables"}}),
        "VariablesMissing",
        &["RIG_B64ENCODED_CREDENTIALS, RIG_REGION", "Secret n/variables"],
    );
    let rig = rig.without_required_variables();
    check(
        &rig,
        json!({"deployment": {"containers": [{"name": "foo"}]}}),
        "ComponentsCustomizationError",
        &["foo", "manager"],
    );
    check(
        &rig,
        json!({"patches": [{"patch": "[{\"op\": \"remove\", \"path\": \"/nowhere\"}]", "target": {"kind": "Deployment"}}]}),
        "ComponentsPatchError",
        &["spec.patches[0]"],
    );
}

#[test]
fn what_other_field_managers_own_is_left_out() {
    let check = |mut object: Value, expect: Value| {
        settle(&mut object, "infrastructure-x", "r", true);
        object.as_object_mut().unwrap().remove("metadata");
        assert_eq!(object, expect);
    };
    check(
        json!({"kind": "ClusterRole", "aggregationRule": {}, "rules": []}),
        json!({"kind": "ClusterRole", "aggregationRule": {}}),
    );
    check(
        json!({"kind": "Secret", "stringData": {"a": "b"}}),
        json!({"kind": "Secret", "data": {"a": "Yg=="}}),
    );
    check(
        json!({
            "kind": "X", "metadata": {"annotations": {"cert-manager.io/inject-ca-from": "a/b"}},
            "webhooks": [{"clientConfig": {"caBundle": "Cg==", "url": "u"}}],
        }),
        json!({"kind": "X", "webhooks": [{"clientConfig": {"url": "u"}}]}),
    );
}
