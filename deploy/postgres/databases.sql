-- Run once, when PostgreSQL makes its data folder: a role and a database for each service. The passwords stand in the
-- addresses that the services are given, which are in the environment or in files.
\set booking_password `echo "${BOOKING_DATABASE_URL:-$(cat /run/secrets/booking_database_url)}" | sed -n 's|^postgres://booking:\([^@]*\)@.*|\1|p'`
\set portfolio_password `echo "${PORTFOLIO_DATABASE_URL:-$(cat /run/secrets/portfolio_database_url)}" | sed -n 's|^postgres://portfolio:\([^@]*\)@.*|\1|p'`
CREATE ROLE booking LOGIN PASSWORD :'booking_password';
CREATE ROLE portfolio LOGIN PASSWORD :'portfolio_password';
CREATE DATABASE booking OWNER booking;
CREATE DATABASE portfolio OWNER portfolio;
REVOKE CONNECT ON DATABASE booking, portfolio FROM PUBLIC;
