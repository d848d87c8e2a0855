-- The key of a place is its NFKC_Casefold (contract, "No double booking"). `rooms::place_keys` computes it, in this
-- transaction. Other replicas must stop first: they would write keys of the former kind.
LOCK TABLE places IN EXCLUSIVE MODE;
LOCK TABLE rooms, events IN SHARE ROW EXCLUSIVE MODE;
