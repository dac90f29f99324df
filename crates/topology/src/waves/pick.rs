//! The Clusters of the next wave, and of all waves.

use std::collections::BTreeSet;

use windlass_meta::ObjectKey;

use super::{Has, Member, Size, Stage, Wave};

/// A wave has no more Clusters than a status can name.
const MOST: usize = 1000;

/// The way out for Clusters that no wave takes.
const BY_HAND: &str = "mend them, or move them by hand (annotation windlass.dev/class-revision)";

/// What comes next.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Next {
    /// A wave with Clusters of a stage.
    Wave {
        /// The index of the stage.
        stage: usize,
        /// In the order of their names.
        clusters: Vec<ObjectKey>,
    },
    /// Only Clusters are left that cannot be changed now.
    Held(String),
    /// No Cluster is left.
    End,
}

impl Size {
    fn of(self, total: usize) -> usize {
        let number = match self {
            Self::Count(number) => number,
            Self::Percent(percent) => total.saturating_mul(percent).div_ceil(100),
        };
        number.clamp(1, MOST)
    }
}

/// The next Clusters that get the revision `goal`, of those that are `ready` for it.
///
/// Clusters that are paused, or not ready, are left out. A stage of which no Cluster could be changed proves nothing, so the stages after it wait for
/// those that are not ready.
pub(super) fn next(
    stages: &[Stage],
    members: &[Member],
    goal: &str,
    wave: Option<&Wave>,
    ready: impl Fn(&Member) -> bool,
) -> Next {
    let mut held = Vec::new();
    for (index, stage) in stages.iter().enumerate() {
        let of_stage = members.iter().filter(|member| member.stage == index);
        let total = of_stage.clone().count();
        let left: Vec<&Member> = of_stage.filter(|member| !member.has(goal)).collect();
        let mut able: Vec<&ObjectKey> = left
            .iter()
            .filter(|member| !member.is_paused && ready(member))
            .map(|member| &member.key)
            .collect();
        if !able.is_empty() {
            able.sort();
            let clusters = able.into_iter().take(stage.size.of(total)).cloned().collect();
            return Next::Wave { stage: index, clusters };
        }
        for member in &left {
            let why = if member.is_paused {
                "paused".to_owned()
            } else {
                member.health.as_ref().err().cloned().unwrap_or_default()
            };
            held.push(format!("{} ({why})", member.key));
        }
        let proves = |member: &&Member| member.stage == index && member.has(goal) && member.counts(wave);
        let is_proven = members.iter().any(|member| proves(&member));
        if !is_proven && left.iter().any(|member| !member.is_paused) {
            return Next::Held(format!(
                "no Cluster of stage {} can be changed: {}; {BY_HAND}",
                stage.name,
                windlass_conditions::listed(&held, super::SHOWN)
            ));
        }
    }
    if held.is_empty() {
        return Next::End;
    }
    Next::Held(format!(
        "the Clusters that are left cannot be changed: {}; {BY_HAND}",
        windlass_conditions::listed(&held, super::SHOWN)
    ))
}

/// A wave of a preview.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Scheduled {
    /// The name of the stage.
    pub stage: String,
    /// Its Clusters.
    pub clusters: Vec<ObjectKey>,
}

/// All waves in which Clusters get the revision `goal`, if every one of them is healthy in time. Paused Clusters are in none.
pub fn schedule(stages: &[Stage], members: &[Member], goal: &str) -> Vec<Scheduled> {
    let mut members = members.to_vec();
    let mut waves = Vec::new();
    while let Next::Wave { stage, clusters } = next(stages, &members, goal, None, |_| true) {
        let of_wave: BTreeSet<&ObjectKey> = clusters.iter().collect();
        for member in members.iter_mut().filter(|member| of_wave.contains(&member.key)) {
            member.revision = Has::This(goal.to_owned());
        }
        waves.push(Scheduled {
            stage: stages[stage].name.clone(),
            clusters,
        });
    }
    waves
}
