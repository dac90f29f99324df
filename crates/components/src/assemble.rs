//! Objects of a release, put into one namespace, labelled and checked.
