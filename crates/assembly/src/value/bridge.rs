//! Bridges: a document that the question or likely text names is likely too.
//!
//! Answers that take two steps are in two documents, of which the question names one and the text of the first names
//! the second. Where the title of a document stands in the question or in one of the likeliest chunks, its own chunks
//! are lifted toward that chunk (for the question, toward the likeliest): `v = max(v, v_from^WEIGHT * v^(1 - WEIGHT))`.
//!
//! Where the document of a name was not found at all, [`gaps`] tells what to search for.
//!
//! Source: ours, after the bridge entities of multi-hop questions (HotpotQA, arXiv 1809.09600) and the gaps of SEAL-RAG
//! (arXiv 2512.10787). Measured on sets that were made along the links of Wikipedia, which favours it; a collection in
//! which no text names a title is left as it is.
//! Cost: `PEAKS` texts, read once, and `COMMON_AMONG_MAX` where a title is found; each run of at most
//! `TITLE_WORDS_MAX` words is looked up among the titles.

use super::share;
use crate::candidate::{Candidate, by_id};
use crate::error::Result;
use crate::line::Lines;
use crate::question::names::{Kind, mentions};
use crate::rank::best_first;
use std::cell::OnceCell;
use std::collections::{HashMap, HashSet};
use std::ops::Range;

/// The likeliest chunks that a bridge may start from.
const PEAKS: usize = 10;

/// Names that are looked for in one repair.
pub const GAPS_MAX: usize = 8;

/// Weight of the chunk that a bridge starts from.
const WEIGHT: f64 = 0.65;

/// Shorter titles, in letters, stand in any text.
const TITLE_LETTERS_MIN: usize = 4;

/// Longer titles, in words, are not looked for.
const TITLE_WORDS_MAX: usize = 10;

/// A title that more than this share of the other documents' chunks have is a common word of the collection, and no
/// name.
const COMMON: f64 = 0.1;

/// Chunks in which a title is looked for to tell that.
const COMMON_AMONG_MAX: usize = 256;

/// Fewer chunks tell nothing of how common a title is.
const COMMON_AMONG_MIN: usize = 50;

/// The lift that a bridge gave to a candidate.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Bridge {
    /// The candidate it comes from; none: the question.
    pub(crate) from: Option<usize>,
    /// Likelihood before.
    pub(crate) before: f64,
}

/// Lifts `likelihoods` (by candidate) over bridges from `query` and the likeliest candidates; what was lifted, by
/// candidate.
pub(crate) fn lift(query: &str, candidates: &[&Candidate], likelihoods: &mut [f64]) -> Vec<Option<Bridge>> {
    let mut bridges = vec![None; candidates.len()];
    let order = peaks(candidates, likelihoods);
    let of_title = by_title(candidates);
    let words_from = words_from(&of_title);
    let before = likelihoods.to_vec();
    let mut common = Common::new();
    // What the question itself names is named by the likeliest of all.
    let likeliest = order.first().map_or(0.0, |&at| likelihoods[at]);
    let question = std::iter::once((None, likeliest));
    let peaks: Vec<(Option<usize>, f64)> =
        question.chain(order.iter().map(|&at| (Some(at), likelihoods[at]))).collect();
    for (from, likelihood) in peaks {
        let text = spaced_words(from.map_or(query, |from| &candidates[from].text));
        let starts: Vec<usize> = text.match_indices(' ').map(|(at, _)| at).collect();
        for (first, pair) in starts.windows(2).enumerate() {
            let start = pair[0];
            let most = words_from.get(&text[start..=pair[1]]).copied().unwrap_or(0);
            for &end in starts.iter().skip(first + 1).take(most) {
                let name = &text[start..=end];
                let Some(named) = of_title.get(name) else { continue };
                let itself = from.map(|from| &candidates[from].document);
                let others = || named.iter().filter(|&&to| Some(&candidates[to].document) != itself);
                if others().next().is_none() || common.has(name, named, candidates) {
                    continue;
                }
                for &to in others() {
                    let lifted = likelihood.powf(WEIGHT) * before[to].powf(1.0 - WEIGHT);
                    if lifted > likelihoods[to] {
                        likelihoods[to] = lifted;
                        bridges[to] = Some(Bridge { from, before: before[to] });
                    }
                }
            }
        }
    }
    bridges
}

/// Names that the question or the likeliest candidates say and that are the title of no candidate, in the order in
/// which they would start bridges: what one more search may find the documents of, see [`has_title`]. At most
/// [`GAPS_MAX`].
///
/// # Errors
/// A score that is no number; an id or place that two candidates have.
pub fn gaps(
    query: &str,
    candidates: &[Candidate],
    sentences: &dyn Fn(&str) -> Vec<Range<usize>>,
) -> Result<Vec<String>> {
    let candidates = by_id(candidates)?;
    let lines = Lines::new(&candidates);
    let likelihoods = share::of_candidates(&candidates, &lines)?;
    let of_title = by_title(&candidates);
    let texts = peaks(&candidates, &likelihoods).into_iter().map(|at| candidates[at].text.as_str());
    let mut common = Common::new();
    let mut names: Vec<String> = Vec::new();
    let mut seen: HashSet<String> = HashSet::new();
    for text in std::iter::once(query).chain(texts) {
        for mention in mentions(text, &sentences(text), &|_| false) {
            let name = &text[mention.span.clone()];
            let words = spaced_words(name);
            let is_name = matches!(mention.kind, Kind::Name | Kind::Quote) && is_long_enough(&words);
            if names.len() < GAPS_MAX
                && is_name
                && words.matches(' ').count() <= TITLE_WORDS_MAX
                && !of_title.contains_key(&words)
                && seen.insert(words.clone())
                && !common.has(&words, &[], &candidates)
            {
                names.push(name.to_owned());
            }
        }
    }
    Ok(names)
}

/// Says if a candidate's document has a name as its title, but for case, marks and a last part in brackets.
pub fn has_title(candidate: &Candidate, name: &str) -> bool {
    title(candidate).is_some_and(|title| title == spaced_words(name))
}

/// The likeliest candidates, best first.
fn peaks(candidates: &[&Candidate], likelihoods: &[f64]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..candidates.len()).filter(|&at| likelihoods[at] > 0.0).collect();
    let best =
        |&a: &usize, &b: &usize| best_first((likelihoods[a], &candidates[a].id), (likelihoods[b], &candidates[b].id));
    if order.len() > PEAKS {
        order.select_nth_unstable_by(PEAKS, best);
        order.truncate(PEAKS);
    }
    order.sort_by(best);
    order
}

/// Candidates by the title of their document.
fn by_title(candidates: &[&Candidate]) -> HashMap<String, Vec<usize>> {
    let mut of_title: HashMap<String, Vec<usize>> = HashMap::new();
    let mut before: Option<(&str, Option<String>)> = None; // candidates of a document mostly stand together
    for (at, candidate) in candidates.iter().enumerate() {
        let known = before.take().filter(|(document, _)| *document == candidate.document).map(|(_, title)| title);
        let title = known.unwrap_or_else(|| title(candidate));
        if let Some(title) = &title {
            match of_title.get_mut(title) {
                Some(named) => named.push(at),
                None => drop(of_title.insert(title.clone(), vec![at])),
            }
        }
        before = Some((&candidate.document, title));
    }
    of_title
}

/// By the first word of titles, spaced as they are, the words of the longest of them that is looked for.
fn words_from(of_title: &HashMap<String, Vec<usize>>) -> HashMap<&str, usize> {
    let mut most: HashMap<&str, usize> = HashMap::new();
    for title in of_title.keys() {
        let Some(first) = title.match_indices(' ').nth(1) else { continue };
        let n_words = title.matches(' ').count() - 1;
        let most = most.entry(&title[..=first.0]).or_default();
        *most = (*most).max(n_words.min(TITLE_WORDS_MAX));
    }
    most
}

/// Texts of the pool, by which a name is told from a common word.
struct Common<'a> {
    /// At most `COMMON_AMONG_MAX` candidates, evenly spread; read when first asked for.
    sample: OnceCell<Vec<Sampled<'a>>>,
    known: HashMap<String, bool>,
}

/// A text in which names are looked for.
struct Sampled<'a> {
    candidate: &'a Candidate,
    /// Its letters, see [`letters`].
    letters: String,
    /// Its words, see [`spaced_words`]; made when first asked for.
    words: OnceCell<String>,
}

impl<'a> Common<'a> {
    fn new() -> Self {
        Self { sample: OnceCell::new(), known: HashMap::new() }
    }

    /// Says if too many chunks of other documents than those `named` have the words of their title.
    fn has(&mut self, name: &str, named: &[usize], candidates: &[&'a Candidate]) -> bool {
        if let Some(&known) = self.known.get(name) {
            return known;
        }
        let sample = self.sample.get_or_init(|| {
            let spread = candidates.iter().step_by(candidates.len().div_ceil(COMMON_AMONG_MAX).max(1));
            let read = |&candidate: &&'a Candidate| Sampled {
                candidate,
                letters: letters(&candidate.text),
                words: OnceCell::new(),
            };
            spread.map(read).collect()
        });
        let of_title = |document: &str| named.iter().any(|&at| candidates[at].document == document);
        let others: Vec<&Sampled<'_>> =
            sample.iter().filter(|sampled| !of_title(&sampled.candidate.document)).collect();
        let n = others.iter().filter(|sampled| sampled.says(name)).count();
        let is_common = others.len() >= COMMON_AMONG_MIN && n as f64 > COMMON * others.len() as f64;
        self.known.insert(name.to_owned(), is_common);
        is_common
    }
}

impl Sampled<'_> {
    /// Says if the text has the words of a name, spaced as [`spaced_words`] has them. Where it has not the first one,
    /// as most texts, its letters tell.
    fn says(&self, name: &str) -> bool {
        let first = name.match_indices(' ').nth(1).map_or(name, |(end, _)| &name[..=end]);
        self.letters.contains(first)
            && (first == name || self.words.get_or_init(|| spaced_words(&self.candidate.text)).contains(name))
    }
}

/// The title as [`spaced_words`] has texts, without a last part in brackets; none if it is too short to mean anything.
fn title(candidate: &Candidate) -> Option<String> {
    let title = candidate.title.trim();
    let title = title.strip_suffix(')').and_then(|open| open.rsplit_once('(')).map_or(title, |(before, _)| before);
    let words = spaced_words(title);
    is_long_enough(&words).then_some(words)
}

fn is_long_enough(words: &str) -> bool {
    words.chars().filter(|c| c.is_alphanumeric()).count() >= TITLE_LETTERS_MIN
}

/// Words in lower case, one space before and behind each.
fn spaced_words(text: &str) -> String {
    if text.is_ascii() {
        return spaced_ascii(text);
    }
    let mut out = String::with_capacity(text.len() + 2);
    out.push(' ');
    for word in text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()) {
        out.push_str(&word.to_lowercase());
        out.push(' ');
    }
    out
}

/// Words as [`spaced_words`] has them, but with a space for each letter between two: a single word is found in either.
fn letters(text: &str) -> String {
    if !text.is_ascii() {
        return spaced_words(text);
    }
    String::from_utf8(ascii_letters(text)).expect("nothing but ASCII was written")
}

fn ascii_letters(text: &str) -> Vec<u8> {
    let mut out = vec![b' '; text.len() + 2];
    for (out, byte) in out[1..].iter_mut().zip(text.bytes()) {
        *out = if byte.is_ascii_alphanumeric() { byte.to_ascii_lowercase() } else { b' ' };
    }
    out
}

/// The same for a text of nothing but ASCII, letter by letter and without a branch.
fn spaced_ascii(text: &str) -> String {
    let mut out = ascii_letters(text);
    let mut end = 1;
    for at in 1..=text.len() {
        let letter = out[at];
        out[end] = letter;
        end += usize::from(letter != b' ' || out[end - 1] != b' ');
    }
    end += usize::from(out[end - 1] != b' ');
    out.truncate(end);
    out[end - 1] = b' ';
    String::from_utf8(out).expect("nothing but ASCII was written")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::candidate;

    fn named(document: &str, title: &str, text: &str) -> Candidate {
        Candidate { title: title.into(), ..candidate(document, 0, text, 0.0) }
    }

    #[track_caller]
    fn check(chunks: &[Candidate], likelihoods: &[f64], expected: &[f64]) {
        let candidates: Vec<&Candidate> = chunks.iter().collect();
        let mut lifted = likelihoods.to_vec();
        lift("", &candidates, &mut lifted);
        assert!(lifted.iter().zip(expected).all(|(a, b)| (a - b).abs() < 1e-12), "{lifted:?}");
    }

    #[test]
    fn a_document_that_likely_text_names_is_lifted() {
        let chunks = [
            named("a", "Counterparts (album)", "Counterparts is an album by Rush, whose drummer is Neil Peart."),
            named("b", "Neil Peart", "He was born in 1952."),
            named("c", "Test for Echo", "It followed Counterparts."),
            named("d", "Peart", "A drummer of that name."),
            named("e", "Drum", "Not a word of its own there."),
        ];
        let lifted = 0.64_f64.powf(0.65) * 0.01_f64.powf(0.35);
        check(&chunks, &[0.64, 0.01, 0.04, 0.01, 0.01], &[0.64, lifted, 0.04, lifted, 0.01]);
    }

    #[test]
    fn a_document_that_the_question_names_is_lifted() {
        let chunks = [named("a", "Scott Derrickson", "An American director."), named("b", "Ed Wood", "He made films.")];
        let candidates: Vec<&Candidate> = chunks.iter().collect();
        let mut lifted = vec![0.81, 0.01];
        let bridges = lift("Were Scott Derrickson and Ed Wood of the same nationality?", &candidates, &mut lifted);
        assert_eq!((bridges[0], bridges[1]), (None, Some(Bridge { from: None, before: 0.01 })));
        assert!((lifted[1] - 0.81_f64.powf(0.65) * 0.01_f64.powf(0.35)).abs() < 1e-12);
    }

    #[test]
    fn names_without_a_document_are_what_is_searched_for() {
        let found = [
            Candidate {
                relevance: 0.9,
                ..named("a", "Counterparts", "Counterparts is an album of Rush Band, whose drummer is Neil Peart.")
            },
            Candidate { relevance: 0.2, ..named("b", "Neil Peart", "He played in Rush Band and saw Geddy Lee.") },
        ];
        let sentences = |text: &str| std::iter::once(0..text.len()).collect::<Vec<_>>();
        let names = gaps("Who drums on Counterparts, as Alex Lifeson says?", &found, &sentences).unwrap();
        assert_eq!(names, ["Alex Lifeson", "Rush Band", "Geddy Lee"]);
        assert!(has_title(&named("c", "RUSH band (Canada)", ""), "Rush Band") && !has_title(&found[0], "Rush Band"));
        assert_eq!(gaps("nothing", &[], &sentences).unwrap(), [""; 0]);
    }

    #[test]
    fn words_are_spaced_alike_with_and_without_letters_beyond_ascii() {
        for text in ["", "  ", "One, TWO -- three.", "it's 1952", "x"] {
            let beyond = spaced_words(&format!("{text} é"));
            assert_eq!(spaced_words(text), beyond.strip_suffix("é ").unwrap(), "{text:?}");
        }
    }

    #[test]
    fn a_name_is_found_in_letters_as_in_words() {
        let texts =
            ["", "Tide tables", "the tide  -- tables, 1952", "TIDE\ntables tidetables", "tide é tables", "tables tide"];
        let chunks: Vec<Candidate> = texts.iter().map(|text| named("a", "", text)).collect();
        for name in [" tide ", " tables ", " tide tables ", " tables 1952 ", " ide ", " é ", " tide é "] {
            for chunk in &chunks {
                let sampled = Sampled { candidate: chunk, letters: letters(&chunk.text), words: OnceCell::new() };
                assert_eq!(
                    sampled.says(name),
                    spaced_words(&chunk.text).contains(name),
                    "{name:?} in {:?}",
                    chunk.text
                );
            }
        }
    }

    #[test]
    fn short_titles_the_document_itself_and_no_title_are_no_bridges() {
        let chunks = [
            named("a", "Rush hour", "All of them say Of and Rush hour."),
            named("b", "Rus", "of"),
            Candidate { document: "a".into(), id: "a#1".into(), index: 1, ..named("a", "Rush hour", "text") },
            named("c", "", "text"),
            named("d", "Of", "text"),
        ];
        check(&chunks, &[0.5, 0.1, 0.1, 0.1, 0.1], &[0.5, 0.1, 0.1, 0.1, 0.1]);
    }

    #[test]
    fn a_title_that_is_a_common_word_is_no_name() {
        let mut chunks: Vec<Candidate> = (0..60)
            .map(|at| named(&format!("d{at}"), "", if at % 4 == 0 { "the film of the year" } else { "a play" }))
            .collect();
        chunks.push(named("film", "Film", "Moving pictures."));
        chunks.push(named("play", "Year", "Twelve months."));
        let mut likelihoods = vec![0.001; 62];
        likelihoods[0] = 0.9;
        check(&chunks, &likelihoods, &likelihoods);
        chunks[0] = named("d0", "", "the film of Laura");
        chunks[61] = named("laura", "Laura", "A name.");
        let mut expected = likelihoods.clone();
        expected[61] = 0.9_f64.powf(0.65) * 0.001_f64.powf(0.35);
        check(&chunks, &likelihoods, &expected);
    }
}
