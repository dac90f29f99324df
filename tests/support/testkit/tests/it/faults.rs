//! Faults between controllers and API server delay operations but change no results.

use std::sync::Arc;

use k8s_openapi::api::core::v1::Event;
use parking_lot::Mutex;
use windlass_api_kubeadm::controlplane::KubeadmControlPlane;
use windlass_testkit::faults::{Fault, Faults, Seen};
use windlass_testkit::{CLASS, ClusterOf, Env, seeds};

/// The offset of a periodic rule: zero, or from the environment.
fn offset(period: usize) -> usize {
    let seed = seeds::given().unwrap_or_default();
    usize::try_from(seed).unwrap_or_default() % period
}

/// Conflicts, server errors, lost answers and lost requests of writes; broken watches; failing reads.
fn everything(seen: &Seen) -> Option<Fault> {
    // The seed determines which requests fail.
    let number = seen.number + offset(20);
    if seen.is_write() {
        match number % 20 {
            3 => Some(Fault::AnswerLost),
            7 => Some(Fault::Refused(409)),
            11 => Some(Fault::Refused(500)),
            15 => Some(Fault::Lost),
            _ => None,
        }
    } else if seen.is_watch() {
        // Watches are repeated, so that eventually each is complete.
        (number % 4 == 1).then_some(Fault::Broken(2))
    } else {
        (number % 10 == 9).then_some(Fault::Refused(503))
    }
}

#[tokio::test]
async fn faults_make_nothing_twice_and_lose_nothing() {
    let _shown = seeds::Shown(seeds::given().unwrap_or_default());
    let faults = Faults::when(everything);
    let env = Env::builder().faults(&faults).start().await;
    env.apply_yaml(CLASS).await;
    let stored = env.stored().await;
    let cluster = ClusterOf::new("faulty", 1, 2);
    cluster.apply(&env).await;
    cluster.wait_running(&env).await;
    for (resource, count) in [
        ("clusters", 0),
        ("kubeadmcontrolplanes", 1),
        ("machinedeployments", 1),
        ("machinesets", 1),
    ] {
        assert_eq!(env.created(resource), count, "{resource}");
    }
    for resource in ["machines", "kubeadmconfigs", "devmachines"] {
        assert_eq!(env.created(resource), 3, "{resource}");
    }
    let cluster = cluster.workers(1);
    cluster.apply(&env).await;
    cluster.wait_running(&env).await;
    let cluster = cluster.version("v1.36.0");
    cluster.apply(&env).await;
    cluster.wait_running(&env).await;
    assert_eq!(env.created("machines"), 3 + 2);
    env.delete("Cluster", "faulty").await;
    env.wait_gone("faulty").await;
    assert_eq!(env.stored().await, stored);

    let injected = faults.injected();
    for fault in [
        Fault::AnswerLost,
        Fault::Refused(409),
        Fault::Refused(500),
        Fault::Lost,
        Fault::Broken(2),
        Fault::Refused(503),
    ] {
        assert!(
            injected.iter().any(|(_, done)| *done == fault),
            "no {fault:?} among {} faults",
            injected.len()
        );
    }
    env.stop().await;
}

/// Kills the controllers during a write, later each time, until `done` succeeds.
async fn dying<T>(env: &mut Env, done: impl AsyncFn(&Env) -> T) -> T {
    // A start repeats applies whose result it does not know, so dying early each time would make no progress.
    for n in (5 + offset(16)..).step_by(16) {
        let faults = Faults::dying_at_write(n);
        env.start_controllers(&faults);
        let reached = tokio::select! {
            done = done(env) => Some(done),
            () = faults.died() => None,
        };
        env.stop_controllers().await;
        if let Some(done) = reached {
            return done;
        }
    }
    unreachable!("numbers have no end")
}

// TO-250
#[tokio::test]
async fn controllers_that_die_at_any_write_are_followed_by_others_that_finish() {
    let _shown = seeds::Shown(seeds::given().unwrap_or_default());
    let mut env = Env::builder().without_controllers().start().await;
    env.apply_yaml(CLASS).await;
    let stored = env.stored().await;
    let cluster = ClusterOf::new("mortal", 1, 1);
    cluster.apply(&env).await;
    dying(&mut env, async |env| cluster.wait_running(env).await).await;
    let cluster = cluster.version("v1.36.0");
    cluster.apply(&env).await;
    dying(&mut env, async |env| cluster.wait_running(env).await).await;
    assert_eq!(env.created("machines"), 4, "two at first, two for the upgrade");
    env.delete("Cluster", "mortal").await;
    dying(&mut env, async |env| env.wait_gone("mortal").await).await;
    let mut left = env.stored().await;
    // The inventory of built-in providers stays.
    left.retain(|object| !object.contains("windlass-system"));
    assert_eq!(left, stored);
    env.stop().await;
}

#[tokio::test]
async fn a_refused_deletion_is_an_event_of_the_owner() {
    let refused = Arc::new(Mutex::new("/machines/".to_owned()));
    let faults = Faults::when({
        let refused = refused.clone();
        move |seen| {
            let hit = seen.method == "DELETE" && seen.path.contains(refused.lock().as_str());
            hit.then_some(Fault::Refused(500))
        }
    });
    let env = Env::builder().faults(&faults).start().await;
    env.apply_yaml(CLASS).await;
    let cluster = ClusterOf::new("refused", 1, 2);
    cluster.apply(&env).await;
    cluster.wait_running(&env).await;
    let told = async |kind: &str| {
        let is_it = |event: &Event| {
            event.involved_object.kind.as_deref() == Some(kind)
                && event.reason.as_deref() == Some("FailedDelete")
                && event.type_.as_deref() == Some("Warning")
        };
        let what = format!("an event FailedDelete of a {kind}");
        env.wait_all::<Event>(&what, |events| events.iter().any(is_it)).await;
    };
    let cluster = cluster.workers(1);
    cluster.apply(&env).await;
    told("MachineSet").await;
    "/machinesets/".clone_into(&mut refused.lock());
    cluster.wait_running(&env).await;
    let control_planes = env.list::<KubeadmControlPlane>().await;
    env.delete("Cluster", "refused").await;
    told("MachineDeployment").await;
    *refused.lock() = format!(
        "/machines/{}-",
        control_planes[0].metadata.name.as_deref().unwrap_or_default()
    );
    told("KubeadmControlPlane").await;
    "nothing".clone_into(&mut refused.lock());
    env.wait_gone("refused").await;
    env.stop().await;
}
