//! Compressed answers. actix-web's own middleware always prefers Brotli, which costs more than most answers themselves,
//! and offers no levels.

use std::{
    error::Error as StdError,
    future::poll_fn,
    io::{self, Write},
    mem,
    pin::Pin,
};

use actix_web::{
    Error, HttpMessage,
    body::{BodySize, BodyStream, BoxBody, MessageBody},
    dev::{ServiceRequest, ServiceResponse},
    http::{
        StatusCode,
        header::{self, AcceptEncoding, ContentEncoding, Encoding, HeaderMap, HeaderValue, Preference, Quality},
    },
    middleware::Next,
    web,
};
use futures_util::{Stream, stream};

use crate::http::etag;

/// The content codings. Of those that a client likes equally well, the last one is sent.
const CODINGS: [ContentEncoding; 4] =
    [ContentEncoding::Identity, ContentEncoding::Gzip, ContentEncoding::Brotli, ContentEncoding::Zstd];

/// Levels from the table in `docs/performance.md`. The window of Brotli is 2 to this power.
const ZSTD_LEVEL: i32 = 2;
const BROTLI_LEVEL: u32 = 2;
const BROTLI_WINDOW: u32 = 20;
const GZIP_LEVEL: u32 = 1;

/// A shorter body fits into one network packet in any case.
const MIN_BYTES: u64 = 1000;

/// A longer piece of a body is compressed on a blocking thread.
const MAX_BYTES_IN_PLACE: usize = 64 * 1024;

/// Compresses the answer in a content coding that the client accepts. A compressed answer is another representation,
/// which needs a tag of its own (RFC 9110, section 8.8.3.3).
pub async fn compression<B: MessageBody + 'static>(
    req: ServiceRequest,
    next: Next<B>,
) -> Result<ServiceResponse<BoxBody>, Error> {
    let coding = accepted_coding(&req);
    let mut response = next.call(req).await?.map_into_boxed_body();
    let is_short = matches!(response.response().body().size(), BodySize::None | BodySize::Sized(..MIN_BYTES));
    if is_short || response.status() == StatusCode::PARTIAL_CONTENT || is_compressed(response.headers()) {
        return Ok(response);
    }
    response.headers_mut().append(header::VARY, HeaderValue::from_static("accept-encoding"));
    let Some(encoder) = Encoder::new(coding)? else { return Ok(response) };
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_ENCODING, HeaderValue::from_static(coding.as_str()));
    let tag = headers.get(header::ETAG).and_then(|tag| etag::in_coding(tag.to_str().ok()?, coding.as_str()));
    if let Some(Ok(tag)) = tag.map(HeaderValue::try_from) {
        headers.insert(header::ETAG, tag);
    }
    Ok(response.map_body(|_, body| BoxBody::new(BodyStream::new(compressed(body, encoder)))))
}

/// The coding that the client prefers. One that it does not name is not sent, even if it accepts any.
fn accepted_coding(req: &ServiceRequest) -> ContentEncoding {
    let Some(accepted) = req.get_header::<AcceptEncoding>() else { return ContentEncoding::Identity };
    let quality = |coding: &ContentEncoding| {
        let coding = Preference::Specific(Encoding::Known(*coding));
        accepted.iter().find(|item| item.item == coding).map_or(Quality::ZERO, |item| item.quality)
    };
    let best = CODINGS.into_iter().max_by_key(quality);
    best.filter(|coding| quality(coding) > Quality::ZERO).unwrap_or(ContentEncoding::Identity)
}

/// Whether a body is of a kind that compression makes no smaller.
fn is_compressed(headers: &HeaderMap) -> bool {
    let kind = headers.get(header::CONTENT_TYPE).map_or(&[][..], HeaderValue::as_bytes);
    let is_medium = [&b"image/"[..], b"video/", b"audio/", b"font/"].iter().any(|medium| kind.starts_with(medium));
    headers.contains_key(header::CONTENT_ENCODING) || (is_medium && !kind.starts_with(b"image/svg"))
}

/// The body piece by piece.
fn compressed(body: BoxBody, encoder: Encoder) -> impl Stream<Item = Result<web::Bytes, Box<dyn StdError>>> {
    stream::try_unfold((body, Some(encoder)), |(mut body, mut encoder)| async move {
        while let Some(mut current) = encoder.take() {
            let piece = poll_fn(|cx| Pin::new(&mut body).poll_next(cx)).await.transpose()?;
            let is_long = piece.as_ref().is_some_and(|piece| piece.len() > MAX_BYTES_IN_PLACE);
            let step = move || match piece {
                Some(piece) => current.write(&piece).map(|output| (Some(current), output)),
                None => current.finish().map(|output| (None, output)),
            };
            let output;
            (encoder, output) = if is_long { web::block(step).await?? } else { step()? };
            if !output.is_empty() {
                return Ok(Some((web::Bytes::from(output), (body, encoder))));
            }
        }
        Ok(None)
    })
}

enum Encoder {
    Gzip(flate2::write::GzEncoder<Vec<u8>>),
    Brotli(Box<brotli::CompressorWriter<Vec<u8>>>),
    Zstd(zstd::stream::write::Encoder<'static, Vec<u8>>),
}

impl Encoder {
    fn new(coding: ContentEncoding) -> io::Result<Option<Self>> {
        Ok(Some(match coding {
            ContentEncoding::Zstd => Self::Zstd(zstd::stream::write::Encoder::new(Vec::new(), ZSTD_LEVEL)?),
            ContentEncoding::Brotli => {
                let encoder = brotli::CompressorWriter::new(Vec::new(), 4096, BROTLI_LEVEL, BROTLI_WINDOW);
                Self::Brotli(Box::new(encoder))
            }
            ContentEncoding::Gzip => {
                Self::Gzip(flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::new(GZIP_LEVEL)))
            }
            _ => return Ok(None),
        }))
    }

    /// Compresses a piece. Returns what the encoder does not hold back.
    fn write(&mut self, piece: &[u8]) -> io::Result<Vec<u8>> {
        let output = match self {
            Self::Gzip(encoder) => encoder.write_all(piece).map(|()| encoder.get_mut()),
            Self::Brotli(encoder) => encoder.write_all(piece).map(|()| encoder.get_mut()),
            Self::Zstd(encoder) => encoder.write_all(piece).map(|()| encoder.get_mut()),
        };
        output.map(mem::take)
    }

    fn finish(self) -> io::Result<Vec<u8>> {
        match self {
            Self::Gzip(encoder) => encoder.finish(),
            Self::Brotli(encoder) => Ok(encoder.into_inner()),
            Self::Zstd(encoder) => encoder.finish(),
        }
    }
}
