//! The answers of the tools, one text each; made on an engine thread.

use std::collections::BTreeMap;
use std::path::PathBuf;

use cento_engine::api::{
    self, Budget, ContextRequest, DEFAULT_BUDGET_TOKENS, Fault, GetRequest, Request, SearchRequest,
};
use cento_engine::{CANDIDATE_DEPTH, Cancel, Error, Excerpt, Hit, counted};
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

/// Contexts that are tried to find the shortest one.
const TRIES_MAX: usize = 8;

/// The scheme of addresses of passages, which name their collection.
const SCHEME: &str = "cento://";

/// A call of a tool on an engine thread.
pub(super) struct Call<'a> {
    pub(super) app: &'a App,
    pub(super) collections: &'a BTreeMap<String, PathBuf>,
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
        let (filter, rerank) = (tool.filter.clone(), self.app.service.default_rerank());
        let request = SearchRequest { k, filter, rerank, ..SearchRequest::new(&*tool.query) };
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
            let stale = if changed > 0 {
                format!("; {} changed since", counted(changed as u64, "file"))
            } else {
                String::new()
            };
            format!("\n\n(collection {collection}, generation {generation}{stale})")
        };
        // Where two texts meet, a token may be cut otherwise than in either.
        let signature = cap.count(&signed(u64::MAX));
        let mut left = cap.tokens.saturating_sub(signature);
        loop {
            let request = ContextRequest {
                budget: Budget::Tokens(left),
                tokenizer: cap.name().to_owned(),
                filter: tool.filter.clone(),
                rerank: self.app.service.default_rerank(),
                ..ContextRequest::new(&*tool.question)
            };
            let asked = self.app.service.ask(collection, &request, None, self.cancel, |asked| {
                let context = asked.context(left)?;
                Ok((asked.answer(&context)?, context.trace.manifest.least_budget))
            });
            let (answer, least) = asked.map_err(|error| match needed(&error) {
                Some(needed) => self.too_small(collection, &request, needed, &cap, signature),
                None => error.into(),
            })?;
            let warnings: String = answer.warnings.iter().map(|warning| format!("\n(warning: {warning})")).collect();
            let told = match least.filter(|_| answer.citations.is_empty()) {
                // The least budget that is told must hold what stands behind the context too.
                Some(least) => {
                    let whole = least + cap.count(&format!("{}{warnings}", signed(u64::MAX)));
                    answer.context.replace(&least.to_string(), &whole.to_string())
                }
                None => answer.context,
            };
            let text = format!("{told}{}", signed(answer.generation));
            let warned = format!("{text}{warnings}");
            if cap.holds(&warned) {
                return Ok(warned);
            }
            let over = cap.count(&warned) - cap.tokens;
            left = left.checked_sub(over).ok_or_else(|| cap.too_small("budget_tokens"))?;
        }
    }

    /// The refusal of a context whose budget was too small, with the tokens of the shortest answer and its signature.
    /// The shortest answer names a number, so that one of the tokens that the engine asks for may want a few more.
    fn too_small(
        &self,
        collection: &str,
        request: &ContextRequest,
        mut least: usize,
        cap: &Cap,
        signature: usize,
    ) -> Refusal {
        for _ in 0..TRIES_MAX {
            let request = ContextRequest { budget: Budget::Tokens(least), ..request.clone() };
            match self.app.service.context(collection, &request, self.cancel) {
                Ok(_) => break,
                Err(error) => match needed(&error) {
                    Some(more) => least = more.max(least + 1),
                    None => return error.into(),
                },
            }
        }
        let whole = (least + signature).max(cap.tokens + 1);
        let message = format!("budget_tokens: {} is too small: the shortest answer needs {whole}", cap.tokens);
        let mut refusal = Refusal::value("budget_tokens", message);
        "budget_too_small".clone_into(&mut refusal.body.code);
        refusal
    }

    fn status(&self, _: StatusTool) -> Result<String, Refusal> {
        let cap = Cap::new(None, TOKENS, self.app.options.tool_tokens)?;
        let mut collections = Vec::new();
        for name in self.collections.keys() {
            let one = match self.app.service.status(name.as_str(), self.cancel) {
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
        let n_more = self.collections.len() - collections.len();
        let answer_tokens_max = self.app.options.tool_tokens;
        json_of(&json!({ "collections": collections, "not_shown": n_more, "answer_tokens_max": answer_tokens_max }))
    }

    fn changed(&self, collection: &str) -> Result<usize, Refusal> {
        Ok(self.app.service.changed(collection, self.cancel)?)
    }

    fn is_alone(&self) -> bool {
        self.collections.len() == 1
    }

    /// The collection that is asked: the one that is named, else the only one there is.
    fn collection<'c>(&'c self, named: Option<&'c str>) -> Result<&'c str, Refusal> {
        let mut known = self.collections.keys();
        match (named, known.next(), known.next()) {
            (Some(named), ..) => Ok(named),
            (None, Some(only), None) => Ok(only),
            (None, None, _) => Err(Refusal::none_yet()),
            (None, Some(_), Some(_)) => {
                let names: Vec<&str> = self.collections.keys().map(String::as_str).collect();
                let message = format!("collection: there are {}; say which one is asked", names.join(", "));
                Err(Refusal::value("collection", message))
            }
        }
    }
}

fn read<T: Request>(arguments: &Value) -> Result<T, Refusal> {
    Ok(api::parse(json_of(arguments)?.as_bytes())?)
}

/// The tokens that a context needs, if its budget was too small.
fn needed(error: &Error) -> Option<usize> {
    let fault = Some(error).filter(|error| error.code() == "budget_too_small").map(Fault::from);
    fault.and_then(|fault| fault.data?.get("needed")?.as_u64()).and_then(|needed| needed.try_into().ok())
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
