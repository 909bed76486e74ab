//! Scope: the documents that may answer a query, by their ids or by a filter, or their chunks by where they stand.
//! Applied before any arm takes its best, never to a finished ranking.

use cento_lexical::Unit;
use schemars::JsonSchema;
use serde::Serialize;

use crate::cancel::Cancel;
use crate::error::Result;
use crate::retrieve::quoted::{Phrases, Quoted};
use crate::retrieve::request::ChunkSearch;
use crate::retrieve::searcher::Searcher;
use crate::source::filter::Filter;
use crate::source::scope::{self, Scope, Wanted};

/// A filter and how many documents it lets through.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Filtered {
    /// The filter as written.
    pub expression: String,
    /// Documents it admits.
    pub n_admitted: u64,
    /// Documents there are.
    pub n_documents: u64,
    /// Chunks it admits, where it asks for their place in the file: then documents are admitted that have such.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub n_chunks: Option<u64>,
}

/// The beginning of the warning that a quotation is not required word by word.
pub const NOT_REQUIRED: &str = "no phrase is required";

/// The chunks that may answer a request.
#[derive(Debug)]
pub(crate) struct Allowed {
    /// `None` for all.
    pub(crate) scope: Option<Scope>,
    /// The chunks that alone may be delivered, beside what is found too; `None` for all.
    pub(crate) bounds: Option<Scope>,
    pub(crate) filtered: Option<Filtered>,
    /// Warnings about phrases, to whoever asks.
    pub(crate) warnings: Vec<String>,
}

/// Phrases that whatever answers must have.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Required {
    /// The phrases, in the order of the question.
    pub phrases: Vec<String>,
    /// Warnings about quotations that are not required, to whoever asks.
    pub warnings: Vec<String>,
}

impl Searcher {
    /// The number of documents that a filter lets through.
    pub fn filtered(&self, filter: &Filter) -> Result<Filtered> {
        Ok(self.filter_scope(filter)?.1)
    }

    /// The scope of a filter.
    pub(crate) fn filter_scope(&self, filter: &Filter) -> Result<(Scope, Filtered)> {
        self.source.schema()?.check(filter)?;
        let scoped = self.source.scope(Wanted::Filter(filter))?;
        let filtered = Filtered {
            expression: filter.as_str().to_owned(),
            n_admitted: scoped.n_documents,
            n_documents: self.source.describe().n_documents,
            n_chunks: filter.is_of_chunks().then(|| scoped.scope.n_chunks()),
        };
        Ok((scoped.scope, filtered))
    }

    /// The scope of a list of documents, by their ids or, for records of JSONL that one file has, by the records' own.
    /// An id that the collection does not hold is an error that names the nearest.
    pub(crate) fn scope(&self, documents: &[String]) -> Result<Scope> {
        let mut scoped = self.source.scope(Wanted::Documents(documents))?;
        if !scoped.unknown.is_empty() {
            let records = self.of_records(&scoped.unknown)?;
            let ids = documents.iter().map(|id| records.get(id).unwrap_or(id).clone());
            scoped = self.source.scope(Wanted::Documents(&ids.collect::<Vec<_>>()))?;
        }
        match scoped.unknown.first() {
            Some(unknown) => Err(self.unknown(unknown)?),
            None => Ok(scoped.scope),
        }
    }

    /// The chunks that a request's scope, filter and phrases let answer.
    pub(crate) fn allowed(&self, request: &ChunkSearch) -> Result<Allowed> {
        let scope = request.scope.as_ref().map(|documents| self.scope(documents)).transpose()?;
        let (scope, filtered) = match request.filter.as_ref().map(|filter| self.filter_scope(filter)).transpose()? {
            Some((admitted, filtered)) => (Some(admitted.within(scope.as_ref())), Some(filtered)),
            None => (scope, None),
        };
        let is_of_chunks = request.filter.as_ref().is_some_and(Filter::is_of_chunks);
        let bounds = scope.as_ref().filter(|_| is_of_chunks).cloned();
        let Required { phrases, warnings } = self.required(request);
        let Some((having, absent)) = self.having(&phrases, Unit::Row, &request.cancel)? else {
            return Ok(Allowed { scope, bounds, filtered, warnings });
        };
        let (scope, warnings) = (Some(having.within(scope.as_ref())), absent.into_iter().collect());
        Ok(Allowed { scope, bounds, filtered, warnings })
    }

    /// The phrases that a request asks of what answers.
    pub(crate) fn required(&self, request: &ChunkSearch) -> Required {
        match &request.required {
            Some(phrases) => Required { phrases: phrases.clone(), warnings: Vec::new() },
            None => self.quoted(&request.query, request.phrases),
        }
    }

    /// The phrases that a question asks of what answers.
    pub fn quoted(&self, question: &str, phrases: Phrases) -> Required {
        if phrases == Phrases::Words {
            return Required::default();
        }
        let Quoted { phrases: quoted, is_sentence } = Quoted::read(question, &self.analyzer);
        if phrases == Phrases::Required || !is_sentence {
            return Required { phrases: quoted, warnings: Vec::new() };
        }
        let shown: Vec<String> = quoted.iter().map(|phrase| format!("{phrase:?}")).collect();
        let warning = format!("{NOT_REQUIRED}: {} ranks by its words, as it stands in a sentence", shown.join(", "));
        Required { phrases: Vec::new(), warnings: vec![warning] }
    }

    /// The scope of some phrases, and what to tell whoever asks where no document has them; nothing where there are no
    /// phrases.
    pub(crate) fn having(
        &self,
        phrases: &[String],
        unit: Unit,
        cancel: &Cancel,
    ) -> Result<Option<(Scope, Option<String>)>> {
        if phrases.is_empty() {
            return Ok(None);
        }
        let scoped = self.source.scope(Wanted::Phrases(scope::Phrases { phrases, unit, cancel }))?;
        let shown: Vec<String> = phrases.iter().map(|phrase| format!("{phrase:?}")).collect();
        let absent = (scoped.n_documents == 0).then(|| format!("no document has {}", shown.join(" and ")));
        Ok(Some((scoped.scope, absent)))
    }
}
