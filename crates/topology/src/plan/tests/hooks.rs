//! Lifecycle hooks of extensions.

use serde_json::json;

use super::kinds;
use crate::hooks::{Answer, Hook, PlanAnswer};
use crate::status::report;
use crate::testing::World;
use crate::upgrade::UpgradePlan;

/// All hooks, served by an extension that lets everything pass.
fn world() -> World {
    let mut world = World::in_memory();
    world.hooks.served = HOOKS.iter().map(|hook| hook.name().to_owned()).collect();
    world
}

const HOOKS: [Hook; 8] = [
    Hook::BeforeClusterCreate,
    Hook::AfterControlPlaneInitialized,
    Hook::BeforeClusterUpgrade,
    Hook::BeforeControlPlaneUpgrade,
    Hook::AfterControlPlaneUpgrade,
    Hook::BeforeWorkersUpgrade,
    Hook::AfterWorkersUpgrade,
    Hook::AfterClusterUpgrade,
];

/// The hooks that are asked now, with the versions in the question.
fn asked(world: &World) -> Vec<String> {
    let calls = world.plan().unwrap().calls;
    let one = calls.iter().map(|call| {
        let name = call.hook.name();
        [name, &call.from, &call.to].join(" ").trim_end().to_owned()
    });
    one.collect()
}

fn blocks(seconds: i32, message: &str) -> Answer {
    Answer::Blocks {
        seconds,
        message: message.to_owned(),
    }
}

/// Asks, has everything pass, and takes the steps; gives what was asked and done.
fn pass(world: &mut World) -> (Vec<String>, Vec<String>) {
    let questions = asked(world);
    world.hooks.answers = HOOKS.iter().map(|hook| (*hook, Answer::Passed)).collect();
    let plan = world.plan().unwrap();
    let done: Vec<String> = plan.changes().map(|step| step.event.clone()).collect();
    world.take(&plan);
    world.hooks.answers.clear();
    (questions, kinds(&done))
}

fn pending(world: &World) -> &str {
    let annotations = &world.cluster["metadata"]["annotations"];
    annotations["runtime.cluster.x-k8s.io/pending-hooks"]
        .as_str()
        .unwrap_or_default()
}

// TO-321; rows 332, 333
#[test]
fn nothing_is_made_before_the_hook_lets_it() {
    let mut world = world();
    assert_eq!(asked(&world), ["BeforeClusterCreate"]);
    world
        .hooks
        .answers
        .insert(Hook::BeforeClusterCreate, blocks(7, "no quota"));
    let plan = world.plan().unwrap();
    assert_eq!((plan.steps.len(), plan.progress.ask_again()), (0, Some(7)));
    let told = report(&plan.progress);
    assert_eq!(
        (told.reason.as_ref(), told.message.as_str()),
        (
            "ClusterCreating",
            "Following hooks are blocking Cluster topology creation: BeforeClusterCreate: no quota"
        )
    );
    let failed = Answer::Failed("down".to_owned());
    world.hooks.answers.insert(Hook::BeforeClusterCreate, failed);
    let plan = world.plan().unwrap();
    assert!(plan.steps.is_empty());
    assert_eq!(
        plan.failed_hook.unwrap().to_string(),
        "Cluster default/demo000: hook BeforeClusterCreate has no answer: down"
    );
    let (_, done) = pass(&mut world);
    assert_eq!(done[0], "Updated Cluster");
    assert_eq!(pending(&world), "AfterControlPlaneInitialized");
    assert_eq!(
        asked(&world),
        Vec::<String>::new(),
        "the control plane is not initialized"
    );
    world.cluster["status"]["conditions"] = json!([{"type": "ControlPlaneInitialized", "status": "True"}]);
    assert_eq!(pass(&mut world).0, ["AfterControlPlaneInitialized"]);
    assert_eq!(pending(&world), "");
}

#[test]
fn hooks_that_are_not_served_leave_no_marks() {
    let mut world = World::in_memory();
    world.settle();
    assert_eq!(pending(&world), "");
    world.control_plane_ready();
    world.cluster["spec"]["topology"]["version"] = "v1.36.0".into();
    world.settle();
    assert_eq!(pending(&world), "");
}

// TO-321; rows 310, 334 to 338
#[test]
fn an_upgrade_goes_from_hook_to_hook() {
    let mut world = world();
    pass(&mut world);
    world.cluster["status"]["conditions"] = json!([{"type": "ControlPlaneInitialized", "status": "True"}]);
    pass(&mut world);
    world.control_plane_ready();
    world.cluster["spec"]["topology"]["version"] = "v1.36.0".into();
    let before = [
        "BeforeClusterUpgrade v1.35.0 v1.36.0",
        "BeforeControlPlaneUpgrade v1.35.0 v1.36.0",
    ];
    assert_eq!(asked(&world), before);
    let calls = world.plan().unwrap().calls;
    assert_eq!(
        (&calls[0].control_plane[..], &calls[0].workers[..]),
        (&["v1.36.0".to_owned()][..], &["v1.36.0".to_owned()][..])
    );
    world
        .hooks
        .answers
        .insert(Hook::BeforeClusterUpgrade, blocks(3, "freeze"));
    let plan = world.plan().unwrap();
    assert_eq!(
        kinds(&plan.changes().map(|step| step.event.clone()).collect::<Vec<_>>()),
        ["Updated Cluster"]
    );
    let told = report(&plan.progress);
    assert_eq!(told.reason, "ClusterUpgrading");
    assert!(
        told.message
            .contains("\n  * Following hooks are blocking upgrade: BeforeClusterUpgrade: freeze\n  * "),
        "{}",
        told.message
    );
    world.take(&plan);
    world.hooks.answers.clear();
    let (questions, done) = pass(&mut world);
    assert_eq!(questions, before);
    assert!(done.contains(&"Updated KubeadmControlPlane".to_owned()), "{done:?}");
    assert_eq!(
        pending(&world),
        "AfterClusterUpgrade,AfterControlPlaneUpgrade,AfterWorkersUpgrade,BeforeWorkersUpgrade"
    );
    // Nothing is asked while the control plane is on its way.
    world.settle();
    assert_eq!(asked(&world), Vec::<String>::new());
    world.control_plane_ready();
    world
        .hooks
        .answers
        .insert(Hook::AfterControlPlaneUpgrade, Answer::Passed);
    world.hooks.answers.insert(Hook::BeforeWorkersUpgrade, blocks(3, ""));
    let plan = world.plan().unwrap();
    assert_eq!(plan.progress.deployments.pending.len(), 1, "the workers wait");
    let told = report(&plan.progress);
    assert!(
        told.message
            .contains("Following hooks are blocking upgrade: BeforeWorkersUpgrade\n"),
        "{}",
        told.message
    );
    world.hooks.answers.clear();
    let (questions, done) = pass(&mut world);
    assert_eq!(
        questions,
        [
            "AfterControlPlaneUpgrade v1.35.0 v1.36.0",
            "BeforeWorkersUpgrade v1.35.0 v1.36.0"
        ]
    );
    assert!(done.contains(&"Updated MachineDeployment".to_owned()), "{done:?}");
    let name = crate::model::text(world.only("MachineDeployment"), "/metadata/name").to_owned();
    world.machine_versions.insert(name.clone(), vec!["v1.35.0".to_owned()]);
    assert_eq!(asked(&world), Vec::<String>::new());
    world.machine_versions.insert(name, vec!["v1.36.0".to_owned()]);
    assert_eq!(
        asked(&world),
        ["AfterWorkersUpgrade  v1.36.0", "AfterClusterUpgrade  v1.36.0"]
    );
    world.hooks.answers.insert(Hook::AfterWorkersUpgrade, Answer::Passed);
    world
        .hooks
        .answers
        .insert(Hook::AfterClusterUpgrade, blocks(3, "tests run"));
    let plan = world.plan().unwrap();
    let told = report(&plan.progress);
    assert_eq!(
        (told.reason.as_ref(), told.message.as_str()),
        (
            "ClusterUpgrading",
            "Cluster is upgrading to v1.36.0\n  * Following hooks are blocking upgrade: AfterClusterUpgrade: tests run"
        )
    );
    world.take(&plan);
    assert_eq!(pending(&world), "AfterClusterUpgrade");
    world.hooks.answers.clear();
    assert_eq!(pass(&mut world).0, ["AfterClusterUpgrade  v1.36.0"]);
    assert_eq!(pending(&world), "");
    assert_eq!(report(&world.plan().unwrap().progress).reason, "ReconcileSucceeded");
}

// The annotation stops the beginning of an upgrade, and none of its later steps.
#[test]
fn an_annotation_stops_the_beginning_of_an_upgrade() {
    let mut world = World::in_memory();
    world.class["spec"]["kubernetesVersions"] = json!(["v1.35.0", "v1.36.0", "v1.37.0"]);
    world.settle();
    world.control_plane_ready();
    world.cluster["metadata"]["annotations"] = json!({"before-upgrade.hook.cluster.cluster.x-k8s.io/me": ""});
    world.cluster["spec"]["topology"]["version"] = "v1.37.0".into();
    world.settle();
    let told = report(&world.plan().unwrap().progress);
    let line = "Following hooks are blocking upgrade: BeforeClusterUpgrade: annotation \
                before-upgrade.hook.cluster.cluster.x-k8s.io/me is set";
    assert!(told.message.contains(line), "{}", told.message);
    let annotations = world.cluster["metadata"]["annotations"].as_object_mut().unwrap();
    annotations.remove("before-upgrade.hook.cluster.cluster.x-k8s.io/me");
    world.settle();
    assert_eq!(pending(&world), "AfterClusterUpgrade");
    let annotations = world.cluster["metadata"]["annotations"].as_object_mut().unwrap();
    annotations.insert("before-upgrade.hook.cluster.cluster.x-k8s.io/me".to_owned(), "".into());
    world.control_plane_ready();
    world.settle();
    assert_eq!(world.only("KubeadmControlPlane")["spec"]["version"], "v1.37.0");
}

// "Cannot tell" is not "there is none".
#[test]
fn an_extension_that_was_never_discovered_holds_up_what_comes_after_hooks() {
    let mut world = World::in_memory();
    world.hooks.unknown = Some("ExtensionConfig x was never discovered".to_owned());
    let plan = world.plan().unwrap();
    assert!(plan.steps.is_empty());
    assert!(plan.failed_hook.unwrap().to_string().contains("x was never discovered"));
    world.hooks.unknown = None;
    world.settle();
    world.control_plane_ready();
    world.hooks.unknown = Some("ExtensionConfig x was never discovered".to_owned());
    assert!(world.plan().unwrap().failed_hook.is_none(), "nothing is to be asked");
    world.cluster["spec"]["topology"]["version"] = "v1.36.0".into();
    let plan = world.plan().unwrap();
    assert!(plan.failed_hook.is_some());
    assert_eq!(world.only("KubeadmControlPlane")["spec"]["version"], "v1.35.0");
}

// Rows 304, 343: the extension that the class names says which versions are gone through. Nothing else is planned before it has.
#[test]
fn an_extension_says_which_versions_an_upgrade_goes_through() {
    let mut world = World::in_memory();
    let external = json!({"external": {"generateUpgradePlanExtension": "plan.ext"}});
    world.class["spec"]["upgrade"] = external;
    world.settle();
    assert!(world.plan().unwrap().plan_request.is_none(), "all are at the version");
    world.control_plane_ready();
    world.cluster["spec"]["topology"]["version"] = "v1.37.0".into();
    let plan = world.plan().unwrap();
    assert!(plan.steps.is_empty());
    let request = plan.plan_request.unwrap();
    assert_eq!(
        [
            &request.handler,
            &request.from_control_plane,
            &request.from_workers,
            &request.to
        ],
        ["plan.ext", "v1.35.0", "v1.35.0", "v1.37.0"]
    );
    world.upgrade_plan = Some(PlanAnswer {
        request: request.clone(),
        answer: Err("down".to_owned()),
    });
    let plan = world.plan().unwrap();
    assert!(plan.steps.is_empty() && plan.is_lost);
    assert!(
        plan.failed_hook
            .unwrap()
            .to_string()
            .contains("hook GenerateUpgradePlan has no usable answer: down")
    );
    let versions = |all: &[&str]| all.iter().map(|version| (*version).to_owned()).collect::<Vec<_>>();
    world.upgrade_plan = Some(PlanAnswer {
        request,
        answer: Ok(UpgradePlan {
            control_plane: versions(&["v1.36.3", "v1.37.0"]),
            workers: versions(&["v1.36.3", "v1.37.0"]),
        }),
    });
    let plan = world.plan().unwrap();
    assert_eq!(plan.progress.control_plane_plan, ["v1.36.3", "v1.37.0"]);
    world.take(&plan);
    assert_eq!(world.only("KubeadmControlPlane")["spec"]["version"], "v1.36.3");
    // Another question.
    let request = world.plan().unwrap().plan_request.unwrap();
    assert_eq!(request.from_control_plane, "v1.36.3");
}

// Builds of one version have no order, and so no build is behind another.
#[test]
fn workers_never_get_a_build_that_a_hook_keeps_from_the_control_plane() {
    let mut world = world();
    world.cluster["spec"]["topology"]["version"] = "v1.31.2+rke2r9".into();
    pass(&mut world);
    world.control_plane_ready();
    world.cluster["spec"]["topology"]["version"] = "v1.31.2+rke2r10".into();
    world
        .hooks
        .answers
        .insert(Hook::BeforeClusterUpgrade, blocks(3, "freeze"));
    let plan = world.plan().unwrap();
    assert_eq!(plan.progress.deployments.pending.len(), 1, "{:?}", plan.progress);
    world.take(&plan);
    let version = &world.only("MachineDeployment")["spec"]["template"]["spec"]["version"];
    assert_eq!(version, "v1.31.2+rke2r9");
}

// BeforeClusterUpgrade is called once, whatever else is served, and what blocks after the last step shows.
#[test]
fn an_upgrade_that_has_begun_is_remembered() {
    let mut world = World::in_memory();
    world.hooks.served = [
        Hook::BeforeClusterUpgrade,
        Hook::BeforeControlPlaneUpgrade,
        Hook::AfterWorkersUpgrade,
    ]
    .map(|hook| hook.name().to_owned())
    .into();
    world.settle();
    world.control_plane_ready();
    world.cluster["spec"]["topology"]["version"] = "v1.36.0".into();
    world.hooks.answers.insert(Hook::BeforeClusterUpgrade, Answer::Passed);
    world
        .hooks
        .answers
        .insert(Hook::BeforeControlPlaneUpgrade, blocks(3, "wait"));
    let plan = world.plan().unwrap();
    world.take(&plan);
    world.hooks.answers.clear();
    assert_eq!(pending(&world), "AfterClusterUpgrade");
    assert_eq!(asked(&world), ["BeforeControlPlaneUpgrade v1.35.0 v1.36.0"]);
    pass(&mut world);
    world.control_plane_ready();
    pass(&mut world);
    world
        .hooks
        .answers
        .insert(Hook::AfterWorkersUpgrade, blocks(3, "tests run"));
    let told = report(&world.plan().unwrap().progress);
    assert_eq!(told.reason, "ClusterUpgrading");
    assert!(
        told.message.contains("AfterWorkersUpgrade: tests run"),
        "{}",
        told.message
    );
    world.hooks.answers.clear();
    pass(&mut world);
    assert_eq!(pending(&world), "");
    assert_eq!(report(&world.plan().unwrap().progress).reason, "ReconcileSucceeded");
}
