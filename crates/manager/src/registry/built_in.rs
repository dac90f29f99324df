//! Which providers a process has built in, by the controllers that run in it.

use windlass_api_operator::BUILT_IN;
use windlass_operator::{BuiltIns, Own};

use crate::registry::controllers::CONTROLLERS;
use crate::registry::kinds::{KINDS, KindEntry};

/// The providers of which controllers run that `has` names. The operator has to run beside them, as it alone needs to know: without it
/// there are none.
pub(crate) fn built_ins(has: impl Fn(&str) -> bool) -> BuiltIns {
    let runs = |of: &str| CONTROLLERS.iter().any(|info| info.provider == of && has(info.name));
    if !CONTROLLERS.iter().any(|info| info.is_of_operator() && has(info.name)) {
        return BuiltIns::default();
    }
    let running = BUILT_IN.iter().filter(|built_in| runs(&built_in.label()));
    BuiltIns::new(running.map(|built_in| Own {
        is: *built_in,
        definitions: definitions(&built_in.label()),
    }))
}

/// The names of the definitions of a provider's kinds.
fn definitions(label: &str) -> Vec<String> {
    let own = KINDS.iter().filter(|entry| entry.provider == label);
    own.map(KindEntry::crd_name).collect()
}

#[cfg(test)]
mod tests {
    use windlass_api_operator::BuiltIn;

    use super::*;
    use crate::Selection;

    #[test]
    fn a_provider_is_built_in_where_its_controllers_and_the_operator_run() {
        let labels =
            |selection: &Selection| -> Vec<String> { selection.built_ins().all().map(BuiltIn::label).collect() };
        let of = |names: &[&str]| labels(&Selection::of(names).unwrap());
        let all = labels(&Selection::all());
        assert_eq!(all, BUILT_IN.map(|built_in| built_in.label()));
        assert_eq!(of(&["operator/coreprovider", "management/coreprovider"]), [""; 0]);
        assert_eq!(
            of(&["machine", "kubeadmconfig"]),
            [""; 0],
            "nothing here asks for providers"
        );
        assert_eq!(
            of(&["operator/infrastructureprovider", "machine", "helmchartproxy"]),
            ["cluster-api", "addon-helm"]
        );
    }

    #[test]
    fn every_built_in_provider_has_controllers_and_kinds() {
        for built_in in BUILT_IN {
            let label = built_in.label();
            assert!(CONTROLLERS.iter().any(|info| info.provider == label), "{label}");
            assert!(!definitions(&label).is_empty(), "{label}");
        }
        for info in CONTROLLERS.iter().filter(|info| !info.is_of_operator()) {
            assert!(
                BUILT_IN.iter().any(|built_in| built_in.label() == info.provider),
                "{}",
                info.name
            );
        }
    }
}
