//! Who calls. A demonstration: the bearer token's text is the principal, and nobody checks it.

use axum::{
    extract::FromRequestParts,
    response::{IntoResponse, Response},
};
use http::{HeaderValue, StatusCode, header, request::Parts};

/// The caller: a bearer token's text, or nobody.
#[derive(Debug, Clone)]
pub struct Principal {
    /// The token; `None` without an `Authorization` header. Never empty, so no token names the anonymous scope.
    pub name: Option<String>,
}

impl Principal {
    /// The name under which the caller's tasks are kept: empty for nobody.
    pub fn owner(&self) -> String {
        self.name.clone().unwrap_or_default()
    }
}

/// Why a caller is turned away, before the gate.
#[derive(Debug)]
pub enum Denied {
    /// HTTP 401.
    Unauthorized,
    /// HTTP 429.
    TooManyRequests,
}

impl IntoResponse for Denied {
    fn into_response(self) -> Response {
        match self {
            Self::Unauthorized => {
                let challenge = [(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"))];
                (StatusCode::UNAUTHORIZED, challenge, "a bearer token is needed\n").into_response()
            }
            Self::TooManyRequests => (StatusCode::TOO_MANY_REQUESTS, "too many requests\n").into_response(),
        }
    }
}

impl<S: Sync> FromRequestParts<S> for Principal {
    type Rejection = Denied;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Denied> {
        let mut lines = parts.headers.get_all(header::AUTHORIZATION).into_iter();
        let Some(line) = lines.next() else { return Ok(Self { name: None }) };
        if lines.next().is_some() {
            return Err(Denied::Unauthorized);
        }
        let line = std::str::from_utf8(line.as_bytes()).map_err(|_| Denied::Unauthorized)?;
        let (scheme, token) = line.split_once(' ').ok_or(Denied::Unauthorized)?;
        // Spaces as HTTP knows them: others are part of the token.
        match token.trim_matches([' ', '\t']) {
            _ if !scheme.eq_ignore_ascii_case("Bearer") => Err(Denied::Unauthorized),
            "" | "denied" => Err(Denied::Unauthorized),
            "limited" => Err(Denied::TooManyRequests),
            token => Ok(Self { name: Some(token.to_owned()) }),
        }
    }
}
