//! One reconcile of a topology without calls of lifecycle hooks.

use std::sync::Arc;

use windlass_api::core::Cluster;
use windlass_controller_runtime::{Controller as _, Cx, Decision, Done as _, Moment};
use windlass_topology::hooks::Answer;

use super::ClusterTopology;
use super::observe::{self, Observed};
use crate::preview::Round;

/// Observes, plans and applies once.
pub(crate) async fn reconcile(controller: &ClusterTopology, cx: &Cx, cluster: Arc<Cluster>, now: &Moment) -> Round {
    let mut round = Round::default();
    // A settled topology is shown as well.
    let mut seen = observe::observe_again(cx, cluster, &controller.memory, &controller.extensions).await;
    for _ in 0..=ClusterTopology::QUESTIONS {
        match controller.plan(&seen, now) {
            Decision::Plan(plan) => {
                let done = controller.apply(cx, &seen, &plan).await;
                round.notes = plan.notes.into_iter().map(|note| note.message).collect();
                round.blocked = plan.blocked.map(|blocked| blocked.message);
                round.failed = done.failed().map(ToString::to_string);
                round.steps = plan.actions;
                round.report = plan.report;
                round.progress = plan.progress;
                return round;
            }
            Decision::Ask(mut question) => {
                if let Observed::Managed(managed) = &mut seen
                    && let Ok(current) = &mut managed.current
                {
                    for call in std::mem::take(&mut question.calls) {
                        current.hooks.answers.insert(call.hook, Answer::Passed);
                        round.hooks.push(call);
                    }
                }
                seen = controller.answer(cx, seen, question).await;
            }
        }
    }
    round.failed = Some("the plan still asks for facts after they were answered".to_owned());
    round
}
