//! Admission: in-process hooks and admission webhooks.

pub(crate) mod chain;
pub(crate) mod hook;
pub(crate) mod webhook;
pub(crate) mod webhook_run;
