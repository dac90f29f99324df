//! Rules of the pipeline, for the feature crates (layer L4): `plan*` and `status*` only decide, `observe*` only reads, `apply*` only writes.

use std::collections::BTreeSet;

use regex::Regex;

use crate::tidy::Finding;

/// What a file of a controller may do, by its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Role {
    /// `plan`, `desired`, `status`, `convert`, and files in folders so named: decides.
    Decide,
    /// `observe`: reads.
    Observe,
    /// `apply`: writes.
    Apply,
}

/// Patterns that a file must not match, with the reason.
type Rules = &'static [(&'static str, &'static str)];

/// For files that decide.
const IMPURE: Rules = &[
    (r"\basync\b", "pure files do not wait"),
    (r"\.await\b", "pure files do not wait"),
    (r"\b(kube::Client|ApiClient)\b", "pure files hold no client"),
    (r"\bCx\b|\.cache::<", "pure files take what was observed"),
    (
        r"\b(Timestamp::now|SystemTime|Instant::now|cx\.now\(\))",
        "time is an argument",
    ),
    (r"\b(rand::|[Uu]uid::new)", "randomness is an argument"),
];

/// For files that read.
const DECIDES: Rules = &[
    (
        r"\bplan\b",
        "observations do not plan: let the plan ask (`Decision::Ask`), or move the function to a file of facts",
    ),
    (
        r"\.writer\(|\.(patch|create|delete)(::<.*>)?\(",
        "observations do not write",
    ),
];

/// For files that write.
const READS: Rules = &[
    (
        r"\.(cache|read|list|get|get_opt|selected)::<|\.(dynamic|dynamic_get|read_value|metadata_of|selected|get_opt)\(",
        "apply does not read: carry the object in the action",
    ),
    (r"\bMoment\b", "apply does not decide: compare times in the plan"),
    (r"\bplan::([a-z_]+::)*[a-z_]+\(", "apply does not decide"),
];

/// For files of all other names.
const NEITHER: Rules = &[(
    r"\.writer\(",
    "only files named `apply` write to the management cluster",
)];

/// Conversions between types and trees, which compile serde for a kind again and copy the object.
const CONVERSIONS: Rules = &[(
    r"serde_json::(from_value|to_value)|\b[A-Z]\w*::deserialize\(",
    "use the codec of the kind, from bytes and to bytes",
)];

/// Comparisons with the present, which only `Moment` makes: it schedules what it compares.
const COMPARED: Rules = &[(
    r"duration_since\(.*\bnow\b|\bnow(\(\))?\.(duration_since|since)\(|\.(min|max|cmp)\(&?(\w+\.)*now\b|\bnow(\(\))? [<>]| [<>]=? (\w+\.)*now\b|\.elapsed\(\) [<>]|\bMoment::at\(",
    "compare deadlines with `Moment::reached`, `elapsed` or `precedes`, so that the driver schedules them",
)];

/// Lines that match one of the rules, on purpose: start of the path, part of the line, reason.
const EXCEPTIONS: &[(&str, &str, &str)] = &[
    (
        "crates/operator/src/provider/apply/",
        ".read_value(",
        "a step of an installation reads the live object right before it replaces or deletes it, as no cache holds all kinds of \
         providers; the answer only says whether the step is still needed and still allowed",
    ),
    (
        "crates/operator/src/provider/apply/keep.rs",
        ".read::<Secret>(",
        "a Secret of a release is read right before it is deleted, and again for its finalizers: no cache holds its content",
    ),
    (
        "crates/operator/src/provider/apply/remove.rs",
        ".list::<Secret>(",
        "the last step of a removal deletes what other processes may have kept since the observation",
    ),
    (
        "crates/operator/src/provider/apply/storage.rs",
        ".metadata_of(",
        "which objects are stored in an old version is only known once the release runs, and may be millions: the action cannot carry them",
    ),
    (
        "crates/controlplane-kubeadm/src/workload/remote/kubeadm.rs",
        "serde_json::",
        "a fragment that has no codec of its own, read once in an upgrade",
    ),
    (
        "crates/controlplane-kubeadm/src/can_update.rs",
        ".writer(",
        "dry runs store nothing; they answer a question of the plan",
    ),
    (
        "crates/core-topology/src/cluster/dry_run.rs",
        ".writer()",
        "dry runs store nothing; they answer a question of the plan",
    ),
    (
        "crates/infra-dev/src/dev_machine_template.rs",
        ".writer()",
        "a controller of one file, whose plan is a constant",
    ),
    (
        "crates/addon-helm/src/release_proxy/fetches.rs",
        ".elapsed() < self.pause",
        "the pause is about a source, not about an object: the error that it repeats is retried by the driver's backoff",
    ),
    (
        "crates/bootstrap-kubeadm/src/kubeadm_config/token.rs",
        "Moment::at(now.now())",
        "a token is looked at every third of its life; an own deadline for each limit would double the writes",
    ),
];

/// Rules that are ready to be matched.
struct Matcher(Vec<(Regex, &'static str)>);

impl Matcher {
    fn new(rules: Rules) -> Self {
        let compiled = rules.iter().map(|(pattern, why)| {
            let pattern = Regex::new(pattern).expect("the patterns of this file are valid");
            (pattern, *why)
        });
        Self(compiled.collect())
    }
}

/// All rules, and which exceptions were used.
pub(crate) struct Rulebook {
    decide: Matcher,
    observe: Matcher,
    apply: Matcher,
    neither: Matcher,
    everywhere: [Matcher; 2],
    used: BTreeSet<&'static str>,
}

impl Rulebook {
    pub(crate) fn new() -> Self {
        Self {
            decide: Matcher::new(IMPURE),
            observe: Matcher::new(DECIDES),
            apply: Matcher::new(READS),
            neither: Matcher::new(NEITHER),
            everywhere: [Matcher::new(CONVERSIONS), Matcher::new(COMPARED)],
            used: BTreeSet::new(),
        }
    }

    /// Checks one source file: `place` is its path in the workspace, `body` its text without tests, `features` the crates of layer L4.
    pub(crate) fn check<'a>(
        &mut self,
        place: &str,
        body: &str,
        features: impl IntoIterator<Item = &'a str>,
    ) -> Vec<Finding> {
        let Some((name, inner)) = place.strip_prefix("crates/").and_then(|path| path.split_once("/src/")) else {
            return Vec::new();
        };
        if !features.into_iter().any(|feature| feature == name) {
            return Vec::new();
        }
        let role = role(inner);
        let own = match role {
            Some(Role::Decide) => &self.decide,
            Some(Role::Observe) => &self.observe,
            Some(Role::Apply) => &self.apply,
            None => &self.neither,
        };
        let mut findings = Vec::new();
        for (number, line) in body.lines().enumerate() {
            let code = line.split("//").next().unwrap_or_default();
            for (pattern, why) in [own].into_iter().chain(&self.everywhere).flat_map(|rules| &rules.0) {
                let Some(found) = pattern.find(code) else {
                    continue;
                };
                let exception = EXCEPTIONS
                    .iter()
                    .find(|(files, part, _)| place.starts_with(files) && code.contains(part));
                if let Some((.., reason)) = exception {
                    self.used.insert(reason);
                    continue;
                }
                let does = does(role);
                findings.push(Finding {
                    place: format!("{place}:{}", number + 1),
                    what: format!("`{}` in a file that {does}: {why}", found.as_str()),
                });
            }
        }
        findings
    }

    /// Exceptions that no line needs.
    pub(crate) fn stale(&self) -> Vec<Finding> {
        let stale = EXCEPTIONS.iter().filter(|(.., reason)| !self.used.contains(reason));
        let finding = |(files, part, _): &(&str, &str, &str)| Finding {
            place: "xtask/src/pipeline.rs".to_owned(),
            what: format!("no line of {files} needs the exception for `{part}`: remove it"),
        };
        stale.map(finding).collect()
    }
}

fn does(role: Option<Role>) -> &'static str {
    match role {
        Some(Role::Observe) => "reads",
        Some(Role::Apply) => "writes",
        Some(Role::Decide) => "decides",
        None => "has no role",
    }
}

/// The role of a file, by the first of its names that has one: `plan/apply.rs` decides.
fn role(inner: &str) -> Option<Role> {
    inner.split('/').find_map(|part| {
        let stem = part.strip_suffix(".rs").unwrap_or(part);
        let is = |word: &str| stem == word || stem.strip_prefix(word).is_some_and(|rest| rest.starts_with('_'));
        if ["plan", "desired", "status", "convert"].iter().any(|word| is(word)) {
            Some(Role::Decide)
        } else if is("observe") {
            Some(Role::Observe)
        } else if is("apply") {
            Some(Role::Apply)
        } else {
            None
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn whats(place: &str, body: &str) -> Vec<String> {
        let found = Rulebook::new().check(place, body, ["core-controllers", "operator"]);
        found.into_iter().map(|finding| finding.what).collect()
    }

    fn is_found(place: &str, body: &str, part: &str) {
        let found = whats(place, body);
        assert!(found.len() == 1 && found[0].contains(part), "{place}: {found:?}");
    }

    #[test]
    fn a_clock_or_a_wait_in_a_plan_is_found() {
        is_found(
            "crates/core-controllers/src/machine/plan.rs",
            "Timestamp::now()",
            "time is an argument",
        );
        is_found(
            "crates/operator/src/provider/plan/contract.rs",
            "x.await;",
            "do not wait",
        );
        is_found("crates/core-controllers/src/plan_rollout.rs", "x.await;", "do not wait");
        assert!(whats("crates/core-controllers/src/planner.rs", "x.await;").is_empty());
        assert!(whats("crates/core-controllers/src/plan.rs", "blocked.awaited").is_empty());
        assert!(whats("crates/controller-runtime/src/plan.rs", "x.await;").is_empty());
    }

    #[test]
    fn an_observation_that_plans_or_writes_is_found() {
        is_found(
            "crates/core-controllers/src/machine/observe.rs",
            "plan::provider_id(seen)",
            "do not plan",
        );
        is_found(
            "crates/core-controllers/src/machine/observe.rs",
            "use super::plan;",
            "do not plan",
        );
        is_found(
            "crates/core-controllers/src/observe/node.rs",
            "cx.writer()",
            "do not write",
        );
        assert!(whats("crates/core-controllers/src/machine/observe.rs", "// see plan::plan").is_empty());
    }

    #[test]
    fn an_apply_that_reads_or_decides_is_found() {
        is_found(
            "crates/core-controllers/src/cluster/apply.rs",
            "cx.cache::<Machine>()",
            "does not read",
        );
        is_found(
            "crates/core-controllers/src/cluster/apply.rs",
            "now: &Moment",
            "does not decide",
        );
        is_found(
            "crates/operator/src/provider/apply/keep.rs",
            "plan::plan(&facts)",
            "does not decide",
        );
        is_found(
            "crates/core-controllers/src/machine/apply.rs",
            "cx.read_value(",
            "does not read",
        );
        assert!(whats("crates/operator/src/provider/apply/keep.rs", "cx.read_value(").is_empty());
    }

    #[test]
    fn a_conversion_of_a_kind_is_found() {
        let body = "let machine: Machine = serde_json::from_value(tree)?;\n";
        is_found("crates/core-controllers/src/machine/names.rs", body, "codec");
        let file = "crates/controlplane-kubeadm/src/workload/remote/kubeadm.rs";
        assert!(Rulebook::new().check(file, body, ["controlplane-kubeadm"]).is_empty());
    }

    #[test]
    fn a_comparison_with_the_present_is_found_wherever_it_decides() {
        is_found(
            "crates/core-controllers/src/shared/machines.rs",
            "if since <= now {",
            "Moment::reached",
        );
        is_found(
            "crates/core-controllers/src/machine/status.rs",
            "now.duration_since(since) > LIMIT",
            "Moment::reached",
        );
        assert!(
            whats(
                "crates/core-controllers/src/machine/status.rs",
                "now.elapsed(since, LIMIT) => now.now()"
            )
            .is_empty()
        );
    }
}
