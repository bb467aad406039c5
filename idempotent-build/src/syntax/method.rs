//! The names of A2A's methods, and which of them can be annotated.

/// Core methods that the extension covers (spec 4.1): the 0.3 name, then the 1.0 name.
const COVERED: [(&str, &str); 2] = [("message/send", "SendMessage"), ("message/stream", "SendStreamingMessage")];

/// Core methods that need no deduplication, and why.
const LEFT_OUT: [(&[&str], &str); 3] = [
    (&["tasks/get", "tasks/list", "GetTask", "ListTasks"], "only reads, so a retry is harmless"),
    (&["tasks/cancel", "CancelTask"], "is already idempotent by its task id"),
    (
        &[
            "tasks/resubscribe",
            "tasks/pushNotificationConfig/set",
            "tasks/pushNotificationConfig/get",
            "tasks/pushNotificationConfig/list",
            "tasks/pushNotificationConfig/delete",
            "agent/getAuthenticatedExtendedCard",
            "SubscribeToTask",
            "TaskSubscription",
            "CreateTaskPushNotificationConfig",
            "SetTaskPushNotificationConfig",
            "GetTaskPushNotificationConfig",
            "ListTaskPushNotificationConfig",
            "ListTaskPushNotificationConfigs",
            "DeleteTaskPushNotificationConfig",
            "GetExtendedAgentCard",
        ],
        "works on something that already exists and carries no `message.messageId`",
    ),
];

/// The one name under which a method is stored, declared and counted: the 0.3 name of a core method, any other unchanged.
///
/// ```
/// use idempotent_build::syntax::canonical_method;
///
/// assert_eq!(canonical_method("SendMessage"), "message/send");
/// assert_eq!(canonical_method("message/send"), "message/send");
/// assert_eq!(canonical_method("billing/charge"), "billing/charge");
/// ```
pub fn canonical_method(name: &str) -> &str {
    COVERED.iter().find(|(_, renamed)| *renamed == name).map_or(name, |(original, _)| original)
}

/// Whether this is one of the four names that spec 4.1 puts in scope.
pub fn is_core_method(name: &str) -> bool {
    COVERED.iter().any(|(original, renamed)| [original, renamed].contains(&&name))
}

/// Why a core method cannot be annotated; `None` for every other name.
pub(super) fn left_out(name: &str) -> Option<&'static str> {
    LEFT_OUT.iter().find(|(names, _)| names.contains(&name)).map(|(_, why)| *why)
}

/// The covered name that was probably meant.
pub(super) fn similar(name: &str) -> Option<&'static str> {
    let lower = name.to_lowercase();
    COVERED
        .iter()
        .flat_map(|(original, renamed)| [*original, *renamed])
        .map(|known| (strsim::jaro_winkler(&known.to_lowercase(), &lower), known))
        .filter(|(likeness, _)| *likeness > 0.93)
        .max_by(|left, right| left.0.total_cmp(&right.0))
        .map(|(_, known)| known)
}

/// The number that stands for a method in types: FNV-1a, 64 bits, over its canonical name.
///
/// The macro and the card both write it into the code they generate; the compiler compares the two.
///
/// ```
/// use idempotent_build::syntax::method_hash;
///
/// assert_eq!(method_hash("SendMessage"), method_hash("message/send"));
/// assert_ne!(method_hash("message/send"), method_hash("message/stream"));
/// ```
pub fn method_hash(name: &str) -> u64 {
    const OFFSET_BASIS: u64 = 0xcbf2_9ce4_8422_2325;
    const PRIME: u64 = 0x0000_0100_0000_01b3;
    canonical_method(name).bytes().fold(OFFSET_BASIS, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(PRIME))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hash_is_fnv_1a() {
        assert_eq!(method_hash(""), 0xcbf2_9ce4_8422_2325);
        assert_eq!(method_hash("a"), 0xaf63_dc4c_8601_ec8c);
        assert_eq!(method_hash("foobar"), 0x8594_4171_f739_67e8);
    }

    #[test]
    fn a_near_miss_finds_its_method_and_a_stranger_none() {
        assert_eq!(similar("mesage/send"), Some("message/send"));
        assert_eq!(similar("sendMessage"), Some("SendMessage"));
        assert_eq!(similar("message/streams"), Some("message/stream"));
        assert_eq!(similar("billing/charge"), None);
        assert_eq!(similar("messages/archive"), None);
    }
}
