//! What hooks have in common, and the macro that declares one.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::message::Message;

/// A hook: a question to extensions.
pub trait Hook: 'static {
    /// Its name.
    const NAME: &'static str;
    /// The question.
    type Request: Request;
    /// The answer.
    type Response: Response;
}

/// The question of a hook.
pub trait Request: Message {
    /// Settings of the ExtensionConfig and of the place that names the extension.
    fn settings(&self) -> &BTreeMap<String, String>;

    /// The request as JSON, with these settings in place of its own.
    fn encode_with(&self, settings: BTreeMap<String, String>) -> serde_json::Result<Vec<u8>>;
}

/// The answer of a handler.
pub trait Response: Message {
    /// Whether the handler succeeded.
    fn status(&self) -> &Status;

    /// An explanation for people. It is shown in conditions, so it must be the same for the same state, and must not have anything secret.
    fn message(&self) -> &str;

    /// Sets status and message.
    fn set(&mut self, status: Status, message: String);

    /// In how many seconds the handler wants to be asked again. Zero, or less, unless it blocks.
    fn retry_after_seconds(&self) -> i32 {
        0
    }

    /// Sets the time after which the handler wants to be asked again. No effect on the answers of hooks that cannot block.
    fn set_retry_after_seconds(&mut self, _: i32) {}

    /// An answer: all is well.
    fn success() -> Self {
        let mut answer = Self::default();
        answer.set(Status::Success, String::new());
        answer
    }

    /// An answer: the handler failed, and why.
    fn failure(message: impl Into<String>) -> Self {
        let mut answer = Self::default();
        answer.set(Status::Failure, message.into());
        answer
    }
}

/// Whether a handler succeeded.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(from = "String", into = "String")]
#[schemars(with = "String")]
pub enum Status {
    /// It did.
    Success,
    /// It did not.
    Failure,
    /// It says something else, or nothing, which counts as a failure.
    #[default]
    Missing,
    /// A word that is not known.
    Other(String),
}

impl Status {
    /// The word in JSON.
    pub fn as_str(&self) -> &str {
        match self {
            Self::Success => "Success",
            Self::Failure => "Failure",
            Self::Missing => "",
            Self::Other(word) => word,
        }
    }
}

impl From<String> for Status {
    fn from(word: String) -> Self {
        match word.as_str() {
            "Success" => Self::Success,
            "Failure" => Self::Failure,
            "" => Self::Missing,
            _ => Self::Other(word),
        }
    }
}

impl From<Status> for String {
    fn from(status: Status) -> Self {
        status.as_str().to_owned()
    }
}

/// Implements [`Message`] for a type with serde.
macro_rules! message {
    ($type:ident) => {
        impl $crate::Message for $type {
            const KIND: &'static str = stringify!($type);

            fn encode(&self) -> serde_json::Result<Vec<u8>> {
                $crate::message::encode(Self::KIND, serde_json::to_value(self)?)
            }

            fn decode(json: &[u8]) -> Result<Self, $crate::Undecodable> {
                let fields = $crate::message::fields(Self::KIND, json)?;
                serde_json::from_value(fields).map_err(|error| $crate::message::wrong(Self::KIND, &error))
            }
        }
    };
}

/// Declares a hook: its type, its request with settings, and its response with status and message. `blocks` adds `retryAfterSeconds`.
macro_rules! hook {
    (
        $(#[doc = $doc:literal])+
        $hook:ident;
        $request:ident { $( $(#[$($asked:tt)+])* $ask:ident: $ask_type:ty, )* }
        $response:ident $($kind:ident)? { $( $(#[$($answered:tt)+])* $answer:ident: $answer_type:ty, )* }
    ) => {
        $(#[doc = $doc])+
        #[derive(Clone, Copy, Debug)]
        pub struct $hook;

        impl $crate::Hook for $hook {
            const NAME: &'static str = stringify!($hook);
            type Request = $request;
            type Response = $response;
        }

        #[doc = concat!("The question of the hook ", stringify!($hook), ".")]
        #[derive(Clone, Debug, Default, PartialEq, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
        #[serde(rename_all = "camelCase", default)]
        pub struct $request {
            /// Settings of the ExtensionConfig and of the place that names the extension.
            #[serde(skip_serializing_if = "std::collections::BTreeMap::is_empty")]
            pub settings: std::collections::BTreeMap<String, String>,
            $( $(#[$($asked)+])* pub $ask: $ask_type, )*
        }

        $crate::hook::message!($request);

        impl $crate::Request for $request {
            fn settings(&self) -> &std::collections::BTreeMap<String, String> {
                &self.settings
            }

            fn encode_with(&self, settings: std::collections::BTreeMap<String, String>) -> serde_json::Result<Vec<u8>> {
                let mut fields = serde_json::to_value(self)?;
                if let Some(fields) = fields.as_object_mut()
                    && !settings.is_empty()
                {
                    fields.insert("settings".to_owned(), serde_json::to_value(settings)?);
                }
                $crate::message::encode(<Self as $crate::Message>::KIND, fields)
            }
        }

        $crate::hook::response!($hook, $response $($kind)? { $( $(#[$($answered)+])* $answer: $answer_type, )* });
    };
}

/// Declares the response of a hook.
macro_rules! response {
    ($hook:ident, $response:ident blocks {}) => {
        #[doc = concat!("The answer of the hook ", stringify!($hook), ".")]
        #[derive(Clone, Debug, Default, PartialEq, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
        #[serde(rename_all = "camelCase", default)]
        pub struct $response {
            /// Whether the handler succeeded: Success or Failure.
            pub status: $crate::Status,
            /// An explanation for people. It is shown in conditions.
            #[serde(skip_serializing_if = "String::is_empty")]
            pub message: String,
            /// In how many seconds the handler wants to be asked again. What the hook comes before does not happen until it is zero.
            pub retry_after_seconds: i32,
        }

        $crate::hook::message!($response);

        impl $crate::Response for $response {
            $crate::hook::said!();

            fn retry_after_seconds(&self) -> i32 {
                self.retry_after_seconds
            }

            fn set_retry_after_seconds(&mut self, seconds: i32) {
                self.retry_after_seconds = seconds;
            }
        }

        impl $response {
            /// An answer: not yet. The handler wants to be asked again in so many seconds, and people read why.
            pub fn blocked(seconds: i32, message: impl Into<String>) -> Self {
                Self {
                    status: $crate::Status::Success,
                    message: message.into(),
                    retry_after_seconds: seconds.max(1),
                }
            }
        }
    };
    ($hook:ident, $response:ident { $( $(#[$($answered:tt)+])* $answer:ident: $answer_type:ty, )* }) => {
        #[doc = concat!("The answer of the hook ", stringify!($hook), ".")]
        #[derive(Clone, Debug, Default, PartialEq, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
        #[serde(rename_all = "camelCase", default)]
        pub struct $response {
            /// Whether the handler succeeded: Success or Failure.
            pub status: $crate::Status,
            /// An explanation for people. It is shown in conditions.
            #[serde(skip_serializing_if = "String::is_empty")]
            pub message: String,
            $( $(#[$($answered)+])* pub $answer: $answer_type, )*
        }

        $crate::hook::message!($response);

        impl $crate::Response for $response {
            $crate::hook::said!();
        }
    };
}

/// What all responses say.
macro_rules! said {
    () => {
        fn status(&self) -> &$crate::Status {
            &self.status
        }

        fn message(&self) -> &str {
            &self.message
        }

        fn set(&mut self, status: $crate::Status, message: String) {
            (self.status, self.message) = (status, message);
        }
    };
}

pub(crate) use {hook, message, response, said};
