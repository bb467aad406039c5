//! `replay_id = "request"`: a replay that carries the retry's own JSON-RPC `id`.
//!
//! Everything else stays as it was, byte for byte. What is not a JSON-RPC response is left alone.

use axum::body::Body;
use bytes::{Bytes, BytesMut};
use futures_util::StreamExt as _;

use crate::{
    json::{Kind, Numbers, Scanner},
    rpc::json_text::JsonText,
};

/// A JSON-RPC response with `id` in place of its own.
pub(crate) fn rewrite(text: &Bytes, id: &JsonText) -> Bytes {
    let span = Scanner::with(|scanner| {
        let document = scanner.scan(text, Numbers::Rfc8785).ok()?;
        let envelope = document.envelope();
        if envelope.jsonrpc().as_deref() != Some("2.0") {
            return None;
        }
        let own = envelope.id().filter(|own| matches!(own.kind(), Kind::String | Kind::Number | Kind::Null))?;
        Some(own.span())
    });
    match span {
        Some(span) => [&text[..span.start], id.as_bytes(), &text[span.end..]].concat().into(),
        None => text.clone(),
    }
}

/// A stream of server-sent events, every `data:` line of which is a JSON-RPC response, with `id` in place of their own.
pub(crate) fn rewrite_events(body: Body, id: JsonText) -> Body {
    let lines = Lines { pending: BytesMut::new(), id };
    let rewritten = futures_util::stream::unfold(Some((body.into_data_stream(), lines)), |state| async {
        let (mut events, mut lines) = state?;
        loop {
            match events.next().await {
                Some(Ok(bytes)) => {
                    let done = lines.take_whole(&bytes);
                    if !done.is_empty() {
                        return Some((Ok(done), Some((events, lines))));
                    }
                }
                Some(Err(error)) => return Some((Err(error), None)),
                None => {
                    let rest = lines.line(&lines.pending.clone().freeze());
                    return if rest.is_empty() { None } else { Some((Ok(rest), None)) };
                }
            }
        }
    });
    Body::from_stream(rewritten)
}

/// Puts lines together that arrive in pieces.
struct Lines {
    pending: BytesMut,
    id: JsonText,
}

impl Lines {
    /// The lines that are whole now, rewritten.
    fn take_whole(&mut self, more: &[u8]) -> Bytes {
        self.pending.extend_from_slice(more);
        let Some(last) = self.pending.iter().rposition(|&byte| byte == b'\n') else { return Bytes::new() };
        let whole = self.pending.split_to(last + 1).freeze();
        let mut done = BytesMut::with_capacity(whole.len());
        let mut start = 0;
        for (end, _) in whole.iter().enumerate().filter(|(_, byte)| **byte == b'\n') {
            done.extend_from_slice(&self.line(&whole.slice(start..=end)));
            start = end + 1;
        }
        done.freeze()
    }

    fn line(&self, line: &Bytes) -> Bytes {
        let Some(rest) = line.strip_prefix(b"data:") else { return line.clone() };
        let text = rest.trim_ascii();
        if text.is_empty() {
            return line.clone();
        }
        let text = line.slice_ref(text);
        let before = text.as_ptr() as usize - line.as_ptr() as usize;
        let rewritten = rewrite(&text, &self.id);
        [&line[..before], &rewritten, &line[before + text.len()..]].concat().into()
    }
}

#[cfg(test)]
mod tests {
    use futures_util::stream;
    use http_body_util::BodyExt as _;

    use super::*;

    #[test]
    fn only_the_id_of_a_json_rpc_response_changes() {
        let id = JsonText::verbatim("\"b\"");
        let rewritten =
            |text: &'static str| String::from_utf8(rewrite(&Bytes::from(text), &id).to_vec()).expect("text");
        assert_eq!(
            rewritten(r#"{ "result": {"id": 1}, "id" : 1 ,"jsonrpc":"2.0"}"#),
            r#"{ "result": {"id": 1}, "id" : "b" ,"jsonrpc":"2.0"}"#
        );
        for left_alone in ["", "no json", r#"{"id":1}"#, r#"{"jsonrpc":"2.0"}"#, "[1]"] {
            assert_eq!(rewritten(left_alone), left_alone);
        }
    }

    #[tokio::test]
    async fn every_data_line_is_rewritten_however_it_is_cut() {
        let text =
            "id: 1\ndata: {\"jsonrpc\":\"2.0\",\"id\":1,\"result\":1}\n\n: ping\n\ndata:{\"jsonrpc\":\"2.0\",\"id\":1}";
        let expected = text.replace("\"id\":1", "\"id\":9");
        for size in 1..text.len() {
            let pieces = text.as_bytes().chunks(size).map(|piece| Ok::<_, std::io::Error>(piece.to_vec()));
            let body = Body::from_stream(stream::iter(pieces.collect::<Vec<_>>()));
            let body = rewrite_events(body, JsonText::verbatim("9")).collect().await.expect("infallible").to_bytes();
            assert_eq!(body, expected);
        }
    }
}
