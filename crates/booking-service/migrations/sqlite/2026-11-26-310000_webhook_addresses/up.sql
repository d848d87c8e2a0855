-- When it got another address.
ALTER TABLE webhooks ADD COLUMN url_changed_at INTEGER;
-- Only scheme and host are shown: the path may be secret as well. The history has neither.
UPDATE webhooks SET shown_url =
    substr(shown_url, 1, instr(shown_url, '://') + 2)
    || substr(substr(shown_url, instr(shown_url, '://') + 3), 1, instr(substr(shown_url, instr(shown_url, '://') + 3), '/') - 1)
    || '/…';
UPDATE history SET changes = json_remove(changes, '$.url') WHERE object_type = 'webhook';
-- Answers may quote the path.
UPDATE deliveries SET answer = NULL;
