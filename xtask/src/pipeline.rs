//! Rules of the pipeline, for the feature crates (layer L4): `plan*` and `status*` only decide, `observe*` only reads, `apply*` only writes.

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

/// What a file that decides may not contain, with the reason.
const IMPURE: &[(&str, &str)] = &[
    ("async fn", "pure files do not wait"),
    (".await;", "pure files do not wait"),
    (".await?", "pure files do not wait"),
    (".await.", "pure files do not wait"),
    (".await)", "pure files do not wait"),
    (".await,", "pure files do not wait"),
    ("kube::Client", "pure files hold no client"),
    ("Timestamp::now", "time is an argument"),
    ("SystemTime", "time is an argument"),
    ("Instant::now", "time is an argument"),
    ("rand::", "randomness is an argument"),
];

/// What a file that reads may not contain.
const DECIDES: &[(&str, &str)] = &[
    (
        "plan::",
        "observations do not plan: let the plan ask (`Decision::Ask`), or move the function to a file of facts",
    ),
    (
        "::plan",
        "observations do not plan: let the plan ask (`Decision::Ask`), or move the function to a file of facts",
    ),
    (".writer()", "observations do not write"),
];

/// What a file that writes may not contain.
const READS: &[(&str, &str)] = &[
    (".cache::<", "apply does not read: carry the object in the action"),
    (".dynamic_get(", "apply does not read: carry the object in the action"),
    (".dynamic(", "apply does not read: carry the object in the action"),
    (".read_value(", "apply does not read: carry the object in the action"),
    ("Moment", "apply does not decide: compare times in the plan"),
    ("plan::plan(", "apply does not decide"),
];

/// Files that write and may read live objects with `read_value`, with the reason.
const LIVE: &[(&str, &str)] = &[(
    "crates/operator/src/provider/apply/",
    "a step of an installation reads the live object right before it replaces or deletes it, as no cache holds all kinds of providers; \
     the answer only says whether the step is still needed and still allowed",
)];

/// Conversions between types and trees, which compile serde for a kind again and copy the object.
const CONVERSIONS: &[&str] = &["serde_json::from_value", "serde_json::to_value"];

/// Files that may convert, with the reason.
const MAY_CONVERT: &[(&str, &str)] = &[(
    "crates/controlplane-kubeadm/src/workload/remote/kubeadm.rs",
    "a fragment that has no codec of its own, read once in an upgrade",
)];

/// Comparisons with the present, which only `Moment` makes: it schedules what it compares.
const COMPARED: &[&str] = &[
    "duration_since(now",
    "now.duration_since",
    "now().duration_since",
    "now.since(",
    "now().since(",
    ".min(now",
    ".max(now",
    "now <",
    "now >",
    "now() <",
    "now() >",
    " < now",
    " > now",
    " <= now",
    " >= now",
];

/// Checks one source file: `place` is its path in the workspace, `body` its text without tests, `features` the crates of layer L4.
pub(crate) fn check<'a>(place: &str, body: &str, features: impl IntoIterator<Item = &'a str>) -> Vec<Finding> {
    let Some((name, inner)) = place.strip_prefix("crates/").and_then(|path| path.split_once("/src/")) else {
        return Vec::new();
    };
    if !features.into_iter().any(|feature| feature == name) {
        return Vec::new();
    }
    let role = role(inner);
    let words = match role {
        Some(Role::Decide) => IMPURE,
        Some(Role::Observe) => DECIDES,
        Some(Role::Apply) => READS,
        None => &[],
    };
    let mut findings = Vec::new();
    for (number, line) in body.lines().enumerate() {
        let code = line.split("//").next().unwrap_or_default();
        let place = format!("{place}:{}", number + 1);
        let is_live = |word: &str| word == ".read_value(" && LIVE.iter().any(|(files, _)| place.starts_with(files));
        for (word, why) in words.iter().filter(|(word, _)| code.contains(word) && !is_live(word)) {
            let what = format!("`{word}` in a file that {}: {why}", does(role));
            findings.push(Finding {
                place: place.clone(),
                what,
            });
        }
        let may_convert = inner.ends_with("testing.rs") || MAY_CONVERT.iter().any(|(file, _)| place.starts_with(file));
        if !may_convert && let Some(word) = CONVERSIONS.iter().find(|word| code.contains(**word)) {
            findings.push(Finding {
                place: place.clone(),
                what: format!("`{word}`: use the codec of the kind, from bytes and to bytes"),
            });
        }
        if role != Some(Role::Apply)
            && let Some(word) = COMPARED.iter().find(|word| code.contains(**word))
        {
            let what = format!(
                "`{word}`: compare deadlines with `Moment::reached`, `elapsed` or `precedes`, so that the driver schedules them"
            );
            findings.push(Finding { place, what });
        }
    }
    findings
}

fn does(role: Option<Role>) -> &'static str {
    match role {
        Some(Role::Observe) => "reads",
        Some(Role::Apply) => "writes",
        Some(Role::Decide) | None => "decides",
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
        let found = check(place, body, ["core-controllers", "operator"]);
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
        assert!(check(file, body, ["controlplane-kubeadm"]).is_empty());
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
