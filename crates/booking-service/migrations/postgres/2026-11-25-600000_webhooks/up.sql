-- Where to send what has changed.
CREATE TABLE webhooks (
    id uuid NOT NULL PRIMARY KEY,
    name text NOT NULL,
    -- Encrypted, because that of Slack or Discord is a secret.
    url text NOT NULL,
    -- What is shown of it.
    shown_url text NOT NULL,
    format text NOT NULL CHECK (format IN ('standard', 'traq', 'slack', 'discord')),
    -- Words, separated by spaces.
    types text NOT NULL,
    -- Only events of these groups: ids, separated by spaces; all if there are none.
    group_ids text NOT NULL,
    language text NOT NULL CHECK (language IN ('en', 'ja')),
    mentions text NOT NULL CHECK (mentions IN ('on', 'silent', 'off')),
    -- A JSON array of texts.
    mention_groups text NOT NULL,
    -- The channel of traQ.
    channel_id uuid,
    is_on boolean NOT NULL,
    -- Why the service has switched it off.
    why_off text CHECK (why_off IN ('gone', 'failing')),
    -- Encrypted.
    secret text,
    -- Encrypted; signs as well for 24 hours after the change.
    former_secret text,
    secret_changed_at timestamptz,
    -- When it was switched on: what happened before is not sent.
    since timestamptz NOT NULL,
    -- The history has been read up to this time.
    read_until timestamptz NOT NULL,
    -- When the first of the attempts failed that have failed without a success between them.
    failing_since timestamptz,
    created_by uuid NOT NULL,
    created_at timestamptz NOT NULL,
    updated_at timestamptz NOT NULL
);
-- What is sent to them.
CREATE TABLE deliveries (
    id uuid NOT NULL PRIMARY KEY,
    webhook_id uuid NOT NULL REFERENCES webhooks ON DELETE CASCADE,
    -- What is sent once: a row of the history, a day, a deadline.
    cause text COLLATE "C" NOT NULL,
    kind text NOT NULL,
    -- No foreign key: the history is kept for its own time.
    history_id bigint,
    -- Those of one object are sent in their order.
    object_id uuid NOT NULL,
    at timestamptz NOT NULL,
    status text NOT NULL CHECK (status IN ('waiting', 'delivered', 'merged', 'dropped', 'failed')),
    -- When it is tried next.
    due_at timestamptz NOT NULL,
    attempts smallint NOT NULL,
    tried_at timestamptz,
    -- As first sent, so that every attempt sends the same.
    body text,
    answer_status smallint,
    -- The start of the answer, or why there was none.
    answer text,
    UNIQUE (webhook_id, cause)
);
CREATE INDEX deliveries_list ON deliveries (webhook_id, id);
CREATE INDEX deliveries_due ON deliveries (status, due_at, id);
CREATE INDEX deliveries_of_object ON deliveries (webhook_id, object_id, id);
CREATE INDEX deliveries_by_time ON deliveries (at);
CREATE INDEX draft_events_by_deadline ON draft_events (deadline);
