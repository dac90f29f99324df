//! What is known of the cost of a request, and the encoding of its answer, which is a part of that.

use std::time::Duration;

use http::Response;
use windlass_meta::budget::LIGHT_BYTES;
use windlass_rbac::user::UserInfo;

use crate::error::ApiError;
use crate::http::body::{self, ApiBody};
use crate::http::heavy::at_once;
use crate::http::response::ResponseForm;
use crate::state::Inner;

/// What is known of the cost of a request before it is handled.
#[derive(Clone, Copy)]
pub(super) struct Load<'a> {
    pub(super) verb: &'static str,
    /// Who sent it, whatever other user it is for.
    pub(super) sender: &'a UserInfo,
    pub(super) is_heavy: bool,
    pub(super) is_read: bool,
    pub(super) limit: Duration,
    pub(super) form: ResponseForm,
}

impl Load<'_> {
    /// Encodes an answer.
    pub(super) fn encode(&self, server: &Inner, response: Response<ApiBody>) -> Result<Response<ApiBody>, ApiError> {
        let answers = server.heavy.answers(self.sender, self.is_read);
        self.form.encode(&answers, response)
    }

    /// Whether an answer is encoded without giving up the thread.
    pub(super) fn is_light(&self, response: &Response<ApiBody>) -> bool {
        self.form.work(response) <= LIGHT_BYTES
    }

    /// Encodes an answer, or the error that it cannot be encoded.
    pub(super) fn encode_or_refuse(&self, server: &Inner, response: Response<ApiBody>) -> Response<ApiBody> {
        self.encode(server, response)
            .unwrap_or_else(|error| self.refuse(server, &error))
    }

    fn refuse(&self, server: &Inner, error: &ApiError) -> Response<ApiBody> {
        let encoded = self.encode(server, body::error(error));
        encoded.unwrap_or_else(|_| body::error(error))
    }

    /// Encodes an answer that was not encoded in the turn of its request and is not light. That may show only now: a small object may have
    /// many levels.
    pub(super) async fn finish(&self, server: &Inner, response: Response<ApiBody>) -> Response<ApiBody> {
        if !self.is_read || !response.status().is_success() {
            return at_once(|| self.encode_or_refuse(server, response));
        }
        let turn = match server.heavy.enter(self.sender) {
            Ok(turn) => turn,
            Err(error) => return self.refuse(server, &error),
        };
        let encoded = Box::pin(async { self.encode(server, response) });
        let encoded = server.heavy.run(turn, self.limit, encoded).await;
        encoded.unwrap_or_else(|error| self.refuse(server, &error))
    }
}
