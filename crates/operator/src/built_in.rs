//! The providers that this process has built in: its own controllers are what such a provider would bring. Declared or not, they count as
//! installed, and nothing is installed in their place.

use windlass_api::kind::ApiKind as _;
use windlass_api_operator::{BuiltIn, ProviderType, inventory};

use crate::objects::ObjectRef;

/// A provider that is built in, and what belongs to it in the cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Own {
    /// The provider.
    pub is: BuiltIn,
    /// The names of the definitions of its kinds.
    pub definitions: Vec<String>,
}

/// The built-in providers of a process. By default there are none: the operator alone installs all providers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BuiltIns(Vec<Own>);

impl BuiltIns {
    /// These.
    pub fn new(all: impl IntoIterator<Item = Own>) -> Self {
        Self(all.into_iter().collect())
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// All of them.
    pub fn all(&self) -> impl Iterator<Item = &BuiltIn> {
        self.0.iter().map(|own| &own.is)
    }

    /// The one of a type.
    pub fn of_type(&self, type_: ProviderType) -> Option<&BuiltIn> {
        self.all().find(|built_in| built_in.type_ == type_)
    }

    /// The one that a declaration of this type and name is about.
    pub fn find(&self, type_: ProviderType, name: &str) -> Option<&BuiltIn> {
        self.all().find(|built_in| built_in.is(type_, name))
    }

    /// The built-in provider that one of these objects belongs to, with the object: its definitions, and its entry in the inventory.
    pub fn owner_of<'a>(&self, objects: &'a [ObjectRef]) -> Option<(&BuiltIn, &'a ObjectRef)> {
        self.0.iter().find_map(|own| {
            let label = own.is.label();
            let is_its = |object: &&ObjectRef| {
                let is_entry = object.api_version == inventory::Provider::API_VERSION && object.name == label;
                is_entry || (object.is_definition() && own.definitions.contains(&object.name))
            };
            Some((&own.is, objects.iter().find(is_its)?))
        })
    }
}
