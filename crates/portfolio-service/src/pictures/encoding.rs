//! Decodes what somebody sends, within bounds, and encodes it again.

use std::io::Cursor;

use common::problem::Problem;
use image::{
    DynamicImage, ImageDecoder, ImageReader, ImageResult, Limits,
    codecs::{jpeg::JpegEncoder, png::PngEncoder},
    imageops::FilterType,
    metadata::Orientation,
};
use service_kit::http::{body, etag};

use crate::codes;

/// The most pixels of a side of what is sent.
const MAX_SIDE: u32 = 4000;

/// The most bytes of it in memory: the most pixels, with 8 bits for each of four channels.
const MAX_DECODED: u64 = 4000 * 4000 * 4;

/// The most pixels of the longer side of both forms.
const LARGE: u32 = 1200;
const SMALL: u32 = 320;

/// Of 100; below it, artefacts are visible.
const JPEG_QUALITY: u8 = 82;

/// A picture as it is stored.
#[derive(Debug)]
pub struct Encoded {
    pub media_type: &'static str,
    /// Of `large`, from which `small` follows.
    pub hash: String,
    pub large: Vec<u8>,
    pub small: Vec<u8>,
}

impl Encoded {
    /// Decodes a picture and encodes it again: as JPEG, or as PNG if something of it is transparent.
    ///
    /// # Errors
    /// 400 `invalid-picture` for what is none, or is too large.
    pub fn new(bytes: &[u8]) -> Result<Self, Problem> {
        let invalid = |why: String| Problem::new(codes::INVALID_PICTURE).detail(why);
        if bytes.len() > body::LIMIT {
            return Err(invalid("The file has more than 1 MiB.".to_owned()));
        }
        let (image, orientation) = decode(bytes).map_err(|error| invalid(format!("It cannot be read: {error}.")))?;
        let mut image = shrink(image, LARGE);
        image.apply_orientation(orientation);
        Self::of(image).map_err(Problem::internal)
    }

    fn of(image: DynamicImage) -> ImageResult<Self> {
        let rgba = image.into_rgba8();
        let is_opaque = rgba.pixels().all(|pixel| pixel.0[3] == u8::MAX);
        let mut image = DynamicImage::from(rgba);
        if is_opaque {
            image = image.into_rgb8().into();
        }
        let mut large = encode(&image)?;
        // Noise with transparency.
        while large.len() > body::LIMIT {
            let side = image.width().max(image.height()) * 3 / 4;
            image = shrink(image, side);
            large = encode(&image)?;
        }
        let small = encode(&shrink(image, SMALL))?;
        let media_type = if is_opaque { "image/jpeg" } else { "image/png" };
        Ok(Self { media_type, hash: etag::content(&[&large]), large, small })
    }
}

fn decode(bytes: &[u8]) -> ImageResult<(DynamicImage, Orientation)> {
    let format = image::guess_format(bytes)?;
    let mut limits = Limits::default();
    limits.max_image_width = Some(MAX_SIDE);
    limits.max_image_height = Some(MAX_SIDE);
    limits.max_alloc = Some(MAX_DECODED);
    let mut reader = ImageReader::with_format(Cursor::new(bytes), format);
    reader.limits(limits.clone());
    let mut decoder = reader.into_decoder()?;
    limits.reserve(decoder.total_bytes())?;
    let orientation = decoder.orientation().unwrap_or(Orientation::NoTransforms);
    Ok((DynamicImage::from_decoder(decoder)?, orientation))
}

/// The picture with at most this number of pixels on its longer side.
fn shrink(mut image: DynamicImage, side: u32) -> DynamicImage {
    let longest = image.width().max(image.height());
    if longest <= side {
        return image;
    }
    // The mean of whole pixels first: the better filter takes 16 bytes for each pixel of a column.
    if longest > 2 * side {
        image = image.thumbnail(2 * side, 2 * side);
    }
    image.resize(side, side, FilterType::CatmullRom)
}

fn encode(image: &DynamicImage) -> ImageResult<Vec<u8>> {
    let mut bytes = Vec::new();
    if image.color().has_alpha() {
        image.write_with_encoder(PngEncoder::new(&mut bytes))?;
    } else {
        image.write_with_encoder(JpegEncoder::new_with_quality(&mut bytes, JPEG_QUALITY))?;
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use image::{Rgba, RgbaImage};

    use super::*;

    #[test]
    fn noise_with_transparency_has_fewer_pixels_than_bytes_are_allowed() {
        let mut state = 1_u32;
        let noise = RgbaImage::from_fn(1100, 700, |_, _| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            Rgba((state ^ (state >> 15)).to_be_bytes())
        });
        let encoded = Encoded::of(noise.into()).unwrap();
        assert!(encoded.large.len() <= body::LIMIT && encoded.small.len() < body::LIMIT / 2);
        let large = image::load_from_memory(&encoded.large).unwrap();
        assert!(large.width() > 500 && large.width() * 7 / 11 - large.height() < 2);
    }
}
