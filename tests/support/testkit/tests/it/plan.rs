//! A plan says what happens: each change is planned, then made, and what became of objects and Machines is compared with the plan.

mod compare;
mod offline;
mod strategies;
mod subject;

use serde_json::json;
use windlass_preview::model::Verdict;

use subject::{Edit, Subject};

/// All edits, in an order in which each is possible after the one before.
const CORPUS: &[Edit] = &[
    Edit::Same,
    Edit::VariableDefault,
    Edit::NodeLabel("blue"),
    Edit::CertSans("a.example.com"),
    Edit::WorkerLabel("team-a"),
    Edit::StartupDuration("1ms"),
    Edit::Workers(3),
    Edit::Workers(1),
    Edit::ClassTemplate,
    Edit::HealthCheck(60),
    Edit::HealthCheck(90),
    Edit::ControlPlane(3),
    Edit::Version("v1.34.0"),
    Edit::AddWorker("md-1"),
    Edit::Chain("v1.36.0"),
    Edit::RemoveWorker("md-1"),
    Edit::ControlPlane(1),
    Edit::Rebase,
    Edit::NoHealthCheck,
];

#[tokio::test]
async fn what_is_planned_happens() {
    let mut subject = Subject::start("v1.33.0").await;
    for edit in CORPUS {
        subject.plan_and_make(*edit).await;
    }
    subject.stop().await;
}

#[tokio::test]
async fn what_is_planned_happens_for_any_change() {
    let seed = windlass_testkit::seeds::given().unwrap_or(1);
    let _shown = windlass_testkit::seeds::Shown(seed);
    let mut subject = Subject::start("v1.33.0").await;
    for edit in subject::any(seed, 6) {
        subject.plan_and_make_all(&edit).await;
    }
    subject.stop().await;
}

#[tokio::test]
async fn a_refused_change_is_refused_in_the_plan_with_the_same_words() {
    let subject = Subject::start("v1.35.0").await;
    let mut cluster = subject.cluster();
    cluster["spec"]["topology"]["variables"] = json!([{"name": "startupDuration", "value": "soon"}]);
    let report = subject.plan(std::slice::from_ref(&cluster)).await;
    assert_eq!(report.verdict(), Verdict::Problems);
    let refused = subject.env().try_apply(&cluster).await.unwrap_err();
    assert_eq!(report.refused.len(), 1);
    let said = &report.refused[0].message;
    assert!(said.contains("startupDuration"), "{said}");
    assert!(refused.to_string().contains(said), "{refused}\n{said}");
    subject.stop().await;
}

#[tokio::test]
async fn a_broken_patch_is_a_problem_of_the_plan_as_of_the_condition() {
    let subject = Subject::start("v1.35.0").await;
    let mut class = subject.class();
    let patches = class["spec"]["patches"].as_array_mut().unwrap();
    patches[0]["definitions"][0]["jsonPatches"][0]["path"] = json!("/spec/template/spec/backend/nowhere/x");
    let report = subject.plan(std::slice::from_ref(&class)).await;
    assert_eq!(report.verdict(), Verdict::Problems, "{report:#?}");
    assert!(report.groups[0].plan.phases.is_empty(), "{report:#?}");
    subject.env().apply(&class).await;
    let said = subject.topology_message("nowhere").await;
    for problem in &report.groups[0].plan.problems {
        assert!(said.contains(problem.as_str()), "{said}\n{problem}");
    }
    subject.stop().await;
}
