-- How much each user has created in a period of 24 hours.
CREATE TABLE creations (
    user_id uuid NOT NULL PRIMARY KEY,
    -- The end of the period.
    expires_at timestamptz NOT NULL,
    number integer NOT NULL
);
