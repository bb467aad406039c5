//! JSON written as text, so that what a client sent (its `id`, its `messageId`) goes back exactly as it came.

use bytes::Bytes;
use serde::Serialize;

/// A piece of JSON text: one whole value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct JsonText(Bytes);

impl JsonText {
    pub(crate) const NULL: Self = Self(Bytes::from_static(b"null"));

    /// The caller answers for `text` being one JSON value.
    pub(crate) fn verbatim(text: impl Into<Bytes>) -> Self {
        Self(text.into())
    }

    pub(crate) fn of(value: &(impl Serialize + ?Sized)) -> Result<Self, serde_json::Error> {
        serde_json::to_vec(value).map(|text| Self(text.into()))
    }

    pub(crate) fn string(text: &str) -> Self {
        let mut bytes = Vec::with_capacity(text.len() + 2);
        push_string(&mut bytes, text);
        Self(bytes.into())
    }

    pub(crate) fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    pub(crate) fn into_bytes(self) -> Bytes {
        self.0
    }
}

impl From<u64> for JsonText {
    fn from(number: u64) -> Self {
        Self(Bytes::copy_from_slice(itoa::Buffer::new().format(number).as_bytes()))
    }
}

fn push_string(bytes: &mut Vec<u8>, text: &str) {
    // Writing a string into memory cannot fail.
    let _ = serde_json::to_writer(bytes, text);
}

/// An object's members, written in the order in which they are given.
#[derive(Debug)]
pub(crate) struct JsonObject(Vec<u8>);

impl JsonObject {
    pub(crate) fn new() -> Self {
        Self(vec![b'{'])
    }

    pub(crate) fn text(self, name: &str, value: &str) -> Self {
        self.member(name, &JsonText::string(value))
    }

    pub(crate) fn member(mut self, name: &str, value: &JsonText) -> Self {
        if self.0.len() > 1 {
            self.0.push(b',');
        }
        push_string(&mut self.0, name);
        self.0.push(b':');
        self.0.extend_from_slice(value.as_bytes());
        self
    }

    pub(crate) fn finish(mut self) -> JsonText {
        self.0.push(b'}');
        JsonText(self.0.into())
    }
}

/// An array of one value.
pub(crate) fn array_of(value: &JsonText) -> JsonText {
    JsonText([b"[", value.as_bytes(), b"]"].concat().into())
}

/// A JSON-RPC 2.0 success: `{"jsonrpc":"2.0","id":…,"result":…}`.
pub(crate) fn success(id: &JsonText, result: &JsonText) -> JsonText {
    envelope(id).member("result", result).finish()
}

/// A JSON-RPC 2.0 error: `{"jsonrpc":"2.0","id":…,"error":{"code":…,"message":…,"data":…}}`.
pub(crate) fn failure(id: &JsonText, code: i64, message: &str, data: Option<&JsonText>) -> JsonText {
    let code = JsonText(Bytes::copy_from_slice(itoa::Buffer::new().format(code).as_bytes()));
    let mut error = JsonObject::new().member("code", &code).text("message", message);
    if let Some(data) = data {
        error = error.member("data", data);
    }
    envelope(id).member("error", &error.finish()).finish()
}

fn envelope(id: &JsonText) -> JsonObject {
    JsonObject::new().text("jsonrpc", "2.0").member("id", id)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn envelopes_carry_ids_verbatim() {
        let id = JsonText::verbatim("1e0");
        let text = success(&id, &JsonText::of(&[1, 2]).expect("a list is JSON"));
        assert_eq!(text.as_bytes(), br#"{"jsonrpc":"2.0","id":1e0,"result":[1,2]}"#);
        let text = failure(&JsonText::NULL, -32700, "a \"quoted\" word", None);
        assert_eq!(
            text.as_bytes(),
            br#"{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"a \"quoted\" word"}}"#
        );
    }
}
