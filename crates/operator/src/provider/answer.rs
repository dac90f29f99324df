//! Reads the facts that a plan asks for: the files of a release, the release rendered from them, and certificates that are issued again.

use std::sync::Arc;

use futures::future::BoxFuture;
use windlass_controller_runtime::Cx;

use super::Observed;
use super::desired::Question;
use super::facts::{Facts, Rendered, Unread};
use super::observe::kept;
use crate::kept::Kept;
use crate::peers::Peer;
use crate::ports::Operator;
use crate::prepare::renew::renew as renewal;
use crate::prepare::{fetch, render};

/// Reads the answer to a question.
pub(super) fn answer<'a>(
    cx: &'a Cx,
    operator: &'a Operator,
    mut seen: Observed,
    question: Question,
) -> BoxFuture<'a, Observed> {
    Box::pin(async move {
        let facts = &seen.facts;
        match question {
            Question::Files { desired, renew } => {
                let fetched = fetch(cx, operator, facts, &desired).await;
                if renew {
                    seen.facts.renewed = Some(renewal(cx, operator, facts).await);
                }
                seen.facts.fetched = Some(fetched);
            }
            Question::Renewal => seen.facts.renewed = Some(renewal(cx, operator, facts).await),
            Question::Render(desired) => {
                let rendered = match render(cx, operator, facts, &desired).await {
                    Ok(sealed) => {
                        let others = others(cx, operator, facts).await;
                        Ok(Rendered { sealed, others })
                    }
                    Err(blocked) => Err(blocked),
                };
                seen.facts.rendered = Some(rendered);
            }
        }
        seen
    })
}

/// What is kept of the other installed providers.
async fn others(cx: &Cx, operator: &Operator, facts: &Facts) -> Vec<(Peer, Result<Arc<Kept>, Unread>)> {
    let mut all = Vec::new();
    for (at, peer) in facts.peers.iter().enumerate().filter(|(_, peer)| peer.is_installed()) {
        let mut others = facts.peers.clone();
        others[at] = facts.me.clone();
        all.push((peer.clone(), kept(cx, operator, peer, &others).await));
    }
    all
}
