//! Operations that are cancelled or killed, and what they leave behind. After every test, no process and no file may be left.

use std::path::Path;
use std::time::Duration;

use k8s_openapi::api::batch::v1::Job;
use kube::api::{Api, ListParams};
use kube::runtime::wait::await_condition;
use serde_json::Value;
use windlass_fake_providers::ChartLike;
use windlass_helm::{Chart, Engine as _, Kind, Options, Status};

use crate::player::hook;
use crate::support::{World, quick, running, simple, with_both};

/// A chart with a hook that never completes.
fn endless(event: &str, version: &str) -> ChartLike {
    simple(version).file("templates/hook.yaml", &hook(event, &format!("never-{event}")))
}

/// Waits until a hook has started.
async fn begun(world: &World, event: &str) {
    let jobs: Api<Job> = Api::namespaced(world.cluster.client.clone(), &world.cluster.namespace);
    let there = |job: Option<&Job>| job.is_some();
    await_condition(jobs, &format!("never-{event}"), there).await.unwrap();
}

/// The processes of an engine, with their command lines.
fn commands(home: &Path) -> Vec<(u32, Vec<String>)> {
    let entries = std::fs::read_dir("/proc").unwrap().filter_map(Result::ok);
    let home = home.to_str().unwrap();
    entries
        .filter_map(|entry| {
            let id: u32 = entry.file_name().to_str()?.parse().ok()?;
            let line = std::fs::read_to_string(entry.path().join("cmdline")).ok()?;
            let words: Vec<String> = line.split('\0').map(str::to_owned).collect();
            words.iter().any(|word| word.contains(home)).then_some((id, words))
        })
        .collect()
}

/// Starts an operation, waits until it hangs in a hook, and ends it with a function.
async fn cut_off(world: &World, chart: &Chart, event: &str, end: impl AsyncFnOnce(&World)) {
    let (target, options) = (world.target(), long());
    let operation = async {
        let helm = &world.helm;
        match event {
            "pre-rollback" => helm.rollback(&target, 1, &options).await,
            _ if event.ends_with("install") => helm.install(&target, chart, "greeting: b", &options).await.map(drop),
            _ => helm.upgrade(&target, chart, "greeting: b", &options).await.map(drop),
        }
    };
    tokio::select! {
        result = operation => panic!("it ended: {result:?}"),
        () = async { begun(world, event).await; end(world).await } => {}
    }
}

fn long() -> Options {
    Options {
        timeout: Duration::from_mins(10),
        ..quick()
    }
}

/// Kills helm as if the machine had.
async fn kill(world: &World) {
    for (id, _) in commands(&world.home()) {
        let id = rustix::process::Pid::from_raw(i32::try_from(id).unwrap()).unwrap();
        rustix::process::kill_process(id, rustix::process::Signal::KILL).unwrap();
    }
    // The operation would notice; it is ignored here, as after the end of its process.
    while running(&world.home()) > 0 {
        tokio::task::yield_now().await;
    }
}

// AD-102
with_both!(an_install_that_was_killed_is_pending_and_can_be_finished_or_removed);
async fn an_install_that_was_killed_is_pending_and_can_be_finished_or_removed(world: World) -> World {
    let target = world.target();
    let chart = world.chart(&endless("pre-install", "1.0.0")).await;
    let plain = world.chart(&simple("1.1.0")).await;
    cut_off(&world, &chart, "pre-install", kill).await;
    let left = world.cluster.newest(&target).await.unwrap();
    assert_eq!((left.revision, left.status), (1, Status::PendingInstall));
    assert!(target.marker.is_on(&left));
    let refused = world.helm.upgrade(&target, &plain, "", &quick()).await.unwrap_err();
    assert_eq!(refused.kind, Kind::Locked, "{refused}");
    let refused = world.helm.install(&target, &plain, "", &quick()).await.unwrap_err();
    assert_eq!(refused.kind, Kind::NameInUse, "{refused}");

    // A rollback to itself completes it.
    world.helm.rollback(&target, 1, &quick()).await.unwrap();
    let newest = world.cluster.newest(&target).await.unwrap();
    assert_eq!((newest.revision, newest.status), (2, Status::Deployed));
    assert!(target.marker.is_on(&newest));
    world.helm.upgrade(&target, &plain, "", &quick()).await.unwrap();
    world.helm.uninstall(&target, &quick()).await.unwrap();
    assert_eq!(world.cluster.newest(&target).await, None);
    world
}

// AD-102
with_both!(an_upgrade_that_was_killed_is_pending_and_can_be_finished);
async fn an_upgrade_that_was_killed_is_pending_and_can_be_finished(world: World) -> World {
    let target = world.target();
    let plain = world.chart(&simple("1.0.0")).await;
    let chart = world.chart(&endless("pre-upgrade", "1.1.0")).await;
    world
        .helm
        .install(&target, &plain, "greeting: a", &quick())
        .await
        .unwrap();
    cut_off(&world, &chart, "pre-upgrade", kill).await;
    let left = world.cluster.newest(&target).await.unwrap();
    assert_eq!(
        (left.revision, left.status, left.chart_version.as_str()),
        (2, Status::PendingUpgrade, "1.1.0")
    );
    world.helm.rollback(&target, 2, &quick()).await.unwrap();
    let newest = world.cluster.newest(&target).await.unwrap();
    assert_eq!(
        (newest.revision, newest.status, newest.chart_version.as_str()),
        (3, Status::Deployed, "1.1.0")
    );
    let map = world.cluster.get::<k8s_openapi::api::core::v1::ConfigMap>("web").await;
    assert_eq!(map["data"]["greeting"], "b");
    world
}

// AD-076, AD-102
with_both!(a_rollback_that_was_killed_is_pending_and_can_be_done_again);
async fn a_rollback_that_was_killed_is_pending_and_can_be_done_again(world: World) -> World {
    let target = world.target();
    let chart = world.chart(&endless("pre-rollback", "1.0.0")).await;
    let plain = world.chart(&simple("1.1.0")).await;
    world.helm.install(&target, &chart, "", &quick()).await.unwrap();
    world.helm.upgrade(&target, &plain, "", &quick()).await.unwrap();
    cut_off(&world, &plain, "pre-rollback", kill).await;
    let left = world.cluster.newest(&target).await.unwrap();
    assert_eq!((left.revision, left.status), (3, Status::PendingRollback));
    let silent = Options {
        disable_hooks: true,
        ..quick()
    };
    world.helm.rollback(&target, 1, &silent).await.unwrap();
    let newest = world.cluster.newest(&target).await.unwrap();
    assert_eq!((newest.revision, newest.status), (4, Status::Deployed));
    world
}

with_both!(a_pending_release_can_be_uninstalled);
async fn a_pending_release_can_be_uninstalled(world: World) -> World {
    let chart = world.chart(&endless("post-install", "1.0.0")).await;
    cut_off(&world, &chart, "post-install", kill).await;
    world.helm.uninstall(&world.target(), &quick()).await.unwrap();
    assert_eq!(world.cluster.newest(&world.target()).await, None);
    let maps = world.cluster.get::<k8s_openapi::api::core::v1::ConfigMap>("web").await;
    assert_eq!(maps, Value::Null);
    world
}

with_both!(a_call_that_is_dropped_ends_helm);
async fn a_call_that_is_dropped_ends_helm(world: World) -> World {
    let chart = world.chart(&endless("pre-install", "1.0.0")).await;
    cut_off(&world, &chart, "pre-install", async |_| {}).await;
    world.helm.close().await;
    assert_eq!(running(&world.home()), 0);
    // Helm was asked to stop rather than killed, and recorded the failure.
    assert_eq!(
        world.cluster.newest(&world.target()).await.unwrap().status,
        Status::Failed
    );
    let ended = world.helm.counters().ended();
    assert!(
        ended
            .iter()
            .any(|(counted, _)| (counted.verb, counted.result) == ("install", "cancelled")),
        "{ended:?}"
    );
    world
}

with_both!(an_engine_that_is_closed_ends_what_runs_and_starts_nothing);
async fn an_engine_that_is_closed_ends_what_runs_and_starts_nothing(world: World) -> World {
    let chart = world.chart(&endless("pre-install", "1.0.0")).await;
    let (target, options) = (world.target(), long());
    let operation = world.helm.install(&target, &chart, "", &options);
    let close = async {
        begun(&world, "pre-install").await;
        world.helm.close().await;
    };
    let (result, ()) = tokio::join!(operation, close);
    assert_eq!(result.unwrap_err().kind, Kind::Cancelled);
    assert_eq!(
        world.helm.uninstall(&target, &quick()).await.unwrap_err().kind,
        Kind::Cancelled
    );
    world
}

// Two managers, or one that was started twice.
with_both!(of_two_operations_at_once_one_is_refused);
async fn of_two_operations_at_once_one_is_refused(world: World) -> World {
    let target = world.target();
    let plain = world.chart(&simple("1.0.0")).await;
    let chart = world.chart(&endless("pre-upgrade", "1.1.0")).await;
    world.helm.install(&target, &plain, "", &quick()).await.unwrap();
    cut_off(&world, &chart, "pre-upgrade", async |world| {
        let refused = world
            .helm
            .upgrade(&world.target(), &plain, "greeting: c", &quick())
            .await
            .unwrap_err();
        assert_eq!(refused.kind, Kind::Locked, "{refused}");
    })
    .await;
    world
}

with_both!(operations_wait_for_their_turn);
async fn operations_wait_for_their_turn(world: World) -> World {
    let one = world.engine(|settings| settings.operations = 1);
    let chart = world.chart(&simple("1.0.0")).await;
    let targets: Vec<_> = (0..4).map(|i| world.cluster.target(&format!("web-{i}"))).collect();
    let options = quick();
    let all = targets.iter().map(|target| one.install(target, &chart, "", &options));
    let all = futures::future::join_all(all);
    tokio::pin!(all);
    let mut most = 0;
    let results = loop {
        tokio::select! {
            results = &mut all => break results,
            () = tokio::task::yield_now() => {
                let running = one.counters().running().iter().map(|(_, count)| *count).sum();
                most = u64::max(most, running);
            }
        }
    };
    assert!(results.iter().all(Result::is_ok), "{results:?}");
    assert_eq!(most, 1);
    one.close().await;
    world
}

with_both!(waiting_operations_block_no_other);
async fn waiting_operations_block_no_other(world: World) -> World {
    let one = world.engine(|settings| settings.operations = 1);
    let chart = world.chart(&endless("pre-install", "1.0.0")).await;
    let plain = world.chart(&simple("1.1.0")).await;
    let (target, other) = (world.target(), world.cluster.target("other"));
    let waits = Options { wait: true, ..long() };
    let options = quick();
    let quickly = async {
        begun(&world, "pre-install").await;
        one.install(&other, &plain, "", &options).await
    };
    tokio::select! {
        result = one.install(&target, &chart, "", &waits) => panic!("it ended: {result:?}"),
        result = quickly => assert_eq!(result.unwrap().status, Status::Deployed),
    }
    one.close().await;
    world
}

// Secrets are in no command line, in no environment, and only in private files that are removed after the call.
with_both!(secrets_are_in_private_files_for_the_time_of_the_call);
async fn secrets_are_in_private_files_for_the_time_of_the_call(world: World) -> World {
    use std::os::unix::fs::PermissionsExt as _;
    let chart = world.chart(&endless("pre-install", "1.0.0")).await;
    cut_off(&world, &chart, "pre-install", async |world: &World| {
        let commands = commands(&world.home());
        let (id, words) = commands.first().unwrap();
        let environment = std::fs::read(format!("/proc/{id}/environ")).unwrap();
        let environment = String::from_utf8_lossy(&environment).into_owned();
        for secret in [crate::support::ADMIN, "greeting: b"] {
            assert!(
                !words.join(" ").contains(secret) && !environment.contains(secret),
                "{words:?} {environment}"
            );
        }
        let names: Vec<&str> = environment
            .split('\0')
            .filter_map(|entry| Some(entry.split_once('=')?.0))
            .collect();
        let known = |name: &&&str| !["HOME", "TMPDIR", "NO_COLOR", "HTTPS_PROXY", "HTTP_PROXY"].contains(*name);
        let others: Vec<_> = names
            .iter()
            .filter(known)
            .filter(|name| !name.starts_with("HELM_"))
            .collect();
        assert!(others.is_empty(), "{others:?}");
        let kubeconfig = words
            .iter()
            .find_map(|word| word.strip_prefix("--kubeconfig="))
            .unwrap();
        let file = Path::new(kubeconfig);
        let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(file), mode(file.parent().unwrap())), (0o600, 0o700));
        assert!(std::fs::read_to_string(file).unwrap().contains(crate::support::ADMIN));
        // Values are in no file.
        assert_eq!(found(&world.home(), "greeting"), 0);
    })
    .await;
    world.helm.close().await;
    assert_eq!(found(&world.home(), crate::support::ADMIN), 0);
    let secrets: Api<k8s_openapi::api::core::v1::Secret> =
        Api::namespaced(world.cluster.client.clone(), &world.cluster.namespace);
    assert_eq!(secrets.list(&ListParams::default()).await.unwrap().items.len(), 1);
    world
}

/// The number of files below a folder that contain a text.
fn found(folder: &Path, text: &str) -> usize {
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    entries
        .map(|path| {
            if path.is_dir() {
                return found(&path, text);
            }
            let content = std::fs::read(&path).unwrap_or_default();
            usize::from(content.windows(text.len()).any(|part| part == text.as_bytes()))
        })
        .sum()
}
