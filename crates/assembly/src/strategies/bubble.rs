//! The context bubble: best first, each candidate past the gates of relevance, count, budget, section and redundancy.
//!
//! Source: arXiv 2601.10681, section 4 and eqs. 9-16. A candidate is admitted iff it fits the budget (10), its
//! section's share (11) and says something new (12-13).
//! Differs: eq. 11 is read with the candidate's own tokens on its left side; as printed it would only bind one chunk
//! too late. A section's tokens are those of its chunks' texts, the budget counts headers and marks too. The paper asks
//! for a policy on unspent shares: here a second pass offers all that is left to the candidates that only their
//! section's share kept out.
//! Cost: one pass, or two with shares; gates from the cheapest to the dearest.

use crate::budget::Ledger;
use crate::candidate::{Candidate, normalize_label};
use crate::error::Result;
use crate::figure::number;
use crate::lever::{Key, Lever, Number};
use crate::neighborhood::Neighborhood;
use crate::pack::Excerpt;
use crate::select::chooser::{
    ALONE, Asked, Choice, Chooser, First, Selection, Valued, Verdict, Walk, admit_first, quoted,
};
use crate::select::decision::{Reallocated, Reason, Stage, StepDetails};
use crate::select::gates::{Gates, Sameness, Told};
use crate::select::redundancy::{self, Gate};
use crate::select::sections::{Sections, Slack};
use crate::select::similarity::Similarity;
use crate::stop::check;
use crate::value::prior::{self, Relevance, Scored, Scoring};
use std::collections::{BTreeMap, HashMap};

/// A nat of a prior as a share of the best candidate's relevance, to which a bubble adds its priors.
const SHARE_OF_BEST: f64 = 0.2;

/// Fewer chosen chunks than this are a sign that a gate is too strict.
const FEW_CHUNKS: usize = 3;

/// The strategy of that name: all of a policy's own settings.
pub(crate) struct Bubble<'p> {
    pub(crate) scoring: Scoring<'p>,
    pub(crate) gates: Gates<'p>,
}

impl Chooser for Bubble<'_> {
    fn value(&self, asked: &Asked<'_>) -> Result<Valued> {
        let scores = prior::score(asked.candidates, asked.query, &self.scoring, asked.reading.terms)?;
        Ok(Valued::plain(prior::found_only(asked.candidates, scores)))
    }

    fn plan<'w>(&'w self, choice: &'w Choice<'w>, _ledger: &mut Ledger<'_>) -> Result<Walk<'w>> {
        Ok(Box::new(|ledger, firsts| walk(choice, ledger, self, firsts)))
    }

    fn sections(&self) -> Option<Sections<'_>> {
        Some(self.gates.sections)
    }

    fn nat(&self) -> Option<f64> {
        Some(SHARE_OF_BEST)
    }

    fn neighborhood(&self) -> Neighborhood {
        Neighborhood::none()
    }

    fn it_needs(&self) -> &'static str {
        ALONE
    }

    fn sameness(&self) -> Option<Sameness> {
        Some(Sameness { with: self.gates.gate, ..self.gates.sameness() })
    }

    fn beside_share(&self, details: &StepDetails) -> Option<Lever> {
        let fits = details.tokens_needed.zip(details.tokens_left).is_some_and(|(needed, left)| needed <= left);
        let unspent = self.gates.sections.slack == Slack::None && fits;
        unspent.then(|| Lever::Choice("slack".into(), "global"))
    }
}

/// The sentence about a chunk of the label that has no term of the query.
pub(crate) fn no_term(label: &str, prior: f64, boost: f64) -> Told {
    let sum = number(prior + boost);
    let because = format!("has no term of the query, and its prior and boosts come to {sum}, which is not above 0");
    let raised = Number::far_above(Key::of("priors", label), prior, -boost);
    (because, vec![Lever::Number(raised), Lever::Choice("relevance".into(), "fused")])
}

fn walk<'a>(
    &Choice { pool, stop, similarity, .. }: &Choice<'_>,
    ledger: &mut Ledger<'a>,
    Bubble { gates, scoring }: &Bubble<'_>,
    firsts: &[First],
) -> Result<Selection> {
    let slack = gates.sections.slack;
    let mut walker = Walker {
        ledger,
        gates,
        similarity,
        bubble: redundancy::Chosen::new(gates.gate),
        documents: HashMap::new(),
        sections: BTreeMap::new(),
        shares: BTreeMap::new(),
    };
    let firsts: HashMap<usize, Verdict> = firsts.iter().map(|first| walker.admit_first(first)).collect();
    let mut verdicts: Vec<Verdict> = Vec::with_capacity(pool.len());
    for scored in pool {
        check(stop)?;
        verdicts.push(match firsts.get(&scored.candidate) {
            Some(verdict) => verdict.clone(),
            None => walker.decide(scored, Stage::Walk),
        });
    }
    let kept_out = |verdict: &Verdict| verdict.last == Reason::SectionBudgetExceeded;
    let warnings = walker.warnings(pool, &verdicts);
    let mut selection = Selection { verdicts, warnings, ..Selection::default() };
    let is_kept_out = selection.verdicts.iter().any(kept_out);
    if is_kept_out {
        selection.slack_tokens = walker.ledger.left().max(0) as usize;
    }
    if is_kept_out && slack == Slack::Global {
        for (scored, verdict) in pool.iter().zip(&mut selection.verdicts).filter(|(_, verdict)| kept_out(verdict)) {
            check(stop)?;
            *verdict = Verdict { first: Reason::SectionBudgetExceeded, ..walker.decide(scored, Stage::Slack) };
            if verdict.is_selected() {
                selection.reallocated.push(walker.reallocated(scored.candidate));
            }
        }
    }
    let signs = walker.signs_of_failure(pool, &selection.verdicts, scoring.priors.priors);
    selection.warnings.extend(signs);
    Ok(selection)
}

/// A walk under way: the gates, and what has passed them.
struct Walker<'l, 'a> {
    ledger: &'l mut Ledger<'a>,
    gates: &'l Gates<'l>,
    similarity: &'l Similarity<'l>,
    bubble: redundancy::Chosen,
    /// Chunks by document.
    documents: HashMap<&'a str, usize>,
    /// Chunks by section.
    sections: BTreeMap<&'a str, usize>,
    /// Tokens by what they share a part of the budget with.
    shares: BTreeMap<&'a str, usize>,
}

impl<'a> Walker<'_, 'a> {
    /// One candidate past every gate; the first that is shut decides.
    fn decide(&mut self, scored: &Scored, stage: Stage) -> Verdict {
        let rejected = |reason, details| Verdict::new(stage, reason, details);
        if let Some(details) = self.irrelevant(scored) {
            return rejected(Reason::LowRelevance, details);
        }
        if let Some((reason, details)) = self.too_many(scored.candidate) {
            return rejected(reason, details);
        }
        let quote = match self.ledger.quote(&[Excerpt { candidate: scored.candidate, part: None }]) {
            Ok(quote) => quote,
            Err(quote) => return Verdict::over_budget(stage, self.ledger, quote),
        };
        let section = self.section_details(scored.candidate);
        let budget = quoted(self.ledger, quote);
        let details = StepDetails {
            tokens_used: budget.tokens_used,
            tokens_left: budget.tokens_left,
            tokens_needed: budget.tokens_needed,
            ..section
        };
        let over_share = details
            .section_limit
            .is_some_and(|limit| details.section_used.unwrap_or(0) + details.section_needed.unwrap_or(0) > limit);
        if over_share && stage != Stage::Slack {
            return rejected(Reason::SectionBudgetExceeded, details);
        }
        let details = self.overlap_details(scored.candidate, details);
        if details.overlap.is_some_and(|overlap| overlap >= self.gates.delta) {
            return rejected(Reason::TooRedundant, details);
        }
        let details = match self.same_meaning(scored.candidate, details) {
            Ok(details) => details,
            Err(details) => return rejected(Reason::TooRedundant, details),
        };
        match self.ledger.admit(&Excerpt { candidate: scored.candidate, part: None }) {
            Ok(_) => {
                self.record(scored.candidate, None);
                Verdict::new(stage, Reason::PassedAllGates, details)
            }
            Err(quote) => Verdict::over_budget(stage, self.ledger, quote),
        }
    }

    fn irrelevant(&self, scored: &Scored) -> Option<StepDetails> {
        let measured = match self.gates.relevance {
            Relevance::Tf => scored.relevance,
            Relevance::Fused => self.chunk(scored.candidate).relevance,
        };
        let unmatched = self.gates.relevance == Relevance::Tf && scored.tf == Some(0) && scored.raw <= 0.0;
        let least = self.gates.min_relevance.filter(|&least| measured < least).or(unmatched.then_some(0.0))?;
        Some(StepDetails { min_relevance: Some(least), ..StepDetails::default() })
    }

    fn too_many(&self, candidate: usize) -> Option<(Reason, StepDetails)> {
        let chunk = self.chunk(candidate);
        let of_document = self.documents.get(chunk.document.as_str()).copied().unwrap_or(0);
        let of_section = self.sections.get(chunk.section.as_str()).copied().unwrap_or(0);
        let full = |used: usize, limit: Option<usize>| {
            let limit = limit.filter(|&limit| used >= limit)?;
            Some(StepDetails { chunks_used: Some(used), chunks_limit: Some(limit), ..StepDetails::default() })
        };
        let document =
            full(of_document, self.gates.max_per_document).map(|details| (Reason::DocumentChunksExceeded, details));
        document.or_else(|| {
            full(of_section, self.gates.max_per_section).map(|details| (Reason::SectionChunksExceeded, details))
        })
    }

    /// Eq. 11 with the candidate's tokens added; nothing where the section has no share of its own.
    fn section_details(&mut self, candidate: usize) -> StepDetails {
        let Some(limit) = self.gates.sections.limit(self.ledger, candidate) else { return StepDetails::default() };
        let used = self.shares.get(self.gates.sections.sharing(self.chunk(candidate))).copied().unwrap_or(0);
        let needed = self.ledger.text_tokens(&Excerpt { candidate, part: None }) as usize;
        StepDetails {
            section_used: Some(used),
            section_needed: Some(needed),
            section_limit: Some(limit),
            ..StepDetails::default()
        }
    }

    /// Eqs. 12-13.
    fn overlap_details(&mut self, candidate: usize, details: StepDetails) -> StepDetails {
        if self.gates.gate == Gate::None {
            return details;
        }
        let overlap = self.bubble.overlap(&self.chunk(candidate).text);
        let partner = overlap.partner.map(|partner| self.chunk(partner).id.clone());
        StepDetails { overlap: Some(overlap.share), partner, ..details }
    }

    /// The same over vectors, where the policy asks for it: the details, as an error if the candidate says what a
    /// chosen chunk says.
    fn same_meaning(&self, candidate: usize, details: StepDetails) -> std::result::Result<StepDetails, StepDetails> {
        let Some(least) = self.gates.same_meaning.filter(|_| self.gates.gate != Gate::None) else { return Ok(details) };
        let nearest = self.nearest(candidate);
        match nearest {
            Some((cosine, partner)) if cosine >= least => {
                let partner = Some(self.chunk(partner).id.clone());
                Err(StepDetails { cosine: Some(cosine), partner, ..details })
            }
            _ => Ok(StepDetails { cosine: nearest.map(|(cosine, _)| cosine), ..details }),
        }
    }

    /// The chosen chunk whose vector is nearest to a candidate's, the first of equal ones; none without vectors.
    fn nearest(&self, candidate: usize) -> Option<(f64, usize)> {
        let others = self.ledger.admitted().iter().map(|excerpt| excerpt.candidate).filter(|&other| other != candidate);
        let cosines = others.filter_map(|other| Some((self.similarity.cosine_of(candidate, other)?, other)));
        cosines.reduce(|best, next| if next.0 > best.0 { next } else { best })
    }

    fn admit_first(&mut self, first: &First) -> (usize, Verdict) {
        let verdict = admit_first(self.ledger, first);
        let excerpt = &first.excerpt;
        if verdict.is_selected() {
            self.record(excerpt.candidate, excerpt.part.clone());
        }
        (excerpt.candidate, verdict)
    }

    fn record(&mut self, candidate: usize, part: Option<std::ops::Range<usize>>) {
        let chunk = self.chunk(candidate);
        let text = part.clone().map_or(chunk.text.as_str(), |part| &chunk.text[part]);
        let tokens = self.ledger.text_tokens(&Excerpt { candidate, part }) as usize;
        self.bubble.add(candidate, text);
        *self.documents.entry(&chunk.document).or_default() += 1;
        *self.sections.entry(&chunk.section).or_default() += 1;
        *self.shares.entry(self.gates.sections.sharing(chunk)).or_default() += tokens;
    }

    fn chunk(&self, candidate: usize) -> &'a Candidate {
        self.ledger.candidates()[candidate]
    }

    fn reallocated(&mut self, candidate: usize) -> Reallocated {
        let chunk = self.chunk(candidate);
        let tokens = self.ledger.text_tokens(&Excerpt { candidate, part: None }) as usize;
        Reallocated { chunk_id: chunk.id.clone(), section: chunk.section.clone(), tokens }
    }

    /// Signs that the settings do not suit the documents: few chunks beside many that a gate kept out,
    /// nothing of a section that is to be preferred.
    fn signs_of_failure(&self, pool: &[Scored], verdicts: &[Verdict], priors: &BTreeMap<String, f64>) -> Vec<String> {
        let kept_out = |reason: Reason| verdicts.iter().filter(|verdict| verdict.last == reason).count();
        let n_chosen = self.ledger.admitted().len();
        let mut signs = Vec::new();
        for (reason, setting) in [(Reason::TooRedundant, "delta"), (Reason::SectionBudgetExceeded, "rho")] {
            let n = kept_out(reason);
            if n_chosen < FEW_CHUNKS && n >= FEW_CHUNKS && self.ledger.left() > 0 {
                signs.push(format!(
                    "{n_chosen} chunks are chosen and {n} kept out by {setting}, which may be too strict"
                ));
            }
        }
        let of_label = |label: &str| {
            let is_its = |scored: &Scored| normalize_label(&self.chunk(scored.candidate).label) == label;
            let of_it = pool.iter().zip(verdicts).filter(|(scored, _)| is_its(scored)).map(|(_, verdict)| verdict);
            of_it.clone().next().filter(|_| !of_it.clone().any(Verdict::is_selected)).map(|best| best.last)
        };
        for (label, _) in priors.iter().filter(|(_, prior)| **prior > 0.0) {
            if let Some(reason) = of_label(label) {
                let reason = serde_json::to_string(&reason).unwrap_or_default();
                signs.push(format!(
                    "nothing under {label:?} is chosen, although its prior prefers it; its best: {reason}"
                ));
            }
        }
        signs
    }

    /// Sections whose share holds none of their chunks, so that the first pass could only pass them over.
    fn warnings(&self, pool: &[Scored], verdicts: &[Verdict]) -> Vec<String> {
        let mut shortest: BTreeMap<&str, (usize, usize)> = BTreeMap::new();
        for (scored, verdict) in
            pool.iter().zip(verdicts).filter(|(_, verdict)| verdict.last == Reason::SectionBudgetExceeded)
        {
            let section = self.gates.sections.sharing(self.chunk(scored.candidate));
            let (needed, limit) =
                (verdict.details.section_needed.unwrap_or(0), verdict.details.section_limit.unwrap_or(0));
            if !self.shares.contains_key(section) {
                let least = shortest.entry(section).or_insert((needed, limit));
                least.0 = least.0.min(needed);
            }
        }
        let starved = shortest.into_iter().filter(|(_, (needed, limit))| needed > limit);
        starved
            .map(|(section, (needed, limit))| {
                let section = section.replace(char::is_control, " > ");
                format!("section `{section}`: its share of {limit} tokens is less than its shortest candidate, {needed} tokens; raise its rho")
            })
            .collect()
    }
}
