//! External patches: what extensions are asked, and what becomes of their answers.

use serde_json::{Value, json};

use crate::hooks::{Answer, Hook};
use crate::patches::external::{Answered, Given, Purpose, Question};
use crate::plan::Plan;
use crate::testing::World;

fn world(patches: Value) -> World {
    let mut world = World::in_memory();
    world.class["spec"]["patches"] = patches;
    world
}

/// A patch of a template in a question, by the field that refers to it.
fn given(question: &Question, field: &str, form: &str, patch: &Value) -> Given {
    let item = question.items.iter().find(|item| item.holder.field_path == field);
    Given {
        uid: item.unwrap().uid.clone(),
        form: form.to_owned(),
        patch: patch.to_string().into_bytes(),
    }
}

/// Plans, with an extension that answers so.
fn play(world: &mut World, answer: impl Fn(&Question) -> Result<Vec<Given>, String>) -> (Vec<Question>, Plan) {
    world.patches = None;
    let mut asked = Vec::new();
    loop {
        let plan = world.plan_with(&world.current()).unwrap();
        let Some(question) = plan.patches.clone() else {
            return (asked, plan);
        };
        assert!(plan.steps.is_empty(), "nothing is planned before the answer");
        assert!(!asked.contains(&*question), "asks twice");
        asked.push((*question).clone());
        let answer = answer(&question);
        world.patches = Some(Answered {
            question: *question,
            answer,
        });
    }
}

const MACHINES: &str = "spec.machineTemplate.spec.infrastructureRef";
const CONTROL_PLANE: &str = "spec.controlPlaneRef";

fn failure(plan: &Plan) -> String {
    plan.failed_hook.as_ref().map(ToString::to_string).unwrap_or_default()
}

#[test]
fn an_extension_sees_what_patches_before_it_have_changed_and_those_after_it_see_its_patches() {
    let inline = |name: &str, op: &str, value: &str| {
        json!({"name": name, "definitions": [{
            "selector": {
                "apiVersion": "controlplane.cluster.x-k8s.io/v1beta2", "kind": "KubeadmControlPlaneTemplate",
                "matchResources": {"controlPlane": true},
            },
            "jsonPatches": [{"op": op, "path": "/spec/template/spec/note", "value": value}],
        }]})
    };
    let external = |name: &str| {
        json!({"name": name, "external": {
            "generatePatchesExtension": format!("{name}.ext"), "settings": {"of": name},
        }})
    };
    let mut world = world(json!([
        inline("first", "add", "a"),
        external("second"),
        inline("third", "replace", "c"),
        external("fourth"),
    ]));
    let note = |question: &Question| {
        let item = question
            .items
            .iter()
            .find(|item| item.holder.field_path == CONTROL_PLANE);
        item.unwrap().template["spec"]["template"]["spec"]["note"].clone()
    };
    let (asked, plan) = play(&mut world, |question| {
        let patch =
            json!([{"op": "replace", "path": "/spec/template/spec/note", "value": format!("{}!", question.patch)}]);
        Ok(vec![given(question, CONTROL_PLANE, "JSONPatch", &patch)])
    });
    let seen: Vec<_> = asked.iter().map(|one| (one.handler.as_str(), note(one))).collect();
    assert_eq!(seen, [("second.ext", json!("a")), ("fourth.ext", json!("c"))]);
    assert_eq!(asked[0].settings["of"], "second");
    world.take(&plan);
    assert_eq!(world.only("KubeadmControlPlane")["spec"]["note"], "fourth!");
}

#[test]
fn a_question_has_every_use_of_a_template_with_its_holder() {
    let mut world = world(json!([{"name": "p", "external": {"generatePatchesExtension": "g.e"}}]));
    world.class["spec"]["controlPlane"]["metadata"] = json!({"annotations": {"a": "b"}});
    let (asked, _) = play(&mut world, |_| Ok(Vec::new()));
    let items = &asked[0].items;
    let uses: Vec<String> = items
        .iter()
        .map(|item| format!("{} {} {}", item.holder.kind, item.holder.name, item.holder.field_path))
        .collect();
    let suffix = |at: usize| uses[at].split(' ').nth(1).unwrap().to_owned();
    assert_eq!(uses[0], "Cluster demo000 spec.infrastructureRef");
    assert_eq!(uses[1], "Cluster demo000 spec.controlPlaneRef");
    assert_eq!(uses[2], format!("KubeadmControlPlane {} {MACHINES}", suffix(2)));
    let worker = suffix(3);
    assert!(worker.starts_with("demo000-"), "{worker}");
    assert_eq!(
        &uses[3..5],
        [
            format!("MachineDeployment {worker} spec.template.spec.bootstrap.configRef"),
            format!("MachineDeployment {worker} spec.template.spec.infrastructureRef"),
        ]
    );
    assert!(items.iter().all(|item| item.holder.namespace == "default"));
    let uids: std::collections::BTreeSet<_> = items.iter().map(|item| &item.uid).collect();
    assert_eq!(uids.len(), items.len());
    // The metadata that the object gets is part of the template.
    assert_eq!(
        items[1].template["spec"]["template"]["metadata"]["annotations"]["a"],
        "b"
    );
    assert_eq!(items[1].variables["builtin"]["controlPlane"]["version"], "v1.35.0");
    assert_eq!(asked[0].variables["builtin"]["cluster"]["name"], "demo000");
}

#[test]
fn a_patch_sees_only_variables_that_are_defined_for_it() {
    let mut world = world(json!([{"name": "p", "external": {"generatePatchesExtension": "g.e"}}]));
    let schema = json!({"openAPIV3Schema": {"type": "string"}});
    let variable = |name: &str, from: &[&str]| {
        let definitions: Vec<Value> = from
            .iter()
            .map(|from| json!({"from": from, "required": false, "schema": schema}))
            .collect();
        json!({"name": name, "definitions": definitions})
    };
    world.class["status"]["variables"] = json!([
        variable("both", &["inline", "p"]),
        variable("inline", &["inline"]),
        variable("other", &["q"]),
        variable("own", &["p"]),
    ]);
    let values = ["both", "inline", "other", "own"].map(|name| json!({"name": name, "value": name}));
    world.cluster["spec"]["topology"]["variables"] = json!(values);
    world.cluster["spec"]["topology"]["controlPlane"]["variables"] = json!({"overrides": values});
    let (asked, _) = play(&mut world, |_| Ok(Vec::new()));
    let names = |values: &crate::variables::Values| values.keys().cloned().collect::<Vec<_>>();
    assert_eq!(names(&asked[0].variables), ["both", "builtin", "own"]);
    assert_eq!(names(&asked[0].items[1].variables), ["both", "builtin", "own"]);
    // And an inline patch the others.
    world.class["spec"]["patches"] = json!([{"name": "p", "definitions": [{
        "selector": {
            "apiVersion": "controlplane.cluster.x-k8s.io/v1beta2", "kind": "KubeadmControlPlaneTemplate",
            "matchResources": {"controlPlane": true},
        },
        "jsonPatches": [{"op": "add", "path": "/spec/template/spec/note", "valueFrom": {"template":
            "{{ if .own }}own {{ end }}{{ if .other }}other {{ end }}{{ .both }} {{ .inline }}"}}],
    }]}]);
    world.settle();
    assert_eq!(world.only("KubeadmControlPlane")["spec"]["note"], "both inline");
}

#[test]
fn merge_patches_and_json_patches_change_specification_labels_and_annotations_alone() {
    let mut world = world(json!([{"name": "p", "external": {"generatePatchesExtension": "g.e"}}]));
    let (_, plan) = play(&mut world, |question| {
        let merge = json!({
            "kind": "Other", "status": {"x": 1}, "metadata": {"name": "other", "labels": {"l": "1"}},
            "spec": {"template": {"spec": {"merged": true}}},
        });
        let add = json!([
            {"op": "add", "path": "/spec/template/spec/added", "value": [1]},
            {"op": "add", "path": "/spec/template/spec/added/-", "value": 2},
            {"op": "copy", "from": "/spec/template/spec/added", "path": "/spec/template/spec/copied"},
            {"op": "test", "path": "/spec/template/spec/copied/1", "value": 2},
            {"op": "replace", "path": "/spec/template/spec/added/0", "value": 7},
            {"op": "move", "from": "/spec/template/spec/added", "path": "/spec/template/spec/moved"},
        ]);
        Ok(vec![
            given(question, MACHINES, "JSONMergePatch", &merge),
            given(question, MACHINES, "JSONPatch", &add),
            given(question, CONTROL_PLANE, "JSONMergePatch", &json!({})),
            given(question, CONTROL_PLANE, "JSONPatch", &json!([])),
        ])
    });
    assert_eq!(failure(&plan), "");
    world.take(&plan);
    let reference = &world.only("KubeadmControlPlane")["spec"]["machineTemplate"]["spec"]["infrastructureRef"];
    let key = (
        "DevMachineTemplate".to_owned(),
        reference["name"].as_str().unwrap().to_owned(),
    );
    let template = &world.objects[&key];
    let spec = &template["spec"]["template"]["spec"];
    assert_eq!(
        (&spec["merged"], &spec["moved"], &spec["copied"], spec.get("added")),
        (&json!(true), &json!([7, 2]), &json!([1, 2]), None)
    );
    assert_eq!(
        (template.get("status"), &template["metadata"]["labels"]["l"]),
        (None, &json!("1"))
    );
}

#[test]
fn answers_that_cannot_be_used_change_nothing_and_are_asked_for_again() {
    let at = "ClusterClass default/in-memory: spec.patches[0].external.generatePatchesExtension: patch \"p\" ";
    let infra = "Cluster default/demo000, spec.infrastructureRef: ";
    let lost = |given: Result<Vec<Given>, String>| {
        let mut world = world(json!([{"name": "p", "external": {"generatePatchesExtension": "g.e"}}]));
        let (_, plan) = play(&mut world, |question| {
            let mut given = given.clone();
            for one in given.iter_mut().flatten().filter(|one| one.uid == "first") {
                one.uid.clone_from(&question.items[0].uid);
            }
            given
        });
        assert!(plan.steps.is_empty() && plan.is_lost);
        let text = failure(&plan);
        text.strip_prefix(at).unwrap_or(&text).to_owned()
    };
    let one = |uid: &str, form: &str, patch: &str| {
        lost(Ok(vec![Given {
            uid: uid.to_owned(),
            form: form.to_owned(),
            patch: patch.as_bytes().to_vec(),
        }]))
    };
    assert_eq!(lost(Err("no route".to_owned())), "was not generated: no route");
    let long = "x".repeat(40_000);
    assert!(one(&long, "JSONPatch", "[]").len() < 2_000);
    for uid in ["99", "", "-1", "00", "x"] {
        assert_eq!(
            one(uid, "JSONPatch", "[]"),
            format!("cannot be applied: no template of the request has the uid {uid:?}")
        );
    }
    let misfits = [
        ("JSONPatch", "{", "the patch is no JSON: "),
        ("JSONPatch", "{}", "a JSON patch is a list"),
        ("JSONMergePatch", "[]", "a JSON merge patch is an object"),
        ("JSONMergePatch", "nope", "the patch is no JSON: "),
        (
            "Strategic",
            "{}",
            "patchType \"Strategic\" is not supported; use JSONPatch or JSONMergePatch",
        ),
        (
            "JSONPatch",
            r#"[{"op":"replace","path":"/spec/template/spec/no","value":1}]"#,
            "",
        ),
        ("JSONPatch", r#"[{"op":"remove","path":"/spec/no"}]"#, ""),
        ("JSONPatch", r#"[{"op":"add","path":"/spec/no/deep","value":1}]"#, ""),
        ("JSONPatch", r#"[{"op":"test","path":"/kind","value":"x"}]"#, ""),
        ("JSONPatch", r#"[{"op":"wrong"}, 7, null]"#, ""),
        (
            "JSONPatch",
            r#"[{"op":"remove","path":"/spec/template/spec"}]"#,
            "/spec/template/spec is an object",
        ),
        ("JSONMergePatch", r#"{"spec":null}"#, "/spec/template/spec is an object"),
        ("JSONMergePatch", r#"{"spec":"x"}"#, "/spec/template/spec is an object"),
    ];
    for (form, patch, why) in misfits {
        let text = one("first", form, patch);
        let expect = format!("cannot be applied: {infra}{why}");
        assert!(text.starts_with(&expect), "{patch}: {text}");
        assert!(text.len() > expect.len() || !why.is_empty(), "{patch}: {text}");
    }
}

#[test]
fn a_patch_may_only_check_and_all_checks_come_after_all_patches() {
    let mut world = world(json!([
        {"name": "guard", "external": {"validateTopologyExtension": "v.e", "settings": {"limit": "3"}}},
        {"name": "both", "external": {"generatePatchesExtension": "g.e", "validateTopologyExtension": "w.e"}},
    ]));
    let patch = json!({"spec": {"template": {"spec": {"note": "patched"}}}});
    let answer = |question: &Question| match question.purpose {
        Purpose::Generate => Ok(vec![given(question, CONTROL_PLANE, "JSONMergePatch", &patch)]),
        Purpose::Validate => Ok(Vec::new()),
    };
    let (asked, plan) = play(&mut world, answer);
    let order: Vec<_> = asked.iter().map(|one| (one.handler.as_str(), one.purpose)).collect();
    assert_eq!(
        order,
        [
            ("g.e", Purpose::Generate),
            ("v.e", Purpose::Validate),
            ("w.e", Purpose::Validate)
        ]
    );
    assert_eq!(
        asked[1].items[1].template["spec"]["template"]["spec"]["note"],
        "patched"
    );
    assert_eq!(asked[1].settings["limit"], "3");
    assert!(plan.changes().count() > 0);
    let (_, plan) = play(&mut world, |question| match question.handler.as_str() {
        "w.e" => Err("too many disks".to_owned()),
        _ => answer(question),
    });
    assert!(plan.steps.is_empty());
    assert_eq!(
        failure(&plan),
        "ClusterClass default/in-memory: spec.patches[1].external.validateTopologyExtension: patch \"both\" has found the topology wrong, \
         or could not check it: too many disks"
    );
}

#[test]
fn lifecycle_hooks_are_asked_before_extensions_are_asked_about_templates() {
    let mut world = world(json!([{"name": "p", "external": {"generatePatchesExtension": "g.e"}}]));
    world.hooks.served.insert("BeforeClusterCreate".to_owned());
    let plan = world.plan_with(&world.current()).unwrap();
    assert_eq!((plan.calls.len(), plan.patches.is_none()), (1, true));
    world.hooks.answers.insert(Hook::BeforeClusterCreate, Answer::Passed);
    let plan = world.plan_with(&world.current()).unwrap();
    assert_eq!((plan.calls.len(), plan.patches.is_none()), (0, false));
    let blocks = Answer::Blocks {
        seconds: 3,
        message: "no".to_owned(),
    };
    world.hooks.answers.insert(Hook::BeforeClusterCreate, blocks);
    let (asked, _) = play(&mut world, |_| Ok(Vec::new()));
    assert!(asked.is_empty(), "what may not exist is not patched");
}

/// A class with inline patches before, between and behind so many external ones.
fn many(externals: usize) -> World {
    let mut patches = Vec::new();
    for number in 0..externals {
        patches.push(json!({"name": format!("inline-{number}"), "definitions": [{
            "selector": {
                "apiVersion": "controlplane.cluster.x-k8s.io/v1beta2", "kind": "KubeadmControlPlaneTemplate",
                "matchResources": {"controlPlane": true},
            },
            "jsonPatches": [{"op": "add", "path": format!("/spec/template/spec/n{number}"), "valueFrom": {"template": "{{ .builtin.cluster.name }}"}}],
        }]}));
        patches.push(json!({"name": format!("external-{number}"), "external": {"generatePatchesExtension": "g.e"}}));
    }
    world(patches.into())
}

#[test]
fn each_patch_is_applied_once_however_many_extensions_are_asked() {
    let costs = |externals: usize| {
        let (asked, _) = play(&mut many(externals), |_| Ok(Vec::new()));
        assert_eq!(asked.len(), externals);
        let left: Vec<usize> = asked.iter().map(|one| one.progress.left.left()).collect();
        left
    };
    let left = costs(8);
    let each: Vec<usize> = left.windows(2).map(|pair| pair[0] - pair[1]).collect();
    let first = windlass_meta::budget::PATCHES_COST - left[0];
    assert!(
        each.iter().all(|cost| (1..=first).contains(cost)),
        "{first}, then {each:?}"
    );
}

#[test]
fn extensions_are_asked_again_when_the_templates_have_changed_meanwhile() {
    let mut world = many(2);
    let ask = |world: &World| world.plan_with(&world.current()).unwrap().patches;
    let first = ask(&world).unwrap();
    world.patches = Some(Answered {
        question: *first.clone(),
        answer: Ok(Vec::new()),
    });
    let second = ask(&world).unwrap();
    assert_eq!(
        (first.patch.as_str(), second.patch.as_str()),
        ("external-0", "external-1")
    );
    world.patches = Some(Answered {
        question: *second,
        answer: Ok(Vec::new()),
    });
    assert_eq!(ask(&world), None);
    world.templates[0]["spec"]["template"]["spec"]["changed"] = true.into();
    let again = ask(&world).unwrap();
    assert_eq!(again.patch, "external-0");
    assert_ne!(again, first);
}
