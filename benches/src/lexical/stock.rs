//! tantivy as its `basic_search` example has it, and the ways to ask it.

use std::collections::HashSet;
use std::fmt;

use anyhow::Result;
use serde::Serialize;
use tantivy::collector::TopDocs;
use tantivy::query::{BooleanQuery, Occur, PhraseQuery, Query, QueryParser, TermQuery};
use tantivy::schema::{FAST, Field, IndexRecordOption, STORED, Schema, TextFieldIndexing, TextOptions};
use tantivy::tokenizer::TextAnalyzer;
use tantivy::{Index, IndexWriter, Searcher, TantivyDocument, Term};

use super::analysis::{Pipeline, terms};
use super::set::{Document, Set};
use super::{DEPTH, Ranked};

/// Memory for the writer, in bytes, as in tantivy's example.
const WRITER_BYTES: usize = 50_000_000;

/// Name under which tantivy knows the analysis.
const ANALYZER: &str = "walk";

/// The field that holds the place of a document in the corpus.
const ROW: &str = "row";

/// The characters that the run behind quickwit-oss/tantivy#2455 deletes from its queries, without a space in their
/// place.
const STRIPPED: [char; 17] = ['+', '-', '!', '(', ')', '{', '}', '[', ']', '^', '"', '~', '*', '?', ':', '\\', '<'];

/// Which texts are indexed as what.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Layout {
    /// A field for the title and one for the text: a word scores in each, and the two are added.
    TitleAndBody,
    /// One field, `title text`.
    TitleText,
    /// One field, the title and the text with nothing between them, as in quickwit-oss/tantivy#2455.
    Glued,
}

/// How a query is read.
#[derive(Debug, Clone, Copy)]
pub(super) enum Reading {
    /// By tantivy's query parser, leniently.
    Syntax,
    /// By tantivy's query parser, after [`STRIPPED`] characters are gone.
    Stripped,
    /// No character is an operator, but a word of several tokens (`IL-6`) is a phrase and a word that is there twice
    /// counts once, as the parser has it.
    Phrases,
    /// As before, but every token is a term of its own.
    Terms,
    /// Terms that count as often as the query has them.
    AllTerms,
}

/// What tantivy's query parser makes of queries that nobody wrote for it. Numbers of queries.
#[derive(Debug, Default, Serialize)]
pub struct Syntax {
    /// The strict parser refuses them.
    pub n_refused: usize,
    /// The lenient parser leaves their end unread, after `main()` for one.
    pub n_cut_short: usize,
    /// A part of them is a phrase.
    pub n_phrases: usize,
    /// A part of them is required or excluded.
    pub n_operators: usize,
    /// A word is there more than once, and counts once.
    pub n_repeated: usize,
}

/// An index in memory and what asks it.
pub(super) struct Stock {
    searcher: Searcher,
    parser: QueryParser,
    fields: Vec<Field>,
    analyzer: TextAnalyzer,
}

impl Stock {
    pub(super) fn build(set: &Set, layout: Layout, pipeline: Pipeline) -> Result<Self> {
        let indexing = TextFieldIndexing::default()
            .set_tokenizer(ANALYZER)
            .set_index_option(IndexRecordOption::WithFreqsAndPositions);
        let text = TextOptions::default().set_indexing_options(indexing);
        let mut schema = Schema::builder();
        let row = schema.add_u64_field(ROW, FAST);
        let fields: Vec<Field> = match layout {
            Layout::TitleAndBody => {
                vec![schema.add_text_field("title", text.clone() | STORED), schema.add_text_field("body", text)]
            }
            Layout::TitleText | Layout::Glued => vec![schema.add_text_field("body", text)],
        };
        let index = Index::create_in_ram(schema.build());
        index.tokenizers().register(ANALYZER, pipeline.analyzer());
        let mut writer: IndexWriter = index.writer_with_num_threads(1, WRITER_BYTES)?;
        for (at, document) in (0u64..).zip(&set.documents) {
            let mut added = TantivyDocument::new();
            added.add_u64(row, at);
            for (&field, text) in fields.iter().zip(layout.texts(document)) {
                added.add_text(field, text);
            }
            writer.add_document(added)?;
        }
        writer.commit()?;
        let parser = QueryParser::for_index(&index, fields.clone());
        Ok(Self { searcher: index.reader()?.searcher(), parser, fields, analyzer: pipeline.analyzer() })
    }

    /// A ranking for each query, in the order of the topics.
    pub(super) fn rank(mut self, set: &Set, reading: Reading) -> Result<Vec<Ranked>> {
        let segments = self.searcher.segment_readers();
        let rows = segments.iter().map(|segment| segment.fast_fields().u64(ROW)).collect::<Result<Vec<_>, _>>()?;
        let mut rankings = Vec::with_capacity(set.topics.len());
        for topic in &set.topics {
            let query = self.query(&topic.text, reading);
            let top = self.searcher.search(&query, &TopDocs::with_limit(DEPTH).order_by_score())?;
            let row = |segment: u32, doc| rows[segment as usize].first(doc).expect("every document has its row");
            let ranked = top
                .into_iter()
                .map(|(score, at)| (row(at.segment_ord, at.doc_id) as usize, f64::from(score)))
                .collect();
            rankings.push(ranked);
        }
        Ok(rankings)
    }

    /// Counts what the parser makes of the queries of a set.
    pub(super) fn syntax(&self, set: &Set) -> Syntax {
        let mut counts = Syntax::default();
        for text in set.topics.iter().map(|topic| topic.text.as_str()) {
            let (query, errors) = self.parser.parse_query_lenient(text);
            let cut_short = errors.iter().any(|error| error.to_string().contains("unparsed end of query"));
            counts.n_cut_short += usize::from(cut_short);
            counts.n_refused += usize::from(self.parser.parse_query(text).is_err());
            counts.n_phrases += usize::from(any(&*query, &|part| part.is::<PhraseQuery>()));
            counts.n_operators += usize::from(any(&*query, &|part| {
                let clauses = part.downcast_ref::<BooleanQuery>().map_or(&[][..], BooleanQuery::clauses);
                clauses.iter().any(|(occur, _)| *occur != Occur::Should)
            }));
            counts.n_repeated += usize::from(distinct(text).count() < text.split_whitespace().count());
        }
        counts
    }

    pub(super) fn query(&mut self, text: &str, reading: Reading) -> Box<dyn Query> {
        let groups: Vec<Vec<String>> = match reading {
            Reading::Syntax => return self.parser.parse_query_lenient(text).0,
            Reading::Stripped => {
                let text: String = text.chars().filter(|c| !STRIPPED.contains(c)).collect();
                return self.parser.parse_query_lenient(&text).0;
            }
            Reading::Phrases => distinct(text).map(|word| terms(&mut self.analyzer, word)).collect(),
            Reading::Terms => {
                distinct(text).flat_map(|word| terms(&mut self.analyzer, word)).map(|term| vec![term]).collect()
            }
            Reading::AllTerms => terms(&mut self.analyzer, text).into_iter().map(|term| vec![term]).collect(),
        };
        let groups = groups.iter().filter(|group| !group.is_empty());
        Box::new(BooleanQuery::union(
            groups.flat_map(|group| self.fields.iter().map(|&field| in_field(field, group))).collect(),
        ))
    }
}

impl Layout {
    /// The texts of a document, one a field.
    fn texts(self, document: &Document) -> Vec<String> {
        match self {
            Self::TitleAndBody => vec![document.title.clone(), document.text.clone()],
            Self::TitleText => vec![document.whole()],
            Self::Glued => vec![format!("{}{}", document.title, document.text)],
        }
    }
}

/// A term, or a phrase of several.
fn in_field(field: Field, group: &[String]) -> Box<dyn Query> {
    let mut terms: Vec<Term> = group.iter().map(|term| Term::from_field_text(field, term)).collect();
    match terms.len() {
        1 => Box::new(TermQuery::new(terms.remove(0), IndexRecordOption::WithFreqs)),
        _ => Box::new(PhraseQuery::new(terms)),
    }
}

/// The words between blanks, each where it is first.
fn distinct(text: &str) -> impl Iterator<Item = &str> {
    let mut seen = HashSet::new();
    text.split_whitespace().filter(move |word| seen.insert(*word))
}

/// Whether any part of a query, or the whole, is as asked.
fn any(query: &dyn Query, is: &dyn Fn(&dyn Query) -> bool) -> bool {
    let parts = query.downcast_ref::<BooleanQuery>().map_or(&[][..], BooleanQuery::clauses);
    is(query) || parts.iter().any(|(_, part)| any(&**part, is))
}

impl fmt::Display for Syntax {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { n_refused, n_cut_short, n_phrases, n_operators, n_repeated } = self;
        write!(
            f,
            "tantivy's parser refuses {n_refused}, leniently drops the end of {n_cut_short}, finds phrases in {n_phrases}, a part required \
             or excluded in {n_operators}; {n_repeated} repeat a word"
        )
    }
}
