//! The extension on the wire: its URI, who activated it, and what a response says about it (spec section 3).

use http::{HeaderMap, HeaderName, HeaderValue};

/// The extension's URI (spec, "Identity"). Compared exactly.
pub const URI: &str = "https://agentic-sandbox.aiwg.io/extensions/idempotency/v1";

/// Header by which an A2A 1.0 client activates extensions, and a server echoes them.
pub const A2A_EXTENSIONS: HeaderName = HeaderName::from_static("a2a-extensions");

/// The same header under its A2A 0.3 name.
pub const X_A2A_EXTENSIONS: HeaderName = HeaderName::from_static("x-a2a-extensions");

/// Says `true` on a response that was served from the cache; absent otherwise (spec section 4.3).
pub const IDEMPOTENT_REPLAYED: HeaderName = HeaderName::from_static("idempotent-replayed");

/// The extension's `description` in an AgentCard, unless the card brings its own (spec section 3.1).
pub const DESCRIPTION: &str =
    "Server-side request deduplication keyed on Message.message_id with 24h TTL and payload-hash binding.";

/// What a request's headers say about this extension.
///
/// Both header names are read, repeated lines and comma lists with optional white space.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Activation {
    /// The request names [`URI`] in either header.
    pub activated: bool,
    /// The request used the 0.3 header, so the answer does too.
    pub legacy_header: bool,
}

impl Activation {
    /// Reads the activation headers of a request.
    ///
    /// ```
    /// use http::{HeaderMap, HeaderValue};
    /// use idempotent_core::extension::{Activation, A2A_EXTENSIONS, URI};
    ///
    /// let mut headers = HeaderMap::new();
    /// headers.insert(A2A_EXTENSIONS, HeaderValue::from_str(&format!("https://example.org/x , {URI}")).unwrap());
    /// assert!(Activation::of(&headers).activated);
    /// ```
    pub fn of(headers: &HeaderMap) -> Self {
        Self {
            activated: listed(headers).any(|uri| uri == URI.as_bytes()),
            legacy_header: headers.contains_key(X_A2A_EXTENSIONS),
        }
    }
}

/// Every URI in both headers, in order.
fn listed(headers: &HeaderMap) -> impl Iterator<Item = &[u8]> {
    let lines = headers.get_all(A2A_EXTENSIONS).into_iter().chain(headers.get_all(X_A2A_EXTENSIONS));
    lines
        .flat_map(|line| line.as_bytes().split(|&byte| byte == b','))
        .map(<[u8]>::trim_ascii)
        .filter(|uri| !uri.is_empty())
}

/// Adds our URI to the extensions that a response echoes, each URI once, on one line per header name.
///
/// What the handler put into either header is kept; both headers carry the same list.
pub(crate) fn echo(headers: &mut HeaderMap, activation: Activation) {
    let mut uris: Vec<&[u8]> = Vec::new();
    for uri in listed(headers).chain([URI.as_bytes()]) {
        if !uris.contains(&uri) {
            uris.push(uri);
        }
    }
    // A list of parts of valid header values is one.
    let Ok(line) = HeaderValue::from_bytes(&uris.join(&b", "[..])) else { return };
    if activation.legacy_header || headers.contains_key(X_A2A_EXTENSIONS) {
        headers.insert(X_A2A_EXTENSIONS, line.clone());
    }
    headers.insert(A2A_EXTENSIONS, line);
}

/// Takes our URI out of what a handler echoed by itself: whether it is there is decided anew for every response.
pub(crate) fn strip_echo(headers: &mut HeaderMap) {
    for name in [A2A_EXTENSIONS, X_A2A_EXTENSIONS] {
        let kept: Vec<&[u8]> = headers
            .get_all(&name)
            .into_iter()
            .flat_map(|line| line.as_bytes().split(|&byte| byte == b','))
            .map(<[u8]>::trim_ascii)
            .filter(|uri| !uri.is_empty() && *uri != URI.as_bytes())
            .collect();
        match HeaderValue::from_bytes(&kept.join(&b", "[..])) {
            Ok(line) if !kept.is_empty() => headers.insert(name, line),
            _ => headers.remove(name),
        };
    }
}

/// Which A2A version's wire forms a request speaks; its method's name decides.
///
/// As an extractor it tells a handler in which form to answer.
///
/// ```
/// use idempotent_core::Dialect;
///
/// assert_eq!(Dialect::of_method("message/send"), Dialect::V0_3);
/// assert_eq!(Dialect::of_method("SendMessage"), Dialect::V1_0);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Dialect {
    /// A2A 0.3: `message/send`, `X-A2A-Extensions`.
    V0_3,
    /// A2A 1.0: `SendMessage`, `A2A-Extensions`.
    V1_0,
}

impl Dialect {
    /// The dialect that a method's name belongs to: 1.0 writes its methods `SendMessage`, 0.3 writes `message/send`.
    pub fn of_method(method: &str) -> Self {
        if method.starts_with(|first: char| first.is_ascii_uppercase()) && !method.contains('/') {
            Self::V1_0
        } else {
            Self::V0_3
        }
    }
}

/// The methods that A2A knows under two names, (0.3, 1.0).
const NAMES: [(&str, &str); 7] = [
    ("message/send", "SendMessage"),
    ("message/stream", "SendStreamingMessage"),
    ("tasks/get", "GetTask"),
    ("tasks/list", "ListTasks"),
    ("tasks/cancel", "CancelTask"),
    ("tasks/resubscribe", "SubscribeToTask"),
    ("agent/getAuthenticatedExtendedCard", "GetExtendedAgentCard"),
];

/// A method's 0.3 name, whichever of its names is given: what two spellings of one operation have in common.
pub(crate) fn operation_of(method: &str) -> &str {
    NAMES.iter().find(|(_, newer)| *newer == method).map_or(method, |(older, _)| older)
}

/// The other name of a method that A2A knows under two.
pub(crate) fn other_name(method: &str) -> Option<&'static str> {
    NAMES.iter().find_map(|(older, newer)| match method {
        _ if method == *older => Some(*newer),
        _ if method == *newer => Some(*older),
        _ => None,
    })
}

/// The A2A version that a request asks for is one that is served: absent, empty, 0.3 or 1.0.
pub(crate) fn version_is_served(version: &str) -> bool {
    matches!(version.trim(), "" | "0.3" | "1.0")
}

/// Header (and query parameter) by which a client says which A2A version it speaks.
pub const A2A_VERSION: HeaderName = HeaderName::from_static("a2a-version");

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(lines: &[(HeaderName, &str)]) -> HeaderMap {
        lines.iter().map(|(name, line)| (name.clone(), HeaderValue::from_str(line).expect("a header value"))).collect()
    }

    fn activated(lines: &[(HeaderName, &str)]) -> bool {
        let mut map = HeaderMap::new();
        for (name, line) in lines {
            map.append(name.clone(), HeaderValue::from_str(line).expect("a header value"));
        }
        Activation::of(&map).activated
    }

    #[test]
    fn either_header_activates_in_lists_and_repeated_lines() {
        assert!(activated(&[(A2A_EXTENSIONS, URI)]));
        assert!(activated(&[(X_A2A_EXTENSIONS, URI)]));
        assert!(activated(&[(A2A_EXTENSIONS, &format!("a,\t{URI} ,b"))]));
        assert!(activated(&[(A2A_EXTENSIONS, "a"), (A2A_EXTENSIONS, URI)]));
        assert!(!activated(&[(A2A_EXTENSIONS, &URI.to_uppercase())]));
        assert!(!activated(&[(A2A_EXTENSIONS, &format!("{URI}/"))]));
        assert!(!activated(&[(A2A_EXTENSIONS, &format!("{URI}?x"))]));
        assert!(!activated(&[(A2A_EXTENSIONS, "")]));
        assert!(!activated(&[]));
    }

    #[test]
    fn the_echo_names_each_uri_once_and_uses_the_clients_header() {
        let activation = Activation { activated: true, legacy_header: true };
        let mut map = headers(&[(A2A_EXTENSIONS, &format!("https://a.example, {URI},https://a.example"))]);
        strip_echo(&mut map);
        assert_eq!(map[A2A_EXTENSIONS], "https://a.example, https://a.example");
        echo(&mut map, activation);
        assert_eq!(map[A2A_EXTENSIONS], format!("https://a.example, {URI}"));
        assert_eq!(map[X_A2A_EXTENSIONS], map[A2A_EXTENSIONS]);

        let mut map = HeaderMap::new();
        echo(&mut map, Activation { activated: true, legacy_header: false });
        assert_eq!(map[A2A_EXTENSIONS], URI);
        assert!(!map.contains_key(X_A2A_EXTENSIONS));
    }

    #[test]
    fn both_names_of_a_method_are_one_operation() {
        assert_eq!(operation_of("SendMessage"), "message/send");
        assert_eq!(operation_of("message/send"), "message/send");
        assert_eq!(operation_of("missions/dispatch"), "missions/dispatch");
    }
}
