-- Run once, when PostgreSQL makes its data folder: a role and a database for each service. The passwords stand in the
-- addresses that the services are given.
\set booking_password `sed -n 's|^postgres://booking:\([^@]*\)@.*|\1|p' /run/secrets/booking_database_url`
\set portfolio_password `sed -n 's|^postgres://portfolio:\([^@]*\)@.*|\1|p' /run/secrets/portfolio_database_url`
CREATE ROLE booking LOGIN PASSWORD :'booking_password';
CREATE ROLE portfolio LOGIN PASSWORD :'portfolio_password';
CREATE DATABASE booking OWNER booking;
CREATE DATABASE portfolio OWNER portfolio;
REVOKE CONNECT ON DATABASE booking, portfolio FROM PUBLIC;
