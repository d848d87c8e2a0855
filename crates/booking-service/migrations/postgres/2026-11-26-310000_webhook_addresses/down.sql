ALTER TABLE webhooks DROP COLUMN url_changed_at;
