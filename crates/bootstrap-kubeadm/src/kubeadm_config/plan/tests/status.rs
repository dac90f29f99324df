//! The status.

use super::*;

#[test]
fn there_is_no_status_without_a_machine_or_while_deleting() {
    let mut seen = world(false, WORKER).observed();
    seen.owner = Seen::NotFound;
    let orphan = planned(&seen, &Moment::at(now()));
    assert!(orphan.silent && orphan.actions.is_empty());
    assert_eq!(status(&seen, &orphan, &Done::default(), &Moment::at(now())), None);
    let deleting = world(false, WORKER)
        .with(|world| world.config["metadata"]["deletionTimestamp"] = NOW.into())
        .plan();
    assert!(deleting.silent && deleting.actions.is_empty());
}

fn told(seen: &Observed, done: &Done) -> Option<Value> {
    let now = Moment::at(now());
    status(seen, &planned(seen, &now), done, &now)
}

fn check_status(seen: &Observed, done: &Done, want: &str) {
    let got = told(seen, done).unwrap();
    assert_eq!(got, object::<Value>(want), "{got:#}");
}

#[test]
fn a_finished_config_says_what_recorded_ones_say() {
    let done = Done {
        generation: Some(2),
        ..Done::default()
    };
    check_status(
        &world(false, WORKER).observed(),
        &done,
        "
conditions:
- {type: Ready, status: 'True', reason: Ready, message: '', observedGeneration: 2, lastTransitionTime: '2026-11-21T10:00:00Z'}
- {type: CertificatesAvailable, status: 'True', reason: Available, message: '', observedGeneration: 2, lastTransitionTime: '2026-11-21T10:00:00Z'}
- {type: DataSecretAvailable, status: 'True', reason: Available, message: '', observedGeneration: 2, lastTransitionTime: '2026-11-21T10:00:00Z'}
observedGeneration: 2
dataSecretName: m1
initialization: {dataSecretCreated: true}
deprecated:
  v1beta1:
    conditions:
    - {type: Ready, status: 'True', lastTransitionTime: '2026-11-21T10:00:00Z'}
    - {type: CertificatesAvailable, status: 'True', lastTransitionTime: '2026-11-21T10:00:00Z'}
    - {type: DataSecretAvailable, status: 'True', lastTransitionTime: '2026-11-21T10:00:00Z'}
",
    );
}

#[test]
fn a_waiting_worker_says_what_recorded_ones_say() {
    check_status(
        &world(false, WORKER).before_init().observed(),
        &Done::default(),
        "
conditions:
- type: Ready
  status: 'False'
  reason: NotReady
  message: \"* DataSecretAvailable: Waiting for Cluster control plane to be initialized\\n* CertificatesAvailable: Condition not yet reported\"
  observedGeneration: 1
  lastTransitionTime: '2026-11-21T10:00:00Z'
- type: DataSecretAvailable
  status: 'False'
  reason: NotAvailable
  message: Waiting for Cluster control plane to be initialized
  observedGeneration: 1
  lastTransitionTime: '2026-11-21T10:00:00Z'
observedGeneration: 1
deprecated:
  v1beta1:
    conditions:
    - {type: Ready, status: 'False', reason: WaitingForControlPlaneAvailable, severity: Info, lastTransitionTime: '2026-11-21T10:00:00Z'}
    - {type: DataSecretAvailable, status: 'False', reason: WaitingForControlPlaneAvailable, severity: Info, lastTransitionTime: '2026-11-21T10:00:00Z'}
",
    );
}

#[test]
fn a_status_that_was_applied_is_not_changed_by_looking_again() {
    let seen = world(false, WORKER).before_init().observed();
    let now = Moment::at(now());
    let first = status(&seen, &planned(&seen, &now), &Done::default(), &now).unwrap();
    let again = world(false, WORKER)
        .before_init()
        .with(|world| world.config["status"] = first.clone())
        .observed();
    let later = Moment::at(minutes(1));
    assert_eq!(
        status(&again, &planned(&again, &later), &Done::default(), &later).unwrap(),
        first
    );
}

#[test]
fn a_failed_write_is_a_condition_but_never_takes_data_back() {
    let failed = |lost_lock| Done {
        failed: Some(Failure {
            action: 0,
            lost_lock,
            error: ReconcileError::new("Remote", "failed to create the token: no answer"),
        }),
        ..Done::default()
    };
    let seen = world(false, WORKER).observed();
    let status = told(&seen, &failed(false)).unwrap();
    let message = status["conditions"][2]["message"].as_str().unwrap();
    assert_eq!(message, "failed to create the token: no answer");
    assert_eq!(status["deprecated"]["v1beta1"]["conditions"][0]["severity"], "Warning");
    assert!(status.get("dataSecretName").is_none());

    let lost = world(true, INIT).before_init().observed();
    let status = told(&lost, &failed(true)).unwrap();
    assert_eq!(
        status["conditions"][2]["message"],
        "Waiting for Cluster control plane to be initialized"
    );

    let finished = world(false, WORKER).done().observed();
    let status = told(&finished, &failed(false)).unwrap();
    assert_eq!(status["dataSecretName"], "m1");
    assert_eq!(status["conditions"][0]["status"], "True");
}
