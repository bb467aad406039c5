//! A response as it is kept, and as it goes out: first answer and replay are made by the same function, so they are equal.

use axum::{body::Body, response::Response};
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};

use crate::extension::{self, Activation, IDEMPOTENT_REPLAYED};

/// Status and end-to-end headers of an operation's answer.
#[derive(Debug, Clone)]
pub(crate) struct Head {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
}

/// How this copy of an answer goes out.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Delivery {
    /// What the request that is answered said about the extension.
    pub(crate) activation: Activation,
    /// Whether this copy says that it is a replay.
    pub(crate) marked_replayed: bool,
}

impl Head {
    /// Keeps what travels end to end (RFC 9110 section 7.6.1) and is not every server's own to say.
    pub(crate) fn capture(status: StatusCode, mut headers: HeaderMap) -> Self {
        for name in named_by_connection(&headers) {
            headers.remove(name);
        }
        for name in HOP_BY_HOP.iter().chain(&OWN) {
            headers.remove(name);
        }
        extension::strip_echo(&mut headers);
        Self { status, headers: in_order(headers) }
    }

    pub(crate) fn deliver(&self, body: Body, delivery: Delivery) -> Response {
        let mut response = Response::new(body);
        *response.status_mut() = self.status;
        let headers = response.headers_mut();
        *headers = self.headers.clone();
        if delivery.activation.activated {
            extension::echo(headers, delivery.activation);
        }
        if delivery.marked_replayed {
            headers.insert(IDEMPOTENT_REPLAYED, HeaderValue::from_static("true"));
        }
        response
    }
}

const HOP_BY_HOP: [HeaderName; 9] = [
    header::CONNECTION,
    HeaderName::from_static("keep-alive"),
    header::PROXY_AUTHENTICATE,
    header::PROXY_AUTHORIZATION,
    HeaderName::from_static("proxy-connection"),
    header::TE,
    header::TRAILER,
    header::TRANSFER_ENCODING,
    header::UPGRADE,
];

/// Set anew on every response, whatever the handler said.
const OWN: [HeaderName; 3] = [header::DATE, header::CONTENT_LENGTH, IDEMPOTENT_REPLAYED];

fn named_by_connection(headers: &HeaderMap) -> Vec<HeaderName> {
    let lines = headers.get_all(header::CONNECTION).into_iter();
    let names = lines.flat_map(|line| line.as_bytes().split(|&byte| byte == b','));
    names.filter_map(|name| HeaderName::from_bytes(name.trim_ascii()).ok()).collect()
}

/// Removing from a `HeaderMap` reorders it; what is kept must have an order that storing and reading back preserves.
fn in_order(headers: HeaderMap) -> HeaderMap {
    let mut ordered = HeaderMap::with_capacity(headers.len());
    for (name, value) in &headers {
        ordered.append(name.clone(), value.clone());
    }
    ordered
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::extension::{A2A_EXTENSIONS, URI};

    #[test]
    fn hop_by_hop_and_own_headers_are_not_kept() {
        let mut headers = HeaderMap::new();
        for (name, value) in [
            ("connection", "close, x-hop"),
            ("x-hop", "1"),
            ("transfer-encoding", "chunked"),
            ("content-length", "99"),
            ("date", "yesterday"),
            ("idempotent-replayed", "true"),
            ("set-cookie", "a=1"),
            ("set-cookie", "b=2"),
            ("a2a-extensions", URI),
        ] {
            headers.append(HeaderName::from_static(name), HeaderValue::from_static(value));
        }
        headers.append("x-bytes", HeaderValue::from_bytes(b"\xff\xfe").expect("opaque bytes are allowed"));
        let head = Head::capture(StatusCode::ACCEPTED, headers);
        let kept: Vec<_> = head.headers.iter().map(|(name, value)| (name.as_str(), value.as_bytes())).collect();
        assert_eq!(kept.iter().filter(|(name, _)| *name == "set-cookie").count(), 2);
        assert_eq!(kept.iter().filter(|(name, _)| *name == "x-bytes").count(), 1);
        assert_eq!(kept.len(), 3);

        let activation = Activation { activated: true, legacy_header: false };
        let first = head.deliver(Body::empty(), Delivery { activation, marked_replayed: false });
        assert_eq!(first.headers()[A2A_EXTENSIONS], URI);
        assert!(!first.headers().contains_key(IDEMPOTENT_REPLAYED));
        let replay = head.deliver(Body::empty(), Delivery { activation, marked_replayed: true });
        assert_eq!(replay.headers()[IDEMPOTENT_REPLAYED], "true");
    }
}
