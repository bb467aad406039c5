-- Finished operations (spec section 4.4). The body comes last, so that the other columns are read without it.
CREATE TABLE idempotency_cache (
    scope            TEXT    NOT NULL,
    message_id       TEXT    NOT NULL,            -- hyphenated UUID, lower case
    request_hash     TEXT    NOT NULL,            -- lower-case hex SHA-256
    method           TEXT    NOT NULL,            -- A2A 0.3 method name
    response_status  INTEGER NOT NULL,            -- HTTP status code
    response_headers BLOB    NOT NULL,            -- JSON object: {"name": ["value", ...], ...}, one char per byte
    inserted_at      INTEGER NOT NULL,            -- Unix epoch seconds
    last_used        INTEGER NOT NULL,            -- grows with every answer and replay
    claim_token      INTEGER NOT NULL,            -- the claim that it was stored under
    body_kind        INTEGER NOT NULL,            -- 1: whole, 2: chunks and then response_body, 3: not retained
    body_chunks      INTEGER NOT NULL,            -- how many rows of idempotency_chunk come before response_body
    body_bytes       INTEGER NOT NULL,            -- how large a body that was not retained had been
    response_body    BLOB    NOT NULL,            -- raw response bytes
    PRIMARY KEY (scope, message_id)
);
CREATE INDEX idx_idempotency_inserted_at ON idempotency_cache (inserted_at);
CREATE INDEX idx_idempotency_last_used ON idempotency_cache (last_used);

-- Operations that run now.
CREATE TABLE idempotency_claim (
    scope        TEXT    NOT NULL,
    message_id   TEXT    NOT NULL,
    token        INTEGER NOT NULL,
    attempt      INTEGER NOT NULL,
    nonce        BLOB    NOT NULL,
    request_hash TEXT    NOT NULL,
    method       TEXT    NOT NULL,
    on_takeover  INTEGER NOT NULL,                -- 1: run, 2: refuse
    claimed_at   INTEGER NOT NULL,                -- Unix epoch seconds
    lease_until  INTEGER NOT NULL,                -- Unix epoch milliseconds
    chunks       INTEGER NOT NULL,                -- how many rows of idempotency_chunk it has written
    PRIMARY KEY (scope, message_id)
) WITHOUT ROWID;

-- Parts of responses that were too long to keep in memory, by the claim that recorded them.
CREATE TABLE idempotency_chunk (
    token  INTEGER NOT NULL,
    number INTEGER NOT NULL,
    bytes  BLOB    NOT NULL,
    PRIMARY KEY (token, number)
);

-- Tokens whose chunks nobody may read any more and a sweep removes.
CREATE TABLE idempotency_garbage (
    token INTEGER NOT NULL PRIMARY KEY
);

-- One row: the last token granted, and the number of rows in idempotency_cache.
CREATE TABLE idempotency_ledger (
    id         INTEGER NOT NULL PRIMARY KEY,
    last_token INTEGER NOT NULL,
    entries    INTEGER NOT NULL
);
INSERT INTO idempotency_ledger (id, last_token, entries) VALUES (1, 0, 0);

-- Always empty between transactions. While effects run it holds a row whose parent does not exist, so that SQLite
-- itself refuses a COMMIT that one of them might try.
CREATE TABLE idempotency_guard (
    blocked INTEGER NOT NULL REFERENCES idempotency_ledger (id) DEFERRABLE INITIALLY DEFERRED
);
