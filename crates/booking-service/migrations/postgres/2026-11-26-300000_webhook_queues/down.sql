DROP INDEX deliveries_due;
CREATE INDEX deliveries_due ON deliveries (status, due_at, id);
DROP INDEX deliveries_of_object;
CREATE INDEX deliveries_of_object ON deliveries (webhook_id, object_id, id);
