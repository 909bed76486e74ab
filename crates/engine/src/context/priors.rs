//! Section priors learned from a collection: which headings answers stand under, beside those that a search finds anyway.
//!
//! A question has one vote for where its answer stands, which the chunks that hold it share, and one for where it was looked for: the
//! first [`FOUND`] chunks of its search. What a search knows already is thus no prior. Where questions are judged, the answer is the
//! chunks of the evidence, or of a document judged as a whole the chunk nearest to the question. Else sentences of the collection
//! stand for questions: the answer is the chunk of the sentence, and it is looked for in all documents but its own. They cannot tell what
//! is asked for, only which headings a search overrates.
//! Cost: a search for each question, two for a document judged as a whole; a pass over all chunks.

use std::collections::{BTreeMap, HashMap};
use std::ops::Range;

use cento_assembly::learned::{self, Asked};
use cento_assembly::policy::normalize_label;

use crate::context::candidates::{heading_path, section_heading};
use crate::context::target::Target;
use crate::error::Result;
use crate::ingest::calibration::middle_sentence;
use crate::retrieve::scope::Scope;
use crate::retrieve::search::{SearchRequest, Timings};
use crate::retrieve::searcher::Searcher;
use cento_collection::format::segment::Segment;
use cento_collection::keep::generation::Generation;

/// Chunks of a search that share its vote.
const FOUND: usize = 10;

/// The questions that priors are learned from.
#[derive(Debug, Clone, Copy)]
pub enum PriorQuestions<'a> {
    /// Questions whose answers are known.
    Judged(&'a [JudgedQuestion]),
    /// So many sentences of the collection, evenly spread.
    Sentences(usize),
}

/// A question and what answers it.
#[derive(Debug, Clone)]
pub struct JudgedQuestion {
    /// The question, in plain words.
    pub text: String,
    /// Ids of the documents that may answer; none: those of the search.
    pub scope: Option<Vec<String>>,
    /// What answers.
    pub gold: Vec<Gold>,
}

/// Something that answers a question.
#[derive(Debug, Clone)]
pub struct Gold {
    /// Id of a document or of a chunk.
    pub id: String,
    /// Bytes of the document; none for all of it.
    pub span: Option<Range<u64>>,
}

/// What was learned.
#[derive(Debug, Clone, PartialEq)]
pub struct LearnedPriors {
    /// Questions that had an answer in the collection.
    pub n_questions: usize,
    /// Labels that too few documents have for a prior.
    pub n_rare: usize,
    /// The others, those asked for more than expected first, equal ones by label.
    pub labels: Vec<LearnedLabel>,
}

/// What was learned of one label.
#[derive(Debug, Clone, PartialEq)]
pub struct LearnedLabel {
    /// The label, as policies compare it.
    pub label: String,
    /// Documents that have it.
    pub n_documents: usize,
    /// Chunks under it.
    pub n_chunks: u64,
    /// Questions answered there.
    pub hits: f64,
    /// Questions that were looked for there.
    pub expected: f64,
    /// The prior, in nats; see [`learned::nats`].
    pub nats: f64,
}

impl Searcher {
    /// Learns what the labels of the collection are worth; `done` hears how many questions were asked, and of how many. Searches are made
    /// as `search` says, its `query`, `k` and `min_score` do not apply. Nothing is asked where no label has enough documents.
    pub fn learn_priors(
        &self,
        search: &SearchRequest,
        questions: PriorQuestions<'_>,
        done: &mut dyn FnMut(usize, usize),
    ) -> Result<LearnedPriors> {
        let labels = Labels::read(&self.snapshot)?;
        let mut tally = Tally::new(self, &labels);
        if !labels.any_is_common() {
            return Ok(tally.learned());
        }
        match questions {
            PriorQuestions::Judged(questions) => {
                for (n, question) in questions.iter().enumerate() {
                    tally.judged(search, question)?;
                    done(n + 1, questions.len());
                }
            }
            PriorQuestions::Sentences(n_sentences) => {
                let rows = self.spread_rows(n_sentences);
                for (n, &row) in rows.iter().enumerate() {
                    tally.sentence(search, row)?;
                    done(n + 1, rows.len());
                }
            }
        }
        Ok(tally.learned())
    }

    /// `n` rows that answer, evenly spread; all of them where there are fewer.
    fn spread_rows(&self, n: usize) -> Vec<Row> {
        let live = |(at, segment): (usize, &Segment)| {
            let is_live = |row: &u32| segment.live.as_ref().is_none_or(|live| live.contains(*row));
            (0..segment.chunks.len() as u32).filter(is_live).map(|row| (at, row)).collect::<Vec<_>>()
        };
        let rows: Vec<Row> = self.snapshot.segments.iter().enumerate().flat_map(live).collect();
        let n = n.min(rows.len());
        (0..n).map(|at| rows[(2 * at + 1) * rows.len() / (2 * n)]).collect()
    }
}

/// The label of every row, and how many chunks of it each document has.
struct Labels {
    names: Vec<String>,
    /// By segment and row; of dead rows, any.
    of_row: Vec<Vec<u32>>,
    /// By label, then by document (segment and number there).
    chunks: Vec<BTreeMap<(usize, u32), u64>>,
}

impl Labels {
    fn read(snapshot: &Generation) -> Result<Self> {
        let (mut names, mut chunks) = (Vec::new(), Vec::<BTreeMap<_, u64>>::new());
        let mut of_name: HashMap<String, u32> = HashMap::new();
        let mut of_row = Vec::with_capacity(snapshot.segments.len());
        for (at, segment) in snapshot.segments.iter().enumerate() {
            let mut rows = vec![0; segment.chunks.len()];
            for number in segment.live_documents() {
                let document = segment.document(number)?;
                let title = segment.documents.text(document.title)?;
                let mut of_section: HashMap<u32, u32> = HashMap::new();
                for row in document.rows() {
                    let section = segment.chunks.record(row as usize)?.section;
                    let label = match of_section.get(&section) {
                        Some(&label) => label,
                        None => {
                            let path = heading_path(segment, &document, section)?;
                            let name = normalize_label(section_heading(&path, title));
                            let label = *of_name.entry(name).or_insert_with_key(|name| {
                                names.push(name.clone());
                                chunks.push(BTreeMap::new());
                                names.len() as u32 - 1
                            });
                            *of_section.entry(section).or_insert(label)
                        }
                    };
                    rows[row as usize] = label;
                    *chunks[label as usize].entry((at, number)).or_default() += 1;
                }
            }
            of_row.push(rows);
        }
        Ok(Self { names, of_row, chunks })
    }

    /// Whether a prior can be learned for the label: a heading that enough documents have.
    fn is_common(&self, label: usize) -> bool {
        !self.names[label].is_empty() && self.chunks[label].len() >= learned::DOCUMENTS_MIN
    }

    fn any_is_common(&self) -> bool {
        (0..self.names.len()).any(|label| self.is_common(label))
    }
}

/// A chunk: segment and row there.
type Row = (usize, u32);

/// Votes, as they come in.
struct Tally<'s> {
    searcher: &'s Searcher,
    labels: &'s Labels,
    n_questions: usize,
    /// By label, then by document (segment and number there).
    asked: BTreeMap<(u32, (usize, u32)), Asked>,
}

impl<'s> Tally<'s> {
    fn new(searcher: &'s Searcher, labels: &'s Labels) -> Self {
        Self { searcher, labels, n_questions: 0, asked: BTreeMap::new() }
    }

    /// A sentence of a chunk, looked for in other documents.
    fn sentence(&mut self, search: &SearchRequest, (segment, row): Row) -> Result<()> {
        let at = &self.searcher.snapshot.segments[segment];
        let Some(query) = middle_sentence(at, row)? else { return Ok(()) };
        let own = at.document(at.chunks.record(row as usize)?.document)?.rows();
        let request = SearchRequest { query, ..search.clone() };
        let others = self.allowed(&request)?.without(segment, own);
        self.count(&request, &others, &[vec![(segment, row)]])
    }

    /// A question with known answers; those outside its scope are none.
    fn judged(&mut self, search: &SearchRequest, question: &JudgedQuestion) -> Result<()> {
        let scope = question.scope.clone().or_else(|| search.scope.clone());
        let request = SearchRequest { query: question.text.clone(), scope, ..search.clone() };
        let allowed = self.allowed(&request)?;
        let mut answers = Vec::with_capacity(question.gold.len());
        for gold in &question.gold {
            let mut rows = self.rows(&request, gold)?;
            rows.retain(|&(segment, row)| allowed.rows(segment).contains(row));
            answers.push(rows);
        }
        answers.retain(|rows| !rows.is_empty());
        self.count(&request, &allowed, &answers)
    }

    /// The rows that hold what answers; of a document as a whole the one nearest to the question.
    fn rows(&self, request: &SearchRequest, gold: &Gold) -> Result<Vec<Row>> {
        if self.searcher.document_target(&gold.id, &gold.id)?.is_some_and(|target| target.rows.is_empty()) {
            return Ok(Vec::new()); // a document without text
        }
        let Target { segment, rows, .. } = self.searcher.target(&gold.id)?;
        let chunks = &self.searcher.snapshot.segments[segment].chunks;
        if let Some(span) = &gold.span {
            let mut holding = Vec::new();
            for row in rows {
                let chunk = chunks.record(row as usize)?;
                if chunk.start < span.end && span.start < chunk.end {
                    holding.push((segment, row));
                }
            }
            return Ok(holding);
        }
        if rows.len() == 1 {
            return Ok(vec![(segment, rows.start)]);
        }
        self.found(request, &Scope::only(&self.searcher.snapshot, segment, rows), 1)
    }

    fn allowed(&self, request: &SearchRequest) -> Result<Scope> {
        Ok(self.searcher.allowed(request)?.0.unwrap_or_else(|| Scope::all(&self.searcher.snapshot)))
    }

    fn found(&self, request: &SearchRequest, scope: &Scope, n: usize) -> Result<Vec<Row>> {
        let ranking = self.searcher.rank_within(request, Some(scope), &mut Timings::default())?;
        Ok(ranking.fused.iter().take(n).map(|hit| (hit.id.segment, hit.id.row)).collect())
    }

    /// Counts a question: its answers, each the rows that hold it, and where it is looked for.
    fn count(&mut self, request: &SearchRequest, scope: &Scope, answers: &[Vec<Row>]) -> Result<()> {
        if answers.is_empty() {
            return Ok(());
        }
        let found = self.found(request, scope, FOUND)?;
        if found.is_empty() {
            return Ok(());
        }
        self.n_questions += 1;
        for rows in answers {
            let vote = 1.0 / (answers.len() * rows.len()) as f64;
            rows.iter().try_for_each(|&row| self.of(row).map(|asked| asked.hits += vote))?;
        }
        let vote = 1.0 / found.len() as f64;
        found.into_iter().try_for_each(|row| self.of(row).map(|asked| asked.expected += vote))
    }

    /// What was asked of the document of a row under the row's label.
    fn of(&mut self, (segment, row): Row) -> Result<&mut Asked> {
        let document = self.searcher.snapshot.segments[segment].chunks.record(row as usize)?.document;
        let label = self.labels.of_row[segment][row as usize];
        Ok(self.asked.entry((label, (segment, document))).or_default())
    }

    fn learned(&self) -> LearnedPriors {
        let mut labels = Vec::new();
        for (number, documents) in self.labels.chunks.iter().enumerate().filter(|(n, _)| self.labels.is_common(*n)) {
            let asked = |document: &(usize, u32)| self.asked.get(&(number as u32, *document)).copied();
            let asked: Vec<Asked> = documents.keys().map(|document| asked(document).unwrap_or_default()).collect();
            labels.extend(learned::nats(&asked).map(|nats| LearnedLabel {
                label: self.labels.names[number].clone(),
                n_documents: documents.len(),
                n_chunks: documents.values().sum(),
                hits: asked.iter().map(|document| document.hits).sum(),
                expected: asked.iter().map(|document| document.expected).sum(),
                nats,
            }));
        }
        labels.sort_by(|a, b| b.nats.total_cmp(&a.nats).then_with(|| a.label.cmp(&b.label)));
        LearnedPriors { n_questions: self.n_questions, n_rare: self.labels.names.len() - labels.len(), labels }
    }
}
