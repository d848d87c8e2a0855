//! The options of the pages.

use std::{fs, path::Path};

use actix_web::web::Bytes;
use clap::Args;
use url::Url;

use super::web_address::{absolute_url, is_web_address};

/// What the service's own pages show.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Pages")]
pub struct PageOptions {
    /// Name of the club, on every page of the service and in its feeds.
    #[arg(global = true, long, env = "CLUB_NAME", value_name = "NAME", value_parser = name)]
    pub club_name: Option<String>,

    /// Address of the club's own site, to which every page of the service links.
    #[arg(global = true, long, env = "CLUB_URL", value_name = "URL", value_parser = absolute_url)]
    pub club_url: Option<Url>,

    /// Colour of the club, such as #0f5c70. Text on it is black or white, whichever can be read better.
    #[arg(global = true, long, env = "CLUB_COLOR", value_name = "COLOR", value_parser = color)]
    pub club_color: Option<Color>,

    /// Logo of the club, on every page and as its icon: a square PNG, JPEG, WebP or SVG file of at most 100 kB.
    #[arg(global = true, long, env = "CLUB_LOGO", value_name = "FILE", value_parser = logo)]
    pub club_logo: Option<Logo>,
}

impl PageOptions {
    /// The fault of these options, as one line.
    pub(super) fn fault(&self) -> Option<String> {
        let is_wrong = self.club_url.as_ref().is_some_and(|url| !is_web_address(url));
        is_wrong.then(|| "--club-url must be an http or https address".to_owned())
    }
}

/// Reads the name of a club: one line of at most 100 characters.
fn name(text: &str) -> Result<String, String> {
    if text.chars().count() > 100 || text.contains(char::is_control) {
        return Err("the name of a club is one line of at most 100 characters".to_owned());
    }
    Ok(text.to_owned())
}

/// A colour: red, green and blue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Color(u8, u8, u8);

/// Reads a colour as in `#0f5c70`. Without the `#`, which begins a comment in some files of settings, it is one too.
fn color(text: &str) -> Result<Color, String> {
    let digits = text.strip_prefix('#').unwrap_or(text);
    let digits = Some(digits).filter(|digits| digits.len() == 6 && digits.bytes().all(|c| c.is_ascii_hexdigit()));
    let part = |at: usize| u8::from_str_radix(digits?.get(at..at + 2)?, 16).ok();
    match (part(0), part(2), part(4)) {
        (Some(red), Some(green), Some(blue)) => Ok(Color(red, green, blue)),
        _ => Err("a colour is written like #0f5c70".to_owned()),
    }
}

impl Color {
    /// The style rule that sets the colour, and that of text on it: black or white, whichever contrasts more. One of the
    /// two has a contrast of at least 4.5 with every colour (WCAG 2.2, 1.4.3).
    pub fn style(self) -> String {
        let Self(red, green, blue) = self;
        let on_brand = if self.contrast_with(1.0) >= self.contrast_with(0.0) { "#fff" } else { "#000" };
        format!(":root{{--brand:#{red:02x}{green:02x}{blue:02x};--on-brand:{on_brand}}}")
    }

    /// The contrast with a grey of this luminance.
    fn contrast_with(self, other: f64) -> f64 {
        let own = self.luminance();
        (own.max(other) + 0.05) / (own.min(other) + 0.05)
    }

    /// The relative luminance (WCAG 2.2), from 0 to 1.
    fn luminance(self) -> f64 {
        let linear = |part: u8| {
            let part = f64::from(part) / 255.0;
            if part <= 0.04045 { part / 12.92 } else { ((part + 0.055) / 1.055).powf(2.4) }
        };
        0.2126 * linear(self.0) + 0.7152 * linear(self.1) + 0.0722 * linear(self.2)
    }
}

/// A picture and its media type.
#[derive(Debug, Clone)]
pub struct Logo {
    /// One of [`LOGO_TYPES`].
    pub media_type: &'static str,
    /// The file.
    pub bytes: Bytes,
}

/// The kinds of logos: how the name of the file ends, and its media type.
const LOGO_TYPES: [(&str, &str); 5] = [
    ("png", "image/png"),
    ("svg", "image/svg+xml"),
    ("webp", "image/webp"),
    ("jpg", "image/jpeg"),
    ("jpeg", "image/jpeg"),
];

/// The most bytes of a logo, which every visitor loads.
const MAX_LOGO_BYTES: usize = 100_000;

/// Reads the file of a logo.
fn logo(path: &str) -> Result<Logo, String> {
    let end = Path::new(path).extension().and_then(|end| end.to_str()).unwrap_or_default().to_ascii_lowercase();
    let media_type = LOGO_TYPES.into_iter().find(|(known, _)| *known == end).map(|(_, media_type)| media_type);
    let media_type = media_type.ok_or("the name of a logo ends in .png, .svg, .webp or .jpg")?;
    let bytes = fs::read(path).map_err(|error| error.to_string())?;
    if bytes.is_empty() || bytes.len() > MAX_LOGO_BYTES {
        return Err(format!("a logo has at most {MAX_LOGO_BYTES} bytes, and this one has {}", bytes.len()));
    }
    let is_of_type = match media_type {
        "image/png" => bytes.starts_with(b"\x89PNG\r\n\x1a\n"),
        "image/jpeg" => bytes.starts_with(b"\xff\xd8\xff"),
        "image/webp" => bytes.starts_with(b"RIFF") && bytes.get(8..12) == Some(b"WEBP"),
        _ => str::from_utf8(&bytes).is_ok_and(|text| text.contains("<svg")),
    };
    if !is_of_type {
        return Err(format!("the file is not {media_type}"));
    }
    Ok(Logo { media_type, bytes: bytes.into() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_on_any_colour_can_be_read() {
        let parts = || (0..=255).step_by(15);
        for red in parts() {
            for green in parts() {
                for blue in parts() {
                    let color = Color(red, green, blue);
                    assert!(color.contrast_with(1.0).max(color.contrast_with(0.0)) >= 4.5, "{color:?}");
                }
            }
        }
        let style = |text| color(text).unwrap().style();
        assert_eq!(style("#0F5c70"), ":root{--brand:#0f5c70;--on-brand:#fff}");
        assert_eq!(style("0f5c70"), style("#0f5c70"));
        assert_eq!(style("#ffdd00"), ":root{--brand:#ffdd00;--on-brand:#000}");
    }

    #[test]
    fn other_colours_are_refused() {
        for text in ["", "red", "##0f5c7", "#0f5c7", "#0f5c700", "#0f5c7g", "#+1+1+1", "#ééé"] {
            assert!(color(text).is_err(), "{text}");
        }
    }
}
