//! The questions that a whole and its pieces are asked, and their answers as bytes.

use anyhow::Result;
use cento_engine::{
    BudgetTokenizer, ChunkSearch, Context, ContextSettings, ContextTrace, Explain, Filter, Fusion, Mode, Policy, Pool,
    RunQuery, RunRequest, SearchResponse, Searcher, Selection, Strategy, WhyNot,
};
use cento_eval::run;
use cento_eval::topics::Topic;
use serde::Serialize;

const MODES: [Mode; 3] = [Mode::Hybrid, Mode::Dense, Mode::Lexical];
const FUSIONS: [Fusion; 3] = [Fusion::Adaptive, Fusion::Convex, Fusion::Rrf];

/// Tokens of contexts.
const BUDGETS: [usize; 2] = [250, 1200];

/// Every so many documents one is in the scope of searches that are narrowed.
const SCOPE_STEP: usize = 3;

/// An answer as bytes.
pub(super) struct Answer {
    pub(super) kind: &'static str,
    pub(super) asked: String,
    pub(super) text: String,
    /// True for a context that is empty because the collection has no answer.
    pub(super) is_unsupported: bool,
}

/// Something to ask.
pub(super) enum Job<'t> {
    /// A run of all topics.
    Run(Mode, Fusion, Narrowed),
    /// Searches, contexts, traces and reasons of one topic.
    Topic(&'t Topic),
}

/// The documents that may answer.
#[derive(Debug, Clone, Copy)]
pub(super) enum Narrowed {
    /// All of them.
    No,
    /// Those that a filter admits.
    Filter,
    /// Those of a list.
    Scope,
}

/// Asks a whole and its pieces the same.
pub(super) struct Asker<'t> {
    topics: &'t [Topic],
    scope: Vec<String>,
    filter: Filter,
    /// A document to ask after that may well not be found.
    far: Vec<String>,
    policy: Policy,
}

impl<'t> Asker<'t> {
    pub(super) fn new(whole: &Searcher, topics: &'t [Topic]) -> Result<Self> {
        let ids: Vec<String> = whole.list(&Selection::All)?.into_iter().map(|document| document.id).collect();
        let middle = ids[ids.len() / 2].replace('"', "");
        Ok(Self {
            topics,
            scope: ids.iter().step_by(SCOPE_STEP).cloned().collect(),
            filter: Filter::parse(&format!("id < \"{middle}\" and title exists"))?,
            far: ids.iter().step_by(ids.len().div_ceil(3)).cloned().collect(),
            policy: Policy::default(),
        })
    }

    /// Everything there is to ask: runs of all topics, and the first `n_topics` one by one.
    pub(super) fn jobs(&self, n_topics: usize) -> Vec<Job<'t>> {
        let runs = MODES.into_iter().flat_map(|mode| FUSIONS.map(|fusion| (mode, fusion)));
        let runs = runs.filter(|(mode, fusion)| *mode == Mode::Hybrid || *fusion == Fusion::Adaptive);
        let narrowed = [Narrowed::No, Narrowed::Filter, Narrowed::Scope];
        let runs = runs.flat_map(|(mode, fusion)| narrowed.map(|narrowed| Job::Run(mode, fusion, narrowed)));
        runs.chain(self.topics.iter().take(n_topics).map(Job::Topic)).collect()
    }

    pub(super) fn answers(&self, searcher: &Searcher, job: &Job<'_>) -> Result<Vec<Answer>> {
        match job {
            Job::Run(mode, fusion, narrowed) => self.run(searcher, *mode, *fusion, *narrowed),
            Job::Topic(topic) => {
                let mut answers = self.searches(searcher, topic)?;
                answers.extend(self.contexts(searcher, topic)?);
                answers.extend(self.reasons(searcher, topic)?);
                Ok(answers)
            }
        }
    }

    /// A TREC run of all topics, ties kept, whose scores are floats of 32 bits; and the same with all their bits.
    fn run(&self, searcher: &Searcher, mode: Mode, fusion: Fusion, narrowed: Narrowed) -> Result<Vec<Answer>> {
        let scope = matches!(narrowed, Narrowed::Scope).then(|| self.scope.clone());
        let filter = matches!(narrowed, Narrowed::Filter).then(|| self.filter.clone());
        let query = |topic: &Topic| RunQuery { text: topic.text.clone(), scope: scope.clone() };
        let queries: Vec<RunQuery> = self.topics.iter().map(query).collect();
        let request = RunRequest { mode, fusion, filter, ..RunRequest::default() };
        let mut trec = Vec::new();
        let rankings = searcher.run(&queries, &request, &mut |_| {})?;
        for (topic, ranking) in self.topics.iter().zip(&rankings) {
            let ranking = ranking.iter().map(|(document, score)| (document, *score));
            run::write(&mut trec, &topic.id, ranking, "shards", run::Ties::Keep)?;
        }
        let asked = format!("{mode:?} {fusion:?} {narrowed:?}");
        let exact = answer("rankings", asked.clone(), &rankings)?;
        Ok(vec![Answer { kind: "TREC runs", asked, text: String::from_utf8(trec)?, is_unsupported: false }, exact])
    }

    fn searches(&self, searcher: &Searcher, topic: &Topic) -> Result<Vec<Answer>> {
        let mut answers = Vec::new();
        for (mode, fusion) in MODES.into_iter().flat_map(|mode| FUSIONS.map(|fusion| (mode, fusion))) {
            for narrowed in [Narrowed::No, Narrowed::Filter, Narrowed::Scope] {
                let request = ChunkSearch {
                    k: 100,
                    mode,
                    fusion,
                    scope: matches!(narrowed, Narrowed::Scope).then(|| self.scope.clone()),
                    filter: matches!(narrowed, Narrowed::Filter).then(|| self.filter.clone()),
                    explain: Explain::Terms,
                    ..ChunkSearch::new(&*topic.text)
                };
                let response = SearchResponse { generation: 0, ..searcher.search(&request)? };
                answers.push(answer(
                    "searches",
                    format!("{mode:?} {fusion:?} {narrowed:?} {}", topic.text),
                    &response,
                )?);
            }
        }
        Ok(answers)
    }

    /// Contexts of every strategy, and their traces.
    fn contexts(&self, searcher: &Searcher, topic: &Topic) -> Result<Vec<Answer>> {
        let mut answers = Vec::new();
        let search = ChunkSearch::new(&*topic.text);
        let model = &searcher.manifest().config.model;
        let tokenizers =
            [BudgetTokenizer::named("o200k")?, BudgetTokenizer::of_model(model, searcher.encoder()?.tokenizer())];
        for strategy in Strategy::ALL {
            let pool = searcher.pool(&search)?;
            for (tokenizer, budget) in tokenizers.iter().flat_map(|tokenizer| BUDGETS.map(|budget| (tokenizer, budget)))
            {
                let request = ContextSettings { strategy, ..ContextSettings::new(budget, tokenizer, &self.policy) };
                let context = pool.context(&request)?;
                let asked = format!("{strategy} {} {budget} {}", tokenizer.name(), topic.text);
                let delivered = (&context, cited(&pool, &context)?);
                let is_unsupported = context.citations.is_empty();
                answers.push(Answer { is_unsupported, ..answer("contexts", asked.clone(), &delivered)? });
                let mut trace = ContextTrace::new(searcher, &search, &request, &context)?;
                let collection = &mut trace.collection;
                (collection.generation, collection.folder, collection.checksum) = (0, String::new(), String::new());
                answers.push(answer("traces", asked, &trace)?);
            }
        }
        Ok(answers)
    }

    fn reasons(&self, searcher: &Searcher, topic: &Topic) -> Result<Vec<Answer>> {
        let mut answers = Vec::new();
        let tokenizer = BudgetTokenizer::named("o200k")?;
        let request = ContextSettings::new(BUDGETS[0], &tokenizer, &self.policy);
        for (mode, id) in MODES.into_iter().flat_map(|mode| self.far.iter().map(move |id| (mode, id))) {
            let search = ChunkSearch { mode, candidates: 50, ..ChunkSearch::new(&*topic.text) };
            let why_not = WhyNot { generation: 0, ..searcher.why_not(&search, &request, id)? };
            answers.push(answer("why-not", format!("{mode:?} {id} {}", topic.text), &why_not)?);
        }
        Ok(answers)
    }
}

/// The cited bytes, and where they are in characters.
fn cited(pool: &Pool<'_>, context: &Context) -> Result<Vec<(String, std::ops::Range<u64>)>> {
    let cited = context.citations.iter().map(|citation| Ok((pool.text(citation)?, pool.characters(citation)?)));
    cited.collect()
}

fn answer(kind: &'static str, asked: String, answer: &impl Serialize) -> Result<Answer> {
    Ok(Answer { kind, asked, text: serde_json::to_string(answer)?, is_unsupported: false })
}
