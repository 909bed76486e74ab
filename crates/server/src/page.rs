//! The page: files that show in a browser what the other routes answer, as they are in `page/`, nothing built.
//!
//! They ask for no key, as they say nothing of any collection; what they show comes from routes that do. The browser
//! is told to run nothing but these files and to ask nobody else: texts of documents are text, whatever is in them.

use std::sync::Arc;

use axum::Router;
use axum::extract::Path;
use axum::http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, ETAG, IF_NONE_MATCH, REFERRER_POLICY, X_CONTENT_TYPE_OPTIONS,
};
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::response::{IntoResponse as _, Response};
use axum::routing::get;
use sha2::{Digest as _, Sha256};

use crate::app::App;
use crate::refusal::Refusal;

/// The address of the page.
pub(crate) const ROOT: &str = "/";

/// The route of its parts.
pub(crate) const FILES: &str = "/page/{*file}";

/// The name of the file that [`ROOT`] answers with.
const INDEX: &str = "index.html";

/// All that a browser may run and ask: files and routes of this server, no markup made of text.
const POLICY: &str = "default-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; \
                      object-src 'none'; require-trusted-types-for 'script'; trusted-types 'none'";

const HTML: &str = "text/html; charset=utf-8";
const STYLE: &str = "text/css; charset=utf-8";
const SCRIPT: &str = "text/javascript; charset=utf-8";
const PICTURE: &str = "image/svg+xml";

/// Bytes as they lie in `page/`, under the same name.
macro_rules! files {
    ($($kind:ident $name:literal,)*) => {
        [$(($name, $kind, include_bytes!(concat!("../page/", $name)))),*]
    };
}

/// Name, type and bytes of each file.
const ALL: &[(&str, &str, &[u8])] = &files![
    HTML "index.html",
    STYLE "style.css",
    PICTURE "icon.svg",
    SCRIPT "app.js",
    SCRIPT "api.js",
    SCRIPT "state.js",
    SCRIPT "parts.js",
    SCRIPT "settings.js",
    SCRIPT "copies.js",
    SCRIPT "ask.js",
    SCRIPT "document.js",
    SCRIPT "scores.js",
    SCRIPT "lost.js",
    SCRIPT "budget.js",
    SCRIPT "compare.js",
    SCRIPT "judge.js",
    SCRIPT "files.js",
    SCRIPT "board.js",
    SCRIPT "health.js",
    SCRIPT "vendor/htm-preact.js",
];

/// The routes of the page.
pub(crate) fn router() -> Router<Arc<App>> {
    let answers: Arc<Vec<(&str, Part)>> = Arc::new(ALL.iter().map(|file| (file.0, Part::of(file))).collect());
    let of = move |name: &str, headers: &HeaderMap| match answers.iter().find(|(known, _)| *known == name) {
        Some((_, part)) => part.answer(headers),
        None => Refusal::new(StatusCode::NOT_FOUND, "route", "the page has no such file").into_response(),
    };
    let index = of.clone();
    Router::new()
        .route(ROOT, get(|headers: HeaderMap| async move { index(INDEX, &headers) }))
        .route(FILES, get(|Path(name): Path<String>, headers: HeaderMap| async move { of(&name, &headers) }))
}

/// A file as it is answered.
struct Part {
    kind: &'static str,
    bytes: &'static [u8],
    /// Its digest, by which a browser knows that it has it.
    tag: HeaderValue,
}

impl Part {
    fn of((_, kind, bytes): &(&'static str, &'static str, &'static [u8])) -> Self {
        let digest: String = Sha256::digest(bytes).iter().take(16).map(|byte| format!("{byte:02x}")).collect();
        let tag = HeaderValue::try_from(format!("\"{digest}\"")).unwrap_or(HeaderValue::from_static("\"\"")); // digits
        Self { kind, bytes, tag }
    }

    fn answer(&self, asked: &HeaderMap) -> Response {
        let known = asked.get_all(IF_NONE_MATCH).iter().any(|tags| {
            let tags = tags.to_str().unwrap_or_default().split(',');
            tags.into_iter().any(|tag| tag.trim().trim_start_matches("W/").as_bytes() == self.tag.as_bytes())
        });
        let headers = [
            (CONTENT_TYPE, HeaderValue::from_static(self.kind)),
            (CONTENT_SECURITY_POLICY, HeaderValue::from_static(POLICY)),
            (X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff")),
            (REFERRER_POLICY, HeaderValue::from_static("no-referrer")),
            (CACHE_CONTROL, HeaderValue::from_static("no-cache")), // asked for anew, and most often not sent again
            (ETAG, self.tag.clone()),
        ];
        match known {
            true => (StatusCode::NOT_MODIFIED, headers).into_response(),
            false => (headers, self.bytes).into_response(),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::fs;
    use std::path::Path as Folder;

    use super::*;

    /// The most bytes that the page may have in all.
    const BYTES_MAX: usize = 150_000;

    #[test]
    fn every_file_of_the_folder_is_served_and_the_whole_is_small() {
        let folder = Folder::new(env!("CARGO_MANIFEST_DIR")).join("page");
        let mut there = BTreeSet::new();
        for part in ["", "vendor/"] {
            for entry in fs::read_dir(folder.join(part)).unwrap() {
                let entry = entry.unwrap();
                if entry.file_type().unwrap().is_file() {
                    there.insert(format!("{part}{}", entry.file_name().to_string_lossy()));
                }
            }
        }
        there.retain(|name| !name.ends_with(".md") && !name.ends_with("LICENSE")); // where they are from
        let served: BTreeSet<String> = ALL.iter().map(|(name, ..)| (*name).to_owned()).collect();
        assert_eq!(served, there);
        let bytes: usize = ALL.iter().map(|(.., bytes)| bytes.len()).sum();
        assert!(bytes <= BYTES_MAX, "{bytes} bytes");
    }

    #[test]
    fn what_others_made_is_what_its_note_says() {
        let note = include_str!("../page/vendor/README.md");
        let vendored = ALL.iter().filter(|(name, ..)| name.starts_with("vendor/"));
        for (name, _, bytes) in vendored {
            let digest: String = Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect();
            assert!(note.contains(&digest), "{name} is {digest}");
        }
    }

    #[test]
    fn nothing_on_the_page_makes_markup_of_text_or_asks_elsewhere() {
        for (name, _, bytes) in ALL.iter().filter(|(name, ..)| !name.starts_with("vendor/")) {
            let text = String::from_utf8_lossy(bytes);
            for wrong in
                ["innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "style=\"", "https:"]
            {
                assert!(!text.contains(wrong), "{name} has {wrong}");
            }
        }
    }
}
