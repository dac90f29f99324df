//! Whether the Clusters that have the revision are well enough for the next wave.

use std::collections::BTreeSet;

use windlass_meta::ObjectKey;

use super::{Failure, Member, Rollout, SHOWN, Wave};

/// How the Clusters are that have the revision.
pub(super) enum Gate {
    /// All are healthy, or those that are not may stay so.
    Open,
    /// Some are not, which is why.
    Waits(String),
    /// Too many were not in time.
    Failed(Failure),
}

impl Rollout<'_> {
    /// Judges the Clusters that have the revision, and notes in the wave since when they are as they are.
    pub(super) fn gate(&self, wave: &mut Option<Wave>, resumes: bool) -> Gate {
        wave.as_mut().map_or(Gate::Open, |wave| self.gate_of(wave, resumes))
    }

    fn gate_of(&self, wave: &mut Wave, resumes: bool) -> Gate {
        let has_it = self
            .members
            .iter()
            .filter(|member| member.has(self.goal) && member.counts(Some(wave)));
        // On the way back, those that never had another revision are no part of it.
        let judged = has_it.filter(|member| !self.returns || wave.clusters.contains(&member.key));
        let unwell: Vec<&Member> = judged.filter(|member| member.health.is_err()).collect();
        wave.tolerated
            .retain(|one| unwell.iter().any(|member| member.key == *one));
        let is_tolerated = |member: &&&Member| wave.tolerated.contains(&member.key);
        let pending: Vec<&Member> = unwell.iter().filter(|member| !is_tolerated(member)).copied().collect();
        if pending.is_empty() {
            wave.waiting.clear();
            wave.waiting_since = None;
            wave.healthy_since.get_or_insert(self.now.now());
            return Gate::Open;
        }
        wave.healthy_since = None;
        // The time is that of Clusters which were not healthy all along: another one that is not for a moment has its own time.
        wave.waiting
            .retain(|one| pending.iter().any(|member| member.key == *one));
        if resumes || wave.waiting.is_empty() {
            wave.waiting = keys(&pending);
            wave.waiting_since = None;
        }
        let since = *wave.waiting_since.get_or_insert(self.now.now());
        if !self.now.elapsed(since, self.settings.deadline) {
            return Gate::Waits(format!("wave {} waits for {}", wave.number, reasons(&pending)));
        }
        let failed: BTreeSet<ObjectKey> = wave.waiting.union(&wave.tolerated).cloned().collect();
        if failed.len() > self.settings.most_unhealthy && !self.goes_back {
            return Gate::Failed(Failure {
                clusters: failed,
                revision: self.goal.to_owned(),
                time: self.now.now(),
            });
        }
        wave.tolerated = failed;
        wave.waiting.clear();
        wave.waiting_since = None;
        // Those that were not healthy for a shorter time are judged by themselves. Each round tolerates one more at least.
        self.gate_of(wave, false)
    }
}

fn keys(members: &[&Member]) -> BTreeSet<ObjectKey> {
    members.iter().map(|member| member.key.clone()).collect()
}

pub(super) fn stopped(failure: &Failure) -> String {
    let names: Vec<String> = failure.clusters.iter().map(ToString::to_string).collect();
    format!(
        "stopped at {}: not healthy in time: {}; mend them or the class, and go on with the annotation windlass.dev/resume, or end it with spec.abort",
        failure.time,
        windlass_conditions::listed(&names, SHOWN)
    )
}

/// The first Clusters that are not healthy, and why.
fn reasons(unwell: &[&Member]) -> String {
    let shown = unwell.iter().take(SHOWN).map(|member| {
        let why = member.health.as_ref().err().map_or("", String::as_str);
        format!("{} ({why})", member.key)
    });
    let mut text: Vec<String> = shown.collect();
    if unwell.len() > SHOWN {
        text.push(format!("{} more", unwell.len() - SHOWN));
    }
    text.join(", ")
}
