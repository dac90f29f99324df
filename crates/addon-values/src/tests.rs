//! Results of values templates, by requirement.

use proptest::prelude::*;
use serde_json::json;

use super::*;

fn cluster() -> Value {
    json!({
        "apiVersion": "cluster.x-k8s.io/v1beta2",
        "kind": "Cluster",
        "metadata": {"name": "c1", "namespace": "team", "uid": "1-2", "labels": {"tier": "gold", "app.io/x": "y"}},
        "spec": {
            "clusterNetwork": {
                "apiServerPort": 6443,
                "pods": {"cidrBlocks": ["10.0.0.0/16", "fd00::/48"]},
            },
            "controlPlaneRef": {"apiGroup": "controlplane.cluster.x-k8s.io", "kind": "KubeadmControlPlane", "name": "c1-cp"},
            "topology": {"variables": [{"name": "v", "value": {"Deep": [1, true]}}]},
        },
    })
}

fn only(cluster: &Value) -> Objects<'_> {
    Objects {
        cluster,
        control_plane: None,
        infra_cluster: None,
    }
}

fn render(template: &str) -> Result<String, ValuesError> {
    Template::parse(template)?.render(&only(&cluster()))
}

/// The value of the key `v`.
fn gives(expression: &str, expect: &str) {
    let out = render(&format!("v: {expression}"));
    assert_eq!(out.as_deref(), Ok(format!("v: {expect}").as_str()), "{expression}");
}

fn fails(template: &str, expect: &str) {
    let error = render(template).expect_err(template).to_string();
    assert_eq!(error, expect, "{template}");
}

const EXAMPLE: &str = include_str!("../../../examples/helm-addons/calico-cni.yaml");
const CALICO_VALUES: &str = include_str!("../testdata/calico-values.yaml");

/// The template of the example.
fn calico() -> String {
    let example: Value = serde_saphyr::from_str(EXAMPLE).unwrap();
    example["spec"]["valuesTemplate"].as_str().unwrap().to_owned()
}

// AD-122, AD-129, AD-130
#[test]
fn the_calico_example_gives_one_pool_for_each_cidr_in_both_spellings() {
    assert_eq!(render(&calico()).as_deref(), Ok(CALICO_VALUES));
    let json = calico().replace(
        ".Cluster.Spec.ClusterNetwork.Pods.CIDRBlocks",
        ".Cluster.spec.clusterNetwork.pods.cidrBlocks",
    );
    assert_eq!(render(&json).as_deref(), Ok(CALICO_VALUES));
}

// AD-029, AD-121
#[test]
fn two_clusters_get_different_values_from_one_template() {
    let template = Template::parse(&calico()).unwrap();
    let mut other = cluster();
    other["spec"]["clusterNetwork"]["pods"]["cidrBlocks"] = json!(["192.168.0.0/16"]);
    let values = template.render(&only(&other)).unwrap();
    assert!(
        values.contains("cidr: 192.168.0.0/16") && !values.contains("10.0.0.0"),
        "{values}"
    );
    assert_eq!(template.render(&only(&cluster())).as_deref(), Ok(CALICO_VALUES));
}

// AD-124
#[test]
fn a_cluster_without_a_network_gives_no_pools_as_go_does_with_maps() {
    let template = Template::parse(&calico()).unwrap();
    for spec in [json!({}), json!({"clusterNetwork": {"pods": {"cidrBlocks": []}}})] {
        let cluster = json!({"metadata": {"name": "c"}, "spec": spec});
        let values = template.render(&only(&cluster)).unwrap();
        assert!(values.ends_with("    ipPools:\n"), "{values}");
    }
}

// AD-120, AD-122, AD-128
#[test]
fn a_template_reaches_every_field_in_both_spellings() {
    gives("{{ .Cluster.metadata.name }}", "c1");
    gives("{{ .Cluster.Name }}/{{ .Cluster.Namespace }}", "c1/team");
    gives(
        "{{ .Cluster.Metadata.UID }} {{ .Cluster.UID }} {{ .Cluster.ObjectMeta.UID }}",
        "1-2 1-2 1-2",
    );
    gives(
        "{{ .Cluster.TypeMeta.Kind }} {{ .Cluster.Kind }} {{ .Cluster.APIVersion }}",
        "Cluster Cluster cluster.x-k8s.io/v1beta2",
    );
    gives(
        "{{ .Cluster.Labels.tier }} {{ index .Cluster.metadata.labels \"app.io/x\" }}",
        "gold y",
    );
    gives("{{ .Cluster.spec.controlPlaneRef.name }}", "c1-cp");
    gives("{{ .Cluster.Spec.ControlPlaneRef.Kind }}", "KubeadmControlPlane");
    gives(
        "{{ .Cluster.Spec.ControlPlaneRef.APIGroup }}",
        "controlplane.cluster.x-k8s.io",
    );
    gives("{{ .Cluster.Spec.ClusterNetwork.APIServerPort }}", "6443");
    gives(
        "{{ index .Cluster.spec.clusterNetwork.pods.cidrBlocks 0 }}",
        "10.0.0.0/16",
    );
    gives(
        "{{ (index .Cluster.spec.topology.variables 0).value.Deep | toJson }}",
        "[1,true]",
    );
    gives("{{ range $.Cluster.Spec.Topology.Variables }}{{ .Name }}{{ end }}", "v");
    gives(
        "{{ with .Cluster.Spec }}{{ .ClusterNetwork.Pods.CIDRBlocks | len }}{{ end }}",
        "2",
    );
}

// AD-123
#[test]
fn a_name_that_nothing_has_is_an_error_with_the_closest_one() {
    fails(
        "a: 1\nv: {{ .Cluster.spec.clusterNetwork.pods.cidrBlock }}",
        "valuesTemplate line 2: .Cluster.spec.clusterNetwork.pods.cidrBlock does not exist; did you mean \
         .Cluster.spec.clusterNetwork.pods.cidrBlocks?",
    );
    fails(
        "{{ range .Cluster.spec.clusterNetwrk.pods }}{{ end }}",
        "valuesTemplate line 1: .Cluster.spec.clusterNetwrk does not exist; did you mean .Cluster.spec.clusterNetwork?",
    );
    fails(
        "{{ if .cluster }}{{ end }}",
        "valuesTemplate line 1: .cluster does not exist; did you mean .Cluster?",
    );
    fails(
        "{{ with .Cluster.name }}{{ end }}",
        "valuesTemplate line 1: .Cluster.name does not exist; did you mean .Cluster.metadata.name?",
    );
    fails(
        "{{ $spec := .Cluster.spec }}{{ with $spec }}{{ range .topologie }}{{ end }}{{ end }}",
        "valuesTemplate line 1: .Cluster.spec.topologie does not exist; did you mean .Cluster.spec.topology?",
    );
    fails(
        "v: {{ index .Cluster.spec \"paussed\" | quote }}",
        "valuesTemplate line 1: index: .Cluster.spec.paussed does not exist; did you mean .Cluster.spec.paused?",
    );
    fails(
        "{{ if .Cluster.spec.xyzzy }}{{ end }}",
        "valuesTemplate line 1: .Cluster.spec.xyzzy does not exist",
    );
}

// AD-123
#[test]
fn names_are_judged_below_what_is_not_set_as_well() {
    let empty = json!({"metadata": {"name": "c"}, "spec": {}});
    let fails = |template: &str| {
        Template::parse(template)
            .unwrap()
            .render(&only(&empty))
            .unwrap_err()
            .to_string()
    };
    assert_eq!(
        fails("{{ range .Cluster.Spec.ClusterNetwork.Pods.CidrBlock }}{{ end }}"),
        "valuesTemplate line 1: .Cluster.spec.clusterNetwork.pods.CidrBlock does not exist; did you mean \
         .Cluster.spec.clusterNetwork.pods.cidrBlocks?"
    );
    assert!(fails("{{ if .Cluster.spec.paused.really }}{{ end }}").contains("does not exist"));
}

// AD-123
#[test]
fn functions_that_look_up_judge_names_and_those_that_ask_do_not() {
    let unknown = ".Cluster.spec.topologie does not exist; did you mean .Cluster.spec.topology?";
    for look_up in [
        "get .Cluster.spec \"topologie\"",
        "pluck \"topologie\" .Cluster.spec | toJson",
    ] {
        let error = render(&format!("v: {{{{ {look_up} }}}}")).unwrap_err().to_string();
        assert!(error.ends_with(unknown), "{error}");
    }
    gives(
        "{{ hasKey .Cluster.spec \"topologie\" }} {{ hasKey .Cluster.spec \"topology\" }}",
        "false true",
    );
    gives("{{ dig \"spec\" \"topologie\" \"none\" .Cluster }}", "none");
    gives("{{ get .Cluster.spec \"paused\" | quote }}", "\"\"");
    // A value that the template itself adds is present.
    gives(
        "{{ $s := .Cluster.spec }}{{ $_ := set $s \"mine\" 1 }}{{ $s.mine }}",
        "1",
    );
}

// AD-123, AD-124
#[test]
fn what_exists_but_is_not_set_is_empty_and_cannot_be_written() {
    gives("{{ if .Cluster.spec.paused }}y{{ else }}n{{ end }}", "n");
    gives("{{ .Cluster.spec.paused | default false }}", "false");
    gives(
        "{{ with .Cluster.spec.controlPlaneEndpoint.host }}{{ . }}{{ else }}none{{ end }}",
        "none",
    );
    gives("{{ .Cluster.metadata.labels.nope | default \"x\" }}", "x");
    for template in [
        "v: {{ .Cluster.spec.controlPlaneEndpoint.host }}",
        "v: {{ printf \"%s\" .Cluster.spec.controlPlaneEndpoint.host }}",
        "v: {{ print .Cluster.Spec.ControlPlaneEndpoint.Host }}",
    ] {
        fails(
            template,
            "valuesTemplate line 1: .Cluster.spec.controlPlaneEndpoint.host is not set; use `default`, or write it only \
             within `if` or `with`",
        );
    }
    fails(
        "v: {{ .Cluster.metadata.labels.nope }}",
        "valuesTemplate line 1: .Cluster.metadata.labels.nope is not set; use `default`, or write it only within `if` or `with`",
    );
}

// AD-125
#[test]
fn control_plane_and_infrastructure_are_there_where_they_exist() {
    let control_plane = json!({
        "kind": "KubeadmControlPlane",
        "metadata": {"name": "cp", "labels": {"Name": "label"}},
        "spec": {"replicas": 3, "kubeadmConfigSpec": {"apiServer": {"x": [{"id": "i"}]}}},
    });
    let infra =
        json!({"kind": "DevCluster", "metadata": {"name": "infra"}, "spec": {"vpc": {"cidrBlock": "10.1.0.0/16"}}});
    let (cluster, none) = (cluster(), json!({}));
    let objects = Objects {
        cluster: &cluster,
        control_plane: Some(&control_plane),
        infra_cluster: Some(&infra),
    };
    let render = |template: &str, objects: &Objects<'_>| Template::parse(template).unwrap().render(objects);
    let text = "v: {{ .ControlPlane.metadata.name }} {{ .ControlPlane.Name }} {{ .InfraCluster.kind }} {{ .ControlPlane.Spec.Replicas }} \
                {{ (index .ControlPlane.Spec.KubeadmConfigSpec.APIServer.X 0).ID }} {{ .InfraCluster.Spec.Vpc.CIDRBlock }} \
                {{ .ControlPlane.Labels.Name }}";
    assert_eq!(
        render(text, &objects).as_deref(),
        Ok("v: cp cp DevCluster 3 i 10.1.0.0/16 label")
    );
    // They have no known schema: missing fields count as unset.
    assert_eq!(
        render("v: {{ if .ControlPlane.spec.nope }}a{{ else }}b{{ end }}", &objects).as_deref(),
        Ok("v: b")
    );
    let error = render("v: {{ .InfraCluster.spec.nope }}", &objects)
        .unwrap_err()
        .to_string();
    assert!(error.contains(".InfraCluster.spec.nope is not set"), "{error}");
    let error = render("v: {{ .ControlPlane.metadata.name }}", &only(&none))
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("there is no object behind the Cluster's spec.controlPlaneRef"),
        "{error}"
    );
    assert_eq!(
        render("{{ with .InfraCluster }}v: {{ .kind }}{{ end }}", &only(&none)).as_deref(),
        Ok("")
    );
}

// AD-088
#[test]
fn a_template_says_which_objects_it_refers_to() {
    let refers = |template: &str| {
        let refers = Template::parse(template).unwrap().refers_to();
        (refers.control_plane, refers.infra_cluster)
    };
    assert_eq!(refers(&calico()), (false, false));
    assert_eq!(refers("ControlPlane: {{ \".ControlPlane\" }}"), (false, false));
    assert_eq!(
        refers("{{ range .Cluster.spec.topology.variables }}{{ . }}{{ .ControlPlane }}{{ end }}"),
        (false, false)
    );
    assert_eq!(refers("{{ .ControlPlane.metadata.name }}"), (true, false));
    assert_eq!(
        refers("{{ range .Cluster.x }}{{ $.InfraCluster.kind }}{{ end }}"),
        (false, true)
    );
    assert_eq!(refers("{{ with .Cluster }}{{ . }}{{ end }}"), (false, false));
    assert_eq!(
        refers("{{ define \"t\" }}{{ .InfraCluster }}{{ end }}{{ template \"t\" . }}"),
        (false, true)
    );
    assert_eq!(refers("{{ (.).ControlPlane }}"), (true, false));
    // A template that passes on all data may use all of it.
    assert_eq!(refers("{{ toJson . }}"), (true, true));
    assert_eq!(refers("{{ index $ \"ControlPlane\" }}"), (true, true));
    assert_eq!(refers("{{ $all := . }}{{ $all.ControlPlane }}"), (true, true));
}

// AD-027, AD-117, AD-127: what a chart takes as values is written as the chart's own YAML, and reaches it as it is.
#[test]
fn values_are_a_mapping_or_nothing() {
    let plain = "# how\na: 1\nb: [x, \"{\"] # c\n'2': y\n";
    assert_eq!(render(plain).as_deref(), Ok(plain));
    assert_eq!(
        render("1: number\nnull: key\n").as_deref(),
        Ok("1: number\nnull: key\n")
    );
    for nothing in [
        "",
        "  \n",
        "# only words\n",
        "{{ if false }}a: 1{{ end }}",
        "---\n",
        "null\n",
        "{{/* none */}}\n",
    ] {
        assert_eq!(render(nothing).as_deref(), Ok(""), "{nothing:?}");
    }
    for (text, found) in [
        ("- a\n", "a list"),
        ("text", "a text"),
        ("5", "a number"),
        ("true", "a boolean"),
    ] {
        fails(
            text,
            &format!("valuesTemplate renders to {found}; values are a mapping (`key: value`)"),
        );
    }
    for bad in ["a: [", "a: b: c", "a: 1\n b: 2\n", "a: \"x", "a: *nope"] {
        assert!(
            matches!(render(bad), Err(ValuesError::NotYaml { .. })),
            "{bad:?}: {:?}",
            render(bad)
        );
    }
    assert!(matches!(render("a: 1\n---\nb: 2\n"), Err(ValuesError::NotYaml { .. })));
}

// AD-119
#[test]
fn functions_of_sprig_work_and_leaks_do_not() {
    gives("{{ .Cluster.metadata.name | upper | quote }}", "\"C1\"");
    gives(
        "{{ .Cluster.spec.clusterNetwork.pods | toJson }}",
        "{\"cidrBlocks\":[\"10.0.0.0/16\",\"fd00::/48\"]}",
    );
    for (function, why) in [
        ("env \"HOME\"", "environment"),
        ("expandenv \"$HOME\"", "environment"),
        ("getHostByName \"x\"", "network"),
        ("now", "clock"),
        ("randAlpha 5", "chance"),
        ("uuidv4", "chance"),
    ] {
        let name = function.split(' ').next().unwrap();
        let error = render(&format!("v: {{{{ {function} }}}}")).unwrap_err().to_string();
        assert!(
            error.contains(&format!("function {name:?} is not offered")) && error.contains(why),
            "{error}"
        );
    }
}

// AD-126
#[test]
fn errors_tell_their_line() {
    fails("a: 1\nb: {{ .Cluster\n", "valuesTemplate line 2: unclosed action");
    fails(
        "a: 1\n\nb: {{ nosuch }}\n",
        "valuesTemplate line 3: function \"nosuch\" is not defined",
    );
    fails("a: 1\nb: {{ fail \"stop\" }}\n", "valuesTemplate line 2: fail: stop");
    fails(
        "a: 1\nb: {{ upper 5 }}\n",
        "valuesTemplate line 2: upper: argument 1 must be a string, not a int",
    );
    let error = render("a: 1\nb: {{ \"[\" }}\n").unwrap_err().to_string();
    assert!(error.contains("not YAML") && error.contains("line"), "{error}");
}

/// Templates from meaningful pieces, rather than from arbitrary characters.
fn templates() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        Just("{{ range $i, $x := .Cluster.spec.clusterNetwork.pods.cidrBlocks }}".to_owned()),
        Just("{{ if .Cluster.spec.topology }}".to_owned()),
        Just("{{ with .ControlPlane }}".to_owned()),
        Just("{{ end }}".to_owned()),
        Just("{{ else }}".to_owned()),
        Just("{{ toJson .Cluster }}".to_owned()),
        Just("{{ $d := dict }}{{ $_ := set $d \"d\" $d }}{{ $d }}".to_owned()),
        Just("{{ . }}".to_owned()),
        Just("{{ .name | quote | indent 3 }}".to_owned()),
        Just("v: ".to_owned()),
        Just("\n".to_owned()),
        "[a-zA-Z0-9 {}.|$:=()\"'`/*,-]{0,12}",
        "\\PC{0,8}",
    ];
    prop::collection::vec(piece, 0..12).prop_map(|pieces| pieces.concat())
}

proptest! {
    // AD-089
    #[test]
    fn whatever_a_template_is_it_ends_without_a_panic_and_gives_the_same_again(text in templates()) {
        if let Ok(template) = Template::parse(&text) {
            let cluster = cluster();
            let first = template.render(&only(&cluster));
            prop_assert_eq!(&first, &template.render(&only(&cluster)));
            let again = Template::parse(&text).unwrap();
            prop_assert_eq!(again.refers_to(), template.refers_to());
            prop_assert_eq!(first, again.render(&only(&cluster)));
        }
    }
}
