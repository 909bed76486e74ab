//! Counterfactuals: changes of a request that were made and do deliver what a context lacks.
//!
//! A decision names the settings that it hangs on ([`Lever`]); each is moved in steps of doubling length until the
//! chunk is delivered, then back by bisection. Where one setting alone does not do, the setting that then decides is
//! moved besides. Nothing is found again but where the search itself is changed.
//!
//! Range: a change that is told was assembled, and delivers. Of a number, one step less was assembled too, and does
//! not, unless the runs ended before. More budget may bring another choice, so a number further off need not deliver.
//! Cost: at most [`RUNS_MAX`] assemblies for an answer.

use std::cell::Cell;
use std::rc::Rc;

use cento_assembly::lever::{Key, Lever, Number};
use cento_assembly::trace::{Record, Trace};
use cento_assembly::{self as assembly, Policy, Strategy, Why};
use schemars::JsonSchema;
use serde::Serialize;

use crate::context::pool::Pool;
use crate::context::request::ContextSettings;
use crate::error::{Error, Result};
use crate::limits::{BUDGET_TOKENS_MAX, CANDIDATES_MAX};
use crate::retrieve::quoted::Phrases;
use crate::retrieve::request::{ChunkSearch, Mode};
use crate::retrieve::rerank::reading::Reranking;
use crate::retrieve::searcher::Searcher;
use crate::source::seam::Scan;

/// Assemblies that one answer may take.
pub const RUNS_MAX: usize = 120;

/// A budget is raised to so many times what seems enough, before it is given up.
const BUDGETS_FAR: usize = 8;

/// Further decisions that a moved setting may run into, of which each is tried.
const BEHIND_MAX: usize = 3;

/// A setting as it was in a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Moved {
    /// Its name: a field of the request, or `policy` and a key.
    pub setting: String,
    /// Its value, of a policy as TOML writes it.
    pub value: String,
    /// Its value in the request; none if it has none.
    pub instead: Option<String>,
}

/// A change that was made, and undoes a decision.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Change {
    /// The settings, all of which are moved at once.
    pub settings: Vec<Moved>,
}

/// The end of a search that found no change.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Sought {
    /// The setting that was moved.
    pub setting: String,
    /// The last value that was tried; none if no run was left for it.
    pub up_to: Option<String>,
}

/// The outcome of moving settings.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Undone {
    /// Changes that deliver the chunk, each by itself, as a run of it showed.
    pub changes: Vec<Change>,
    /// Settings that alone, or with the one that decides next, do not deliver it as far as they were moved.
    pub not_found: Vec<Sought>,
    /// Contexts that were assembled for this.
    pub n_runs: usize,
}

/// A chunk, or a document of which any chunk will do.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Wanted<'a> {
    pub(crate) id: &'a str,
    pub(crate) document: &'a str,
}

impl Wanted<'_> {
    pub(crate) fn is(&self, record: &Record) -> bool {
        match self.id == self.document {
            true => record.document == self.document,
            false => record.chunk_id == self.id,
        }
    }

    /// The decisions about it, best first.
    pub(crate) fn decisions(&self, trace: &Trace) -> Vec<Why> {
        trace.records.iter().filter(|record| self.is(record)).map(|record| Why::of(trace, record)).collect()
    }
}

/// A change of the search.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Retrieval {
    /// So many candidates of each retriever, or more.
    Candidates(usize),
    /// Both retrievers.
    Hybrid,
    /// Every vector compared.
    Exact,
    /// A document more that may answer.
    Within(String),
    /// No documents named.
    Anywhere,
    /// No filter.
    Unfiltered,
    /// Quoted phrases as words.
    Words,
}

/// A request with the settings that were moved.
#[derive(Clone)]
struct Case<'a> {
    search: ChunkSearch,
    policy: Policy,
    exclude: Vec<String>,
    settings: ContextSettings<'a>,
    moved: Vec<Moved>,
    /// Candidates of a search that was changed.
    pool: Option<Rc<Pool<'a>>>,
}

/// The values of one setting: the last that does not do, the first that may, and the last that is tried.
struct Scale {
    fails: i64,
    guess: i64,
    end: i64,
}

/// Runs of one question.
pub(crate) struct Trials<'a> {
    searcher: &'a Searcher,
    /// The candidates of the question as it was asked; none where it was not searched for.
    pool: Option<&'a Pool<'a>>,
    base: Case<'a>,
    n_runs: Cell<usize>,
}

impl<'a> Trials<'a> {
    pub(crate) fn new(
        searcher: &'a Searcher,
        search: &ChunkSearch,
        settings: &ContextSettings<'a>,
        pool: Option<&'a Pool<'a>>,
    ) -> Result<Self> {
        let policy = Policy { cache: None, ..settings.policy.checked()? }; // what is tried is not kept
        let base = Case {
            search: search.clone(),
            policy,
            exclude: settings.exclude.to_vec(),
            settings: *settings,
            moved: Vec::new(),
            pool: None,
        };
        Ok(Self { searcher, pool, base, n_runs: Cell::new(0) })
    }

    /// Moves the settings that decisions hang on.
    ///
    /// # Errors
    /// Those of reading the collection, [`Error::Cancelled`].
    pub(crate) fn undo(&self, wanted: Wanted<'_>, decisions: &[Why]) -> Result<Undone> {
        let before = self.n_runs.get();
        let mut undone = Undone::default();
        let mut levers: Vec<&Lever> = Vec::new();
        for lever in decisions.iter().flat_map(|why| &why.levers) {
            if levers.iter().all(|known| !is_of_one_setting(known, lever)) {
                levers.push(lever);
            }
        }
        for lever in levers {
            let up_to = self.pull(&self.base, lever, wanted, &mut undone)?;
            if let Some(up_to) = up_to {
                undone.not_found.push(Sought { setting: name(lever), up_to });
            }
        }
        undone.n_runs = self.n_runs.get() - before;
        Ok(undone)
    }

    /// Makes changes of the search, each by itself.
    pub(crate) fn undo_search(&self, wanted: Wanted<'_>, changes: &[Retrieval]) -> Result<Undone> {
        let before = self.n_runs.get();
        let mut undone = Undone::default();
        for change in changes {
            let up_to = self.search_otherwise(&self.base, change, wanted, &mut undone)?;
            if let Some(up_to) = up_to {
                undone.not_found.push(Sought { setting: change.name().to_owned(), up_to });
            }
        }
        undone.n_runs = self.n_runs.get() - before;
        Ok(undone)
    }

    /// Moves a setting, and if need be a second one. What was found is added; otherwise the last value tried is given.
    fn pull(
        &self,
        case: &Case<'a>,
        lever: &Lever,
        wanted: Wanted<'_>,
        undone: &mut Undone,
    ) -> Result<Option<Option<String>>> {
        if let Some(found) = self.moved_alone(case, lever, wanted)? {
            add(undone, found.moved);
            return Ok(None);
        }
        let Some(guess) = self.at_guess(case, lever)? else { return Ok(Some(None)) };
        if self.behind(&guess, lever, wanted, undone)? {
            return Ok(None);
        }
        Ok(Some(self.end(case, lever)))
    }

    /// Moves what decides once a setting was moved; true if that delivers.
    fn behind(&self, moved: &Case<'a>, lever: &Lever, wanted: Wanted<'_>, undone: &mut Undone) -> Result<bool> {
        let Some(trace) = self.run(moved)? else { return Ok(false) };
        let decisions = wanted.decisions(&trace);
        let levers = decisions.iter().take(1).flat_map(|why| &why.levers);
        for next in levers.filter(|next| !is_of_one_setting(next, lever)).take(BEHIND_MAX) {
            // A budget is looked for beside the other setting, which stays at its guess.
            let (fixed, sought) = match lever {
                Lever::Budget(_) => (self.at_guess(&self.base, next)?, lever),
                _ => (Some(moved.clone()), next),
            };
            if let Some(found) = fixed.map(|fixed| self.moved_alone(&fixed, sought, wanted)).transpose()?.flatten() {
                add(undone, found.moved);
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// The case in which one more setting delivers, nearest to where it is.
    fn moved_alone(&self, case: &Case<'a>, lever: &Lever, wanted: Wanted<'_>) -> Result<Option<Case<'a>>> {
        let scale = match lever {
            Lever::Budget(guess) => {
                let fails = case.settings.budget_tokens;
                let guess = (*guess).clamp(fails + 1, BUDGET_TOKENS_MAX.max(fails + 1));
                let end = guess.saturating_mul(BUDGETS_FAR).min(BUDGET_TOKENS_MAX).max(guess);
                Scale { fails: fails as i64, guess: guess as i64, end: end as i64 }
            }
            Lever::Number(number) => Scale { fails: number.from, guess: number.guess, end: number.end },
            Lever::Candidates => candidates_scale(case, case.search.candidates.saturating_mul(2)),
            Lever::Choice(..) | Lever::Strategy(_) | Lever::Exclude(_) | Lever::Admit { .. } => {
                let Some(changed) = self.at_guess(case, lever)? else { return Ok(None) };
                return Ok(self.delivers(&changed, wanted)?.then_some(changed));
            }
        };
        self.least(&scale, &|at| self.at(case, lever, at), wanted)
    }

    fn search_otherwise(
        &self,
        case: &Case<'a>,
        change: &Retrieval,
        wanted: Wanted<'_>,
        undone: &mut Undone,
    ) -> Result<Option<Option<String>>> {
        if let Retrieval::Candidates(guess) = change {
            let scale = candidates_scale(case, *guess);
            if scale.fails >= scale.end {
                return Ok(Some(Some(scale.end.to_string())));
            }
            if let Some(found) = self.least(&scale, &|at| self.with_candidates(case, at), wanted)? {
                add(undone, found.moved);
                return Ok(None);
            }
            let Some(found) = self.with_candidates(case, scale.guess)? else { return Ok(Some(None)) };
            let delivers = self.behind(&found, &Lever::Candidates, wanted, undone)?;
            return Ok((!delivers).then(|| Some(scale.end.to_string())));
        }
        let Some(changed) = self.searched(case, change)? else { return Ok(Some(None)) };
        if self.delivers(&changed, wanted)? {
            add(undone, changed.moved);
            return Ok(None);
        }
        let value = changed.moved.last().map(|moved| moved.value.clone());
        let delivers = self.behind(&changed, &Lever::Candidates, wanted, undone)?;
        Ok((!delivers).then_some(value))
    }

    /// The first step that does, by steps of doubling length, then by bisection.
    fn least(
        &self,
        scale: &Scale,
        at: &dyn Fn(i64) -> Result<Option<Case<'a>>>,
        wanted: Wanted<'_>,
    ) -> Result<Option<Case<'a>>> {
        let way = (scale.end - scale.fails).signum();
        let tried = |step: i64| -> Result<Option<Case<'a>>> {
            match at(step)? {
                Some(case) if self.delivers(&case, wanted)? => Ok(Some(case)),
                _ => Ok(None),
            }
        };
        let mut fails = scale.fails;
        let mut step = scale.guess;
        let mut length = (scale.guess - scale.fails).abs().max(scale.fails.abs() / 16).max(1);
        let mut found = loop {
            if let Some(case) = tried(step)? {
                break case;
            }
            if (scale.end - step) * way <= 0 || self.is_spent() {
                return Ok(None);
            }
            fails = step;
            step = if way > 0 { (step + length).min(scale.end) } else { (step - length).max(scale.end) };
            length = length.saturating_mul(2);
        };
        while (step - fails).abs() > 1 && !self.is_spent() {
            let middle = fails + (step - fails) / 2;
            match tried(middle)? {
                Some(case) => (step, found) = (middle, case),
                None => fails = middle,
            }
        }
        Ok(Some(found))
    }

    /// The case with a lever where it seems enough; none where the setting cannot be had.
    fn at_guess(&self, case: &Case<'a>, lever: &Lever) -> Result<Option<Case<'a>>> {
        let mut changed = case.clone();
        match lever {
            Lever::Budget(guess) => return self.at(case, lever, *guess as i64),
            Lever::Number(number) => return self.at(case, lever, number.guess),
            Lever::Candidates => return self.with_candidates(case, 2 * case.search.candidates as i64),
            Lever::Choice(key, choice) => {
                return Ok(with_policy(case, key, toml::Value::String((*choice).to_owned())));
            }
            Lever::Strategy(name) => {
                let Ok(strategy) = name.parse::<Strategy>() else { return Ok(None) };
                changed.note("strategy", name, Some(case.settings.strategy.to_string()));
                changed.settings.strategy = strategy;
            }
            Lever::Exclude(id) => {
                changed.note("exclude", id, None);
                changed.exclude.push(id.clone());
            }
            Lever::Admit { chunk, document } => {
                let stays = |id: &&String| *id != chunk && *id != document;
                changed.exclude = case.exclude.iter().filter(stays).cloned().collect();
                changed.note("exclude", &changed.exclude.join(", "), Some(case.exclude.join(", ")));
            }
        }
        Ok(Some(changed))
    }

    /// The case with a numeric lever at a step.
    fn at(&self, case: &Case<'a>, lever: &Lever, step: i64) -> Result<Option<Case<'a>>> {
        Ok(match lever {
            Lever::Budget(_) => {
                let mut changed = case.clone();
                changed.note("budget", &step.to_string(), Some(case.settings.budget_tokens.to_string()));
                changed.settings.budget_tokens = usize::try_from(step).unwrap_or(0);
                Some(changed)
            }
            Lever::Number(Number { key, unit, .. }) => with_policy(case, key, unit.value(step)),
            Lever::Candidates => return self.with_candidates(case, step),
            Lever::Choice(..) | Lever::Strategy(_) | Lever::Exclude(_) | Lever::Admit { .. } => None,
        })
    }

    /// The last value that is tried of a lever.
    fn end(&self, case: &Case<'a>, lever: &Lever) -> Option<String> {
        Some(match lever {
            Lever::Budget(guess) => guess.saturating_mul(BUDGETS_FAR).min(BUDGET_TOKENS_MAX).to_string(),
            Lever::Number(number) => number.unit.value(number.end).to_string(),
            Lever::Candidates => candidates_scale(case, 0).end.to_string(),
            Lever::Choice(_, choice) | Lever::Strategy(choice) => (*choice).to_owned(),
            Lever::Exclude(id) => id.clone(),
            Lever::Admit { .. } => return None,
        })
    }

    fn with_candidates(&self, case: &Case<'a>, n: i64) -> Result<Option<Case<'a>>> {
        let mut changed = case.clone();
        changed.search.candidates = usize::try_from(n).unwrap_or(0);
        changed.note("candidates", &n.to_string(), Some(case.search.candidates.to_string()));
        self.found_again(changed)
    }

    fn searched(&self, case: &Case<'a>, change: &Retrieval) -> Result<Option<Case<'a>>> {
        let mut changed = case.clone();
        let search = &mut changed.search;
        let (value, instead) = match change {
            Retrieval::Candidates(n) => return self.with_candidates(case, *n as i64),
            Retrieval::Hybrid => {
                search.mode = Mode::Hybrid;
                ("hybrid".to_owned(), Some(mode(case.search.mode).to_owned()))
            }
            Retrieval::Exact => {
                search.scan = Scan::Exact;
                ("exact".to_owned(), None)
            }
            Retrieval::Within(document) => {
                search.scope.get_or_insert_default().push(document.clone());
                (document.clone(), None)
            }
            Retrieval::Anywhere => {
                search.scope = None;
                (String::new(), case.search.scope.as_ref().map(|scope| scope.join(", ")))
            }
            Retrieval::Unfiltered => {
                let before = search.filter.take().map(|filter| filter.as_str().to_owned());
                (String::new(), before)
            }
            Retrieval::Words => {
                (search.phrases, search.required) = (Phrases::Words, None);
                ("words".to_owned(), None)
            }
        };
        changed.note(change.name(), &value, instead);
        self.found_again(changed)
    }

    /// The case with the candidates of its search.
    fn found_again(&self, mut case: Case<'a>) -> Result<Option<Case<'a>>> {
        if case.search.check().is_err() {
            return Ok(None);
        }
        // What a trace's reranker would have said of other candidates is not known.
        case.search.rerank = case.search.rerank.as_ref().map(Reranking::resumed);
        let pool = refusable(self.searcher.pool(&case.search))?;
        let is_known = !case.search.rerank.as_ref().is_some_and(Reranking::is_unknown);
        case.pool = pool.filter(|_| is_known).map(Rc::new);
        Ok(case.pool.is_some().then_some(case))
    }

    fn delivers(&self, case: &Case<'a>, wanted: Wanted<'_>) -> Result<bool> {
        let Some(trace) = self.run(case)? else { return Ok(false) };
        let is_delivered = |record: &Record| record.final_decision == assembly::trace::Decision::Selected;
        Ok(trace.records.iter().any(|record| wanted.is(record) && is_delivered(record)))
    }

    /// The decisions of a case; none if no such request can be made, or no run is left.
    fn run(&self, case: &Case<'a>) -> Result<Option<Trace>> {
        if self.is_spent() {
            return Ok(None);
        }
        let Some(pool) = case.pool.as_deref().or(self.pool) else { return Ok(None) };
        self.n_runs.set(self.n_runs.get() + 1);
        let settings =
            ContextSettings { policy: &case.policy, exclude: &case.exclude, endpoint: None, ..case.settings };
        Ok(refusable(pool.context(&settings))?.map(|context| context.trace))
    }

    fn is_spent(&self) -> bool {
        self.n_runs.get() >= RUNS_MAX
    }
}

impl Case<'_> {
    /// Notes a setting that was moved, from where it was in the request.
    fn note(&mut self, setting: &str, value: &str, instead: Option<String>) {
        let moved = Moved { setting: setting.to_owned(), value: value.to_owned(), instead };
        match self.moved.iter_mut().find(|known| known.setting == setting) {
            Some(known) if setting != "exclude" => known.value = moved.value,
            _ => self.moved.push(moved),
        }
    }
}

impl Retrieval {
    fn name(&self) -> &'static str {
        match self {
            Self::Candidates(_) => "candidates",
            Self::Hybrid => "mode",
            Self::Exact => "scan",
            Self::Within(_) | Self::Anywhere => "within",
            Self::Unfiltered => "filter",
            Self::Words => "phrases",
        }
    }
}

fn mode(mode: Mode) -> &'static str {
    match mode {
        Mode::Hybrid => "hybrid",
        Mode::Dense => "dense",
        Mode::Lexical => "lexical",
    }
}

/// The case with a value of its policy; none where the key does not take it.
fn with_policy<'a>(case: &Case<'a>, key: &Key, value: toml::Value) -> Option<Case<'a>> {
    let written = value.to_string();
    let policy = case.policy.with(key, value).ok()?;
    let mut changed = case.clone();
    changed.note(&format!("policy.{key}"), &written, case.policy.written(key));
    changed.policy = policy;
    Some(changed)
}

fn candidates_scale(case: &Case<'_>, guess: usize) -> Scale {
    let fails = case.search.candidates as i64;
    let end = CANDIDATES_MAX as i64;
    Scale { fails, guess: (guess as i64).clamp((fails + 1).min(end), end), end }
}

/// A change that is told once.
/// Adds a change, unless a part of it alone does; those of which it is a part go.
fn add(undone: &mut Undone, settings: Vec<Moved>) {
    let holds = |of: &[Moved], part: &[Moved]| part.iter().all(|moved| of.contains(moved));
    if !undone.changes.iter().any(|change| holds(&settings, &change.settings)) {
        undone.changes.retain(|change| !holds(&change.settings, &settings));
        undone.changes.push(Change { settings });
    }
}

fn is_of_one_setting(one: &Lever, other: &Lever) -> bool {
    match (one, other) {
        (Lever::Exclude(one), Lever::Exclude(other)) => one == other,
        _ => name(one) == name(other),
    }
}

/// The name of the setting that a lever moves.
fn name(lever: &Lever) -> String {
    match lever {
        Lever::Budget(_) => "budget".to_owned(),
        Lever::Number(Number { key, .. }) | Lever::Choice(key, _) => format!("policy.{key}"),
        Lever::Strategy(_) => "strategy".to_owned(),
        Lever::Exclude(_) | Lever::Admit { .. } => "exclude".to_owned(),
        Lever::Candidates => "candidates".to_owned(),
    }
}

/// An answer, or none if the request itself is refused: a budget too small for a chunk, a value out of its range.
fn refusable<T>(answer: Result<T>) -> Result<Option<T>> {
    match answer {
        Ok(answer) => Ok(Some(answer)),
        Err(Error::Assembly(_) | Error::Setting { .. }) => Ok(None),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_of_which_a_part_does_is_not_told() {
        let moved = |setting: &str| Moved { setting: setting.to_owned(), value: "1".to_owned(), instead: None };
        let mut undone = Undone::default();
        for settings in [&["a", "b"][..], &["b"], &["c", "b"], &["c", "d"], &["d", "c"], &["b"]] {
            add(&mut undone, settings.iter().map(|setting| moved(setting)).collect());
        }
        let told = |change: &Change| change.settings.iter().map(|moved| moved.setting.clone()).collect::<String>();
        assert_eq!(undone.changes.iter().map(told).collect::<Vec<_>>(), ["b", "cd"]);
    }
}
