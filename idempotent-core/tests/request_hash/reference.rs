//! What the scanner is held against: a reader that is as plain and slow as possible, and serde_jcs as the writer.

use idempotent_core::json::ViolationReason;
use serde::ser::{Serialize, SerializeMap, Serializer};

/// A JSON value. Not `serde_json::Value`, which reads and writes differently depending on how serde_json was built.
#[derive(Debug, Clone, PartialEq)]
pub enum Tree {
    Null,
    Bool(bool),
    Number(f64),
    String(String),
    Array(Vec<Tree>),
    Object(Vec<(String, Tree)>),
}

impl Serialize for Tree {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Null => serializer.serialize_unit(),
            Self::Bool(value) => serializer.serialize_bool(*value),
            Self::Number(value) => serializer.serialize_f64(*value),
            Self::String(value) => serializer.serialize_str(value),
            Self::Array(elements) => serializer.collect_seq(elements),
            Self::Object(members) => {
                let mut map = serializer.serialize_map(Some(members.len()))?;
                for (name, value) in members {
                    map.serialize_entry(name, value)?;
                }
                map.end()
            }
        }
    }
}

impl Tree {
    pub fn member(&self, name: &str) -> Option<&Tree> {
        let Self::Object(members) = self else { return None };
        members.iter().find(|member| member.0 == name).map(|member| &member.1)
    }

    pub fn member_mut(&mut self, name: &str) -> Option<&mut Tree> {
        let Self::Object(members) = self else { return None };
        members.iter_mut().find(|member| member.0 == name).map(|member| &mut member.1)
    }

    /// These `params` without `message.messageId`.
    pub fn without_message_id(&self) -> Tree {
        let mut params = self.clone();
        if let Some(Tree::Object(members)) = params.member_mut("message") {
            members.retain(|member| member.0 != "messageId");
        }
        params
    }

    pub fn canonical(&self) -> Vec<u8> {
        serde_jcs::to_vec(self).unwrap()
    }
}

/// What a text is.
#[derive(Debug, PartialEq)]
pub enum Reading {
    NotJson,
    /// JSON, with the violation that is to be reported.
    Violation(Broken),
    Document(Tree),
}

#[derive(Debug, Clone, PartialEq)]
pub struct Broken {
    pub in_params: bool,
    pub offset: usize,
    pub reason: ViolationReason,
    pub pointer: String,
}

/// Reads a text. With `strict`, integers that no double equals are violations.
pub fn read(text: &[u8], strict: bool) -> Reading {
    let Ok(text) = std::str::from_utf8(text) else { return Reading::NotJson };
    let mut reader = Reader { text, at: 0, strict, path: Vec::new(), broken: Vec::new() };
    let Some(tree) = reader.document() else { return Reading::NotJson };
    let broken = reader.broken.into_iter().min_by_key(|broken| (broken.in_params, broken.offset));
    broken.map_or(Reading::Document(tree), Reading::Violation)
}

struct Reader<'a> {
    text: &'a str,
    at: usize,
    strict: bool,
    path: Vec<String>,
    broken: Vec<Broken>,
}

impl Reader<'_> {
    fn document(&mut self) -> Option<Tree> {
        let tree = self.value()?;
        (self.at == self.text.len()).then_some(tree)
    }

    fn rest(&self) -> &str {
        &self.text[self.at..]
    }

    fn space(&mut self) {
        self.at = self.text.len() - self.rest().trim_start_matches([' ', '\t', '\n', '\r']).len();
    }

    /// Takes `token` if it is next.
    fn take(&mut self, token: &str) -> bool {
        let found = self.rest().starts_with(token);
        self.at += if found { token.len() } else { 0 };
        found
    }

    fn take_while(&mut self, accept: impl Fn(char) -> bool) -> usize {
        let length = self.rest().find(|next| !accept(next)).unwrap_or(self.rest().len());
        self.at += length;
        length
    }

    fn violation(&mut self, reason: ViolationReason, offset: usize) {
        let escaped = self.path.iter().map(|token| format!("/{}", token.replace('~', "~0").replace('/', "~1")));
        // Of the path only what is inside the value of the root's member tells on which side of it this is.
        let inside = self.path.first().is_some_and(|token| token == "params");
        let repeated_params = reason == ViolationReason::DuplicateMember && self.path.len() == 1;
        let in_params = inside && !repeated_params && self.text.trim_start().starts_with('{');
        self.broken.push(Broken { in_params, offset, reason, pointer: escaped.collect() });
    }

    fn value(&mut self) -> Option<Tree> {
        self.space();
        let start = self.at;
        if self.path.len() == 127 && self.rest().starts_with(['[', '{']) {
            self.violation(ViolationReason::NestingTooDeep, start);
        }
        let tree = match self.rest().chars().next()? {
            '{' => self.object()?,
            '[' => self.array()?,
            '"' => Tree::String(self.string()?),
            '-' | '0'..='9' => self.number()?,
            _ if self.take("null") => Tree::Null,
            _ if self.take("true") => Tree::Bool(true),
            _ if self.take("false") => Tree::Bool(false),
            _ => return None,
        };
        self.space();
        Some(tree)
    }

    fn array(&mut self) -> Option<Tree> {
        let mut elements = Vec::new();
        self.take("[");
        self.space();
        if self.take("]") {
            return Some(Tree::Array(elements));
        }
        loop {
            self.path.push(elements.len().to_string());
            elements.push(self.value()?);
            self.path.pop();
            if self.take("]") {
                return Some(Tree::Array(elements));
            }
            if !self.take(",") {
                return None;
            }
        }
    }

    fn object(&mut self) -> Option<Tree> {
        let mut members: Vec<(String, Tree)> = Vec::new();
        self.take("{");
        self.space();
        if self.take("}") {
            return Some(Tree::Object(members));
        }
        loop {
            self.space();
            let start = self.at;
            let name = self.string()?;
            self.space();
            if !self.take(":") {
                return None;
            }
            self.path.push(name.clone());
            if members.iter().any(|member| member.0 == name) {
                self.violation(ViolationReason::DuplicateMember, start);
            }
            let value = self.value()?;
            self.path.pop();
            members.push((name, value));
            if self.take("}") {
                return Some(Tree::Object(members));
            }
            if !self.take(",") {
                return None;
            }
        }
    }

    fn string(&mut self) -> Option<String> {
        let mut string = String::new();
        if !self.take("\"") {
            return None;
        }
        loop {
            let start = self.at;
            let next = self.rest().chars().next()?;
            self.at += next.len_utf8();
            match next {
                '"' => return Some(string),
                '\0'..='\u{1f}' => return None,
                '\\' => {
                    let letter = self.rest().chars().next()?;
                    self.at += letter.len_utf8();
                    string.push(match letter {
                        '"' | '\\' | '/' => letter,
                        'b' => '\u{8}',
                        'f' => '\u{c}',
                        'n' => '\n',
                        'r' => '\r',
                        't' => '\t',
                        'u' => self.unicode_escape(start)?,
                        _ => return None,
                    });
                }
                _ => string.push(next),
            }
        }
    }

    fn unicode_escape(&mut self, start: usize) -> Option<char> {
        let first = self.hex4()?;
        let mut units = vec![first];
        let back = self.at;
        if (0xD800..0xDC00).contains(&first) && self.take("\\u") {
            match self.hex4() {
                Some(second) if (0xDC00..0xE000).contains(&second) => units.push(second),
                _ => self.at = back,
            }
        }
        match char::decode_utf16(units).next()? {
            Ok(character) => Some(character),
            Err(_) => {
                // A name cannot be pointed at by itself; its object is what `path` leads to.
                self.violation(ViolationReason::LoneSurrogate, start);
                Some(char::REPLACEMENT_CHARACTER)
            }
        }
    }

    fn hex4(&mut self) -> Option<u16> {
        let digits = self.rest().get(..4)?;
        let value = digits.chars().try_fold(0, |value, digit| Some(value << 4 | digit.to_digit(16)?))?;
        self.at += 4;
        u16::try_from(value).ok()
    }

    fn number(&mut self) -> Option<Tree> {
        let start = self.at;
        self.take("-");
        let zero = self.rest().starts_with('0');
        let whole = self.take_while(|next| next.is_ascii_digit());
        if whole == 0 || (zero && whole > 1) {
            return None;
        }
        let mut integer = true;
        if self.take(".") {
            integer = false;
            if self.take_while(|next| next.is_ascii_digit()) == 0 {
                return None;
            }
        }
        if self.take("e") || self.take("E") {
            integer = false;
            let _ = self.take("+") || self.take("-");
            if self.take_while(|next| next.is_ascii_digit()) == 0 {
                return None;
            }
        }
        let token = self.text[start..self.at].to_owned();
        let number: f64 = token.parse().ok()?;
        if token.len() > 1024 {
            self.violation(ViolationReason::NumberTooLong, start);
        } else if number.is_infinite() {
            self.violation(ViolationReason::NumberOverflow, start);
        } else if integer && self.strict && format!("{:.0}", number.abs()) != token.trim_start_matches('-') {
            self.violation(ViolationReason::LossyInteger, start);
        }
        Some(Tree::Number(number))
    }
}
