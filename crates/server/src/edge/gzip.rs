//! Answers packed by gzip for clients that take it: texts of some length, as a whole. Streams, whose parts come when
//! they are made, are never packed.

use std::io::{self, Write as _};

use axum::body::{Body, Bytes, HttpBody as _, to_bytes};
use axum::extract::Request;
use axum::http::header::{ACCEPT_ENCODING, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE, ETAG, VARY};
use axum::http::{HeaderMap, HeaderValue};
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};
use flate2::Compression;
use flate2::write::GzEncoder;

use crate::refusal::Refusal;

/// Bytes below which an answer is sent as it is: it fits a packet.
const PACKED_FROM_BYTES: u64 = 1 << 10;

/// The types that are texts; vectors as bare numbers hardly become smaller.
const TEXTS: [&str; 5] = ["application/json", "text/html", "text/css", "text/javascript", "image/svg+xml"];

/// Packs the answer of what is behind it, if it is a text and the client takes that.
pub(crate) async fn gzip(request: Request, next: Next) -> Response {
    let is_taken = takes_gzip(request.headers());
    let mut response = next.run(request).await;
    if !is_text(response.headers()) || response.headers().contains_key(CONTENT_ENCODING) {
        return response;
    }
    response.headers_mut().append(VARY, HeaderValue::from_static("accept-encoding"));
    let is_long = response.body().size_hint().exact().is_some_and(|n_bytes| n_bytes >= PACKED_FROM_BYTES);
    if !is_taken || !is_long {
        return response;
    }
    let (mut parts, body) = response.into_parts();
    let whole = match to_bytes(body, usize::MAX).await {
        Ok(whole) => whole,
        Err(error) => return Refusal::own("body", error.to_string()).into_response(),
    };
    let packed = match tokio::task::spawn_blocking(move || packed(&whole)).await {
        Ok(Ok(packed)) => packed,
        Ok(Err(error)) => return Refusal::own("gzip", error.to_string()).into_response(),
        Err(error) => return Refusal::own("gzip", error.to_string()).into_response(),
    };
    parts.headers.remove(CONTENT_LENGTH);
    parts.headers.insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
    // The same content in other bytes: its tag is a weak one.
    if let Some(tag) = parts.headers.get(ETAG).and_then(|tag| tag.to_str().ok()).filter(|tag| tag.starts_with('"'))
        && let Ok(weak) = HeaderValue::try_from(format!("W/{tag}"))
    {
        parts.headers.insert(ETAG, weak);
    }
    Response::from_parts(parts, Body::from(packed))
}

fn packed(whole: &Bytes) -> io::Result<Vec<u8>> {
    let mut packer = GzEncoder::new(Vec::with_capacity(whole.len() / 4), Compression::fast());
    packer.write_all(whole)?;
    packer.finish()
}

fn is_text(headers: &HeaderMap) -> bool {
    let kind = headers.get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    let kind = kind.split(';').next().unwrap_or_default().trim();
    TEXTS.contains(&kind)
}

/// True if a client takes gzip: by its name, else by a star; `q=0` means that it does not.
fn takes_gzip(headers: &HeaderMap) -> bool {
    let values = headers.get_all(ACCEPT_ENCODING).iter().filter_map(|value| value.to_str().ok());
    let codings: Vec<(&str, bool)> = values.flat_map(|value| value.split(',')).map(coding).collect();
    let said =
        |name: &str| codings.iter().find(|(coding, _)| coding.eq_ignore_ascii_case(name)).map(|(_, taken)| *taken);
    said("gzip").or_else(|| said("*")).unwrap_or(false)
}

/// The name of a coding, and whether its quality is above 0.
fn coding(text: &str) -> (&str, bool) {
    let mut parts = text.split(';').map(str::trim);
    let name = parts.next().unwrap_or_default();
    let quality = parts.find_map(|part| part.strip_prefix("q=").or_else(|| part.strip_prefix("Q=")));
    (name, quality.is_none_or(|quality| quality.parse::<f32>().is_ok_and(|quality| quality > 0.0)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(value: &str, is_taken: bool) {
        let headers = HeaderMap::from_iter([(ACCEPT_ENCODING, HeaderValue::try_from(value).unwrap())]);
        assert_eq!(takes_gzip(&headers), is_taken, "{value}");
    }

    #[test]
    fn gzip_is_taken_where_it_is_named_or_a_star_means_it() {
        for value in ["gzip", "br, GZIP", "deflate, gzip;q=0.5", "*", "br;q=1, *;q=0.1"] {
            check(value, true);
        }
        for value in ["", "br", "gzip;q=0", "gzip;q=0.0, *", "identity, *;q=0", "gzip; q=0", "gzip;q=x"] {
            check(value, false);
        }
        assert!(!takes_gzip(&HeaderMap::new()), "who says nothing gets what is there");
    }
}
