//! What the build depends on besides the source.

fn main() {
    // A new migration compiles the service again: cargo does not see that `embed_migrations!` reads the folder.
    println!("cargo:rerun-if-changed=migrations");
    // The types that OpenAPI documents as strings of a format.
    utoipa_config::Config::new()
        .alias_for("Timestamp", "chrono::DateTime<chrono::Utc>")
        .alias_for("Zoned", "chrono::DateTime<chrono::Utc>")
        .alias_for("Id", "uuid::Uuid")
        .write_to_file();
}
