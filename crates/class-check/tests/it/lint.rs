//! Each check of lint on a bad class, and on good ones.

use std::collections::BTreeSet;

use windlass_class_check::{Check, Finding, Severity, lint};

use crate::world::{CLASS, CLUSTER, changed, files, found, grave, kinds};

/// A finding that is expected: its check, whether it is an error, the text of its line, its field, and a part of its message.
type Expected<'a> = (Check, Severity, &'a str, &'a str, &'a str);

fn check(text: &str, expect: &[Expected<'_>]) {
    let findings = found(text);
    let lines: Vec<&str> = text.lines().collect();
    let is = |finding: &Finding, (check, severity, line, field, message): &Expected<'_>| {
        finding.check == *check
            && finding.severity == *severity
            && lines
                .get(finding.position.line - 1)
                .is_some_and(|text| text.contains(line))
            && finding.field == *field
            && finding.message.contains(message)
    };
    for expected in expect {
        assert!(
            findings.iter().any(|finding| is(finding, expected)),
            "no {expected:?} in {findings:#?}"
        );
    }
    let more: Vec<_> = findings
        .iter()
        .filter(|finding| !expect.iter().any(|expected| is(finding, expected)))
        .collect();
    assert!(more.is_empty(), "more than expected: {more:#?}");
}

/// What is wrong with the example class after some changes.
fn bad(changes: &[(&str, &str)], expect: &[Expected<'_>]) {
    check(&changed(changes), expect);
}

const E: Severity = Severity::Error;
const W: Severity = Severity::Warning;

#[test]
fn objects_of_older_versions_are_checked_in_theirs_and_in_the_stored_one() {
    let rule = "apiVersion: cluster.x-k8s.io/v1beta1\nkind: MachineDrainRule\nmetadata: {name: a, namespace: default}\nspec:\n";
    check(&format!("{rule}  drain: {{behavior: Skip}}\n"), &[]);
    check(
        &format!("{rule}  drain: {{behavior: Skip}}\n  unknown: 1\n"),
        &[(Check::Schema, E, "unknown", "spec.unknown", "unknown field")],
    );
    let selector = "    selector: {matchExpressions: [{key: a, operator: Never}]}\n";
    check(
        &format!("{rule}  drain: {{behavior: Skip}}\n  pods:\n  -\n{selector}"),
        &[(
            Check::Admission,
            E,
            "Never",
            "spec.pods[0].selector.matchExpressions[0].operator",
            "not a valid selector operator",
        )],
    );
}

#[test]
fn good_classes_are_clean() {
    check(CLASS, &[]);
    check(&format!("{CLASS}---\n{CLUSTER}"), &[]);
    check(include_str!("../../../topology/testdata/in-memory.yaml"), &[]);
    check(
        include_str!("../../../../examples/externally-managed/clusterclass.yaml"),
        &[],
    );
    let other = include_str!("../../../topology/testdata/vsphere.yaml");
    assert_eq!(grave(&found(other)), Vec::<&Finding>::new());
    let notes: BTreeSet<Check> = found(other).iter().map(|finding| finding.check).collect();
    assert_eq!(Vec::from_iter(notes), [Check::UnknownKind]);
}

#[test]
fn what_is_no_yaml_is_named_and_the_rest_is_checked() {
    let text = format!("{CLASS}---\nkind: [\n");
    let findings = found(&text);
    assert_eq!(findings.len(), 1, "{findings:#?}");
    assert_eq!((findings[0].check, findings[0].severity), (Check::Syntax, E));
    bad(
        &[(
            "  infrastructure:\n    templateRef",
            "  patches: []\n  infrastructure:\n    templateRef",
        )],
        &[(Check::Syntax, E, "patches:", "", "duplicate")],
    );
}

#[test]
fn schemas_and_rules_are_checked_at_once() {
    bad(
        &[
            (
                "      - class: default-worker\n        bootstrap",
                "      - class: default-worker\n        bootsrap: {}\n        bootstrap",
            ),
            ("      required: false", "      required: \"no\""),
            (
                "kind: DevMachineTemplate\n        name: quick-start-control-plane",
                "kind: DevMachine\n        name: quick-start-control-plane",
            ),
        ],
        &[
            (
                Check::Schema,
                E,
                "bootsrap",
                "spec.workers.machineDeployments[0].bootsrap",
                "unknown field",
            ),
            (
                Check::Schema,
                E,
                "required: \"no\"",
                "spec.variables[0].required",
                "must be of type boolean",
            ),
            (
                Check::Admission,
                E,
                "kind: DevMachine",
                "spec.controlPlane.machineInfrastructure.templateRef.kind",
                "template kind must be of form",
            ),
            (
                Check::Admission,
                E,
                "controlPlane: true",
                "spec.patches[0].definitions[0].selector.matchResources.controlPlane",
                "matches neither",
            ),
        ],
    );
    let findings = found(&changed(&[("  variables:", "  variabels: []\n  variables:")]));
    assert_eq!(findings[0].hint, "is \"variables\" meant?");
}

#[test]
fn objects_are_checked_by_themselves() {
    bad(
        &[(
            "  name: quick-start-cluster\nspec",
            "  name: Quick_Start\n  labels: {a: \"b c\"}\nspec",
        )],
        &[
            (Check::Metadata, E, "name: Quick_Start", "metadata.name", "RFC 1123"),
            (Check::Metadata, E, "labels", "metadata.labels", "a valid label must"),
            (
                Check::TemplateReference,
                E,
                "name: quick-start-cluster",
                "spec.infrastructure.templateRef.name",
                "is not in the files",
            ),
        ],
    );
    bad(
        &[("  name: quick-start-cluster\nspec", "  name: ${CLUSTER_NAME}\nspec")],
        &[
            (
                Check::UnreplacedVariable,
                E,
                "${CLUSTER_NAME}",
                "metadata.name",
                "clusterctl",
            ),
            (
                Check::TemplateReference,
                E,
                "name: quick-start-cluster",
                "spec.infrastructure.templateRef.name",
                "is not in the files",
            ),
        ],
    );
    bad(
        &[(
            "apiVersion: cluster.x-k8s.io/v1beta2\nkind: ClusterClass",
            "apiVersion: cluster.x-k8s.io/v1beta1\nkind: ClusterClass",
        )],
        &[(
            Check::Version,
            E,
            "cluster.x-k8s.io/v1beta1",
            "apiVersion",
            "is not served",
        )],
    );
    let twice = format!("{CLASS}---\n{CLASS}");
    let findings = found(&twice);
    assert_eq!(findings.len(), 6, "{findings:#?}");
    assert!(
        findings
            .iter()
            .all(|f| f.check == Check::DuplicateObject && f.severity == W)
    );
}

#[test]
fn references_lead_to_templates_of_the_files() {
    bad(
        &[
            (
                "        name: quick-start-control-plane\n  workers",
                "        name: quick-start-control-plan\n  workers",
            ),
            ("      name: quick-start-cluster\n", "      name: none\n"),
        ],
        &[
            (
                Check::TemplateReference,
                E,
                "name: quick-start-control-plan",
                "spec.controlPlane.machineInfrastructure.templateRef.name",
                "DevMachineTemplate quick-start-control-plan of infrastructure.cluster.x-k8s.io/v1beta2 is not in the files",
            ),
            (
                Check::TemplateReference,
                E,
                "name: none",
                "spec.infrastructure.templateRef.name",
                "is not in the files",
            ),
        ],
    );
    let alone = CLASS.split("---\n").next().unwrap();
    check(
        alone,
        &[(Check::TemplateReference, W, "spec:", "spec", "none of the templates")],
    );
    let apart = changed(&[
        ("  name: quick-start\n", "  name: quick-start\n  namespace: a\n"),
        (
            "  name: quick-start-cluster\nspec",
            "  name: quick-start-cluster\n  namespace: b\nspec",
        ),
    ]);
    let findings = found(&apart);
    let first = findings
        .iter()
        .find(|f| f.field == "spec.infrastructure.templateRef.name")
        .unwrap();
    assert!(
        first.message.contains("is in namespace \"b\", and the class in \"a\""),
        "{findings:#?}"
    );
}

#[test]
fn definitions_among_the_files_are_used() {
    let definition = "
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: vsphereclustertemplates.infrastructure.cluster.x-k8s.io}
spec:
  group: infrastructure.cluster.x-k8s.io
  names: {kind: VSphereClusterTemplate, plural: vsphereclustertemplates}
  scope: Namespaced
  versions:
  - name: v1beta1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            properties:
              template:
                type: object
                properties:
                  spec: {type: object, properties: {server: {type: integer}}}
";
    let class = include_str!("../../../topology/testdata/vsphere.yaml");
    let report = lint(&files(&[("a.yaml", class), ("crd.yaml", definition)]), kinds());
    let grave = grave(&report.findings);
    assert_eq!(grave.len(), 1, "{grave:#?}");
    assert_eq!(
        (grave[0].check, grave[0].field.as_str()),
        (Check::Schema, "spec.template.spec.server")
    );
    let broken = definition.replace("{type: integer}", "{type: whole}");
    let report = lint(&files(&[("a.yaml", class), ("crd.yaml", &broken)]), kinds());
    let found: Vec<&str> = report
        .findings
        .iter()
        .filter(|f| f.check == Check::Definition)
        .map(|f| f.file.as_str())
        .collect();
    assert_eq!(found, ["crd.yaml"], "{:#?}", report.findings);
}

#[test]
fn what_admission_refuses_of_patches_is_at_its_line() {
    bad(
        &[
            ("    - name: cert-sans\n", "    - name: startup-duration\n"),
            ("{{ if .certSANs }}true{{ end }}", "{{ if .certSANs }true{{ end }}"),
            ("names: [default-worker]", "names: [default-worker, other]"),
        ],
        &[
            (
                Check::Admission,
                E,
                "- name: startup-duration",
                "spec.patches[1].name",
                "must be unique",
            ),
            (
                Check::Admission,
                E,
                "enabledIf",
                "spec.patches[1].enabledIf",
                "template can not be parsed",
            ),
            (
                Check::Admission,
                E,
                "other",
                "spec.patches[0].definitions[0].selector.matchResources.machineDeploymentClass.names[1]",
                "matches neither",
            ),
        ],
    );
}

#[test]
fn errors_in_templates_are_at_their_lines() {
    bad(
        &[(
            "value: node.cluster.x-k8s.io/pool={{ .nodeLabel }}",
            "value: {{ .nodeLabel | nope }}",
        )],
        &[(
            Check::Admission,
            E,
            "{{ .nodeLabel | nope }}",
            "spec.patches[2].definitions[0].jsonPatches[0].valueFrom.template",
            "function \"nope\" is not defined",
        )],
    );
    bad(
        &[(
            "value: node.cluster.x-k8s.io/pool={{ .nodeLabel }}",
            "value: \"{{ .nodeLabel }}{{ .nodeLable }}\"",
        )],
        &[
            (
                Check::UndefinedVariable,
                E,
                "{{ .nodeLable }}",
                "spec.patches[2].definitions[0].jsonPatches[0].valueFrom.template",
                "\"nodeLable\" is not defined",
            ),
            (
                Check::MissingValue,
                W,
                "- op: add",
                "spec.patches[2].definitions[0].jsonPatches[0]",
                "<no value>",
            ),
        ],
    );
}

#[test]
fn templates_that_give_no_yaml_are_named_in_one_line() {
    let text = changed(&[(
        "                  value: node.cluster",
        "                 value: node.cluster",
    )]);
    let findings = found(&text);
    assert_eq!(findings.len(), 1, "{findings:#?}");
    assert_eq!(
        (findings[0].check, findings[0].severity),
        (Check::Syntax, E),
        "{findings:#?}"
    );
    let text = changed(&[(
        "value: node.cluster.x-k8s.io/pool={{ .nodeLabel }}",
        "value: [ {{ .nodeLabel }}",
    )]);
    let findings = found(&text);
    assert_eq!(findings.len(), 1, "{findings:#?}");
    assert_eq!(
        (findings[0].check, findings[0].severity),
        (Check::Patch, W),
        "{findings:#?}"
    );
    assert!(
        findings[0].message.contains("no valid YAML") && !findings[0].message.contains('\n'),
        "{findings:#?}"
    );
}

#[test]
fn unused_variables_and_operations_without_effect_are_named() {
    let variable = "    - name: nodeLabel\n";
    let unused = "    - name: unused\n      required: false\n      schema: {openAPIV3Schema: {type: string}}\n";
    bad(
        &[
            (variable, &format!("{unused}{variable}")),
            (
                "          jsonPatches:\n            - op: add\n",
                "          jsonPatches:\n            - {op: add, path: /spec/replicas, value: 1}\n            - {op: add, path: /spec/template/spec/version, value: v1.0.0}\n            - op: add\n",
            ),
        ],
        &[
            (
                Check::UnusedVariable,
                W,
                "name: unused",
                "spec.variables[unused]",
                "is not used",
            ),
            (
                Check::PatchWithoutEffect,
                W,
                "/spec/replicas",
                "spec.patches[1].definitions[0].jsonPatches[0].path",
                "do not take over",
            ),
            (
                Check::PatchWithoutEffect,
                W,
                "/spec/template/spec/version",
                "spec.patches[1].definitions[0].jsonPatches[1].path",
                "sets itself",
            ),
        ],
    );
}

#[test]
fn patches_are_tried_on_the_templates() {
    bad(
        &[
            ("          default: \"0s\"\n", ""),
            (
                "path: /spec/template/spec/backend/inMemory/node/provisioning/startupDuration",
                "path: /spec/template/spec/backend/docker/x",
            ),
            (
                "            - op: add\n              path: /spec/template/spec/kubeadmConfigSpec/clusterConfiguration/apiServer/certSANs\n",
                "            - {op: add, path: /spec/template/spec/none/there, value: {}}\n            - {op: add, path: /spec/template/spec/none/there/below, value: 1}\n            - op: add\n              path: /spec/template/spec/kubeadmConfigSpec/clusterConfiguration/apiServer/certSANs\n",
            ),
        ],
        &[
            (
                Check::Patch,
                E,
                "variable: startupDuration",
                "spec.patches[0].definitions[0].jsonPatches[0].valueFrom.variable",
                "has no value",
            ),
            (
                Check::Patch,
                E,
                "variable: startupDuration",
                "spec.patches[0].definitions[0].jsonPatches[1].valueFrom.variable",
                "has no value",
            ),
            (
                Check::Patch,
                E,
                "variable: startupDuration",
                "spec.patches[0].definitions[0].jsonPatches[2].valueFrom.variable",
                "has no value",
            ),
            (
                Check::Patch,
                E,
                "variable: startupDuration",
                "spec.patches[0].definitions[0].jsonPatches[3].valueFrom.variable",
                "has no value",
            ),
            (
                Check::Patch,
                E,
                "none/there, value",
                "spec.patches[1].definitions[0].jsonPatches[0]",
                "cannot change /spec/template/spec/none/there",
            ),
        ],
    );
}

#[test]
fn what_a_server_would_refuse_of_generated_objects_is_blamed_on_the_operation() {
    bad(
        &[(
            "            - op: add\n              path: /spec/template/spec/kubeadmConfigSpec/clusterConfiguration/apiServer/certSANs\n",
            "            - {op: add, path: /spec/template/spec/rolloutt, value: 1}\n            - op: add\n              path: /spec/template/spec/kubeadmConfigSpec/clusterConfiguration/apiServer/certSANs\n",
        )],
        &[(
            Check::GeneratedObject,
            E,
            "rolloutt",
            "spec.patches[1].definitions[0].jsonPatches[0]",
            "the generated KubeadmControlPlane would be refused: spec.rolloutt: unknown field",
        )],
    );
}

// A made-up text such as `1` becomes a number there, which real values are not.
#[test]
fn types_that_depend_on_made_up_values_are_no_errors() {
    bad(
        &[(
            "              valueFrom:\n                variable: certSANs\n",
            "              valueFrom:\n                template: '[{{ .nodeLabel }}]'\n",
        )],
        &[],
    );
}

#[test]
fn conditions_that_no_value_meets_are_named() {
    bad(
        &[(
            "'{{ if .nodeLabel }}true{{ end }}'",
            "'{{ if eq .nodeLabel \"x\" | not }}yess{{ end }}'",
        )],
        &[(
            Check::PatchNeverEnabled,
            W,
            "enabledIf",
            "spec.patches[2].enabledIf",
            "is not enabled by any",
        )],
    );
}

#[test]
fn variables_without_any_value_are_named() {
    bad(
        &[
            (
                "          pattern: \"^[0-9]+(ms|s|m)$\"\n          default: \"0s\"\n",
                "          pattern: \"^impossible$\"\n",
            ),
            (
                "    - name: startupDuration\n      required: false",
                "    - name: startupDuration\n      required: true",
            ),
        ],
        &[(
            Check::ExampleValue,
            W,
            "name: startupDuration",
            "spec.variables[startupDuration]",
            "patches are not tried",
        )],
    );
}

#[test]
fn clusters_are_checked_with_their_class() {
    let cluster = CLUSTER
        .replace("class: default-worker", "class: none")
        .replace("value: \"0s\"", "value: 7");
    let text = format!("{CLASS}---\n{cluster}");
    check(
        &text,
        &[
            (
                Check::Admission,
                E,
                "class: none",
                "spec.topology.workers.machineDeployments[0].class",
                "does not exist in ClusterClass",
            ),
            (
                Check::Admission,
                E,
                "value: 7",
                "spec.topology.variables[startupDuration].value",
                "must be of type string",
            ),
        ],
    );
    let findings = found(CLUSTER);
    assert_eq!(findings.len(), 1, "{findings:#?}");
    assert_eq!((findings[0].check, findings[0].severity), (Check::AdmissionWarning, W));
}

#[test]
fn external_patches_are_noted() {
    let text = changed(&[(
        "  patches:\n",
        "  patches:\n    - name: external\n      external: {generatePatchesExtension: a.b}\n",
    )]);
    let findings = found(&text);
    assert!(
        findings.iter().any(|finding| finding.check == Check::ExternalPatch),
        "{findings:#?}"
    );
    assert!(
        !findings.iter().any(|finding| finding.check == Check::Patch),
        "{findings:#?}"
    );
}

#[test]
fn the_page_describes_each_check() {
    let page = include_str!("../../../../docs/lint.md");
    for check in Check::ALL {
        let row = format!("| `{}` | ", check.name());
        assert_eq!(page.matches(&row).count(), 1, "{row}");
    }
}
