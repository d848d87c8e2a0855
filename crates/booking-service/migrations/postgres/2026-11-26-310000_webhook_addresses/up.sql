-- When it got another address.
ALTER TABLE webhooks ADD COLUMN url_changed_at timestamptz;
-- Only scheme and host are shown: the path may be secret as well. The history has neither.
UPDATE webhooks SET shown_url = substring(shown_url FROM '^[a-z]+://[^/]*') || '/…';
UPDATE history SET changes = (changes::jsonb - 'url')::text WHERE object_type = 'webhook';
-- Answers may quote the path.
UPDATE deliveries SET answer = NULL;
