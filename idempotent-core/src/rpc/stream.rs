//! [`RpcStream`]: a method's results as server-sent events, each of them a JSON-RPC response.

use std::{
    fmt,
    pin::Pin,
    task::{Context, Poll},
};

use axum::{body::Body, response::Response};
use bytes::Bytes;
use futures_core::Stream;
use futures_util::StreamExt as _;
use http::{HeaderMap, HeaderValue, header};
use serde::Serialize;

use super::{
    RpcError,
    error::append_all,
    json_text::{self, JsonText},
    reply::Reply,
};

/// A streaming method's answer: every item of the stream becomes one `data:` line that holds a JSON-RPC response with the
/// request's `id`, as A2A's `message/stream` asks.
///
/// An `Err` ends the stream with an error response. As the first item it is answered as plain JSON, with its own HTTP status,
/// before any event stream begins.
///
/// ```
/// use futures_util::stream;
/// use idempotent_core::rpc::{RpcError, RpcStream};
///
/// async fn count() -> RpcStream<impl futures_core::Stream<Item = Result<u32, RpcError>>> {
///     RpcStream::new(stream::iter([Ok(1), Ok(2)]))
/// }
/// ```
pub struct RpcStream<S> {
    events: S,
    headers: HeaderMap,
}

impl<S> RpcStream<S> {
    /// Answers with the items of `events`.
    pub fn new(events: S) -> Self {
        Self { events, headers: HeaderMap::new() }
    }

    /// Adds HTTP headers to the response.
    pub fn with_headers(mut self, headers: HeaderMap) -> Self {
        self.headers.extend(headers);
        self
    }
}

impl<S> fmt::Debug for RpcStream<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RpcStream").field("headers", &self.headers).finish_non_exhaustive()
    }
}

impl<S, T, E> RpcStream<S>
where
    S: Stream<Item = Result<T, E>> + Send + 'static,
    T: Serialize,
    E: Into<RpcError>,
{
    /// Waits for the first event, so that a failure before it can still choose its status.
    pub(crate) async fn begin(self, reply: Reply) -> Response {
        let mut events = Box::pin(self.events);
        let first = match events.next().await {
            Some(Err(error)) => {
                reply.failed().set();
                return error.into().into_response(reply.id());
            }
            Some(Ok(first)) => Some(event_of(&reply, Ok::<T, E>(first))),
            None => None,
        };
        let ended = first.is_none();
        let mut response = Response::new(Body::from_stream(Events { first, events, reply, ended }));
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
        append_all(headers, self.headers);
        response
    }
}

/// One `data:` line, and whether the stream ends with it.
struct Event {
    line: Bytes,
    last: bool,
}

fn event_of<T: Serialize, E: Into<RpcError>>(reply: &Reply, item: Result<T, E>) -> Event {
    let written = item.map_err(Into::into).and_then(|result| {
        JsonText::of(&result).map_err(|error| {
            tracing::error!(%error, "an event of a JSON-RPC stream is not JSON");
            RpcError::internal("Internal error: an event cannot be written as JSON")
        })
    });
    match written {
        Ok(result) => Event { line: data_line(&json_text::success(reply.id(), &result)), last: false },
        Err(error) => {
            reply.failed().set();
            Event { line: data_line(&error.to_json(reply.id())), last: true }
        }
    }
}

/// A server-sent event that holds `json`, which has no line breaks outside strings and none unescaped inside.
pub(crate) fn data_line(json: &JsonText) -> Bytes {
    [b"data: ", json.as_bytes(), b"\n\n"].concat().into()
}

struct Events<S> {
    first: Option<Event>,
    events: Pin<Box<S>>,
    reply: Reply,
    ended: bool,
}

impl<S, T, E> Stream for Events<S>
where
    S: Stream<Item = Result<T, E>>,
    T: Serialize,
    E: Into<RpcError>,
{
    type Item = Result<Bytes, std::convert::Infallible>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = &mut *self;
        let event = match this.first.take() {
            Some(first) => first,
            None if this.ended => return Poll::Ready(None),
            None => match std::task::ready!(this.events.as_mut().poll_next(context)) {
                Some(item) => event_of(&this.reply, item),
                None => {
                    this.ended = true;
                    return Poll::Ready(None);
                }
            },
        };
        this.ended = event.last;
        Poll::Ready(Some(Ok(event.line)))
    }
}

#[cfg(test)]
mod tests {
    use futures_util::stream;
    use http::StatusCode;
    use http_body_util::BodyExt as _;

    use super::*;

    async fn answer(items: Vec<Result<u32, RpcError>>) -> (StatusCode, String, String, bool) {
        let reply = Reply::to(JsonText::verbatim("7"));
        let failed = reply.failed().clone();
        let response = RpcStream::new(stream::iter(items)).begin(reply).await;
        let content_type = response.headers()[header::CONTENT_TYPE].to_str().expect("text").to_owned();
        let status = response.status();
        let body = response.into_body().collect().await.expect("infallible").to_bytes();
        (status, content_type, String::from_utf8(body.to_vec()).expect("text"), failed.is_set())
    }

    #[tokio::test]
    async fn every_item_is_a_response_of_its_own() {
        let (status, content_type, body, failed) = answer(vec![Ok(1), Ok(2)]).await;
        assert_eq!((status, content_type.as_str(), failed), (StatusCode::OK, "text/event-stream", false));
        assert_eq!(
            body,
            "data: {\"jsonrpc\":\"2.0\",\"id\":7,\"result\":1}\n\ndata: {\"jsonrpc\":\"2.0\",\"id\":7,\"result\":2}\n\n"
        );
    }

    #[tokio::test]
    async fn a_failure_before_the_first_event_is_plain_json_with_its_own_status() {
        let error = RpcError::new(-32000, "no").with_status(StatusCode::IM_A_TEAPOT);
        let (status, content_type, body, failed) = answer(vec![Err(error), Ok(1)]).await;
        assert_eq!((status, content_type.as_str(), failed), (StatusCode::IM_A_TEAPOT, "application/json", true));
        assert_eq!(body, r#"{"jsonrpc":"2.0","id":7,"error":{"code":-32000,"message":"no"}}"#);
    }

    #[tokio::test]
    async fn an_error_ends_the_stream() {
        let (_, _, body, failed) = answer(vec![Ok(1), Err(RpcError::new(-1, "no")), Ok(2)]).await;
        assert!(failed);
        assert!(body.ends_with("\"error\":{\"code\":-1,\"message\":\"no\"}}\n\n"), "{body}");
    }
}
