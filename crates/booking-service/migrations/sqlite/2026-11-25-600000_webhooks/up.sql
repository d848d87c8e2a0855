-- Where to send what has changed.
CREATE TABLE webhooks (
    id BLOB NOT NULL PRIMARY KEY,
    name TEXT NOT NULL,
    -- Encrypted, because that of Slack or Discord is a secret.
    url TEXT NOT NULL,
    -- What is shown of it.
    shown_url TEXT NOT NULL,
    format TEXT NOT NULL CHECK (format IN ('standard', 'traq', 'slack', 'discord')),
    -- Words, separated by spaces.
    types TEXT NOT NULL,
    -- Only events of these groups: ids, separated by spaces; all if there are none.
    group_ids TEXT NOT NULL,
    language TEXT NOT NULL CHECK (language IN ('en', 'ja')),
    mentions TEXT NOT NULL CHECK (mentions IN ('on', 'silent', 'off')),
    -- A JSON array of texts.
    mention_groups TEXT NOT NULL,
    -- The channel of traQ.
    channel_id BLOB,
    is_on INTEGER NOT NULL CHECK (is_on IN (0, 1)),
    -- Why the service has switched it off.
    why_off TEXT CHECK (why_off IN ('gone', 'failing')),
    -- Encrypted.
    secret TEXT,
    -- Encrypted; signs as well for 24 hours after the change.
    former_secret TEXT,
    secret_changed_at INTEGER,
    -- When it was switched on: what happened before is not sent.
    since INTEGER NOT NULL,
    -- The history has been read up to this time.
    read_until INTEGER NOT NULL,
    -- When the first of the attempts failed that have failed without a success between them.
    failing_since INTEGER,
    created_by BLOB NOT NULL,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
-- What is sent to them.
CREATE TABLE deliveries (
    id BLOB NOT NULL PRIMARY KEY,
    webhook_id BLOB NOT NULL REFERENCES webhooks ON DELETE CASCADE,
    -- What is sent once: a row of the history, a day, a deadline.
    cause TEXT NOT NULL,
    kind TEXT NOT NULL,
    -- No foreign key: the history is kept for its own time.
    history_id INTEGER,
    -- Those of one object are sent in their order.
    object_id BLOB NOT NULL,
    at INTEGER NOT NULL,
    status TEXT NOT NULL CHECK (status IN ('waiting', 'delivered', 'merged', 'dropped', 'failed')),
    -- When it is tried next.
    due_at INTEGER NOT NULL,
    attempts INTEGER NOT NULL,
    tried_at INTEGER,
    -- As first sent, so that every attempt sends the same.
    body TEXT,
    answer_status INTEGER,
    -- The start of the answer, or why there was none.
    answer TEXT,
    UNIQUE (webhook_id, cause)
) STRICT;
CREATE INDEX deliveries_list ON deliveries (webhook_id, id);
CREATE INDEX deliveries_due ON deliveries (status, due_at, id);
CREATE INDEX deliveries_of_object ON deliveries (webhook_id, object_id, id);
CREATE INDEX deliveries_by_time ON deliveries (at);
CREATE INDEX draft_events_by_deadline ON draft_events (deadline);
