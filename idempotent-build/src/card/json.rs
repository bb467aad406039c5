//! JSON objects whose members stay in the order of their text, each value verbatim.
//!
//! The card is a file that people read, sign and compare: it must not depend on which features of serde_json some other crate of
//! the build turns on, as the order and the numbers of a `serde_json::Value` do.

use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, Error, MapAccess, Visitor};
use serde_json::value::RawValue;

/// The members of an object, in order. Parsing refuses two members of one name.
#[derive(Debug, Default)]
pub(super) struct Members(pub(super) Vec<(String, Box<RawValue>)>);

impl Members {
    pub(super) fn get(&self, name: &str) -> Option<&RawValue> {
        self.0.iter().find(|(own, _)| own == name).map(|(_, value)| &**value)
    }

    /// The string of that name, if it is one.
    pub(super) fn string(&self, name: &str) -> Option<String> {
        self.get(name).and_then(string)
    }
}

impl<'de> Deserialize<'de> for Members {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct InOrder;

        impl<'de> Visitor<'de> for InOrder {
            type Value = Members;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Members, A::Error> {
                let mut members = Members::default();
                while let Some(name) = map.next_key::<String>()? {
                    if members.get(&name).is_some() {
                        return Err(A::Error::custom(format_args!("the member `{name}` is there twice")));
                    }
                    members.0.push((name, map.next_value()?));
                }
                Ok(members)
            }
        }

        deserializer.deserialize_map(InOrder)
    }
}

/// What kind of value a text holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Object,
    Array,
    String,
    Bool,
    Number,
    Null,
}

impl Kind {
    pub(super) fn of(value: &RawValue) -> Self {
        match value.get().as_bytes().first() {
            Some(b'{') => Self::Object,
            Some(b'[') => Self::Array,
            Some(b'"') => Self::String,
            Some(b't' | b'f') => Self::Bool,
            Some(b'n') => Self::Null,
            _ => Self::Number,
        }
    }

    pub(super) fn in_words(self) -> &'static str {
        match self {
            Self::Object => "an object",
            Self::Array => "an array",
            Self::String => "a string",
            Self::Bool => "true or false",
            Self::Number => "a number",
            Self::Null => "null",
        }
    }
}

pub(super) fn object(value: &RawValue) -> Option<Members> {
    serde_json::from_str(value.get()).ok()
}

pub(super) fn array(value: &RawValue) -> Option<Vec<Box<RawValue>>> {
    serde_json::from_str(value.get()).ok()
}

pub(super) fn string(value: &RawValue) -> Option<String> {
    serde_json::from_str(value.get()).ok()
}

/// A string as JSON text.
pub(super) fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

/// The first object, at any depth, that has two members of one name: its JSON pointer and that name.
pub(super) fn duplicate_member(value: &RawValue, pointer: &str) -> Option<String> {
    match Kind::of(value) {
        Kind::Object => match serde_json::from_str::<Members>(value.get()) {
            Ok(members) => members.0.iter().find_map(|(name, inner)| {
                duplicate_member(inner, &format!("{pointer}/{}", name.replace('~', "~0").replace('/', "~1")))
            }),
            Err(error) => Some(format!("`{pointer}`: {error}")),
        },
        Kind::Array => array(value)?
            .iter()
            .enumerate()
            .find_map(|(index, inner)| duplicate_member(inner, &format!("{pointer}/{index}"))),
        _ => None,
    }
}

/// Lays JSON text out with two spaces per level; every token stays as it is.
pub(super) fn pretty(text: &str) -> String {
    let mut out = String::with_capacity(text.len() * 2);
    let mut depth = 0_usize;
    let mut in_string = false;
    let mut escaped = false;
    let mut chars = text.chars().peekable();
    while let Some(char) = chars.next() {
        if in_string {
            out.push(char);
            in_string = escaped || char != '"';
            escaped = !escaped && char == '\\';
            continue;
        }
        match char {
            ' ' | '\n' | '\r' | '\t' => {}
            '{' | '[' => {
                out.push(char);
                while chars.next_if(|next| matches!(next, ' ' | '\n' | '\r' | '\t')).is_some() {}
                if let Some(close) = chars.next_if(|next| matches!(next, '}' | ']')) {
                    out.push(close);
                } else {
                    depth += 1;
                    new_line(&mut out, depth);
                }
            }
            '}' | ']' => {
                depth = depth.saturating_sub(1);
                new_line(&mut out, depth);
                out.push(char);
            }
            ',' => {
                out.push(char);
                new_line(&mut out, depth);
            }
            ':' => out.push_str(": "),
            _ => {
                in_string = char == '"';
                out.push(char);
            }
        }
    }
    out.push('\n');
    out
}

fn new_line(out: &mut String, depth: usize) {
    out.push('\n');
    out.extend(std::iter::repeat_n("  ", depth));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_keep_their_order_and_their_text() {
        let members: Members =
            serde_json::from_str(r#"{"z": 1.10, "a": {"b": 1e400, "a": 0}, "m": 18446744073709551616}"#)
                .expect("an object");
        let texts: Vec<_> = members.0.iter().map(|(name, value)| (name.as_str(), value.get())).collect();
        assert_eq!(texts, [("z", "1.10"), ("a", r#"{"b": 1e400, "a": 0}"#), ("m", "18446744073709551616")]);
    }

    #[test]
    fn two_members_of_one_name_are_found_at_any_depth() {
        let twice = serde_json::from_str::<Members>(r#"{"a": 1, "\u0061": 2}"#);
        assert!(twice.expect_err("twice").to_string().contains("`a` is there twice"));

        let deep = RawValue::from_string(r#"{"s": [{"x": 1}, {"t/": {"y": 1, "y": 2}}]}"#.to_owned()).expect("JSON");
        let message = duplicate_member(&deep, "").expect("a duplicate");
        assert!(message.starts_with("`/s/1/t~1`: the member `y` is there twice"), "{message}");
    }

    #[test]
    fn layout_touches_nothing_but_white_space() {
        let text = "{\"a\":[ ],\"b\" :{},\"c\\\"{\":[1,\"x, \\\\\",{ \"d\":1.10}]}";
        assert_eq!(
            pretty(text),
            "{\n  \"a\": [],\n  \"b\": {},\n  \"c\\\"{\": [\n    1,\n    \"x, \\\\\",\n    {\n      \"d\": 1.10\n    }\n  ]\n}\n"
        );
        assert_eq!(pretty(&pretty(text)), pretty(text));
    }
}
