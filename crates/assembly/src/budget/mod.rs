//! The budget: what the chosen chunks cost as they will be delivered, counted by a tokenizer that is a black box.
//!
//! A tokenizer need not be additive, so three counts stand behind "never one token over". Parts are counted by
//! themselves, each once, cut at line ends where nearly every tokenizer is additive. When the sum comes near the
//! budget, the whole is counted, and the difference corrects the sum from there on. In the end the whole is counted
//! again, and what was admitted last is dropped until it fits.
//! Cost: each text that the walk reaches is counted once, unless it is surely too long (see [`SURE_FACTOR`]); the whole
//! is counted once per admission within [`NEAR_TOKENS`] of the budget, and once at the end.

pub(crate) mod cut;

use crate::candidate::Candidate;
use crate::pack::{self, Excerpt, FORMS, Form, Format, Head, Layout, Marks, Order, Piece};
use std::collections::HashMap;

/// A header may take one part in so many of the budget; else a shorter form is used.
const HEADER_PARTS: i64 = 8;

/// Letters at the end of a text that a line end behind it is counted with: more than most tokens have.
const ENDING_CHARS: usize = 16;

/// Distance from the budget, before two tokens for each chosen chunk, at which the whole is counted.
const NEAR_TOKENS: i64 = 8;

/// A text is surely too long, and not counted, if it would fit only with tokens this many times longer than the longest
/// average of the texts counted so far.
const SURE_FACTOR: f64 = 2.0;

/// Texts to count before one is called surely too long.
const SURE_AFTER: usize = 8;

/// Counts above this are as good as infinite; sums of them do not overflow.
const COUNT_MAX: usize = 1 << 40;

/// The budget, what is admitted against it, and every count made so far.
pub(crate) struct Ledger<'a> {
    candidates: &'a [&'a Candidate],
    /// By candidate; they order the documents.
    scores: Vec<f64>,
    layout: Layout,
    count: &'a dyn Fn(&str) -> usize,
    budget: i64,
    counts: Counts,
    admitted: Vec<Excerpt>,
    documents: HashMap<&'a str, Shelf>,
    /// Sum of the parts, and what it lacks of the whole.
    sum: i64,
    correction: i64,
}

/// First and last chunk of a piece, and its part where it is cut.
type HeadKey = (usize, usize, Option<(usize, usize)>);

/// Counts that hold for the whole assembly, whatever is admitted.
#[derive(Default)]
struct Counts {
    texts: Vec<Option<i64>>,
    /// The wrapping above a whole candidate that others do not precede, and its tokens with those behind it.
    heads: Vec<Option<(Head, i64)>>,
    /// The same above other pieces.
    heads_of_others: HashMap<HeadKey, (Head, i64)>,
    gaps: HashMap<u32, i64>,
    /// Tokens between two pieces under one mark.
    omission: Option<i64>,
    /// Tokens that end the last line of a candidate's text.
    endings: Vec<Option<i64>>,
    /// The same of parts, which end at a byte of the text.
    endings_of_parts: HashMap<(usize, usize), i64>,
    n_texts: usize,
    longest_token_bytes: f64,
}

/// Excerpts of one document, in its order, and what they cost.
#[derive(Default)]
struct Shelf {
    excerpts: Vec<Excerpt>,
    tokens: i64,
}

/// The cost of admitting a chunk.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Quote {
    /// Tokens admitted before.
    pub(crate) used: i64,
    /// Tokens it adds: text, header, marks; may be negative where it joins two pieces.
    pub(crate) needed: i64,
    /// The text was not counted, `needed` is a lower bound.
    pub(crate) estimated: bool,
}

impl<'a> Ledger<'a> {
    pub(crate) fn new(
        candidates: &'a [&'a Candidate],
        scores: Vec<f64>,
        layout: Layout,
        budget: usize,
        count: &'a dyn Fn(&str) -> usize,
    ) -> Self {
        let n = candidates.len();
        let (texts, heads, endings) = (vec![None; n], vec![None; n], vec![None; n]);
        let counts = Counts { texts, heads, endings, ..Counts::default() };
        let budget = budget.min(COUNT_MAX - 1) as i64;
        let mut ledger = Self {
            candidates,
            scores,
            layout,
            count,
            budget,
            counts,
            admitted: Vec::new(),
            documents: HashMap::new(),
            sum: 0,
            correction: 0,
        };
        ledger.clear();
        ledger
    }

    /// Forgets what is admitted; what was counted stays.
    pub(crate) fn clear(&mut self) {
        self.admitted.clear();
        self.documents.clear();
        self.sum = self.tokens(pack::opening(self.format())) + self.tokens(pack::ending(self.format()));
        self.correction = 0;
    }

    fn format(&self) -> Format {
        self.layout.format
    }

    pub(crate) fn budget(&self) -> usize {
        self.budget as usize
    }

    pub(crate) fn used(&self) -> i64 {
        self.sum + self.correction
    }

    pub(crate) fn left(&self) -> i64 {
        self.budget - self.used()
    }

    pub(crate) fn admitted(&self) -> &[Excerpt] {
        &self.admitted
    }

    /// Score of a candidate before any length penalty.
    pub(crate) fn score(&self, candidate: usize) -> f64 {
        self.scores[candidate]
    }

    pub(crate) fn candidates(&self) -> &'a [&'a Candidate] {
        self.candidates
    }

    /// Tokens of a string, counted now.
    pub(crate) fn tokens(&self, text: &str) -> i64 {
        if text.is_empty() { 0 } else { (self.count)(text).min(COUNT_MAX) as i64 }
    }

    /// Tokens of what an excerpt delivers of its chunk, as it is delivered.
    pub(crate) fn text_tokens(&mut self, excerpt: &Excerpt) -> i64 {
        let text = &self.candidates[excerpt.candidate].text;
        if let Some(part) = &excerpt.part {
            return self.tokens(&pack::body(self.format(), &text[part.clone()]));
        }
        if let Some(tokens) = self.counts.texts[excerpt.candidate] {
            return tokens;
        }
        let tokens = self.tokens(&pack::body(self.format(), text));
        self.counts.texts[excerpt.candidate] = Some(tokens);
        self.counts.n_texts += 1;
        self.counts.longest_token_bytes = self.counts.longest_token_bytes.max(text.len() as f64 / tokens.max(1) as f64);
        tokens
    }

    /// The cost of whole chunks of one document. `Err` if that is more than is left.
    pub(crate) fn quote(&mut self, chunks: &[Excerpt]) -> Result<Quote, Quote> {
        let (used, left) = (self.used(), self.left());
        if !self.may_save(chunks) {
            let sure = chunks.iter().map(|chunk| self.surely_needed(chunk.candidate).unwrap_or(0)).sum();
            if sure > left {
                return Err(Quote { used, needed: sure, estimated: true });
            }
            let needed = chunks.iter().map(|chunk| self.text_tokens(chunk)).sum();
            if needed > left {
                return Err(Quote { used, needed, estimated: false });
            }
        }
        let needed = self.added(chunks);
        let quote = Quote { used, needed, estimated: false };
        if needed > left { Err(quote) } else { Ok(quote) }
    }

    /// Tokens around a segment that starts with a chunk: where it is the first of its document, and where another one
    /// precedes it.
    pub(crate) fn frame_tokens(&mut self, candidate: usize) -> (i64, i64) {
        let piece = Piece { candidates: vec![candidate], part: None, omitted: 0, head: Head::Same };
        (self.head(&piece).1, self.further_tokens(&Piece { omitted: 1, ..piece }))
    }

    /// Tokens by which an excerpt would lengthen the context, as the sum of its parts.
    pub(crate) fn needed(&mut self, excerpt: &Excerpt) -> i64 {
        self.added(std::slice::from_ref(excerpt))
    }

    /// Counts what is admitted as a whole: what is left is exact from here on.
    pub(crate) fn settle(&mut self) {
        if !self.admitted.is_empty() {
            let whole = self.whole_tokens(&self.admitted.clone());
            self.correction = (whole - self.sum).min(self.budget - self.sum);
        }
    }

    /// Admits whole chunks of one document, all or none, unless it is plain without counting the whole that they do not
    /// fit.
    pub(crate) fn offer(&mut self, chunks: &[Excerpt]) -> Result<Quote, Quote> {
        self.quote(chunks).and_then(|_| self.admit_all(chunks))
    }

    /// Admits an excerpt. Near the budget the whole is counted first: `Err`, with the true cost, if it is over.
    pub(crate) fn admit(&mut self, excerpt: &Excerpt) -> Result<Quote, Quote> {
        self.admit_all(std::slice::from_ref(excerpt))
    }

    /// Admits excerpts of one document, all or none, as [`Ledger::admit`] does.
    pub(crate) fn admit_all(&mut self, excerpts: &[Excerpt]) -> Result<Quote, Quote> {
        let used = self.used();
        let added = self.added(excerpts);
        let near = NEAR_TOKENS + 2 * (self.admitted.len() + excerpts.len()) as i64;
        if used + added + near > self.budget {
            let mut trial = self.admitted.clone();
            trial.extend_from_slice(excerpts);
            let whole = self.whole_tokens(&trial);
            if whole > self.budget {
                let learned = self.correction.max(whole - (self.sum + added));
                // What is admitted is within the budget, whatever was not.
                self.correction = learned.min(self.budget - self.sum);
                return Err(Quote { used, needed: whole - used, estimated: false });
            }
            self.correction = whole - (self.sum + added);
        }
        self.sum += added;
        if let Some(first) = excerpts.first() {
            let shelf = self.shelf_with(excerpts);
            let tokens = self.shelf_tokens(&shelf);
            self.documents.insert(&self.candidates[first.candidate].document, Shelf { excerpts: shelf, tokens });
            self.admitted.extend_from_slice(excerpts);
        }
        Ok(Quote { used, needed: added, estimated: false })
    }

    /// Counts the whole, and drops what was admitted last until it fits. Returns the dropped candidates with the count
    /// that dropped them.
    pub(crate) fn repair(&mut self) -> Vec<(usize, i64)> {
        let mut dropped = Vec::new();
        while !self.admitted.is_empty() {
            let whole = self.whole_tokens(&self.admitted.clone());
            if whole <= self.budget {
                break;
            }
            dropped.extend(self.admitted.pop().map(|excerpt| (excerpt.candidate, whole)));
        }
        dropped
    }

    /// Tokens of a context of these excerpts alone.
    pub(crate) fn whole_tokens(&mut self, excerpts: &[Excerpt]) -> i64 {
        let pieces = self.pieces(excerpts);
        self.tokens(&pack::render(self.format(), self.candidates, &pieces))
    }

    /// The pieces of a context of these excerpts, in the order of delivery.
    pub(crate) fn pieces(&mut self, excerpts: &[Excerpt]) -> Vec<Piece> {
        let mut pieces = Vec::new();
        for document in pack::in_document_order(self.candidates, &self.scores, excerpts) {
            pieces.extend(pack::pieces_of_document(self.candidates, &document));
        }
        let best = |piece: &Piece| piece.candidates.iter().map(|&at| self.scores[at]).fold(f64::NEG_INFINITY, f64::max);
        let mut pieces = self.layout.order.arrange(pieces, best);
        let mut before = None;
        for piece in &mut pieces {
            let document = piece.first(self.candidates).document.as_str();
            let goes_on = self.layout.marks == Marks::Lean && before.replace(document) == Some(document);
            piece.head = if goes_on { Head::Same } else { self.head(piece).0 };
        }
        pieces
    }

    /// Tokens by which excerpts of one document lengthen its pieces.
    fn added(&mut self, excerpts: &[Excerpt]) -> i64 {
        let Some(first) = excerpts.first() else { return 0 };
        let shelf = self.shelf_with(excerpts);
        let before =
            self.documents.get(self.candidates[first.candidate].document.as_str()).map_or(0, |shelf| shelf.tokens);
        self.shelf_tokens(&shelf) - before
    }

    fn shelf_with(&self, added: &[Excerpt]) -> Vec<Excerpt> {
        let document = self.candidates[added[0].candidate].document.as_str();
        let mut excerpts = self.documents.get(document).map(|shelf| shelf.excerpts.clone()).unwrap_or_default();
        for excerpt in added {
            let chunk = self.candidates[excerpt.candidate];
            let at = excerpts.partition_point(|other| self.candidates[other.candidate].index < chunk.index);
            excerpts.insert(at, excerpt.clone());
        }
        excerpts
    }

    /// The parts' sum for one document: headers or marks, texts, footers and what stands for what is left out.
    fn shelf_tokens(&mut self, excerpts: &[Excerpt]) -> i64 {
        let mut tokens = 0;
        for (at, piece) in pack::pieces_of_document(self.candidates, excerpts).into_iter().enumerate() {
            tokens += if at == 0 { self.head(&piece).1 } else { self.further_tokens(&piece) };
            for &candidate in &piece.candidates {
                tokens += self.text_tokens(&Excerpt { candidate, part: piece.part.clone() });
            }
        }
        tokens
    }

    /// The wrapping above the first piece of a run of its source, and its tokens with those behind the piece.
    fn head(&mut self, piece: &Piece) -> (Head, i64) {
        let (first, last) = (piece.candidates[0], piece.last_candidate());
        let key = (first, last, piece.part.as_ref().map(|part| (part.start, part.end)));
        let is_whole = first == last && piece.part.is_none();
        let known = if is_whole { self.counts.heads[first].as_ref() } else { self.counts.heads_of_others.get(&key) };
        if let Some(head) = known {
            return head.clone();
        }
        let head = match self.layout.marks {
            Marks::Full => {
                let (form, tokens) = self.fullest(piece);
                (Head::Header(form), tokens)
            }
            Marks::Lean => {
                let chunk = self.candidates[first];
                let text = piece.part.as_ref().map_or(chunk.text.as_str(), |part| &chunk.text[part.clone()]);
                let name = pack::lean::name(chunk, text, &|name| self.tokens(name));
                let tokens = self.tokens(&pack::mark(self.format(), "", 1, &name)) + self.ending_tokens(piece);
                (Head::Source(name), tokens)
            }
        };
        if is_whole {
            self.counts.heads[first] = Some(head.clone());
        } else {
            self.counts.heads_of_others.insert(key, head.clone());
        }
        head
    }

    /// The fullest header within its share of the budget, and its tokens with the footer's.
    fn fullest(&self, piece: &Piece) -> (Form, i64) {
        let footer = self.tokens(pack::footer(self.format(), self.last_text(piece)));
        let header = piece.header(self.candidates, 1);
        let mut chosen = (Form::Mark, i64::MAX);
        for form in FORMS {
            let header = pack::header(self.format(), pack::markdown::SHORTEST_RULE, form, &header);
            chosen = (form, self.tokens(&header) + footer);
            if chosen.1 <= self.budget / HEADER_PARTS {
                break;
            }
        }
        chosen
    }

    /// Tokens around a piece of a document that another one precedes.
    fn further_tokens(&mut self, piece: &Piece) -> i64 {
        if !self.layout.shares_marks() {
            return self.head(piece).1 + self.gap_tokens(piece.omitted);
        }
        let between = match self.counts.omission {
            Some(tokens) => tokens,
            None => self.tokens(&pack::omission(self.format(), "")),
        };
        self.counts.omission = Some(between);
        between + if self.format() == Format::Xml { 0 } else { self.ending_tokens(piece) }
    }

    fn gap_tokens(&mut self, omitted: u32) -> i64 {
        if omitted == 0 || self.layout.order != Order::Document {
            return 0; // no mark says so
        }
        if let Some(&tokens) = self.counts.gaps.get(&omitted) {
            return tokens;
        }
        let tokens = self.tokens(&pack::gap(self.format(), pack::markdown::SHORTEST_RULE, omitted));
        self.counts.gaps.insert(omitted, tokens);
        tokens
    }

    /// The text that a piece ends with: of its last chunk, or the part of its only one.
    fn last_text(&self, piece: &Piece) -> &'a str {
        let text = self.candidates[piece.last_candidate()].text.as_str();
        piece.part.as_ref().map_or(text, |part| &text[part.clone()])
    }

    /// Tokens by which the footer lengthens a piece. In Markdown a line end often joins the token before it, so it is
    /// counted with the last letters of the text.
    fn ending_tokens(&mut self, piece: &Piece) -> i64 {
        let (last, end) = (piece.last_candidate(), piece.part.as_ref().map(|part| part.end));
        let known = match end {
            None => self.counts.endings[last],
            Some(end) => self.counts.endings_of_parts.get(&(last, end)).copied(),
        };
        if let Some(tokens) = known {
            return tokens;
        }
        let text = self.last_text(piece);
        let footer = pack::footer(self.format(), text);
        let tokens = if footer.is_empty() || self.format() == Format::Xml {
            self.tokens(footer)
        } else {
            let start = text.char_indices().rev().nth(ENDING_CHARS - 1).map_or(0, |(at, _)| at);
            let tail = &text[start..];
            (self.tokens(&format!("{tail}{footer}")) - self.tokens(tail)).max(0)
        };
        match end {
            None => self.counts.endings[last] = Some(tokens),
            Some(end) => drop(self.counts.endings_of_parts.insert((last, end), tokens)),
        }
        tokens
    }

    /// Says if the chunks may cost less than their texts: they touch admitted ones on two sides, so that they save a
    /// header, or stand before all of their document, whose mark may be shorter with them.
    fn may_save(&self, chunks: &[Excerpt]) -> bool {
        let Some(first) = chunks.first() else { return false };
        let Some(shelf) = self.documents.get(self.candidates[first.candidate].document.as_str()) else { return false };
        let has = |index: Option<u32>| {
            shelf.excerpts.iter().any(|other| Some(self.candidates[other.candidate].index) == index)
        };
        let sides = chunks.iter().map(|chunk| self.candidates[chunk.candidate].index);
        let sides = sides.flat_map(|index| [index.checked_sub(1), index.checked_add(1)]);
        let is_first = |excerpt: &Excerpt| {
            let first = shelf.excerpts.first().map(|first| self.candidates[first.candidate].index);
            first.is_some_and(|first| self.candidates[excerpt.candidate].index < first)
        };
        (self.layout.shares_marks() && chunks.iter().any(is_first)) || sides.filter(|side| has(*side)).count() >= 2
    }

    /// Tokens a text needs at the very least, judged by its bytes and the texts counted before; none if it was counted
    /// itself.
    fn surely_needed(&self, candidate: usize) -> Option<i64> {
        if self.counts.texts[candidate].is_some() || self.counts.n_texts < SURE_AFTER {
            return None;
        }
        let longest = self.counts.longest_token_bytes * SURE_FACTOR;
        Some((self.candidates[candidate].text.len() as f64 / longest) as i64)
    }
}
