//! The HTTP side: listeners, the in-process service, routing, content negotiation, and the documents that describe the API.

pub(crate) mod access_review;
pub(crate) mod body;
pub(crate) mod connections;
pub(crate) mod context;
pub(crate) mod counters;
pub(crate) mod deadline;
pub(crate) mod discovery;
pub(crate) mod dispatch;
pub(crate) mod documents;
pub(crate) mod health;
pub(crate) mod heavy;
pub(crate) mod indented;
pub(crate) mod listener;
pub(crate) mod negotiation;
pub(crate) mod openapi;
pub(crate) mod openapi_v2;
pub(crate) mod per_user;
pub(crate) mod pod_tunnel;
pub(crate) mod portforward;
pub(crate) mod request;
pub(crate) mod response;
pub(crate) mod service;
pub(crate) mod slow_client;
pub(crate) mod warnings;
pub(crate) mod webhook_client;
