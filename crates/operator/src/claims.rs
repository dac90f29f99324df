//! Who may be installed of several declarations of the same provider, where what is stored does not say it yet.
//!
//! Declarations of the same second are seen one after the other, so each may begin before the other one is known. Whoever begins
//! claims the provider, and keeps the claim until its declaration is gone or another one turns out to be installed.

use std::collections::HashMap;

use parking_lot::Mutex;
use windlass_api_operator::ProviderType;

use crate::peers::Peer;

/// The uids of those who have begun, by type and name; there is one core provider, whatever it is called.
#[derive(Default)]
pub(crate) struct Claims(Mutex<HashMap<(ProviderType, String), String>>);

fn place(peer: &Peer) -> (ProviderType, String) {
    let name = match peer.type_ {
        ProviderType::Core => String::new(),
        _ => peer.key.name.clone(),
    };
    (peer.type_, name)
}

impl Claims {
    /// All other declarations, and the uid of the one that has begun: this one, if nobody is in its way. `others` is called while
    /// nobody else can begin.
    pub(crate) fn settle(&self, me: &Peer, others: impl FnOnce() -> Vec<Peer>) -> (Vec<Peer>, Option<String>) {
        let mut claims = self.0.lock();
        let peers = others();
        let place = place(me);
        if !me.deleting && rival(me, &peers, claims.get(&place).map(String::as_str)).is_none() {
            claims.insert(place.clone(), me.uid.clone());
        }
        let holder = claims.get(&place).cloned();
        drop(claims);
        (peers, holder)
    }

    /// A declaration is gone.
    pub(crate) fn forget(&self, uid: &str) {
        self.0.lock().retain(|_, holder| holder != uid);
    }
}

/// The declaration that leaves no room for this one: who is installed, else who has begun, else who was declared first.
pub(crate) fn rival<'a>(me: &Peer, peers: &'a [Peer], holder: Option<&str>) -> Option<&'a Peer> {
    let mut same = peers.iter().filter(|peer| place(peer) == place(me));
    let first = same.clone().find(|peer| peer.goes_before(me));
    match (first, holder) {
        (Some(first), _) if first.is_installed() => Some(first),
        (_, Some(holder)) if holder == me.uid => None,
        _ if me.is_installed() => first,
        (first, Some(holder)) => same.find(|peer| peer.uid == holder).or(first),
        (first, None) => first,
    }
}

#[cfg(test)]
mod tests {
    use windlass_api_operator::Api;
    use windlass_kit::ObjectKey;

    use super::*;

    fn peer(uid: &str, api: Api, installed: bool) -> Peer {
        Peer {
            type_: ProviderType::Infrastructure,
            api,
            key: ObjectKey::new("ns", "rig"),
            uid: uid.to_owned(),
            created: Some("2026-01-01T00:00:00Z".parse().unwrap()),
            deleting: false,
            paused: false,
            held: false,
            contract: installed.then(|| "v1beta2".to_owned()),
        }
    }

    /// Who goes first of two of the same second, by the API alone.
    fn pair() -> (Peer, Peer) {
        let (a, b) = (peer("a", Api::V1Alpha1, false), peer("b", Api::V1Alpha2, false));
        if a.goes_before(&b) { (a, b) } else { (b, a) }
    }

    fn rival_of(claims: &Claims, me: &Peer, others: &[&Peer]) -> Option<String> {
        let others = others.iter().copied().cloned().collect();
        let (peers, holder) = claims.settle(me, || others);
        rival(me, &peers, holder.as_deref()).map(|rival| rival.uid.clone())
    }

    // OP-129: whatever order they are seen in, one of the two begins, and no other one.
    #[test]
    fn who_has_begun_goes_on_when_somebody_appears_who_would_have_gone_first() {
        let (first, second) = pair();
        let claims = Claims::default();
        assert_eq!(rival_of(&claims, &second, &[]), None);
        assert_eq!(rival_of(&claims, &first, &[&second]), Some(second.uid.clone()));
        assert_eq!(rival_of(&claims, &second, &[&first]), None);
        claims.forget(&second.uid);
        assert_eq!(rival_of(&claims, &first, &[]), None);
    }

    #[test]
    fn who_sees_both_gives_way_to_who_was_declared_first() {
        let (first, second) = pair();
        let claims = Claims::default();
        assert_eq!(rival_of(&claims, &second, &[&first]), Some(first.uid.clone()));
        assert_eq!(rival_of(&claims, &first, &[&second]), None);
    }

    #[test]
    fn who_is_installed_stays_whatever_others_claim() {
        let (first, mut second) = pair();
        let claims = Claims::default();
        assert_eq!(rival_of(&claims, &first, &[]), None);
        second.contract = Some("v1beta2".to_owned());
        assert_eq!(rival_of(&claims, &second, &[&first]), None);
        assert_eq!(rival_of(&claims, &first, &[&second]), Some(second.uid.clone()));
    }

    // OP-130
    #[test]
    fn a_claim_of_a_declaration_that_is_gone_counts_no_more() {
        let (first, second) = pair();
        let claims = Claims::default();
        assert_eq!(rival_of(&claims, &second, &[]), None);
        // Its end is seen here before anybody was told of it.
        assert_eq!(rival_of(&claims, &first, &[]), None);
    }
}
