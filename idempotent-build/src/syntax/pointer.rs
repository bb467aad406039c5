//! Strings that a user writes into options and that have a grammar of their own.

/// What is wrong with a JSON pointer (RFC 6901) that should lead from `params` to a key; `None` if nothing is.
pub(super) fn pointer_fault(pointer: &str) -> Option<String> {
    if pointer.is_empty() {
        return Some("an empty pointer names the whole of `params`, which is no key".to_owned());
    }
    if !pointer.starts_with('/') {
        let dotted = pointer.trim_start_matches("$.").replace('.', "/");
        return Some(format!(
            "a JSON pointer starts with `/`; write `key = \"/{}\"`",
            dotted.trim_start_matches("params/")
        ));
    }
    let mut characters = pointer.chars();
    while let Some(character) = characters.next() {
        if character == '~' && !matches!(characters.next(), Some('0' | '1')) {
            return Some("in a JSON pointer `~` is written `~0`, and `/` inside a name `~1`".to_owned());
        }
    }
    if pointer.ends_with('/') {
        return Some("the pointer ends in `/`, which names a member called \"\"".to_owned());
    }
    None
}

/// What is wrong with an extension's URI; `None` if nothing is.
///
/// URIs travel in a comma-separated header, so the check is about what such a list can carry.
pub(super) fn uri_fault(uri: &str) -> Option<&'static str> {
    let Some((scheme, rest)) = uri.split_once(':') else {
        return Some("it has no scheme");
    };
    let mut letters = scheme.chars();
    let well_formed = letters.next().is_some_and(|first| first.is_ascii_alphabetic())
        && letters.all(|letter| letter.is_ascii_alphanumeric() || "+-.".contains(letter));
    if !well_formed {
        return Some("it has no scheme");
    }
    if rest.trim_start_matches('/').is_empty() {
        return Some("nothing follows its scheme");
    }
    if !uri.chars().all(|character| character.is_ascii_graphic()) {
        return Some("a URI has neither white space nor characters outside ASCII");
    }
    if uri.contains([',', '"', '<', '>']) {
        return Some("clients send it in a comma-separated header, which cannot carry `,`, `\"`, `<` or `>`");
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pointers_that_lead_to_a_member_pass() {
        for good in ["/a", "/message/messageId", "/a~1b/c~0d", "/0/id", "/naïve"] {
            assert_eq!(pointer_fault(good), None, "{good}");
        }
    }

    #[test]
    fn pointers_that_lead_nowhere_are_refused() {
        for bad in ["", "a", "message.messageId", "/a~2", "/a~", "/a/", "/"] {
            assert!(pointer_fault(bad).is_some(), "{bad}");
        }
        let told = pointer_fault("params.order.id").unwrap_or_default();
        assert!(told.contains("\"/order/id\""), "{told}");
    }

    #[test]
    fn only_what_a_header_list_can_carry_is_a_uri() {
        for good in ["https://example.com/ext/v1", "urn:example:billing", "tag:a,".trim_end_matches(',')] {
            assert_eq!(uri_fault(good), None, "{good}");
        }
        for bad in ["", "billing", "example.com/billing", "https://", "https://a b", "https://a,b", "1x:y", "https://é"]
        {
            assert!(uri_fault(bad).is_some(), "{bad}");
        }
    }
}
