//! Plays many cases, and says what differs.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use futures::StreamExt as _;
use serde_json::Value;

use crate::allow::Allowed;
use crate::case::{Case, Topic};
use crate::differ::{Difference, differences};
use crate::hooks::Hooks;
use crate::play::play;
use crate::recording::Answers;
use crate::target::Target;

/// How many cases are played at a time.
const AT_A_TIME: usize = 8;

/// What was found out about a set of cases.
#[derive(Debug, Default)]
pub struct Report {
    /// Cases.
    pub cases: usize,
    /// Differences that are meant.
    pub allowed: usize,
    /// Cases with differences that are not, in words.
    pub failures: Vec<String>,
}

impl Report {
    /// Adds what another one found.
    pub fn add(&mut self, other: Self) {
        self.cases += other.cases;
        self.allowed += other.allowed;
        self.failures.extend(other.failures);
    }
}

/// Plays all cases of all topics against one server. `keep` leaves what the cases made.
pub async fn all(
    target: &Target,
    topics: &[Topic],
    more: &BTreeMap<String, String>,
    keep: bool,
) -> BTreeMap<String, BTreeMap<String, Result<Vec<Value>, String>>> {
    let hooks = Hooks::start().await;
    let mut out: BTreeMap<String, BTreeMap<_, _>> = BTreeMap::new();
    // One area after the other: some make what others would stumble over, such as webhooks that refuse, or definitions whose
    // objects nobody can convert.
    for area in topics.chunk_by(|a, b| area(a) == area(b)) {
        let cases = area
            .iter()
            .flat_map(|topic| topic.cases.iter().map(move |case| (topic, case)));
        let played = cases.map(|(topic, case)| {
            let hooks = hooks.as_ref();
            async move {
                let answers = match hooks {
                    Ok(hooks) => play(target, case, hooks, more, keep).await,
                    Err(error) => Err(format!("there are no webhooks: {error}")),
                };
                (topic, case, answers)
            }
        });
        let mut played = futures::stream::iter(played).buffer_unordered(AT_A_TIME);
        while let Some((topic, case, answers)) = played.next().await {
            out.entry(topic.name.clone())
                .or_default()
                .insert(case.case.clone(), answers);
        }
    }
    out
}

fn area(topic: &Topic) -> &str {
    topic.name.split('/').next().unwrap_or_default()
}

/// What the real server said and what ours said to the cases of a topic; either may be recorded.
pub fn compare(
    topic: &Topic,
    real: &BTreeMap<String, Result<Vec<Value>, String>>,
    ours: &BTreeMap<String, Result<Vec<Value>, String>>,
    allowed: &Allowed,
) -> Report {
    let mut report = Report {
        cases: topic.cases.len(),
        ..Report::default()
    };
    for case in &topic.cases {
        let mut say = |words: &str| report.failures.push(format!("{}: {}\n{words}", topic.name, case.case));
        match (real.get(&case.case), ours.get(&case.case)) {
            (Some(Ok(real)), Some(Ok(ours))) => {
                let all = differences(real, ours);
                let (meant, other): (Vec<_>, Vec<_>) = all
                    .into_iter()
                    .partition(|found| allowed.covers(&topic.name, &case.case, &found.path));
                if !other.is_empty() {
                    say(&words(case, &other));
                }
                report.allowed += meant.len();
            }
            (Some(Err(error)), _) => say(&format!("  the real server: {error}")),
            (_, Some(Err(error))) => say(&format!("  our server: {error}")),
            (None, _) => say("  there is no recording of it: `cargo run -p windlass-parity -- record`"),
            (_, None) => say("  it was not played"),
        }
    }
    report
}

/// A recording in the form of what was played.
pub fn recorded(answers: Answers) -> BTreeMap<String, Result<Vec<Value>, String>> {
    answers
        .into_iter()
        .map(|(claim, answers)| (claim, Ok(answers)))
        .collect()
}

/// How many characters of a value are shown.
const SHOWN: usize = 2000;

fn words(case: &Case, found: &[Difference]) -> String {
    let mut out = String::new();
    let show = |value: &Option<Value>| match value {
        None => "-".to_owned(),
        Some(value) => {
            let text = value.to_string();
            let cut = text.char_indices().nth(SHOWN).map_or(text.len(), |(at, _)| at);
            text[..cut].to_owned()
        }
    };
    for difference in found {
        let step = difference
            .path
            .split('.')
            .next()
            .and_then(|at| at.parse::<usize>().ok())
            .unwrap_or(1);
        let asked = case
            .steps
            .get(step - 1)
            .and_then(|step| step.send.as_ref().or(step.watch.as_ref()).or(step.read.as_ref()));
        let _ = writeln!(out, "  {} ({})", difference.path, asked.map_or("", String::as_str));
        let _ = writeln!(out, "    real: {}", show(&difference.real));
        let _ = writeln!(out, "    ours: {}", show(&difference.ours));
    }
    out
}
