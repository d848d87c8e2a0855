-- Run once, when PostgreSQL makes its data folder: a role and a database for each service. The passwords stand in the
-- addresses that the services are given, which are in the environment or in files.
\set booking_password `echo "${BOOKING_DATABASE_URL:-$(cat /run/secrets/booking_database_url)}" | sed -n 's|^postgres://booking:\([^@]*\)@.*|\1|p'`
\set portfolio_password `echo "${PORTFOLIO_DATABASE_URL:-$(cat /run/secrets/portfolio_database_url)}" | sed -n 's|^postgres://portfolio:\([^@]*\)@.*|\1|p'`
SELECT :'booking_password' = '' OR :'portfolio_password' = '' AS is_missing \gset
\if :is_missing
    DO $$ BEGIN RAISE EXCEPTION 'the address of a database is missing, or has no password'; END $$;
\endif
CREATE ROLE booking LOGIN PASSWORD :'booking_password';
CREATE ROLE portfolio LOGIN PASSWORD :'portfolio_password';
CREATE DATABASE booking OWNER booking ENCODING 'UTF8' TEMPLATE template0;
CREATE DATABASE portfolio OWNER portfolio ENCODING 'UTF8' TEMPLATE template0;
REVOKE CONNECT ON DATABASE booking, portfolio FROM PUBLIC;
