//! Tests of the parts together: the door to the database on both databases, and the frame on a real server.

mod database;
mod server;

mod body;
mod door;
mod frame;
