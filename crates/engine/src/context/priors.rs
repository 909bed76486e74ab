//! Section priors learned from a collection: which headings answers stand under, beside those that a search finds
//! anyway.
//!
//! A question has one vote for where its answer stands, which the chunks that hold it share, and one for where it was
//! looked for: the first [`FOUND`] chunks of its search. What a search knows already is thus no prior. Where questions
//! are judged, the answer is the chunks of the evidence, or of a document judged as a whole the chunk nearest to the
//! question. Else sentences of the collection stand for questions: the answer is the chunk of the sentence, and it is
//! looked for in all documents but its own. They cannot tell what is asked for, only which headings a search overrates.
//! Cost: a search for each question, two for a document judged as a whole; a pass over all chunks.

use std::collections::{BTreeMap, HashMap};
use std::ops::Range;

use cento_assembly::learned::{self, Asked};
use cento_assembly::policy::normalize_label;

use crate::error::Result;
use crate::ingest::calibration::middle_sentence;
use crate::retrieve::quoted::Phrases;
use crate::retrieve::request::ChunkSearch;
use crate::retrieve::search::Timings;
use crate::retrieve::searcher::Searcher;
use crate::source::refs::{ChunkRef, Chunks};
use crate::source::scope::{Scope, Wanted};
use crate::source::seam::{Labelled, Source};

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
    /// The answers.
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

/// Learned priors.
#[derive(Debug, Clone, PartialEq)]
pub struct LearnedPriors {
    /// Questions that had an answer in the collection.
    pub n_questions: usize,
    /// Labels that too few documents have for a prior.
    pub n_rare: usize,
    /// The others, those asked for more than expected first, equal ones by label.
    pub labels: Vec<LearnedLabel>,
}

/// A label and its learned prior.
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
    /// Learns what the labels of the collection are worth; `done` hears how many questions were asked, and of how many.
    /// Searches are made as `search` says, its `query`, `k` and `min_score` do not apply. Nothing is asked where no
    /// label has enough documents.
    pub fn learn_priors(
        &self,
        search: &ChunkSearch,
        questions: PriorQuestions<'_>,
        done: &mut dyn FnMut(usize, usize),
    ) -> Result<LearnedPriors> {
        let labels = Labels::read(&*self.source)?;
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
                let chunks = self.spread(n_sentences)?;
                for (n, &chunk) in chunks.iter().enumerate() {
                    tally.sentence(search, chunk)?;
                    done(n + 1, chunks.len());
                }
            }
        }
        Ok(tally.learned())
    }

    /// `n` chunks that answer, evenly spread; all of them where there are fewer.
    fn spread(&self, n: usize) -> Result<Vec<ChunkRef>> {
        let n_rows = self.source.describe().n_rows;
        let n = (n as u64).min(n_rows);
        let positions: Vec<u64> = (0..n).map(|at| (2 * at + 1) * n_rows / (2 * n)).collect();
        self.source.at(&positions)
    }
}

/// Chunks of a document that follow each other under one label.
struct Run {
    document: Chunks,
    chunks: Chunks,
    label: u32,
}

/// The label of every chunk, and how many chunks of it each document has. A document is known by its first chunk.
struct Labels {
    names: Vec<String>,
    /// By first chunk.
    runs: BTreeMap<ChunkRef, Run>,
    /// By label, then by document.
    chunks: Vec<BTreeMap<ChunkRef, u64>>,
}

impl Labels {
    fn read(source: &dyn Source) -> Result<Self> {
        let (mut names, mut counts) = (Vec::new(), Vec::<BTreeMap<_, u64>>::new());
        let mut of_name: HashMap<String, u32> = HashMap::new();
        let mut runs = BTreeMap::new();
        for Labelled { document, chunks, heading } in source.labels()? {
            let label = *of_name.entry(normalize_label(&heading)).or_insert_with_key(|name| {
                names.push(name.clone());
                counts.push(BTreeMap::new());
                names.len() as u32 - 1
            });
            *counts[label as usize].entry(document.start()).or_default() += chunks.len() as u64;
            runs.insert(chunks.start(), Run { document, chunks, label });
        }
        Ok(Self { names, runs, chunks: counts })
    }

    /// The run that a chunk is in; every live chunk is in one.
    fn run(&self, chunk: ChunkRef) -> Option<&Run> {
        let (_, run) = self.runs.range(..=chunk).next_back()?;
        Some(run).filter(|run| run.chunks.contains(chunk))
    }

    /// True if a prior can be learned for the label: a heading that enough documents have.
    fn is_common(&self, label: usize) -> bool {
        !self.names[label].is_empty() && self.chunks[label].len() >= learned::DOCUMENTS_MIN
    }

    fn any_is_common(&self) -> bool {
        (0..self.names.len()).any(|label| self.is_common(label))
    }
}

/// Votes, as they come in.
struct Tally<'s> {
    searcher: &'s Searcher,
    labels: &'s Labels,
    n_questions: usize,
    /// By label, then by document.
    asked: BTreeMap<(u32, ChunkRef), Asked>,
}

impl<'s> Tally<'s> {
    fn new(searcher: &'s Searcher, labels: &'s Labels) -> Self {
        Self { searcher, labels, n_questions: 0, asked: BTreeMap::new() }
    }

    /// A sentence of a chunk, looked for in other documents.
    fn sentence(&mut self, search: &ChunkSearch, chunk: ChunkRef) -> Result<()> {
        let read = self.searcher.source.chunks(&[chunk])?;
        let Some(query) = read.first().and_then(|candidate| middle_sentence(&candidate.text)) else { return Ok(()) };
        let Some(run) = self.labels.run(chunk) else { return Ok(()) };
        let request = ChunkSearch { query, phrases: Phrases::Words, ..search.clone() };
        let others = self.allowed(&request)?.without(&run.document);
        self.count(&request, &others, &[vec![chunk]])
    }

    /// A question with known answers; those outside its scope are none.
    fn judged(&mut self, search: &ChunkSearch, question: &JudgedQuestion) -> Result<()> {
        let scope = question.scope.clone().or_else(|| search.scope.clone());
        let request = ChunkSearch { query: question.text.clone(), scope, ..search.clone() };
        let allowed = self.allowed(&request)?;
        let mut answers = Vec::with_capacity(question.gold.len());
        for gold in &question.gold {
            let mut chunks = self.chunks(&request, gold)?;
            chunks.retain(|&chunk| allowed.contains(chunk));
            answers.push(chunks);
        }
        answers.retain(|chunks| !chunks.is_empty());
        self.count(&request, &allowed, &answers)
    }

    /// The chunks that hold what answers; of a document as a whole the one nearest to the question.
    fn chunks(&self, request: &ChunkSearch, gold: &Gold) -> Result<Vec<ChunkRef>> {
        let source = &self.searcher.source;
        let found = source.find(&[(gold.id.clone(), None)])?;
        if found.iter().flatten().any(|named| named.chunks.is_empty()) {
            return Ok(Vec::new()); // a document without text
        }
        let named = self.searcher.target(&gold.id)?.chunks;
        let chunks: Vec<ChunkRef> = named.iter().collect();
        if let Some(span) = &gold.span {
            let read = source.chunks(&chunks)?;
            let holds = |span: &Range<u64>, own: &Range<u64>| own.start < span.end && span.start < own.end;
            let holding = read.iter().zip(chunks).filter(|(candidate, _)| holds(span, &candidate.span));
            return Ok(holding.map(|(_, chunk)| chunk).collect());
        }
        if chunks.len() == 1 {
            return Ok(chunks);
        }
        self.found(request, &source.scope(Wanted::All)?.scope.only(&named), 1)
    }

    fn allowed(&self, request: &ChunkSearch) -> Result<Scope> {
        match self.searcher.allowed(request)?.scope {
            Some(scope) => Ok(scope),
            None => Ok(self.searcher.source.scope(Wanted::All)?.scope),
        }
    }

    fn found(&self, request: &ChunkSearch, scope: &Scope, n: usize) -> Result<Vec<ChunkRef>> {
        let ranking = self.searcher.rank_within(request, Some(scope), n, &mut Timings::default())?;
        Ok(ranking.fused.iter().map(|hit| hit.id.chunk).collect())
    }

    /// Counts a question: its answers, each the rows that hold it, and where it is looked for.
    fn count(&mut self, request: &ChunkSearch, scope: &Scope, answers: &[Vec<ChunkRef>]) -> Result<()> {
        if answers.is_empty() {
            return Ok(());
        }
        let found = self.found(request, scope, FOUND)?;
        if found.is_empty() {
            return Ok(());
        }
        self.n_questions += 1;
        for chunks in answers {
            let vote = 1.0 / (answers.len() * chunks.len()) as f64;
            chunks.iter().for_each(|&chunk| self.vote(chunk, |asked| asked.hits += vote));
        }
        let vote = 1.0 / found.len() as f64;
        found.into_iter().for_each(|chunk| self.vote(chunk, |asked| asked.expected += vote));
        Ok(())
    }

    /// Votes for the document of a chunk under the chunk's label.
    fn vote(&mut self, chunk: ChunkRef, add: impl FnOnce(&mut Asked)) {
        if let Some(run) = self.labels.run(chunk) {
            add(self.asked.entry((run.label, run.document.start())).or_default());
        }
    }

    fn learned(&self) -> LearnedPriors {
        let mut labels = Vec::new();
        for (number, documents) in self.labels.chunks.iter().enumerate().filter(|(n, _)| self.labels.is_common(*n)) {
            let asked = |document: &ChunkRef| self.asked.get(&(number as u32, *document)).copied();
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
