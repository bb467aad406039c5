//! Response headers as the JSON object that spec section 4.4 keeps them in.
//!
//! `{"set-cookie": ["a=1", "b=2"], "etag": ["\"x\""]}`: members in the order of the response, each value's bytes as the
//! characters U+0000 to U+00FF, so that a value that is no UTF-8 comes back as it was. It is never read into a
//! `serde_json::Value`, whose order depends on which features some other crate of the build turns on.

use std::{borrow::Cow, fmt};

use http::{HeaderMap, HeaderName, HeaderValue, header::GetAll};
use serde::{
    Deserializer, Serialize, Serializer,
    de::{DeserializeSeed, MapAccess, SeqAccess, Visitor},
    ser::{SerializeMap, SerializeSeq},
};

pub(crate) fn encode(headers: &HeaderMap) -> Result<Vec<u8>, serde_json::Error> {
    serde_json::to_vec(&Object(headers))
}

pub(crate) fn decode(json: &[u8]) -> Result<HeaderMap, serde_json::Error> {
    let mut deserializer = serde_json::Deserializer::from_slice(json);
    let headers = deserializer.deserialize_map(ObjectVisitor)?;
    deserializer.end()?;
    Ok(headers)
}

struct Object<'a>(&'a HeaderMap);

impl Serialize for Object<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut object = serializer.serialize_map(Some(self.0.keys_len()))?;
        for name in self.0.keys() {
            object.serialize_entry(name.as_str(), &Values(self.0.get_all(name)))?;
        }
        object.end()
    }
}

struct Values<'a>(GetAll<'a, HeaderValue>);

impl Serialize for Values<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut array = serializer.serialize_seq(None)?;
        for value in &self.0 {
            array.serialize_element(&latin1(value))?;
        }
        array.end()
    }
}

fn latin1(value: &HeaderValue) -> Cow<'_, str> {
    match value.to_str() {
        Ok(text) => Cow::Borrowed(text),
        Err(_) => Cow::Owned(value.as_bytes().iter().copied().map(char::from).collect()),
    }
}

struct ObjectVisitor;

impl<'de> Visitor<'de> for ObjectVisitor {
    type Value = HeaderMap;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object of header names and lists of values")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<HeaderMap, A::Error> {
        let mut headers = HeaderMap::new();
        while let Some(name) = members.next_key::<String>()? {
            let name = HeaderName::try_from(name).map_err(serde::de::Error::custom)?;
            members.next_value_seed(ValuesOf(name, &mut headers))?;
        }
        Ok(headers)
    }
}

struct ValuesOf<'a>(HeaderName, &'a mut HeaderMap);

impl<'de> DeserializeSeed<'de> for ValuesOf<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_seq(self)
    }
}

impl<'de> Visitor<'de> for ValuesOf<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of header values")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut values: A) -> Result<(), A::Error> {
        let Self(name, headers) = self;
        while let Some(text) = values.next_element::<String>()? {
            let bytes: Result<Vec<u8>, _> = text.chars().map(u8::try_from).collect();
            let value = HeaderValue::try_from(bytes.map_err(serde::de::Error::custom)?);
            headers.append(&name, value.map_err(serde::de::Error::custom)?);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(headers: &HeaderMap) -> Vec<(String, Vec<u8>)> {
        headers.iter().map(|(name, value)| (name.to_string(), value.as_bytes().to_vec())).collect()
    }

    #[test]
    fn the_object_keeps_order_repeats_and_every_byte() {
        let mut headers = HeaderMap::new();
        headers.append("zulu", HeaderValue::from_static("1"));
        headers.append("set-cookie", HeaderValue::from_static("a=\"1\"\\"));
        headers.append("alpha", HeaderValue::from_static(""));
        headers.append("set-cookie", HeaderValue::from_static("b=2"));
        let bytes: Vec<u8> = (0x80..=0xff).chain([b'\t', b' ', b'~']).collect();
        headers.append("mike", HeaderValue::from_bytes(&bytes).unwrap());
        let json = encode(&headers).unwrap();
        let text = std::str::from_utf8(&json).unwrap();
        assert!(text.starts_with(r#"{"zulu":["1"],"set-cookie":["a=\"1\"\\","b=2"],"alpha":[""],"mike":[""#), "{text}");
        assert_eq!(list(&decode(&json).unwrap()), list(&headers));
        assert_eq!(encode(&HeaderMap::new()).unwrap(), b"{}");
        assert!(decode(b"{}").unwrap().is_empty());
    }

    #[test]
    fn what_is_no_such_object_is_refused() {
        for broken in [
            "",
            "[]",
            "null",
            "{",
            "{}x",
            r#"{"a":"b"}"#,
            r#"{"a":[1]}"#,
            r#"{"a b":["c"]}"#,
            r#"{"a":["\n"]}"#,
            "{\"a\":[\"\u{100}\"]}",
            r#"{"a":["b"]"#,
        ] {
            assert!(decode(broken.as_bytes()).is_err(), "{broken}");
        }
        assert!(decode(b"{\"a\":[\"\xff\"]}").is_err());
    }
}
