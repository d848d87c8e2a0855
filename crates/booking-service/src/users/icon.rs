//! Icons of users for whom the directory has none: the first letter of the name on a colour derived from the name.

use actix_web::{
    HttpResponse,
    http::header,
    web::{self, Path},
};
use url::Url;

/// Registers the page. It is public and does not read the database, so it does not reveal which users exist.
pub fn routes(config: &mut web::ServiceConfig) {
    config.service(web::resource("/icons/{name}.svg").get(icon).default_service(web::to(only_get)));
}

/// The address of the icon for this name at `origin`.
pub fn address(origin: &str, name: &str) -> String {
    // The origin comes from a parsed address, so the fallback is never used.
    Url::parse(origin).map_or_else(
        |_| origin.to_owned(),
        |mut url| {
            if let Ok(mut path) = url.path_segments_mut() {
                path.clear().push("icons").push(&format!("{name}.svg"));
            }
            url.into()
        },
    )
}

async fn icon(name: Path<String>) -> HttpResponse {
    HttpResponse::Ok()
        .content_type("image/svg+xml")
        .insert_header((header::CACHE_CONTROL, "public, max-age=86400"))
        .body(svg(&name))
}

async fn only_get() -> HttpResponse {
    HttpResponse::MethodNotAllowed().insert_header((header::ALLOW, "GET, HEAD")).finish()
}

fn svg(name: &str) -> String {
    // A letter or digit needs no escaping in XML.
    let letter =
        name.chars().find(|c| c.is_alphanumeric()).map_or_else(|| "?".to_owned(), |c| c.to_uppercase().collect());
    // FNV-1a: the same name has the same colour in every version.
    let hash = name.bytes().fold(0x811c_9dc5_u32, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193));
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 64 64\" width=\"64\" height=\"64\">\
         <rect width=\"64\" height=\"64\" fill=\"hsl({}, 45%, 40%)\"/>\
         <text x=\"32\" y=\"32\" dy=\"0.35em\" fill=\"#fff\" font-family=\"sans-serif\" font-size=\"32\" \
         text-anchor=\"middle\">{letter}</text></svg>",
        hash % 360
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_letter_on_a_colour_of_the_name() {
        assert!(svg("alice").contains(">A</text>"));
        assert!(svg("_木村").contains(">木</text>"));
        assert!(svg("<&>").contains(">?</text>"));
        assert_eq!(svg("bob"), svg("bob"));
        assert_ne!(svg("bob"), svg("bill"));
    }

    #[test]
    fn any_name_has_an_address() {
        assert_eq!(address("http://[::1]:3000", "alice"), "http://[::1]:3000/icons/alice.svg");
        assert_eq!(address("https://club.example", "a/ä?%"), "https://club.example/icons/a%2F%C3%A4%3F%25.svg");
    }
}
