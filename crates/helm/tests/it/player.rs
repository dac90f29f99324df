//! Simulates the Job controller as far as hooks need it: the name of a Job determines its result.

use futures::{StreamExt as _, TryStreamExt as _};
use jiff::Timestamp;
use k8s_openapi::api::batch::v1::Job;
use kube::api::{Api, Patch, PatchParams};
use kube::runtime::{WatchStreamExt as _, watcher};
use kube::{Client, ResourceExt as _};
use serde_json::{Value, json};
use tokio::task::JoinHandle;

/// Runs until dropped.
pub(crate) struct Player(JoinHandle<()>);

impl Drop for Player {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Jobs whose names have this suffix succeed.
pub(crate) const GOOD: &str = "-good";
/// Jobs whose names have this suffix fail; all others never complete.
pub(crate) const BAD: &str = "-bad";

pub(crate) fn play(client: &Client) -> Player {
    let jobs: Api<Job> = Api::all(client.clone());
    let client = client.clone();
    Player(tokio::spawn(async move {
        let mut events = watcher(jobs, watcher::Config::default()).applied_objects().boxed();
        while let Ok(Some(job)) = events.try_next().await {
            let status = match job.name_any() {
                name if name.ends_with(GOOD) => ended("Complete", "SuccessCriteriaMet", 1),
                name if name.ends_with(BAD) => ended("Failed", "FailureTarget", 0),
                _ => continue,
            };
            let of: Api<Job> = Api::namespaced(client.clone(), &job.namespace().unwrap());
            let patch = Patch::Merge(json!({"status": status}));
            // It may be deleted meanwhile.
            let _ = of.patch_status(&job.name_any(), &PatchParams::default(), &patch).await;
        }
    }))
}

fn ended(condition: &str, before: &str, succeeded: u32) -> Value {
    let now = Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
    let conditions = [before, condition].map(|type_| {
        json!({"type": type_, "status": "True", "lastTransitionTime": now, "reason": "BackoffLimitExceeded", "message": "as it was told"})
    });
    let mut status = json!({"startTime": now, "conditions": conditions});
    if succeeded > 0 {
        status["succeeded"] = succeeded.into();
        status["completionTime"] = now.into();
    } else {
        status["failed"] = 1.into();
    }
    status
}

/// A hook with a Job.
pub(crate) fn hook(event: &str, name: &str) -> String {
    format!(
        "apiVersion: batch/v1\nkind: Job\nmetadata:\n  name: {name}\n  annotations:\n    helm.sh/hook: {event}\n    \
         helm.sh/hook-delete-policy: before-hook-creation\nspec:\n  backoffLimit: 0\n  template:\n    spec:\n      restartPolicy: Never\n      \
         containers:\n      - {{name: a, image: example.com/a:1}}\n"
    )
}
