//! The AgentCard at run time: the build's card with this process's values, served under its well-known path.
//!
//! `agent_card!()` makes a [`Card`] from what the build script wrote. Its text stays as it is but for three values, which only
//! the running agent knows: `required`, `params.ttl_seconds` and `params.max_cache_entries` (spec 3.1, 3.3). They are put in
//! by their place in the text, so that no JSON library can reorder or rewrite the rest.

use std::fmt::Write;
use std::ops::Range;

use axum::response::{IntoResponse, Response};
use axum::routing::{MethodRouter, get};
use bytes::Bytes;
use http::header::{CACHE_CONTROL, CONTENT_TYPE, ETAG, IF_NONE_MATCH};
use http::{HeaderMap, HeaderValue, StatusCode};
use sha2::{Digest, Sha256};

use crate::extension::operation_of;

/// Where an A2A client looks for an agent's card, in 0.3 and 1.0.
pub const WELL_KNOWN_PATH: &str = "/.well-known/agent-card.json";

/// How long a client may use a card before it asks again: a new one comes with a new process.
const MAX_AGE: HeaderValue = HeaderValue::from_static("public, max-age=60");

/// An agent's card and the methods that it was made from; `agent_card!()` makes it.
///
/// ```
/// use idempotent_core::card::{Card, RuntimeParams};
///
/// # fn serve(card: Card) {
/// let params = RuntimeParams { ttl_seconds: 3_600, max_cache_entries: 50_000, required: true };
/// let router: axum::Router = axum::Router::new()
///     .route(idempotent_core::card::WELL_KNOWN_PATH, idempotent_core::card::serve(card.json(&params)));
/// # }
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Card {
    json: &'static str,
    places: Places,
    methods: &'static [CardMethod],
}

/// Where the run-time values stand in a card's text, in bytes.
#[doc(hidden)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Places {
    pub required: (usize, usize),
    pub ttl_seconds: (usize, usize),
    pub max_cache_entries: (usize, usize),
}

/// A method that a card was made from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CardMethod {
    /// Its name; a core method's A2A 0.3 name.
    pub method: &'static str,
    /// URI of the extension that put it in scope (spec 4.1); `None` for the core methods.
    pub extension: Option<&'static str>,
}

/// What the running agent declares (spec 3.3).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RuntimeParams {
    /// How long an answer is kept, in seconds.
    pub ttl_seconds: u64,
    /// How many answers are kept at most.
    pub max_cache_entries: u64,
    /// Whether clients must activate the extension.
    pub required: bool,
}

impl Card {
    /// Only `agent_card!()` knows what to put here.
    #[doc(hidden)]
    pub const fn from_build(json: &'static str, places: Places, methods: &'static [CardMethod]) -> Self {
        Self { json, places, methods }
    }

    /// The card as the build wrote it, with the values of the base card or the defaults of the spec: the file for a
    /// registry or for signing.
    pub const fn build_json(&self) -> &'static str {
        self.json
    }

    /// The values in [`build_json`](Self::build_json). A signature of that text holds for what an agent serves if it runs with
    /// these.
    pub fn build_params(&self) -> RuntimeParams {
        let text = |place| self.json.get(span(place)).unwrap_or_default();
        let number = |place| text(place).parse().unwrap_or_default();
        RuntimeParams {
            ttl_seconds: number(self.places.ttl_seconds),
            max_cache_entries: number(self.places.max_cache_entries),
            required: text(self.places.required) == "true",
        }
    }

    /// The methods that the card was made from, sorted by name.
    pub const fn methods(&self) -> &'static [CardMethod] {
        self.methods
    }

    /// The card's text with the values of this process.
    pub fn json(&self, params: &RuntimeParams) -> String {
        let Places { required, ttl_seconds, max_cache_entries } = self.places;
        let mut values = [
            (span(required), params.required.to_string()),
            (span(ttl_seconds), params.ttl_seconds.to_string()),
            (span(max_cache_entries), params.max_cache_entries.to_string()),
        ];
        // From the end, so that what is put in moves no place that is still to come.
        values.sort_by_key(|(place, _)| std::cmp::Reverse(place.start));
        let mut json = self.json.to_owned();
        for (place, value) in values {
            if json.get(place.clone()).is_some() {
                json.replace_range(place, &value);
            }
        }
        json
    }

    /// How the card and the idempotent methods that a router has mounted differ, in words; `None` if they agree.
    ///
    /// Names are compared as operations: `SendMessage` is `message/send`.
    pub fn disagreement<'a>(&self, mounted: impl IntoIterator<Item = &'a str>) -> Option<String> {
        let mounted: Vec<&str> = mounted.into_iter().map(operation_of).collect();
        let listed: Vec<&str> = self.methods.iter().map(|one| operation_of(one.method)).collect();
        let quoted = |these: &[&str], those: &[&str]| -> Option<String> {
            let missing = these.iter().filter(|name| !those.contains(name));
            let names: Vec<_> = missing.map(|name| format!("`{name}`")).collect();
            (!names.is_empty()).then(|| names.join(", "))
        };
        let mut words = Vec::new();
        if let Some(names) = quoted(&listed, &mounted) {
            words.push(format!(
                "the AgentCard lists {names}, which no mounted handler answers: mount it, or remove its handler"
            ));
        }
        if let Some(names) = quoted(&mounted, &listed) {
            words.push(format!(
                "the mounted handler of {names} is not in the AgentCard: call agent_card!() in the crate that has the handler, \
                 or emit a fragment in the build script of the library that has it"
            ));
        }
        (!words.is_empty()).then(|| words.join("; "))
    }
}

fn span((start, end): (usize, usize)) -> Range<usize> {
    start..end
}

/// Serves a card under GET and HEAD, with a strong `ETag`; a client that has it already gets 304.
pub fn serve<S: Clone + Send + Sync + 'static>(json: impl Into<Bytes>) -> MethodRouter<S> {
    let json = json.into();
    let etag = etag(&json);
    get(move |headers: HeaderMap| {
        let answer = answer(&headers, &json, &etag);
        async move { answer }
    })
}

fn answer(request: &HeaderMap, json: &Bytes, etag: &HeaderValue) -> Response {
    let validators = [(ETAG, etag.clone()), (CACHE_CONTROL, MAX_AGE)];
    if has_already(request, etag) {
        return (StatusCode::NOT_MODIFIED, validators).into_response();
    }
    let content_type = [(CONTENT_TYPE, HeaderValue::from_static("application/json"))];
    (content_type, validators, json.clone()).into_response()
}

fn etag(json: &[u8]) -> HeaderValue {
    let mut etag = String::from("\"");
    for byte in Sha256::digest(json) {
        // Writing to a String cannot fail.
        let _ = write!(etag, "{byte:02x}");
    }
    etag.push('"');
    HeaderValue::try_from(etag).unwrap_or(HeaderValue::from_static("\"card\""))
}

/// RFC 9110, 13.1.2: `*` or a list of tags on any number of lines, compared weakly.
fn has_already(request: &HeaderMap, etag: &HeaderValue) -> bool {
    let lines = request.get_all(IF_NONE_MATCH).into_iter();
    let mut tags = lines.flat_map(|line| line.as_bytes().split(|byte| *byte == b',').map(<[u8]>::trim_ascii));
    tags.any(|tag| tag == b"*" || tag.strip_prefix(b"W/").unwrap_or(tag) == etag.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::Router;
    use axum::body::{Body, to_bytes};
    use http::{Method, Request};
    use tower::ServiceExt;

    const JSON: &str = r#"{"params": {"max": 1, "z": 1.10, "ttl": 22}, "required": true}"#;
    const CARD: Card = Card::from_build(
        JSON,
        Places { required: (57, 61), ttl_seconds: (40, 42), max_cache_entries: (19, 20) },
        &[
            CardMethod { method: "jobs/start", extension: Some("urn:jobs") },
            CardMethod { method: "message/send", extension: None },
        ],
    );

    #[test]
    fn run_time_values_replace_those_of_the_build_and_nothing_else() {
        let params = RuntimeParams { ttl_seconds: 3600, max_cache_entries: 100_000, required: false };
        assert_eq!(CARD.json(&params), r#"{"params": {"max": 100000, "z": 1.10, "ttl": 3600}, "required": false}"#);
        assert_eq!(CARD.build_params(), RuntimeParams { ttl_seconds: 22, max_cache_entries: 1, required: true });
        assert_eq!(CARD.json(&CARD.build_params()), CARD.build_json());
    }

    #[test]
    fn a_disagreement_names_the_methods_of_both_sides() {
        assert_eq!(CARD.disagreement(["SendMessage", "jobs/start"]), None);
        let words = CARD.disagreement(["jobs/start", "message/stream"]).expect("a disagreement");
        assert!(words.contains("lists `message/send`, which no mounted handler answers"), "{words}");
        assert!(words.contains("handler of `message/stream` is not in the AgentCard"), "{words}");
    }

    async fn call(method: Method, headers: &[(http::HeaderName, &str)]) -> (StatusCode, HeaderMap, Bytes) {
        let router: Router = Router::new().route(WELL_KNOWN_PATH, serve(JSON));
        let mut request = Request::builder().method(method).uri(WELL_KNOWN_PATH);
        for (name, value) in headers {
            request = request.header(name, *value);
        }
        let response = router.oneshot(request.body(Body::empty()).expect("a request")).await.expect("an answer");
        let (parts, body) = response.into_parts();
        (parts.status, parts.headers, to_bytes(body, 1 << 20).await.expect("a body"))
    }

    #[tokio::test]
    async fn a_card_is_served_with_type_and_tag() {
        let (status, headers, body) = call(Method::GET, &[]).await;
        assert_eq!(status, StatusCode::OK);
        assert_eq!(headers[CONTENT_TYPE], "application/json");
        assert_eq!(headers[CACHE_CONTROL], "public, max-age=60");
        assert_eq!(headers[ETAG].len(), 66);
        assert_eq!(body, JSON);

        let (status, head, body) = call(Method::HEAD, &[]).await;
        assert_eq!((status, body.len()), (StatusCode::OK, 0));
        assert_eq!(head[ETAG], headers[ETAG]);
        assert_eq!(head["content-length"], JSON.len().to_string().as_str());

        assert_eq!(call(Method::POST, &[]).await.0, StatusCode::METHOD_NOT_ALLOWED);
    }

    #[tokio::test]
    async fn a_client_that_has_the_card_is_told_so() {
        let (_, headers, _) = call(Method::GET, &[]).await;
        let tag = headers[ETAG].to_str().expect("text");
        for have in [tag.to_owned(), format!("W/{tag}"), format!("\"x\" ,{tag}"), "*".to_owned()] {
            let (status, headers, body) = call(Method::GET, &[(IF_NONE_MATCH, &have)]).await;
            assert_eq!((status, body.len()), (StatusCode::NOT_MODIFIED, 0), "{have}");
            assert_eq!(headers[ETAG], tag);
            assert!(!headers.contains_key(CONTENT_TYPE));
        }
        let lines = [(IF_NONE_MATCH, "\"a\""), (IF_NONE_MATCH, tag)];
        assert_eq!(call(Method::GET, &lines).await.0, StatusCode::NOT_MODIFIED);
        for other in ["\"x\"", "x", ""] {
            assert_eq!(call(Method::GET, &[(IF_NONE_MATCH, other)]).await.0, StatusCode::OK, "{other}");
        }
    }

    #[test]
    fn another_text_has_another_tag() {
        assert_ne!(etag(b"a"), etag(b"b"));
        assert_eq!(etag(b"a"), etag(b"a"));
    }
}
