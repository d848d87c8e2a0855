//! What the build depends on besides the source.

fn main() {
    // The types that OpenAPI documents as strings of a format.
    utoipa_config::Config::new().alias_for("Timestamp", "chrono::DateTime<chrono::Utc>").write_to_file();
}
