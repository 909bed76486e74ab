//! Context: a query's pool of candidates, and what is assembled from it.

use std::borrow::Cow;
use std::cell::{OnceCell, RefCell};
use std::collections::{HashMap, HashSet};
use std::rc::Rc;
use std::time::{Duration, Instant};

use cento_assembly::policy::{Relaxed, SecondSearch};
use cento_assembly::seal::Budget;
use cento_assembly::trace::Outcome;
use cento_assembly::{
    self as assembly, Beside, Candidate, Context, Curve, Cut, Evidence, Neighborhood, Reading, Request, Strategy,
};
use cento_corpus as corpus;

use crate::context::ahead::Ahead;
use crate::context::candidates::{self, Found};
use crate::context::endpoint;
use crate::context::further::{self, FurtherFound};
use crate::context::gaps::Repaired;
use crate::context::labels;
use crate::context::request::{self, ContextSettings};
use crate::context::seal::Retrieval;
use crate::context::tokens::BudgetTokenizer;
use crate::error::{Error, Result};
use crate::limits::{self, BUDGET_TOKENS_MAX, CANDIDATES_MAX, NEIGHBORS_MAX};
use crate::plural::counted;
use crate::retrieve::likelihood::words_share;
use crate::retrieve::request::{ChunkSearch, Mode};
use crate::retrieve::rerank::reading::Reranking;
use crate::retrieve::search::{DENSE, LEXICAL, Timings};
use crate::retrieve::searcher::Searcher;
use crate::source::refs::{Around, ChunkRef};
use crate::source::scope::Scope;
use crate::source::seam::Scan;

/// Where the time of one context went.
#[derive(Debug, Clone, Copy, Default)]
pub struct ContextTimings {
    /// Up to the fused candidates, and reading what stands beside them.
    pub search: Timings,
    /// Finding and reading the chunks that stand beside those found: its share of `search.texts`.
    pub beside: Duration,
    /// Selecting and packing, budget tokens counted.
    pub assemble: Duration,
}

impl Searcher {
    /// The context that answers a question within its budget, cited to the byte, with the trace of every candidate. Of
    /// the search, `k` and `min_score` do not apply. With a policy that has a `cache`, the same request is answered
    /// from memory.
    pub fn context(&self, search: &ChunkSearch, request: &ContextSettings<'_>) -> Result<Context> {
        self.context_timed(search, request).map(|(context, _)| context)
    }

    /// The context, and where the time went: nowhere, if it was kept.
    pub fn context_timed(
        &self,
        search: &ChunkSearch,
        request: &ContextSettings<'_>,
    ) -> Result<(Context, ContextTimings)> {
        if let Some(context) = self.kept(search, &[], request) {
            return Ok((context, ContextTimings::default()));
        }
        let (pool, mut search) = self.pool_timed(search)?;
        let beside = pool.prepare(request)?;
        search.texts += beside;
        let start = Instant::now();
        let context = pool.context(request)?;
        Ok((context, ContextTimings { search, beside, assemble: start.elapsed() }))
    }

    /// The context of an earlier request, if the policy keeps contexts and this one is still kept; never one that a
    /// language model has a part in.
    fn kept(&self, search: &ChunkSearch, removed: &[String], request: &ContextSettings<'_>) -> Option<Context> {
        request.policy.cache.filter(|_| request.endpoint.is_none())?;
        self.resolved.find(&request::key(search, removed, request), Instant::now())
    }

    /// Results of a query, from which contexts of any budget and strategy can be assembled.
    pub fn pool(&self, search: &ChunkSearch) -> Result<Pool<'_>> {
        self.pool_timed(search).map(|(pool, _)| pool)
    }

    /// Results of a query, and where the time went.
    pub fn pool_timed(&self, search: &ChunkSearch) -> Result<(Pool<'_>, Timings)> {
        let mut timings = Timings::default();
        let ranking = self.rank(search, &mut timings)?;
        search.cancel.check()?;
        let start = Instant::now();
        let mut places = HashMap::with_capacity(ranking.fused.len());
        let found = self.candidates(ranking.fused.into_iter().map(Found::from).collect(), &mut places)?;
        let pool = Pool {
            searcher: self,
            search: search.clone(),
            warnings: ranking.warnings,
            bounds: ranking.bounds,
            found,
            places: RefCell::new(places),
            further: RefCell::default(),
            offers: RefCell::default(),
            removed: Vec::new(),
            evidence: OnceCell::new(),
            counts: RefCell::default(),
            vectors: RefCell::default(),
            idfs: RefCell::default(),
            vectors_ahead: Ahead::default(),
            texts_ahead: Ahead::default(),
            repaired: RefCell::default(),
            retrieval: OnceCell::new(),
        };
        timings.texts = start.elapsed();
        Ok((pool, timings))
    }
}

/// The candidates of one query.
#[derive(Debug)]
pub struct Pool<'s> {
    pub(super) searcher: &'s Searcher,
    pub(super) search: ChunkSearch,
    /// Warnings about the question.
    warnings: Vec<String>,
    /// The chunks that alone may stand beside what was found; none for all.
    bounds: Option<Scope>,
    /// Chunks found.
    found: Vec<Candidate>,
    /// Chunks found, and those offered beside them, by id.
    pub(super) places: RefCell<HashMap<String, ChunkRef>>,
    /// Results of further questions, by question.
    further: RefCell<HashMap<String, Rc<FurtherFound>>>,
    /// Candidates of the requests so far, that another request may be the same.
    offers: RefCell<Vec<Rc<Offer>>>,
    counts: RefCell<Counts>,
    /// Vectors that were asked for, by id.
    pub(super) vectors: RefCell<HashMap<String, Rc<[f32]>>>,
    /// The idf of terms that were asked for.
    pub(super) idfs: RefCell<HashMap<String, f64>>,
    /// Ids of chunks whose vectors, and texts whose terms, come along with the next that are asked for.
    pub(super) vectors_ahead: Ahead<String>,
    pub(super) texts_ahead: Ahead<String>,
    /// The collection's evidence for the question; none where that cannot be told.
    evidence: OnceCell<Option<Evidence>>,
    /// Documents that are no candidates, whatever a further search finds.
    removed: Vec<String>,
    /// Results of the search by name, once for contexts of all budgets that exclude the same.
    repaired: RefCell<HashMap<Vec<String>, Rc<Repaired>>>,
    /// Further searches of a repair, kept for contexts of other budgets.
    retrieval: OnceCell<Retrieval<'s>>,
}

/// The candidates of a strategy with its settings: what was found, and what it looks at beside that.
#[derive(Debug)]
struct Offer {
    neighborhood: Neighborhood,
    queries: Vec<String>,
    exclude: Vec<String>,
    candidates: Vec<Candidate>,
    /// The part of the neighborhood that is missing.
    cut: Option<Cut>,
    /// Chunks of the neighborhood that the filter does not admit.
    n_outside: usize,
}

/// Tokens of the texts that one tokenizer has counted: contexts of several budgets count the same ones.
#[derive(Debug, Default)]
struct Counts {
    tokenizer: String,
    of_text: HashMap<Box<str>, usize>,
}

impl Pool<'_> {
    /// Assembles a context, or finds it among those that the searcher keeps.
    pub fn context(&self, request: &ContextSettings<'_>) -> Result<Context> {
        if let Some(context) = self.searcher.kept(&self.search, &self.removed, request) {
            return Ok(context);
        }
        let mut context = self.fresh(request)?;
        let is_empty = context.trace.manifest.outcome == Outcome::NothingRelevant;
        if is_empty && request.policy.second_search == SecondSearch::Relaxed {
            context = self.second(request)?.unwrap_or(context);
        }
        context.trace.warnings.extend_from_slice(&self.warnings);
        context.trace.warnings.extend(labels::unmatched(self.searcher, request, &self.found)?);
        if let Some(certificate) = &mut context.trace.manifest.certificate {
            certificate.of_part = !self.searcher.missing().is_empty();
        }
        context.trace.manifest.rerank = self.search.rerank.as_ref().map(Reranking::record);
        let is_whole = !self.search.rerank.as_ref().is_some_and(Reranking::is_partial);
        if let Some(cache) = request.policy.cache.filter(|_| request.endpoint.is_none() && is_whole) {
            let key = request::key(&self.search, &self.removed, request);
            self.searcher.resolved.keep(key, &context, Duration::from_secs(cache.ttl_seconds), Instant::now());
        }
        Ok(context)
    }

    /// Finds the candidates that a request needs beside those found, and keeps them; the time it took.
    pub(crate) fn prepare(&self, request: &ContextSettings<'_>) -> Result<Duration> {
        let start = Instant::now();
        self.offer(request)?;
        Ok(start.elapsed())
    }

    fn fresh(&self, request: &ContextSettings<'_>) -> Result<Context> {
        if request.strategy == Strategy::Seal {
            return self.seal(request);
        }
        if let Some(endpoint) = request.endpoint {
            return Err(Error::Setting {
                setting: "endpoint",
                value: endpoint.host().to_owned(),
                reason: format!("is of no use to the strategy {}", request.strategy),
            });
        }
        further::check(request)?;
        let offer = self.offer(request)?;
        let mut context = self.ask(request, self.with_repaired(request, &offer)?, &[], assembly::assemble)?;
        if follows_bridges(request) {
            context.trace.manifest.searched_for.clone_from(&self.repaired(request)?.names);
        }
        context.trace.warnings.extend(offer.cut.map(|cut| cut.to_string()));
        context.trace.warnings.extend(outside(offer.n_outside));
        for query in request.queries {
            context.trace.warnings.extend_from_slice(&self.further(query)?.warnings);
        }
        Ok(context)
    }

    /// The answer of a second, relaxed search: by words and vectors, deeper, and without the gates of the policy. What
    /// the request names holds: scope, filter, what is left out, the budget. None where nothing can give way.
    fn second(&self, request: &ContextSettings<'_>) -> Result<Option<Context>> {
        let first = &self.search;
        let candidates = first.candidates.saturating_mul(DEEPER).min(CANDIDATES_MAX).max(first.candidates);
        let search = ChunkSearch { mode: Mode::Hybrid, candidates, scan: Scan::Exact, ..first.clone() };
        let policy = request.policy.relaxed(request.strategy);
        let mut relaxed = request.policy.relaxed_in(&policy);
        let changed = |setting: &str, from: String, to: String| Relaxed { setting: setting.into(), from, to };
        if first.mode != search.mode {
            relaxed.push(changed("mode", name(first.mode), name(search.mode)));
        }
        if first.candidates != candidates {
            relaxed.push(changed("candidates", first.candidates.to_string(), candidates.to_string()));
        }
        if relaxed.is_empty() {
            return Ok(None);
        }
        let mut pool = self.searcher.pool(&search)?;
        self.removed.iter().for_each(|document| pool.remove_document(document));
        let mut context = pool.fresh(&ContextSettings { policy: &policy, ..*request })?;
        context.trace.searched_again(request.policy.checked()?, relaxed);
        Ok(Some(context))
    }

    /// The candidates of a request, those beside what was found included; once for all requests of one strategy.
    fn offer(&self, request: &ContextSettings<'_>) -> Result<Rc<Offer>> {
        let neighborhood = request.policy.neighborhood(request.strategy, &self.search.query)?;
        let neighborhood = if request.queries.is_empty() { neighborhood } else { neighborhood.of_several() };
        // Where there is nothing beside, nothing depends on what is excluded.
        let exclude: &[String] = if neighborhood.is_none() { &[] } else { request.exclude };
        let same = |offer: &&Rc<Offer>| {
            (&offer.neighborhood, &*offer.queries, &*offer.exclude) == (&neighborhood, request.queries, exclude)
        };
        if let Some(offer) = self.offers.borrow().iter().find(same) {
            return Ok(Rc::clone(offer));
        }
        self.search.cancel.check()?;
        let (beside, mut cut) = neighborhood.beside(&self.found, exclude, NEIGHBORS_MAX);
        let (mut candidates, mut outside) = (self.found.clone(), HashSet::new());
        candidates.extend(self.read_beside(&self.found, beside, &mut outside)?);
        let mut known: HashSet<String> = candidates.iter().map(|candidate| candidate.id.clone()).collect();
        for query in request.queries {
            let further = self.further(query)?;
            let (beside, further_cut) = neighborhood.beside(&further.found, exclude, NEIGHBORS_MAX);
            cut = cut.or(further_cut);
            let all = further.unasked().chain(self.read_beside(&further.found, beside, &mut outside)?);
            candidates.extend(all.filter(|candidate| known.insert(candidate.id.clone())));
        }
        candidates::sort(&mut candidates);
        let (queries, exclude) = (request.queries.to_vec(), exclude.to_vec());
        let offer = Rc::new(Offer { neighborhood, queries, exclude, candidates, cut, n_outside: outside.len() });
        self.offers.borrow_mut().push(Rc::clone(&offer));
        Ok(offer)
    }

    /// The results of a further question, searched for once.
    fn further(&self, query: &str) -> Result<Rc<FurtherFound>> {
        if let Some(known) = self.further.borrow().get(query) {
            return Ok(Rc::clone(known));
        }
        let found = FurtherFound::of(query, self.searcher, &self.search, &self.removed)?;
        self.places.borrow_mut().extend(found.places.clone());
        self.further.borrow_mut().insert(query.to_owned(), Rc::clone(&found));
        Ok(found)
    }

    /// Chunks that were not found, but stand beside some that were. Those that the filter does not admit go to
    /// `outside`.
    fn read_beside(
        &self,
        found: &[Candidate],
        beside: Vec<Beside>,
        outside: &mut HashSet<ChunkRef>,
    ) -> Result<Vec<Candidate>> {
        let mut places = self.places.borrow_mut();
        let around = |Beside { candidate, numbers, tokens_max }: Beside| Around {
            chunk: places[&found[candidate].id],
            numbers,
            tokens_max,
        };
        let around: Vec<Around> = beside.into_iter().map(around).collect();
        let is_found: HashSet<ChunkRef> = found.iter().map(|found| places[&found.id]).collect();
        let mut keys = self.searcher.source.around(&around)?;
        keys.retain(|key| !is_found.contains(&key.chunk));
        if let Some(bounds) = &self.bounds {
            let (inside, beyond): (Vec<_>, Vec<_>) = keys.into_iter().partition(|key| bounds.contains(key.chunk));
            outside.extend(beyond.into_iter().map(|key| key.chunk));
            keys = inside;
        }
        self.searcher.candidates(keys.into_iter().map(Found::beside).collect(), &mut places)
    }

    fn seal(&self, request: &ContextSettings<'_>) -> Result<Context> {
        let mut config = request.policy.seal.clone();
        if config.budget == Budget::Request {
            config.budget = Budget::Tokens(request.budget_tokens);
        }
        let retrieval =
            self.retrieval.get_or_init(|| self.searcher.retrieval(self.search.clone()).without(self.removed.clone()));
        let sealed =
            retrieval.seal(&self.search.query, &config, request.exclude, request.tokenizer, request.endpoint)?;
        self.places.borrow_mut().extend(retrieval.places());
        let mut kept: Vec<&str> = sealed.outcome.kept.iter().map(String::as_str).collect();
        if kept.is_empty() {
            kept.extend(sealed.outcome.to_cut.as_deref());
        }
        let mut context = self.ask(request, Cow::Borrowed(&sealed.candidates), &kept, assembly::assemble)?;
        if let Some(record) = &sealed.endpoint {
            context.trace.warnings.extend(endpoint::warnings(record));
        }
        context.trace.manifest.endpoint = sealed.endpoint;
        context.trace.repaired(sealed.outcome);
        Ok(context)
    }

    /// Results of one more search, for names that are the title of nothing found before. What is excluded neither names
    /// anything nor is found.
    fn repaired(&self, request: &ContextSettings<'_>) -> Result<Rc<Repaired>> {
        let exclude = request.exclude;
        if let Some(known) = self.repaired.borrow().get(exclude) {
            return Ok(Rc::clone(known));
        }
        let may_be_found = |found: &Candidate| !exclude.iter().any(|id| *id == found.id || *id == found.document);
        let offer = self.offer(request)?;
        let mut candidates = Cow::Borrowed(&offer.candidates);
        if !exclude.is_empty() {
            candidates.to_mut().retain(may_be_found);
        }
        let mut repaired = self.searcher.repaired(&self.search, &candidates, &self.removed)?;
        repaired.candidates.retain(may_be_found);
        self.places.borrow_mut().extend(std::mem::take(&mut repaired.places));
        let repaired = Rc::new(repaired);
        self.repaired.borrow_mut().insert(exclude.to_vec(), Rc::clone(&repaired));
        Ok(repaired)
    }

    /// The candidates, with those that bridges may lead to.
    fn with_repaired<'o>(&self, request: &ContextSettings<'_>, offer: &'o Offer) -> Result<Cow<'o, [Candidate]>> {
        if !follows_bridges(request) {
            return Ok(Cow::Borrowed(&offer.candidates));
        }
        let repaired = self.repaired(request)?;
        if repaired.candidates.is_empty() {
            return Ok(Cow::Borrowed(&offer.candidates));
        }
        let offered: HashSet<&str> = offer.candidates.iter().map(|candidate| candidate.id.as_str()).collect();
        let further = repaired.candidates.iter().filter(|further| !offered.contains(&*further.id));
        Ok(Cow::Owned(offer.candidates.iter().chain(further).cloned().collect()))
    }

    /// Worth of contexts of every budget up to the request's, solved at `n_solved` of them and at the knee; at
    /// none for 0.
    ///
    /// # Errors
    /// Those of [`Pool::context`]; only the strategy `cento` has a curve.
    pub fn budget_curve(&self, request: &ContextSettings<'_>, n_solved: usize) -> Result<Curve> {
        let offer = self.offer(request)?;
        let candidates = self.with_repaired(request, &offer)?;
        self.ask(request, candidates, &[], |request| assembly::budget_curve(request, n_solved))
    }

    fn ask<T>(
        &self,
        request: &ContextSettings<'_>,
        mut candidates: Cow<'_, [Candidate]>,
        kept: &[&str],
        answer: impl Fn(&Request<'_>) -> assembly::Result<T>,
    ) -> Result<T> {
        self.search.cancel.check()?;
        limits::within("budget", request.budget_tokens, 0, BUDGET_TOKENS_MAX)?;
        let include = self.include(request.include, &mut candidates)?;
        self.searcher.targets(request.exclude)?; // an id that is none would leave out nothing
        self.look_ahead(&candidates)?;
        let evidence = match request.strategy {
            Strategy::Cento => self.evidence()?,
            _ => None,
        };
        let further = request.queries.iter().map(|query| self.further(query).map(|found| found.ranking(query)));
        let further = further.collect::<Result<Vec<_>>>()?;
        let fault = RefCell::new(None);
        let cosine = |a: &str, b: &str| {
            self.cosine(a, b).unwrap_or_else(|error| {
                fault.borrow_mut().get_or_insert(error);
                0.0
            })
        };
        let idf = |term: &str| {
            self.idf(term).unwrap_or_else(|error| {
                fault.borrow_mut().get_or_insert(error);
                0.0
            })
        };
        let answered = answer(&Request {
            query: &self.search.query,
            further: &further,
            candidates: &candidates,
            kept,
            include: &strs(&include),
            exclude: &strs(request.exclude),
            evidence,
            budget_tokens: request.budget_tokens,
            policy: request.policy,
            strategy: request.strategy,
            format: request.format,
            order: request.order,
            marks: request.marks,
            count: &|text| self.count(request.tokenizer, text),
            tokenizer: request.tokenizer.name(),
            reading: Reading {
                terms: &|text| self.searcher.analyzer.terms(text),
                idf: &idf,
                sentences: &corpus::sentences,
            },
            cosine: Some(&cosine),
            stop: &|| self.search.cancel.is_cancelled(),
        });
        match fault.into_inner() {
            Some(error) => Err(error), // what was left out for a vector that cannot be read is not known
            None => Ok(answered?),
        }
    }

    fn count(&self, tokenizer: &BudgetTokenizer<'_>, text: &str) -> usize {
        let mut counts = self.counts.borrow_mut();
        if counts.tokenizer != tokenizer.name() {
            *counts = Counts { tokenizer: tokenizer.name().to_owned(), of_text: HashMap::new() };
        }
        match counts.of_text.get(text) {
            Some(count) => *count,
            None => *counts.of_text.entry(text.into()).or_insert_with(|| tokenizer.count(text)),
        }
    }

    /// The ids of the chunks to be included, of documents those of all their chunks; what was not found becomes a
    /// candidate.
    fn include(&self, include: &[String], candidates: &mut Cow<'_, [Candidate]>) -> Result<Vec<String>> {
        let (mut ids, mut missing) = (Vec::new(), Vec::new());
        let targets = self.searcher.targets(include)?;
        let chunks: Vec<ChunkRef> = targets.iter().flat_map(|target| target.chunks.iter()).collect();
        for (candidate, chunk) in self.searcher.source.chunks(&chunks)?.into_iter().zip(chunks) {
            let id = candidate.id;
            if candidates.iter().all(|candidate| candidate.id != id) {
                missing.push(Found::beside(chunk));
            }
            ids.push(id);
        }
        if !missing.is_empty() {
            candidates.to_mut().extend(self.searcher.candidates(missing, &mut self.places.borrow_mut())?);
        }
        Ok(ids)
    }

    /// The collection's evidence for the question as a whole. None where it is not calibrated, one arm alone was asked,
    /// or some documents alone may answer: the best of few stands lower than the best of all, and whoever names
    /// documents says where the answer is.
    fn evidence(&self) -> Result<Option<Evidence>> {
        if let Some(known) = self.evidence.get() {
            return Ok(*known);
        }
        let evidence = self.measure_evidence()?;
        Ok(*self.evidence.get_or_init(|| evidence))
    }

    fn measure_evidence(&self) -> Result<Option<Evidence>> {
        let Ok(figures) = self.searcher.figures() else { return Ok(None) };
        let is_narrowed = self.search.scope.is_some()
            || self.search.filter.is_some()
            || !self.searcher.required(&self.search).phrases.is_empty();
        if self.search.mode != Mode::Hybrid || is_narrowed {
            return Ok(None);
        }
        let best = |arm: &str| {
            let given = self.found.iter().flat_map(|candidate| &candidate.arms).filter(|given| given.arm == arm);
            given.filter_map(|given| given.raw).reduce(f64::max)
        };
        let Some(cosine) = best(DENSE) else { return Ok(None) };
        let most = self.searcher.words_most(&self.search.query, &self.search.cancel)?;
        Ok(Some(Evidence {
            cosine,
            cosine_typical: figures.cosine_typical,
            cosine_unrelated: figures.cosine_unrelated,
            words: words_share(best(LEXICAL).unwrap_or(0.0), most),
        }))
    }

    /// Takes the chunks of a document from the candidates.
    pub fn remove_document(&mut self, document: &str) {
        self.found.retain(|candidate| candidate.document != document);
        self.removed.push(document.to_owned());
        (self.retrieval, self.evidence, self.repaired) = (OnceCell::new(), OnceCell::new(), RefCell::default());
        self.offers.borrow_mut().clear();
        self.further.borrow_mut().clear();
    }
}

/// The warning that a filter cut what stands beside the chunks found.
fn outside(n_chunks: usize) -> Option<String> {
    let chunks = counted(n_chunks as u64, "chunk");
    (n_chunks > 0).then(|| {
        format!(
            "the filter holds chunk by chunk: {chunks} beside those found are outside it and left out, so sections and \
             windows may be cut short"
        )
    })
}

/// A second search takes so many times the candidates of the first.
const DEEPER: usize = 4;

/// The name of a mode, as requests write it.
fn name(mode: Mode) -> String {
    match mode {
        Mode::Hybrid => "hybrid",
        Mode::Dense => "dense",
        Mode::Lexical => "lexical",
    }
    .to_owned()
}

/// Says if the strategy follows names from one document to another.
fn follows_bridges(request: &ContextSettings<'_>) -> bool {
    request.strategy == Strategy::Cento && request.policy.cento.bridges
}

fn strs(ids: &[String]) -> Vec<&str> {
    ids.iter().map(String::as_str).collect()
}
