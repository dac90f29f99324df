//! A declaration without its type: what is common to the eleven kinds, so that everything that is done for them is compiled once.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, ObjectMeta};
use serde_json::Value;
use windlass_api_operator::{Declared, Problems, ProviderObject};
use windlass_controller_runtime::Dynamic;

use crate::peers::Peer;
use crate::tracker::Whose;

/// What a declaration says, or everything that is wrong with it.
pub(super) type Said = Result<Declared, Problems>;

/// A declared provider.
#[derive(Clone, Debug)]
pub(super) struct Declaration {
    /// The whole object.
    pub(super) object: Dynamic,
    /// The same as others see it.
    pub(super) me: Peer,
    /// Whose objects its own are.
    pub(super) whose: Whose,
    /// Its conditions.
    pub(super) conditions: Vec<Condition>,
    /// What it says.
    pub(super) said: Said,
    /// What another object of the same kind says; nothing when it is none.
    pub(super) read: fn(Value) -> Option<Said>,
}

impl Declaration {
    /// Hides the type of a declaration.
    pub(super) fn of<P: ProviderObject>(object: &P) -> Self {
        let me = Peer::of(object);
        Self {
            object: Dynamic::of(object),
            whose: Whose {
                api: me.api,
                type_: me.type_,
                key: me.key.clone(),
            },
            me,
            conditions: object.conditions().to_vec(),
            said: object.declared(),
            read: |value| P::from_json(&value).ok().map(|object| object.declared()),
        }
    }

    /// Its metadata.
    pub(super) fn meta(&self) -> &ObjectMeta {
        self.object.metadata()
    }
}
