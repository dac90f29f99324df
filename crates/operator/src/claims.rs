//! Claims decide which of several declarations of the same provider may be installed, where their statuses do not show it yet.
//!
//! Declarations of the same second are seen one after the other, so each may be reconciled before the other one is known. The first
//! that finds no rival claims the provider, and keeps the claim until its declaration is gone or another one turns out to be installed.
//!
//! A plan is made from the holder that was observed. The claim is taken when the plan is applied, and only from that holder: of two plans
//! that saw the same holder, one gets the claim and the other one fails before it has written anything.

use std::collections::HashMap;

use parking_lot::Mutex;
use windlass_api_operator::ProviderType;

use crate::peers::Peer;

/// The uids of the declarations that hold claims, by type and name; there is one core provider, whatever it is called.
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
    /// All other declarations, and the uid of the one that holds the claim to the same provider. The holder is read first, so that its
    /// declaration is among the others unless it is gone.
    pub(crate) fn observe(&self, me: &Peer, others: impl FnOnce() -> Vec<Peer>) -> (Vec<Peer>, Option<String>) {
        let holder = self.0.lock().get(&place(me)).cloned();
        (others(), holder)
    }

    /// Gives the claim to this declaration, unless another one than the observed holder has it by now. Returns whether it was given.
    pub(crate) fn take(&self, me: &Peer, observed: Option<&str>) -> bool {
        let mut claims = self.0.lock();
        let place = place(me);
        let holder = claims.get(&place).map(String::as_str);
        let is_free = holder.is_none_or(|holder| Some(holder) == observed || holder == me.uid);
        if is_free {
            claims.insert(place, me.uid.clone());
        }
        is_free
    }

    /// Drops the claim of a declaration that is gone.
    pub(crate) fn forget(&self, uid: &str) {
        self.0.lock().retain(|_, holder| holder != uid);
    }
}

/// The declaration that leaves no room for this one: the installed one, else the holder of the claim, else the one declared first.
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
    use windlass_controller_runtime::ObjectKey;

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
            vouched: None,
        }
    }

    /// Two declarations of the same second; the API alone decides that the first one goes first.
    fn pair() -> (Peer, Peer) {
        let (a, b) = (peer("a", Api::V1Alpha1, false), peer("b", Api::V1Alpha2, false));
        if a.goes_before(&b) { (a, b) } else { (b, a) }
    }

    /// A reconcile: the rival of a declaration that sees these others. Without one, the declaration takes the claim.
    fn rival_of(claims: &Claims, me: &Peer, others: &[&Peer]) -> Option<String> {
        let (peers, holder) = claims.observe(me, || others.iter().copied().cloned().collect());
        let found = rival(me, &peers, holder.as_deref()).map(|rival| rival.uid.clone());
        if found.is_none() {
            assert!(claims.take(me, holder.as_deref()));
        }
        found
    }

    // OP-129: two reconciles at once, neither of which sees the other declaration.
    #[test]
    fn of_two_plans_made_from_the_same_holder_one_gets_the_claim() {
        let (first, second) = pair();
        let claims = Claims::default();
        let holder = |me: &Peer| claims.observe(me, Vec::new).1;
        let (of_first, of_second) = (holder(&first), holder(&second));
        assert_eq!((&of_first, &of_second), (&None, &None));
        assert!(claims.take(&second, of_second.as_deref()));
        assert!(!claims.take(&first, of_first.as_deref()));
        assert!(
            claims.take(&second, of_second.as_deref()),
            "the holder may take it again"
        );
        // The next reconcile sees the holder. When that is gone, the claim is free.
        assert_eq!(rival_of(&claims, &first, &[&second]), Some(second.uid.clone()));
        let of_first = holder(&first);
        claims.forget(&second.uid);
        assert!(claims.take(&first, of_first.as_deref()));
        assert!(!claims.take(&second, of_first.as_deref()));
    }

    // OP-129: whatever order they are seen in, one of the two begins, and the other one does not.
    #[test]
    fn the_holder_goes_on_when_another_declaration_appears_that_would_have_gone_first() {
        let (first, second) = pair();
        let claims = Claims::default();
        assert_eq!(rival_of(&claims, &second, &[]), None);
        assert_eq!(rival_of(&claims, &first, &[&second]), Some(second.uid.clone()));
        assert_eq!(rival_of(&claims, &second, &[&first]), None);
        claims.forget(&second.uid);
        assert_eq!(rival_of(&claims, &first, &[]), None);
    }

    #[test]
    fn a_declaration_that_sees_both_gives_way_to_the_one_declared_first() {
        let (first, second) = pair();
        let claims = Claims::default();
        assert_eq!(rival_of(&claims, &second, &[&first]), Some(first.uid.clone()));
        assert_eq!(rival_of(&claims, &first, &[&second]), None);
    }

    #[test]
    fn the_installed_one_stays_whatever_others_claim() {
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
        // The cache no longer has it, and the claim has not been dropped yet.
        assert_eq!(rival_of(&claims, &first, &[]), None);
    }
}
