//! The tables of `migrations/sqlite`, as diesel knows them.

diesel::table! {
    idempotency_cache (scope, message_id) {
        scope -> Text,
        message_id -> Text,
        request_hash -> Text,
        method -> Text,
        response_status -> BigInt,
        response_headers -> Binary,
        inserted_at -> BigInt,
        last_used -> BigInt,
        claim_token -> BigInt,
        body_kind -> BigInt,
        body_chunks -> BigInt,
        body_bytes -> BigInt,
        response_body -> Binary,
    }
}

diesel::table! {
    idempotency_claim (scope, message_id) {
        scope -> Text,
        message_id -> Text,
        token -> BigInt,
        attempt -> BigInt,
        nonce -> Binary,
        request_hash -> Text,
        method -> Text,
        on_takeover -> BigInt,
        claimed_at -> BigInt,
        lease_until -> BigInt,
        chunks -> BigInt,
    }
}

diesel::table! {
    idempotency_chunk (token, number) {
        token -> BigInt,
        number -> BigInt,
        bytes -> Binary,
    }
}

diesel::table! {
    idempotency_garbage (token) {
        token -> BigInt,
    }
}

diesel::table! {
    idempotency_ledger (id) {
        id -> BigInt,
        last_token -> BigInt,
        entries -> BigInt,
    }
}

diesel::table! {
    idempotency_guard (blocked) {
        blocked -> BigInt,
    }
}

diesel::allow_tables_to_appear_in_same_query!(idempotency_chunk, idempotency_garbage);
diesel::allow_tables_to_appear_in_same_query!(idempotency_cache, idempotency_ledger);
