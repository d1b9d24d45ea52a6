//! What a client is told when it cannot be served: a status, a sentence, and where the fault lies.

use axum::Json;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use meikyo_live::NoQuantity;
use meikyo_live::range::RangeError;
use meikyo_live::states::StatesError;
use meikyo_recording::ReadError;
use meikyo_units::{Nanos, in_one_line};
use serde::Serialize;
use utoipa::ToSchema;

/// Why a request was refused, as it is sent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub(crate) struct ErrorBody {
    /// What happened and what to do.
    pub(crate) error: String,
    /// The parameter, table or header that it concerns; empty when none.
    pub(crate) place: String,
}

/// A refusal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ApiError {
    status: StatusCode,
    body: ErrorBody,
    /// When it is worth asking again.
    retry_after: Option<Nanos>,
}

impl ApiError {
    pub(crate) fn new(status: StatusCode, error: impl Into<String>, place: &str) -> Self {
        Self {
            status,
            body: ErrorBody { error: error.into(), place: place.into() },
            retry_after: None,
        }
    }

    /// The request is wrong at `place`.
    pub(crate) fn bad(error: impl Into<String>, place: &str) -> Self {
        Self::new(StatusCode::BAD_REQUEST, error, place)
    }

    /// There is no such thing.
    pub(crate) fn unknown(error: impl Into<String>, place: &str) -> Self {
        Self::new(StatusCode::NOT_FOUND, error, place)
    }

    /// The client asks too often, and may do so again after `wait`.
    pub(crate) fn too_often(wait: Nanos) -> Self {
        let text = "too many requests from this address; ask again after `Retry-After` seconds, or \
                    start the server with a greater `--requests-per-second`";
        Self::new(StatusCode::TOO_MANY_REQUESTS, text, "").retry_after(wait)
    }

    /// Whether the fault is the client's.
    pub(crate) fn is_of_client(&self) -> bool {
        self.status.is_client_error()
    }

    /// The same refusal with the span after which it is worth asking again.
    pub(crate) fn retry_after(self, wait: Nanos) -> Self {
        Self { retry_after: Some(wait), ..self }
    }

    /// Something on this side failed.
    pub(crate) fn internal(error: &dyn std::error::Error) -> Self {
        let text = in_one_line(error);
        tracing::warn!(error = text, "a request failed");
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, text, "")
    }

    /// What is sent.
    pub(crate) fn body(&self) -> &ErrorBody {
        &self.body
    }
}

impl From<ReadError> for ApiError {
    fn from(error: ReadError) -> Self {
        match &error {
            ReadError::UnknownTable { table, known, .. } => {
                let known = known.join(", ");
                Self::unknown(format!("there is no table `{table}`; there are {known}"), "table")
            }
            ReadError::UnknownColumn { .. } => Self::bad(error.to_string(), "column"),
            _ => Self::internal(&error),
        }
    }
}

impl From<NoQuantity> for ApiError {
    fn from(error: NoQuantity) -> Self {
        Self::bad(error.to_string(), "column")
    }
}

impl From<RangeError> for ApiError {
    fn from(error: RangeError) -> Self {
        match error {
            RangeError::Read(error) => error.into(),
            RangeError::TooMuch { .. } => {
                let text = format!(
                    "{error}; name fewer series with a label such as `device=node0*`, or ask for a \
                     smaller `width`"
                );
                Self::bad(text, "width")
            }
            RangeError::TooManyReadings => {
                let text = format!(
                    "{error} for `rates=read`; ask for less time, name fewer series with a label such \
                     as `device=node0*`, or leave `rates` out"
                );
                Self::bad(text, "rates")
            }
        }
    }
}

impl From<StatesError> for ApiError {
    fn from(error: StatesError) -> Self {
        match error {
            StatesError::Read(error) => error.into(),
            StatesError::NoAnswers => Self::unknown(error.to_string(), "table"),
            StatesError::TooMuch { .. } => {
                let text = format!("{error}; name fewer with `device=`, or a smaller `width`");
                Self::bad(text, "width")
            }
        }
    }
}

impl From<arrow::error::ArrowError> for ApiError {
    fn from(error: arrow::error::ArrowError) -> Self {
        Self::internal(&error)
    }
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        let mut response = (self.status, Json(self.body)).into_response();
        if let Some(wait) = self.retry_after {
            let seconds = wait.get().div_ceil(Nanos::SECOND.get()).max(1);
            response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(seconds));
        }
        response
    }
}
