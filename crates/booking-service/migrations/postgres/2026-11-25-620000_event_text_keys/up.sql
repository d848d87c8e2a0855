-- Name and description as a search compares them (`events::search::text_key`). `events::search::recompute` computes it
-- for the events that are there, in this transaction.
ALTER TABLE events ADD COLUMN text_key text COLLATE "C" NOT NULL DEFAULT '';
