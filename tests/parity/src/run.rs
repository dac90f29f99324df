//! Plays many cases, and compares the answers.

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

/// The number of concurrent cases.
const AT_A_TIME: usize = 8;

/// The result of a comparison.
#[derive(Debug, Default)]
pub struct Report {
    /// Cases.
    pub cases: usize,
    /// Intended differences.
    pub allowed: usize,
    /// Cases with other differences, as texts.
    pub failures: Vec<String>,
}

impl Report {
    /// Adds another report.
    pub fn add(&mut self, other: Self) {
        self.cases += other.cases;
        self.allowed += other.allowed;
        self.failures.extend(other.failures);
    }
}

/// The answers to the cases of a topic, by their claims; or why a case could not be played.
pub type Played = BTreeMap<String, Result<Vec<Value>, String>>;

/// One side of a comparison.
#[derive(Clone, Copy, Debug)]
pub struct Side<'a> {
    name: &'static str,
    played: &'a Played,
}

impl<'a> Side<'a> {
    /// A side: its name in texts about differences, and its answers.
    pub fn new(name: &'static str, played: &'a Played) -> Self {
        Self { name, played }
    }
}

/// Plays all cases of all topics against one server. `keep` leaves the objects of the cases in place.
pub async fn all(target: &Target, topics: &[Topic], keep: bool) -> BTreeMap<String, Played> {
    let hooks = Hooks::start().await;
    let mut out: BTreeMap<String, Played> = BTreeMap::new();
    // One area after the other: some cases disturb other areas, such as webhooks that refuse, or definitions whose objects cannot
    // be converted.
    for area in topics.chunk_by(|a, b| area(a) == area(b)) {
        let cases = area
            .iter()
            .flat_map(|topic| topic.cases.iter().map(move |case| (topic, case)));
        let played = cases.map(|(topic, case)| {
            let hooks = hooks.as_ref();
            async move {
                let answers = match hooks {
                    Ok(hooks) => play(target, case, hooks, keep).await,
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

/// Compares the answers of two sides to the cases of a topic; either may be a recording.
pub fn compare(topic: &Topic, sides: [Side<'_>; 2], allowed: &Allowed) -> Report {
    let mut report = Report {
        cases: topic.cases.len(),
        ..Report::default()
    };
    for case in &topic.cases {
        let mut say = |words: &str| report.failures.push(format!("{}: {}\n{words}", topic.name, case.case));
        match sides.map(|side| side.played.get(&case.case)) {
            [Some(Ok(first)), Some(Ok(second))] => {
                let all = differences(first, second);
                let (meant, other): (Vec<_>, Vec<_>) = all
                    .into_iter()
                    .partition(|found| allowed.covers(&topic.name, &case.case, found, [first, second]));
                if !other.is_empty() {
                    say(&words(case, &other, sides.map(|side| side.name)));
                }
                report.allowed += meant.len();
            }
            _ => say(&missing(case, sides)),
        }
    }
    report
}

fn missing(case: &Case, sides: [Side<'_>; 2]) -> String {
    let mut out = String::new();
    for Side { name, played } in sides {
        let why = match played.get(&case.case) {
            Some(Ok(_)) => continue,
            Some(Err(error)) => error.as_str(),
            None => "it is not there (`cargo run -p windlass-parity -- record` records it)",
        };
        let _ = writeln!(out, "  {name}: {why}");
    }
    out
}

/// A recording as the result of a play.
pub fn recorded(answers: Answers) -> Played {
    answers
        .into_iter()
        .map(|(claim, answers)| (claim, Ok(answers)))
        .collect()
}

/// How many characters of a value are shown.
const SHOWN: usize = 2000;

fn words(case: &Case, found: &[Difference], names: [&str; 2]) -> String {
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
        for (name, value) in names.into_iter().zip([&difference.first, &difference.second]) {
            let _ = writeln!(out, "    {name}: {}", show(value));
        }
    }
    out
}
