//! Settings of a declaration, applied to the objects of a provider.
