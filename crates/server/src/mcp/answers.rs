//! The answers of the tools, one text each; made on an engine thread.

use cento_engine::api::{self, Budget, ContextRequest, DEFAULT_BUDGET_TOKENS, GetRequest, Request, SearchRequest};
use cento_engine::{CANDIDATE_DEPTH, Cancel, Excerpt, Hit};
use serde::Serialize;
use serde_json::{Value, json};

use super::fit::Cap;
use super::tools::{ContextTool, FetchTool, SearchTool, StatusTool};
use crate::app::App;
use crate::refusal::Refusal;

/// Results of a page unless a number is asked for, and at most.
const PAGE: usize = 8;
const PAGE_MAX: usize = 50;

/// Tokens of an answer unless a number is asked for.
const TOKENS: usize = 4_000;

/// Bytes of a passage that a search shows.
const SNIPPET_BYTES: usize = 320;

/// The scheme of addresses of passages, which name their collection.
const SCHEME: &str = "cento://";

/// A call of a tool on an engine thread.
pub(super) struct Call<'a> {
    pub(super) app: &'a App,
    pub(super) cancel: &'a Cancel,
}

/// A page of results.
#[derive(Serialize)]
struct Page<'a> {
    results: Vec<Found<'a>>,
    collection: &'a str,
    generation: u64,
    changed_files: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    cursor: Option<String>,
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    warnings: &'a [String],
}

/// A passage that was found.
#[derive(Serialize)]
struct Found<'a> {
    id: String,
    title: &'a str,
    url: String,
    text: String,
}

impl Call<'_> {
    /// The text that a tool answers with.
    pub(super) fn answer(&self, tool: &str, arguments: &Value) -> Result<String, Refusal> {
        match tool {
            "search" => self.search(&read(arguments)?),
            "fetch" => self.fetch(&read(arguments)?),
            "context" => self.context(&read(arguments)?),
            "status" => self.status(read(arguments)?),
            other => Err(Refusal::value("name", format!("no tool {other:?}"))),
        }
    }

    fn search(&self, tool: &SearchTool) -> Result<String, Refusal> {
        let collection = self.collection(tool.collection.as_deref())?;
        let (page, from) = (tool.k.unwrap_or(PAGE), place(tool.cursor.as_deref())?);
        if !(1..=PAGE_MAX).contains(&page) {
            return Err(Refusal::value("k", format!("k: {page} is not from 1 to {PAGE_MAX}")));
        }
        let k = (from + page + 1).min(CANDIDATE_DEPTH); // one more says that there are more
        let request = SearchRequest { k, filter: tool.filter.clone(), ..SearchRequest::new(&*tool.query) };
        let (answer, timings) = self.app.service.search_timed(collection, &request, self.cancel)?;
        self.app.metrics.searched(&timings);
        let cap = Cap::new(tool.max_tokens, TOKENS, self.app.options.tool_tokens)?;
        let hits = answer.hits.get(from..).unwrap_or_default();
        let changed_files = self.changed(collection)?;
        let written = |n: usize| {
            let cursor = (n < hits.len()).then(|| (from + n).to_string());
            let results = hits[..n].iter().map(|hit| self.found(collection, hit)).collect();
            let (generation, warnings) = (answer.generation, &answer.warnings[..]);
            json_of(&Page { results, collection, generation, changed_files, cursor, warnings })
        };
        for n in (0..=page.min(hits.len())).rev() {
            let text = written(n)?;
            if cap.holds(&text) && (n > 0 || hits.is_empty()) {
                return Ok(text);
            }
        }
        Err(cap.too_small("max_tokens"))
    }

    fn found<'h>(&self, collection: &str, hit: &'h Hit) -> Found<'h> {
        let url = address(collection, &hit.id);
        let id = if self.is_alone() { hit.id.clone() } else { url.clone() };
        Found { id, title: &hit.title, url, text: snippet(&hit.text) }
    }

    fn fetch(&self, tool: &FetchTool) -> Result<String, Refusal> {
        let named = tool.id.strip_prefix(SCHEME).and_then(|rest| rest.split_once('/'));
        let (collection, id) = match named {
            Some((collection, id)) => (collection, id),
            None => (self.collection(tool.collection.as_deref())?, tool.id.as_str()),
        };
        let request = GetRequest { citation: id.to_owned() };
        let excerpt = self.app.service.get(collection, &request, self.cancel)?;
        let from = place(tool.cursor.as_deref())?;
        let rest = excerpt.text.get(from..);
        let rest = rest.ok_or_else(|| Refusal::value("cursor", "cursor: is not from an answer before"))?;
        let cap = Cap::new(tool.max_tokens, TOKENS, self.app.options.tool_tokens)?;
        let written = |text: &str| {
            let end = from + text.len();
            let cursor = (end < excerpt.text.len()).then(|| end.to_string());
            fetched(&tool.id, &address(collection, id), &excerpt, text, cursor.as_deref())
        };
        match cap.longest(rest, written) {
            Some((text, answer)) if !text.is_empty() || rest.is_empty() => Ok(answer),
            Some(_) | None => Err(cap.too_small("max_tokens")),
        }
    }

    fn context(&self, tool: &ContextTool) -> Result<String, Refusal> {
        let collection = self.collection(tool.collection.as_deref())?;
        let cap = Cap::new(tool.budget_tokens, DEFAULT_BUDGET_TOKENS, self.app.options.tool_tokens)?;
        let changed = self.changed(collection)?;
        let signed = |generation: u64| {
            let stale = if changed > 0 { format!("; {changed} files changed since") } else { String::new() };
            format!("\n\n(collection {collection}, generation {generation}{stale})")
        };
        // Where two texts meet, a token may be cut otherwise than in either.
        let mut left = cap.tokens.saturating_sub(cap.count(&signed(u64::MAX)));
        loop {
            let request = ContextRequest {
                budget: Budget::Tokens(left),
                tokenizer: cap.name().to_owned(),
                filter: tool.filter.clone(),
                ..ContextRequest::new(&*tool.question)
            };
            let answer = self.app.service.context(collection, &request, self.cancel)?;
            let warnings: String = answer.warnings.iter().map(|warning| format!("\n(warning: {warning})")).collect();
            let text = format!("{}{}", answer.context, signed(answer.generation));
            let warned = format!("{text}{warnings}");
            if cap.holds(&warned) {
                return Ok(warned);
            }
            let over = cap.count(&warned) - cap.tokens;
            left = left.checked_sub(over).ok_or_else(|| cap.too_small("budget_tokens"))?;
        }
    }

    fn status(&self, _: StatusTool) -> Result<String, Refusal> {
        let cap = Cap::new(None, TOKENS, self.app.options.tool_tokens)?;
        let mut collections = Vec::new();
        for name in self.app.service.collections() {
            let one = match self.app.service.status(name, self.cancel) {
                Ok(status) => json!({
                    "collection": name,
                    "generation": status.generation,
                    "documents": status.n_documents,
                    "chunks": status.n_chunks,
                    "changed_files": self.changed(name)?,
                }),
                Err(error) => json!({ "collection": name, "error": Refusal::from(error).body.message }),
            };
            collections.push(one);
            if !cap.holds(&json_of(&collections)?) {
                collections.pop();
                break;
            }
        }
        let n_more = self.app.service.collections().count() - collections.len();
        let answer_tokens_max = self.app.options.tool_tokens;
        json_of(&json!({ "collections": collections, "not_shown": n_more, "answer_tokens_max": answer_tokens_max }))
    }

    fn changed(&self, collection: &str) -> Result<usize, Refusal> {
        Ok(self.app.service.changed(collection, self.cancel)?)
    }

    fn is_alone(&self) -> bool {
        self.app.service.collections().nth(1).is_none()
    }

    /// The collection that is asked: the one that is named, else the only one there is.
    fn collection<'c>(&'c self, named: Option<&'c str>) -> Result<&'c str, Refusal> {
        let mut known = self.app.service.collections();
        match (named, known.next(), known.next()) {
            (Some(named), ..) => Ok(named),
            (None, Some(only), None) => Ok(only),
            (None, ..) => {
                let names: Vec<&str> = self.app.service.collections().collect();
                let message = format!("collection: there are {}; say which one is asked", names.join(", "));
                Err(Refusal::value("collection", message))
            }
        }
    }
}

fn read<T: Request>(arguments: &Value) -> Result<T, Refusal> {
    Ok(api::parse(json_of(arguments)?.as_bytes())?)
}

fn json_of(answer: &impl Serialize) -> Result<String, Refusal> {
    serde_json::to_string(answer).map_err(|error| Refusal::own("serialize", error.to_string()))
}

/// The place that a cursor names; the beginning without one.
fn place(cursor: Option<&str>) -> Result<usize, Refusal> {
    let place = cursor.map_or(Ok(0), str::parse);
    match place {
        Ok(place) if place < usize::MAX / 2 => Ok(place),
        Ok(_) | Err(_) => Err(Refusal::value("cursor", "cursor: is not from an answer before")),
    }
}

fn address(collection: &str, id: &str) -> String {
    format!("{SCHEME}{collection}/{id}")
}

/// The beginning of a passage.
fn snippet(text: &str) -> String {
    if text.len() <= SNIPPET_BYTES {
        return text.to_owned();
    }
    let end = (0..=SNIPPET_BYTES).rev().find(|end| text.is_char_boundary(*end));
    format!("{}…", &text[..end.unwrap_or_default()])
}

/// A document in the shape that clients of this tool want.
fn fetched(id: &str, url: &str, excerpt: &Excerpt, text: &str, cursor: Option<&str>) -> String {
    let metadata = json!({
        "document": excerpt.document,
        "span": excerpt.span,
        "headings": excerpt.path,
        "place": excerpt.anchor,
    });
    let mut answer = json!({ "id": id, "title": excerpt.title, "text": text, "url": url, "metadata": metadata });
    if let Some(cursor) = cursor {
        answer["cursor"] = cursor.into();
    }
    if !excerpt.warnings.is_empty() {
        answer["warnings"] = excerpt.warnings.clone().into();
    }
    answer.to_string()
}
