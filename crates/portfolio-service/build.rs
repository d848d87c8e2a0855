//! A new migration compiles the service again: cargo does not see that `embed_migrations!` reads the folder.

fn main() {
    println!("cargo:rerun-if-changed=migrations");
}
