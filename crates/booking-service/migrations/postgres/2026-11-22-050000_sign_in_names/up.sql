-- Sign-in names are unique regardless of case: a first sign-in looks for others.
CREATE INDEX users_name_lower ON users (lower(name));
