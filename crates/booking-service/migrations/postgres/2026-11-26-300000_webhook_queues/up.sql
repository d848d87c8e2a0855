-- Each webhook sends what is due by itself.
DROP INDEX deliveries_due;
CREATE INDEX deliveries_due ON deliveries (webhook_id, status, due_at, id);
DROP INDEX deliveries_of_object;
CREATE INDEX deliveries_of_object ON deliveries (webhook_id, object_id, status, id);
