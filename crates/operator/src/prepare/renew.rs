//! The installed release with certificates that are issued again. Nothing is fetched, and nothing is written.

use std::collections::BTreeMap;

use windlass_api_operator::reasons as known;
use windlass_controller_runtime::{Cx, Until};

use super::{read, render, unread};
use crate::certificates::{Office, ask_again};
use crate::kept::{Release, Sealed, State, walk};
use crate::masked::without_values;
use crate::names::reasons;
use crate::ports::Operator;
use crate::provider::blocked::{Blocked, Stage};
use crate::provider::facts::Facts;

/// Issues the certificates of the installed release again: the same objects, with what is asked of cert-manager among them again, go the
/// same way as when the release was rendered.
pub(crate) async fn renew(cx: &Cx, operator: &Operator, facts: &Facts) -> Result<Sealed, Blocked> {
    let Some(current) = facts.current() else {
        return Err(unread(reasons::NOT_INSTALLED, "nothing is installed"));
    };
    match renew_release(cx, operator, facts, current).await {
        Ok(sealed) => Ok(sealed),
        Err(blocked) => {
            let variables = match &facts.declared {
                Ok(declared) => read::variables(cx, declared).await,
                Err(_) => Ok(BTreeMap::new()),
            };
            let message = without_values(&blocked.message, variables, &operator.0.environment);
            Err(Blocked { message, ..blocked })
        }
    }
}

async fn renew_release(cx: &Cx, operator: &Operator, facts: &Facts, current: &Release) -> Result<Sealed, Blocked> {
    let (key, type_) = (&facts.me.key, facts.me.type_);
    let label = type_.label(&key.name);
    let live = read::certificates(cx, key, type_).await?;
    let office = Office {
        label: &label,
        namespace: &key.namespace,
        keys: &operator.0.keys,
        live: &live,
        now: cx.now(),
    };
    let sealed = read::release(cx, operator, &facts.me, current).await?;
    let mut issued: Vec<_> = current
        .asked
        .iter()
        .filter_map(|o| o["spec"]["secretName"].as_str())
        .collect();
    let authority = office.authority();
    issued.push(&authority);
    let mut objects = Vec::new();
    for object in walk(&sealed.packed) {
        let object = object.map_err(|error| unread(reasons::APPLY_ERROR, error.to_string()))?;
        let name = object["metadata"]["name"].as_str().unwrap_or_default();
        if object["kind"] != "Secret" || !issued.contains(&name) {
            objects.push(object);
        }
    }
    ask_again(&mut objects, &current.asked);
    let failed = |reason, message| Blocked::new(Stage::Install, reason, message).until(Until::Backoff);
    let issued = office.stand_in(&mut objects);
    let issued = issued.map_err(|error| failed(known::COMPONENTS_CUSTOMIZATION_ERROR, error))?;
    let release = Release {
        renew: issued.again,
        renewals: current.renewals.saturating_add(1),
        state: State::Current,
        left: Vec::new(),
        secrets: Vec::new(),
        ..current.clone()
    };
    render::seal(release, objects, &label, false)
        .map_err(|error| failed(known::COMPONENTS_FETCH_ERROR, error.to_string()))
}
