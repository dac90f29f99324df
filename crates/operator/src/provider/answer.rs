//! Reads the facts that a plan asks for: the files of a release, the release rendered from them, and certificates that are issued again.

use futures::future::BoxFuture;
use windlass_controller_runtime::Cx;

use super::Observed;
use super::desired::Question;
use super::facts::{Facts, Other, Rendered, Unread};
use super::observe::kept;
use crate::peers::Peer;
use crate::ports::Operator;
use crate::prepare::read::labelled;
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

/// The objects of the other installed providers. Labels say what is of a provider without a trusted release. It must not be waited for,
/// as it may wait for this one.
async fn others(cx: &Cx, operator: &Operator, facts: &Facts) -> Vec<Other> {
    let mut all = Vec::new();
    let installed = |peer: &Peer| peer.is_installed() && !facts.is_built_in(peer);
    for (at, peer) in facts.peers.iter().enumerate().filter(|(_, peer)| installed(peer)) {
        let mut others = facts.peers.clone();
        others[at] = facts.me.clone();
        let kept = kept(cx, operator, peer, &others).await;
        let index = kept.map(|kept| kept.current.as_ref().map(|current| current.index.clone()));
        let by_label = matches!(index, Ok(None));
        // Another declaration of the same provider has the same labels.
        let is_same = (peer.type_, &peer.key.name) == (facts.me.type_, &facts.me.key.name);
        let objects = match index {
            Ok(Some(index)) => Ok(index),
            Ok(None) if is_same => Ok(Vec::new()),
            Ok(None) => labelled(cx, peer.type_, &peer.key)
                .await
                .map_err(|why| Unread { why, stored: None }),
            Err(unread) => Err(unread),
        };
        all.push(Other {
            peer: peer.clone(),
            objects,
            by_label,
        });
    }
    all
}
