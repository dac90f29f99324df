//! Which repository is followed for the newest version of a chart.

use super::Action;
use crate::release_proxy::facts;
use crate::release_proxy::observed::{Following, Observed};

/// The change of the chart that is followed, if any.
pub(super) fn action(seen: &Observed) -> Option<Action> {
    let desired = facts::followed_source(&seen.proxy, &seen.source);
    match (desired, seen.following) {
        (None, Following::Nothing) | (Some(_), Following::Current) => None,
        (None, Following::Other | Following::Current | Following::WithoutHelm) => Some(Action::Unfollow),
        // Without Helm the next poll fails as well.
        (Some(_), Following::WithoutHelm) if seen.unusable.is_some() => None,
        (Some(source), Following::Nothing | Following::Other | Following::WithoutHelm) => {
            Some(Action::Follow(source.clone()))
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::release_proxy::testing::seen;

    fn check(seen: &Observed, following: Following, expect: &str) {
        let seen = seen.clone().but(|seen| seen.following = following);
        let found = match action(&seen) {
            None => "",
            Some(Action::Follow(source)) if Ok(&source) == seen.source.as_ref() => "follow",
            Some(Action::Unfollow) => "unfollow",
            Some(other) => panic!("{other:?}"),
        };
        assert_eq!(found, expect, "{following:?}");
    }

    // AD-103
    #[test]
    fn a_repository_is_followed_exactly_for_versions_that_are_not_pinned() {
        let range = seen().with(&json!({"spec": {"version": "^1"}}));
        check(&range, Following::Nothing, "follow");
        check(&range, Following::Other, "follow");
        check(&range, Following::Current, "");
        let bad = range
            .clone()
            .with(&json!({"spec": {"version": "^1", "namespace": "Kube"}}));
        for seen in [seen(), range.leaving(), bad] {
            check(&seen, Following::Nothing, "");
            check(&seen, Following::Current, "unfollow");
            check(&seen, Following::WithoutHelm, "unfollow");
        }
    }

    #[test]
    fn a_poll_that_lacked_helm_is_hastened_when_there_is_one() {
        let range = seen().with(&json!({"spec": {"version": "^1"}}));
        check(&range, Following::WithoutHelm, "follow");
        let without = range.but(|seen| seen.unusable = Some("install it".to_owned()));
        check(&without, Following::WithoutHelm, "");
    }
}
