//! The provider contract: typed access to dynamic objects, template cloning.
