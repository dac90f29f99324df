//! The provider operator on the command line.

use serde_json::Value;

use crate::support::run;

// OP-121
#[test]
fn the_arguments_of_the_manifest_are_those_of_the_program() {
    let objects: Vec<Value> =
        serde_saphyr::from_multiple(include_str!("../../../../config/provider-operator.yaml")).unwrap();
    let deployment = objects.iter().find(|object| object["kind"] == "Deployment").unwrap();
    let container = &deployment["spec"]["template"]["spec"]["containers"][0];
    let given: Vec<String> = serde_json::from_value(container["args"].clone()).unwrap();
    // Any free port.
    let mut given: Vec<String> = given
        .into_iter()
        .map(|argument| argument.replace(":9440", ":0").replace(":8443", ":0"))
        .collect();
    given.push("--kubeconfig=nowhere.kubeconfig".to_owned());
    let given: Vec<&str> = given.iter().map(String::as_str).collect();
    let folder = tempfile::tempdir().unwrap();
    // All arguments were accepted if it tries to connect to the server.
    run(folder.path(), &given).failed_with(&["nowhere.kubeconfig"]);
}

// A new user finds it, and the options in its pages exist.
#[test]
fn help_leads_to_the_operator_and_has_its_options() {
    let folder = tempfile::tempdir().unwrap();
    let help = |arguments: &[&str]| run(folder.path(), arguments).stdout;
    assert!(help(&["--help"]).contains("provider operator"));
    for command in ["up", "manager"] {
        let text = help(&["help", command]);
        for words in [
            "--provider-ca-file",
            "--provider-cache-dir",
            "--provider-variables",
            "--controllers",
            "--health-addr",
            "--diagnostics-address",
            "--insecure-diagnostics",
            "provider-operator",
        ] {
            assert!(text.contains(words), "{command} has no {words}: {text}");
        }
    }
}
