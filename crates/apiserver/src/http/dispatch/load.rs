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

    /// Encodes an answer that was not encoded in the turn of its request. What to do shows here at the latest: a small object may have many
    /// levels.
    pub(super) async fn finish(&self, server: &Inner, response: Response<ApiBody>) -> Response<ApiBody> {
        let is_answer = response.status().is_success();
        let encoded = if self.form.work(&response) <= LIGHT_BYTES {
            self.encode(server, response)
        } else if self.is_read && is_answer {
            match server.heavy.enter(self.sender) {
                Ok(turn) => {
                    let encoded = Box::pin(async { self.encode(server, response) });
                    Box::pin(server.heavy.run(turn, self.limit, encoded)).await
                }
                Err(error) => Err(error),
            }
        } else {
            at_once(|| self.encode(server, response))
        };
        encoded.unwrap_or_else(|error| {
            let refused = body::error(&error);
            let as_it_is = || body::error(&error);
            self.encode(server, refused).unwrap_or_else(|_| as_it_is())
        })
    }
}
