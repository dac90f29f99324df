//! Structured merge: field sets, managed fields, server-side apply, patches.
