//! Merges the extension's declaration (spec 3.1, 3.3) into a base card.
//!
//! The members of the base card stay in their order, each untouched value in its own text; what is added goes to the end of its
//! object. The three values that only the running agent knows are told by their place in the text.

use std::ops::Range;

use super::base::BaseCard;
use super::json::{self, Members};
use crate::syntax::EXTENSION_URI as URI;

pub(super) const CANONICALIZATION: &str = "jcs-rfc8785";
pub(super) const HASH_ALGORITHM: &str = "sha-256";

const DESCRIPTION: &str = "Server-side request deduplication keyed on Message.messageId, with payload-hash binding: \
    a retry within ttl_seconds is answered with the first response.";
const TTL_SECONDS: &str = "86400";
const MAX_CACHE_ENTRIES: &str = "100000";

/// The member that lists, under another extension's params, its methods in scope of this one (spec 4.1).
const OTHER: &str = "idempotency";

/// Stand for the run-time values while the text is laid out: no JSON text holds these characters.
const MARKS: [char; 3] = ['\u{1}', '\u{2}', '\u{3}'];

/// A merged card: its text, and where in it the run-time values stand.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Merged {
    pub(super) json: String,
    pub(super) places: Places,
}

/// The byte ranges, in a card's text, of the values that the running agent replaces.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Places {
    /// `required`.
    pub required: Range<usize>,
    /// `params.ttl_seconds`.
    pub ttl_seconds: Range<usize>,
    /// `params.max_cache_entries`.
    pub max_cache_entries: Range<usize>,
}

/// Another extension's methods that its URI's entry lists.
pub(super) struct OtherExtension {
    pub(super) uri: String,
    pub(super) methods: Vec<String>,
}

/// The base card with the declaration in `capabilities.extensions[]`.
///
/// `required` overrules what the base card says; without both it is true, as spec 3.1 shows it.
///
/// # Errors
///
/// An extension's `params` in the base card already hold the member that this writes.
pub(super) fn merge(base: &BaseCard, required: Option<bool>, others: &[OtherExtension]) -> Result<Merged, Vec<String>> {
    let capabilities = base.members.get("capabilities").and_then(json::object).unwrap_or_default();
    let listed = capabilities.get("extensions").and_then(json::array).unwrap_or_default();
    let mut entries: Vec<Members> = listed.iter().filter_map(|entry| json::object(entry)).collect();
    for uri in std::iter::once(URI).chain(others.iter().map(|other| other.uri.as_str())) {
        if !entries.iter().any(|entry| entry.string("uri").as_deref() == Some(uri)) {
            entries.push(entry_of(uri));
        }
    }

    let mut values = Values { required, ttl_seconds: None, max_cache_entries: None };
    let mut texts = Vec::new();
    let mut wrong = Vec::new();
    for entry in &entries {
        let uri = entry.string("uri").unwrap_or_default();
        if uri == URI {
            texts.push(own_entry(entry, &mut values));
        } else if let Some(other) = others.iter().find(|other| other.uri == uri) {
            match other_entry(entry, other) {
                Ok(text) => texts.push(text),
                Err(error) => wrong.push(error),
            }
        } else {
            texts.push(object(entry, &[]));
        }
    }
    if !wrong.is_empty() {
        return Err(wrong);
    }
    let extensions = format!("[{}]", texts.join(","));
    let capabilities = object(&capabilities, &[("extensions", extensions)]);
    let marked = json::pretty(&object(&base.members, &[("capabilities", capabilities)]));
    Ok(values.fill(&marked))
}

/// The run-time values as they stand in the file.
struct Values {
    required: Option<bool>,
    ttl_seconds: Option<String>,
    max_cache_entries: Option<String>,
}

impl Values {
    /// Puts the values where their marks are.
    fn fill(self, marked: &str) -> Merged {
        let texts = [
            self.required.unwrap_or(true).to_string(),
            self.ttl_seconds.unwrap_or_else(|| TTL_SECONDS.to_owned()),
            self.max_cache_entries.unwrap_or_else(|| MAX_CACHE_ENTRIES.to_owned()),
        ];
        let mut json = String::with_capacity(marked.len());
        let mut places = [0..0, 0..0, 0..0];
        for char in marked.chars() {
            match MARKS.iter().position(|mark| *mark == char) {
                Some(index) => {
                    let start = json.len();
                    json.push_str(&texts[index]);
                    places[index] = start..json.len();
                }
                None => json.push(char),
            }
        }
        let [required, ttl_seconds, max_cache_entries] = places;
        Merged { json, places: Places { required, ttl_seconds, max_cache_entries } }
    }
}

fn entry_of(uri: &str) -> Members {
    let text = format!("{{\"uri\":{}}}", json::quoted(uri));
    serde_json::from_str(&text).unwrap_or_default()
}

/// This extension's own entry: what the base card says of it stays, the rest is filled in.
fn own_entry(entry: &Members, values: &mut Values) -> String {
    let given = entry.get("required").and_then(|value| serde_json::from_str(value.get()).ok());
    values.required = values.required.or(given);
    let params = entry.get("params").and_then(json::object).unwrap_or_default();
    values.ttl_seconds = params.get("ttl_seconds").map(|value| value.get().to_owned());
    values.max_cache_entries = params.get("max_cache_entries").map(|value| value.get().to_owned());

    let [required, ttl_seconds, max_cache_entries] = MARKS.map(String::from);
    let params = object(
        &params,
        &[
            ("ttl_seconds", ttl_seconds),
            ("canonicalization", json::quoted(CANONICALIZATION)),
            ("hash_algorithm", json::quoted(HASH_ALGORITHM)),
            ("max_cache_entries", max_cache_entries),
        ],
    );
    let description = entry.get("description").map_or_else(|| json::quoted(DESCRIPTION), |own| own.get().to_owned());
    object(entry, &[("description", description), ("required", required), ("params", params)])
}

/// Another extension's entry, which refers to this extension and lists its methods in scope.
fn other_entry(entry: &Members, other: &OtherExtension) -> Result<String, String> {
    let params = entry.get("params").and_then(json::object).unwrap_or_default();
    if params.get(OTHER).is_some() {
        return Err(format!(
            "the entry of \"{}\" has `params.{OTHER}` already; leave it out, the build writes it from the annotations",
            other.uri
        ));
    }
    let methods: Vec<_> = other.methods.iter().map(|method| json::quoted(method)).collect();
    let reference = format!("{{\"uri\":{},\"methods\":[{}]}}", json::quoted(URI), methods.join(","));
    let params = object(&params, &[(OTHER, reference)]);
    Ok(object(entry, &[("params", params)]))
}

/// The text of an object: its members in order, some of them replaced, the new ones at the end.
fn object(members: &Members, replaced: &[(&str, String)]) -> String {
    let replacement = |name: &str| replaced.iter().find(|(own, _)| *own == name).map(|(_, text)| text.as_str());
    let kept = members.0.iter().map(|(name, value)| (name.as_str(), replacement(name).unwrap_or_else(|| value.get())));
    let added =
        replaced.iter().filter(|(name, _)| members.get(name).is_none()).map(|(name, text)| (*name, text.as_str()));
    let texts: Vec<_> = kept.chain(added).map(|(name, text)| format!("{}:{text}", json::quoted(name))).collect();
    format!("{{{}}}", texts.join(","))
}

#[cfg(test)]
mod tests {
    use super::*;

    const BASE: &str = r#""name": "A", "description": "B", "version": "1", "defaultInputModes": [],
        "defaultOutputModes": [], "skills": [], "url": "https://a/", "protocolVersion": "0.3.0""#;

    fn merged(members: &str, required: Option<bool>, others: &[OtherExtension]) -> Merged {
        let base = BaseCard::parse(&format!("{{{BASE}{members}}}")).expect("a base card");
        merge(&base, required, others).expect("a card")
    }

    /// The card's extension entries, without white space.
    fn extensions(merged: &Merged) -> Vec<String> {
        let card: Members = serde_json::from_str(&merged.json).expect("JSON");
        let capabilities = json::object(card.get("capabilities").expect("capabilities")).expect("an object");
        let entries = json::array(capabilities.get("extensions").expect("extensions")).expect("an array");
        entries.iter().map(|entry| json::pretty(entry.get()).lines().map(str::trim_start).collect()).collect()
    }

    fn values(merged: &Merged) -> [&str; 3] {
        let Places { required, ttl_seconds, max_cache_entries } = merged.places.clone();
        [&merged.json[required], &merged.json[ttl_seconds], &merged.json[max_cache_entries]]
    }

    #[test]
    fn a_plain_base_card_gets_the_declaration_of_the_spec() {
        let card = merged("", None, &[]);
        assert_eq!(
            extensions(&card),
            [format!(
                r#"{{"uri": "{URI}","description": "{DESCRIPTION}","required": true,"params": {{"ttl_seconds": 86400,"canonicalization": "jcs-rfc8785","hash_algorithm": "sha-256","max_cache_entries": 100000}}}}"#
            )]
        );
        assert_eq!(values(&card), ["true", "86400", "100000"]);
        assert!(card.json.starts_with("{\n  \"name\": \"A\",\n  \"description\": \"B\""), "{}", card.json);
        assert_eq!(card, merged("", None, &[]));
    }

    #[test]
    fn what_the_base_card_says_stays() {
        let own = format!(
            r#", "capabilities": {{"streaming": true, "extensions": [
                {{"uri": "urn:other", "params": {{"z": 1.10, "a": 1e400}}}},
                {{"params": {{"max_cache_entries": 5, "region": "eu", "ttl_seconds": 60}}, "uri": "{URI}", "required": false, "description": "Mine."}}
            ], "pushNotifications": false}}, "iconUrl": "x""#
        );
        let card = merged(&own, None, &[]);
        assert_eq!(
            extensions(&card),
            [
                r#"{"uri": "urn:other","params": {"z": 1.10,"a": 1e400}}"#.to_owned(),
                format!(
                    r#"{{"params": {{"max_cache_entries": 5,"region": "eu","ttl_seconds": 60,"canonicalization": "jcs-rfc8785","hash_algorithm": "sha-256"}},"uri": "{URI}","required": false,"description": "Mine."}}"#
                ),
            ]
        );
        assert_eq!(values(&card), ["false", "60", "5"]);
        assert!(card.json.find("streaming") < card.json.find("pushNotifications"));
        assert!(card.json.find("capabilities") < card.json.find("iconUrl"));
        assert_eq!(values(&merged(&own, Some(true), &[]))[0], "true");
    }

    #[test]
    fn methods_of_other_extensions_are_listed_under_theirs() {
        let others = [
            OtherExtension {
                uri: "urn:jobs".to_owned(),
                methods: vec!["jobs/start".to_owned(), "jobs/stop".to_owned()],
            },
            OtherExtension { uri: "urn:new".to_owned(), methods: vec!["new/do".to_owned()] },
        ];
        let card = merged(
            r#", "capabilities": {"extensions": [{"uri": "urn:jobs", "required": true, "params": {"k": 1}}]}"#,
            None,
            &others,
        );
        let entries = extensions(&card);
        assert_eq!(
            entries[0],
            format!(
                r#"{{"uri": "urn:jobs","required": true,"params": {{"k": 1,"idempotency": {{"uri": "{URI}","methods": ["jobs/start","jobs/stop"]}}}}}}"#
            )
        );
        assert!(entries[1].starts_with(&format!("{{\"uri\": \"{URI}\"")));
        assert_eq!(
            entries[2],
            format!(r#"{{"uri": "urn:new","params": {{"idempotency": {{"uri": "{URI}","methods": ["new/do"]}}}}}}"#)
        );
    }

    #[test]
    fn a_hand_written_list_of_another_extension_is_refused() {
        let base = BaseCard::parse(&format!(
            r#"{{{BASE}, "capabilities": {{"extensions": [{{"uri": "urn:jobs", "params": {{"idempotency": 1}}}}]}}}}"#
        ))
        .expect("a base card");
        let others = [OtherExtension { uri: "urn:jobs".to_owned(), methods: Vec::new() }];
        let wrong = merge(&base, None, &others).expect_err("a conflict");
        assert!(wrong[0].contains("leave it out"), "{wrong:?}");
    }
}
