//! Checks the base card: the part of the AgentCard that its author writes.
//!
//! A2A 0.3 and 1.0 describe an agent's endpoints differently (`url` and `protocolVersion`, or `supportedInterfaces`); one card
//! may serve both. Everything wrong is reported at once, each thing with the JSON pointer of its place.

use serde_json::value::RawValue;

use super::declaration;
use super::json::{self, Kind, Members};
use crate::syntax::EXTENSION_URI;

/// A base card that a declaration can be merged into.
#[derive(Debug)]
pub(super) struct BaseCard {
    pub(super) members: Members,
}

impl BaseCard {
    /// Reads and checks the text of a base card.
    ///
    /// # Errors
    ///
    /// Everything that is wrong with it, one line each.
    pub(super) fn parse(text: &str) -> Result<Self, Vec<String>> {
        let raw: &RawValue = serde_json::from_str(text).map_err(|error| vec![format!("is not JSON: {error}")])?;
        if Kind::of(raw) != Kind::Object {
            return Err(vec![format!("is {}; an AgentCard is an object", Kind::of(raw).in_words())]);
        }
        if let Some(duplicate) = json::duplicate_member(raw, "") {
            return Err(vec![duplicate]);
        }
        let members: Members = serde_json::from_str(text).map_err(|error| vec![error.to_string()])?;
        let mut check = Check::default();
        check.card(&members);
        if check.wrong.is_empty() { Ok(Self { members }) } else { Err(check.wrong) }
    }
}

#[derive(Default)]
struct Check {
    wrong: Vec<String>,
}

impl Check {
    fn card(&mut self, card: &Members) {
        for (name, example) in
            [("name", "\"Travel agent\""), ("description", "\"Books trips.\""), ("version", "\"1.0.0\"")]
        {
            self.required(card, "", name, Kind::String, example);
        }
        self.strings(card, "defaultInputModes");
        self.strings(card, "defaultOutputModes");
        self.endpoints(card);
        self.skills(card);
        if card.get("signatures").is_some() {
            self.wrong.push(
                "`/signatures`: merging the extension would break the signature; sign the card that this build writes instead"
                    .to_owned(),
            );
        }
        if let Some(capabilities) = self.optional(card, "", "capabilities", Kind::Object).and_then(json::object) {
            self.extensions(&capabilities);
        }
    }

    /// The endpoints in the shape of A2A 0.3, of 1.0, or both.
    fn endpoints(&mut self, card: &Members) {
        let old = ["url", "protocolVersion", "preferredTransport", "additionalInterfaces"]
            .iter()
            .any(|name| card.get(name).is_some());
        let new = card.get("supportedInterfaces").is_some();
        if !old && !new {
            self.wrong.push(
                "`/supportedInterfaces`: is missing, and so is the `url` of A2A 0.3; add \
                 \"supportedInterfaces\": [{\"url\": \"https://agent.example/\", \"protocolBinding\": \"JSONRPC\", \"protocolVersion\": \"1.0\"}]"
                    .to_owned(),
            );
        }
        if old {
            self.required(card, "", "url", Kind::String, "\"https://agent.example/\"");
            self.required(card, "", "protocolVersion", Kind::String, "\"0.3.0\"");
            self.optional(card, "", "preferredTransport", Kind::String);
            self.objects(
                card,
                "additionalInterfaces",
                &[("url", "\"https://agent.example/\""), ("transport", "\"JSONRPC\"")],
            );
        }
        if new {
            let interfaces = self.objects(
                card,
                "supportedInterfaces",
                &[
                    ("url", "\"https://agent.example/\""),
                    ("protocolBinding", "\"JSONRPC\""),
                    ("protocolVersion", "\"1.0\""),
                ],
            );
            if interfaces == Some(0) {
                self.wrong.push("`/supportedInterfaces`: is empty; an agent has at least one".to_owned());
            }
        }
    }

    fn skills(&mut self, card: &Members) {
        if card.get("skills").is_none() {
            self.wrong.push(
                "`/skills`: is missing; add \"skills\": [{\"id\": \"book\", \"name\": \"Book\", \"description\": \"Books a trip.\", \"tags\": [\"travel\"]}]"
                    .to_owned(),
            );
        }
        self.objects(card, "skills", &[("id", "\"book\""), ("name", "\"Book\""), ("description", "\"Books a trip.\"")]);
    }

    fn extensions(&mut self, capabilities: &Members) {
        let Some(list) = self.optional(capabilities, "/capabilities", "extensions", Kind::Array) else {
            return;
        };
        let mut seen: Vec<String> = Vec::new();
        for (index, value) in json::array(list).unwrap_or_default().iter().enumerate() {
            let pointer = format!("/capabilities/extensions/{index}");
            let Some(entry) = self.an_object(value, &pointer) else {
                continue;
            };
            self.required(&entry, &pointer, "uri", Kind::String, "\"https://example.org/extensions/x/v1\"");
            self.optional(&entry, &pointer, "description", Kind::String);
            self.optional(&entry, &pointer, "required", Kind::Bool);
            let params = self.optional(&entry, &pointer, "params", Kind::Object).and_then(json::object);
            let Some(uri) = entry.string("uri") else {
                continue;
            };
            if seen.contains(&uri) {
                self.wrong.push(format!("`{pointer}/uri`: \"{uri}\" is declared twice; keep one of the two"));
            }
            if uri == EXTENSION_URI {
                self.own_params(&params.unwrap_or_default(), &format!("{pointer}/params"));
            }
            seen.push(uri);
        }
    }

    /// The params of spec 3.3, where the base card already has some.
    fn own_params(&mut self, params: &Members, pointer: &str) {
        for (name, value) in
            [("canonicalization", declaration::CANONICALIZATION), ("hash_algorithm", declaration::HASH_ALGORITHM)]
        {
            if params.get(name).is_some() && params.string(name).as_deref() != Some(value) {
                self.wrong.push(format!(
                    "`{pointer}/{name}`: must be \"{value}\" (spec 3.3); leave it out, the build fills it in"
                ));
            }
        }
        for name in ["ttl_seconds", "max_cache_entries"] {
            let Some(value) = params.get(name) else {
                continue;
            };
            if !matches!(serde_json::from_str::<u64>(value.get()), Ok(1..)) {
                self.wrong.push(format!(
                    "`{pointer}/{name}`: must be a whole number above 0; the served card carries the run-time value"
                ));
            }
        }
    }

    fn required(&mut self, object: &Members, at: &str, name: &str, kind: Kind, example: &str) {
        match object.get(name) {
            None => self.wrong.push(format!("`{at}/{name}`: is missing; add \"{name}\": {example}")),
            Some(value) if kind == Kind::String && value.get() == "\"\"" => {
                self.wrong.push(format!("`{at}/{name}`: is empty; write \"{name}\": {example}"));
            }
            Some(value) => {
                self.of_kind(value, at, name, kind);
            }
        }
    }

    fn optional<'a>(&mut self, object: &'a Members, at: &str, name: &str, kind: Kind) -> Option<&'a RawValue> {
        let value = object.get(name)?;
        self.of_kind(value, at, name, kind).then_some(value)
    }

    fn of_kind(&mut self, value: &RawValue, at: &str, name: &str, kind: Kind) -> bool {
        let found = Kind::of(value);
        if found != kind {
            self.wrong.push(format!("`{at}/{name}`: is {}; it must be {}", found.in_words(), kind.in_words()));
        }
        found == kind
    }

    fn an_object(&mut self, value: &RawValue, pointer: &str) -> Option<Members> {
        if Kind::of(value) != Kind::Object {
            self.wrong.push(format!("`{pointer}`: is {}; it must be an object", Kind::of(value).in_words()));
        }
        json::object(value)
    }

    fn strings(&mut self, card: &Members, name: &str) {
        if card.get(name).is_none() {
            self.wrong.push(format!("`/{name}`: is missing; add \"{name}\": [\"text/plain\"]"));
        }
        let list = self.optional(card, "", name, Kind::Array).and_then(json::array);
        for (index, value) in list.unwrap_or_default().iter().enumerate() {
            if Kind::of(value) != Kind::String {
                self.wrong.push(format!("`/{name}/{index}`: is {}; it must be a string", Kind::of(value).in_words()));
            }
        }
    }

    /// An array of objects that each have these strings; how many there are.
    fn objects(&mut self, card: &Members, name: &str, strings: &[(&str, &str)]) -> Option<usize> {
        let list = self.optional(card, "", name, Kind::Array).and_then(json::array)?;
        for (index, value) in list.iter().enumerate() {
            let pointer = format!("/{name}/{index}");
            if let Some(object) = self.an_object(value, &pointer) {
                for (string, example) in strings {
                    self.required(&object, &pointer, string, Kind::String, example);
                }
            }
        }
        Some(list.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const COMMON: &str = r#""name": "A", "description": "B", "version": "1", "defaultInputModes": ["text/plain"],
        "defaultOutputModes": [], "skills": []"#;
    const NEW: &str =
        r#""supportedInterfaces": [{"url": "https://a/", "protocolBinding": "JSONRPC", "protocolVersion": "1.0"}]"#;
    const OLD: &str = r#""url": "https://a/", "protocolVersion": "0.3.0", "preferredTransport": "JSONRPC""#;

    fn wrong(text: &str) -> Vec<String> {
        BaseCard::parse(text).expect_err("a mistake")
    }

    /// The one mistake of a card that is right but for these members.
    fn one(members: &str) -> String {
        let all = wrong(&format!("{{{COMMON}, {NEW}, {members}}}"));
        assert_eq!(all.len(), 1, "{all:?}");
        all.into_iter().next().unwrap_or_default()
    }

    #[test]
    fn both_versions_shapes_are_cards() {
        for endpoints in [NEW.to_owned(), OLD.to_owned(), format!("{OLD}, {NEW}")] {
            BaseCard::parse(&format!("{{{COMMON}, {endpoints}}}")).expect("a card");
        }
    }

    #[test]
    fn everything_that_is_missing_is_told_at_once() {
        let all = wrong("{}");
        let pointers: Vec<_> = all.iter().map(|line| line.split(':').next().unwrap_or_default()).collect();
        assert_eq!(
            pointers,
            [
                "`/name`",
                "`/description`",
                "`/version`",
                "`/defaultInputModes`",
                "`/defaultOutputModes`",
                "`/supportedInterfaces`",
                "`/skills`"
            ]
        );
        assert!(all.iter().all(|line| line.contains("add \"")), "{all:?}");
    }

    #[test]
    fn half_of_a_shape_is_told() {
        let all = wrong(&format!("{{{COMMON}, \"preferredTransport\": \"JSONRPC\"}}"));
        assert_eq!(all.len(), 2, "{all:?}");
        let all = wrong(&format!("{{{COMMON}, \"supportedInterfaces\": [{{\"url\": \"https://a/\"}}, 1]}}"));
        assert_eq!(all.len(), 3, "{all:?}");
        assert!(wrong(&format!("{{{COMMON}, \"supportedInterfaces\": []}}"))[0].contains("is empty"));
    }

    #[test]
    fn what_is_no_card_is_told() {
        assert!(wrong("[]")[0].contains("an AgentCard is an object"));
        assert!(wrong("{,}")[0].contains("line 1 column 2"));
        assert!(wrong("\u{feff}{}")[0].contains("is not JSON"));
        assert!(wrong(r#"{"name": "a", "name": "b"}"#)[0].contains("`name` is there twice"));
    }

    #[test]
    fn a_signed_base_card_is_refused() {
        assert!(one(r#""signatures": []"#).contains("sign the card that this build writes"));
    }

    #[test]
    fn extensions_are_checked() {
        assert!(one(r#""capabilities": []"#).contains("`/capabilities`: is an array; it must be an object"));
        assert!(one(r#""capabilities": {"extensions": {}}"#).contains("`/capabilities/extensions`"));
        assert!(one(r#""capabilities": {"extensions": [{}]}"#).contains("`/capabilities/extensions/0/uri`"));
        assert!(
            one(r#""capabilities": {"extensions": [{"uri": "urn:x"}, {"uri": "urn:x"}]}"#).contains("declared twice")
        );
        let own = |params: &str| {
            one(&format!(r#""capabilities": {{"extensions": [{{"uri": "{}", "params": {params}}}]}}"#, EXTENSION_URI))
        };
        assert!(own(r#"{"ttl_seconds": 0}"#).contains("above 0"));
        assert!(own(r#"{"max_cache_entries": "1"}"#).contains("above 0"));
        assert!(own(r#"{"hash_algorithm": "md5"}"#).contains("must be \"sha-256\""));
        assert!(own(r#"{"canonicalization": 1}"#).contains("must be \"jcs-rfc8785\""));
    }
}
