//! Names, quotations, dates and numbers of a text, found by how they are written, and when two names mean the same.
//!
//! A name is a run of capitalised words, with what stands between them in names ("Hall of Fame", "Ludwig van
//! Beethoven"). The first word of a sentence is capitalised anyway: it counts where another word of the name follows,
//! or where it is known. Everything found is a byte range of the text: nothing can be said that is not there.
//! Cost: one pass over the words of a text.

use super::stop_words::is_function_word;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::ops::Range;

/// The kind of a mention.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// Capitalised words.
    Name,
    /// Words between quotation marks.
    Quote,
    /// A day, a month of a year, a year or a decade.
    Date,
    /// Any other number.
    Number,
}

impl Kind {
    /// Says if it qualifies things instead of being one.
    pub fn is_qualifier(self) -> bool {
        matches!(self, Self::Date | Self::Number)
    }
}

/// Something a text names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mention {
    /// Where: bytes of the text.
    pub span: Range<usize>,
    /// Its kind.
    pub kind: Kind,
    /// Number of its sentence.
    pub sentence: usize,
}

/// The mentions of a text's sentences, in order, without overlaps. `known` tells, of a word in lower case that opens a
/// sentence, whether it is a name.
pub fn mentions(text: &str, sentences: &[Range<usize>], known: &dyn Fn(&str) -> bool) -> Vec<Mention> {
    let mut found = Vec::new();
    for (sentence, range) in sentences.iter().enumerate() {
        let words = words(text, range.clone());
        let mut of_sentence: Vec<(Range<usize>, Kind)> =
            quotes(text, range.clone()).into_iter().map(|span| (span, Kind::Quote)).collect();
        let mut add = |spans: Vec<(Range<usize>, Kind)>| {
            for (span, kind) in spans {
                if of_sentence.iter().all(|(other, _)| span.end <= other.start || other.end <= span.start) {
                    of_sentence.push((span, kind));
                }
            }
        };
        add(dates(text, &words));
        add(names(text, &words, known));
        add(numbers(text, &words));
        of_sentence.sort_by_key(|(span, _)| span.start);
        found.extend(of_sentence.into_iter().map(|(span, kind)| Mention { span, kind, sentence }));
    }
    found
}

/// The words of a part of a text: letters and digits, with an apostrophe, hyphen, full stop, comma or ampersand inside
/// where letters (a comma: digits) stand on both sides.
pub fn words(text: &str, range: Range<usize>) -> Vec<Range<usize>> {
    let (mut words, mut start) = (Vec::new(), None);
    let part = &text[range.clone()];
    let mut letters = part.char_indices().peekable();
    let mut before = ' ';
    while let Some((at, c)) = letters.next() {
        let after = letters.peek().map_or(' ', |&(_, c)| c);
        let joins = match c {
            '\'' | '’' | '-' | '.' | '&' => before.is_alphanumeric() && after.is_alphanumeric(),
            ',' => before.is_ascii_digit() && after.is_ascii_digit(),
            _ => c.is_alphanumeric(),
        };
        match (joins, start) {
            (true, None) => start = Some(at),
            (false, Some(from)) => {
                words.push(range.start + from..range.start + at);
                start = None;
            }
            _ => {}
        }
        before = c;
    }
    words.extend(start.map(|from| range.start + from..range.end));
    words
}

/// Quotations of at most [`QUOTE_WORDS_MAX`] words, without their marks and the punctuation before the last of them.
fn quotes(text: &str, range: Range<usize>) -> Vec<Range<usize>> {
    const PAIRS: [(char, char); 3] = [('"', '"'), ('“', '”'), ('«', '»')];
    let (mut found, mut open) = (Vec::new(), None::<(char, usize)>);
    let opens = |at: usize| text[at..range.end].starts_with(char::is_alphanumeric);
    for (at, c) in text[range.clone()].char_indices() {
        let at = range.start + at;
        match open {
            Some((close, start)) if c == close => {
                let quoted = text[start..at].trim_end_matches(|c: char| c.is_whitespace() || ",.;:!?".contains(c));
                let span = start..start + quoted.len();
                if (1..=QUOTE_WORDS_MAX).contains(&words(text, span.clone()).len()) {
                    found.push(span);
                }
                open = None;
            }
            None => {
                let pair = PAIRS.iter().find(|(mark, _)| *mark == c && opens(at + c.len_utf8()));
                open = pair.map(|&(mark, close)| (close, at + mark.len_utf8()));
            }
            _ => {}
        }
    }
    found
}

fn names(text: &str, words: &[Range<usize>], known: &dyn Fn(&str) -> bool) -> Vec<(Range<usize>, Kind)> {
    let word = |at: usize| &text[words[at].clone()];
    let capital = |at: usize| word(at).chars().next().is_some_and(char::is_uppercase);
    let mut found = Vec::new();
    let mut at = 0;
    while at < words.len() {
        let opens_sentence = at == 0;
        if !capital(at) || (opens_sentence && is_opener(word(at))) || word(at) == "I" {
            at += 1;
            continue;
        }
        let mut end = at + 1;
        while end < words.len() && joined(text, &words[end - 1], &words[end]) {
            if capital(end) || (digits(word(end)) && year(word(end)).is_none()) {
                end += 1;
                continue;
            }
            let bridge = (end..words.len().min(end + 2)).take_while(|&next| is_particle(word(next))).count();
            let next = end + bridge;
            let reaches = bridge > 0
                && next < words.len()
                && capital(next)
                && (end..next).all(|at| joined(text, &words[at], &words[at + 1]));
            if !reaches {
                break;
            }
            end = next + 1;
        }
        let alone = end == at + 1;
        if !(alone && opens_sentence && !known(&word(at).to_lowercase())) {
            let mut span = words[at].start..words[end - 1].end;
            for possessive in ["'s", "’s"] {
                span.end -= if text[span.clone()].ends_with(possessive) { possessive.len() } else { 0 };
            }
            found.push((span, Kind::Name));
        }
        at = end;
    }
    found
}

/// Says if two words can be of one name: one space between them, or one that follows an initial, a title or a company's
/// name.
fn joined(text: &str, one: &Range<usize>, other: &Range<usize>) -> bool {
    let (gap, word) = (&text[one.end..other.start], &text[one.clone()]);
    let possessive = word.ends_with("'s") || word.ends_with("’s");
    match gap {
        " " | "\n" => !possessive,
        ". " => {
            let initial = word.rsplit('.').next().is_some_and(|last| last.chars().count() == 1);
            initial || ABBREVIATIONS.contains(&word)
        }
        ", " => COMPANY.contains(&text[other.clone()].to_lowercase().as_str()),
        _ => false,
    }
}

fn digits(word: &str) -> bool {
    word.starts_with(|c: char| c.is_ascii_digit())
}

fn numbers(text: &str, words: &[Range<usize>]) -> Vec<(Range<usize>, Kind)> {
    words.iter().filter(|word| digits(&text[(*word).clone()])).map(|word| (word.clone(), Kind::Number)).collect()
}

fn dates(text: &str, words: &[Range<usize>]) -> Vec<(Range<usize>, Kind)> {
    let word = |at: usize| words.get(at).map_or("", |word| &text[word.clone()]);
    let near = |at: usize| matches!(&text[words[at - 1].end..words[at].start], " " | ", " | "\n" | ". ");
    let mut found = Vec::new();
    let mut at = 0;
    while at < words.len() {
        let is_day = |at: usize| at < words.len() && near(at) && day(word(at)).is_some();
        let is_year = |at: usize| at < words.len() && near(at) && year(word(at)).is_some();
        let is_month = |at: usize| at < words.len() && near(at) && month(word(at)).is_some();
        let n = if month(word(at)).is_some() {
            match (is_day(at + 1), is_year(at + 1)) {
                (true, _) if is_year(at + 2) => 3,
                (true, _) | (_, true) => 2,
                _ => 0,
            }
        } else if day(word(at)).is_some() && is_month(at + 1) {
            2 + usize::from(is_year(at + 2))
        } else {
            usize::from(Date::parse(word(at)).is_some())
        };
        if n > 0 {
            found.push((words[at].start..words[at + n - 1].end, Kind::Date));
        }
        at += n.max(1);
    }
    found
}

/// A date as far as a text gives it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Date {
    /// The year, or the first of its decade.
    pub year: Option<u16>,
    /// 1 to 12.
    pub month: Option<u8>,
    /// 1 to 31.
    pub day: Option<u8>,
}

impl Date {
    /// Reads "1 May 1990", "May 1, 1990", "May 1990", "1990-05-01", "1990" or "1990s".
    pub fn parse(text: &str) -> Option<Self> {
        let iso: Vec<&str> = text.split('-').collect();
        if let [y, m, d] = iso[..] {
            let m = m.parse().ok().filter(|m| (1..=12).contains(m))?;
            return Some(Self { year: Some(year(y)?), month: Some(m), day: Some(day(d)?) });
        }
        let mut date = Self { year: None, month: None, day: None };
        for word in words(text, 0..text.len()) {
            let word = &text[word];
            date.year = date.year.or(year(word));
            date.month = date.month.or(month(word));
            date.day = date.day.or(day(word));
        }
        (date.year.is_some() || (date.month.is_some() && date.day.is_some())).then_some(date)
    }

    /// Says if both can be the same day: nothing that both say differs.
    pub fn agrees(&self, other: &Self) -> bool {
        fn same<T: PartialEq>(one: Option<T>, other: Option<T>) -> bool {
            one.is_none() || other.is_none() || one == other
        }
        same(self.year, other.year) && same(self.month, other.month) && same(self.day, other.day)
    }
}

fn year(word: &str) -> Option<u16> {
    let word = word.strip_suffix("s").unwrap_or(word);
    (word.len() == 4).then(|| word.parse().ok()).flatten().filter(|year| (1000..=2100).contains(year))
}

fn day(word: &str) -> Option<u8> {
    (word.len() <= 2).then(|| word.parse().ok()).flatten().filter(|day| (1..=31).contains(day))
}

fn month(word: &str) -> Option<u8> {
    let named = MONTHS
        .iter()
        .position(|month| *month == word || (word.len() >= 3 && word.len() <= 4 && month.starts_with(word)));
    named.map(|at| at as u8 + 1)
}

/// A name brought to the form in which equal names are equal: lower case, without the article it opens with, the
/// parenthesis that tells namesakes apart ("Rush (band)"), and what only says that it is a company ("Apple Computer,
/// Inc.").
pub fn key(name: &str) -> String {
    let name = match name.rfind(" (") {
        Some(at) if at > 0 && name.ends_with(')') => &name[..at],
        _ => name,
    };
    let lower: Vec<String> = words(name, 0..name.len()).into_iter().map(|word| name[word].to_lowercase()).collect();
    let mut words = &lower[..];
    if words.len() > 1 && words[0] == "the" {
        words = &words[1..];
    }
    while words.len() > 1 && COMPANY.contains(&words[words.len() - 1].as_str()) {
        words = &words[..words.len() - 1];
    }
    words.join(" ")
}

/// Names that passages give a second form of: "International Business Machines (IBM)".
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Aliases {
    long: BTreeMap<String, String>,
}

impl Aliases {
    /// Learns the abbreviations a text explains. The first explanation stays.
    pub(crate) fn learn(&mut self, text: &str, mentions: &[Mention]) {
        for pair in mentions.windows(2) {
            let [one, other] = pair else { continue };
            let (name, short) = (&text[one.span.clone()], &text[other.span.clone()]);
            let explained = &text[one.span.end..other.span.start] == " (" && text[other.span.end..].starts_with(')');
            if one.kind == Kind::Name && explained && abbreviates(short, name) {
                self.long.entry(key(short)).or_insert_with(|| key(name));
            }
        }
    }

    /// Learns that a name is another form of one, unless it is known to be a form of some other.
    pub(crate) fn join(&mut self, other: &str, name: &str) {
        let (other, known) = (key(other), self.key(name));
        if other == known || self.long.contains_key(&other) {
            return;
        }
        self.long.values_mut().filter(|long| **long == other).for_each(|long| long.clone_from(&known));
        self.long.insert(other, known);
    }

    /// The key of a name.
    pub fn key(&self, name: &str) -> String {
        let key = key(name);
        self.long.get(&key).cloned().unwrap_or(key)
    }
}

/// Says if capitals are the initials of a name; those of "of", "the" and the like may be left out.
fn abbreviates(short: &str, name: &str) -> bool {
    let short: Vec<char> = short.chars().filter(|c| c.is_alphanumeric()).collect();
    if !(2..=8).contains(&short.len()) || !short.iter().all(|c| c.is_uppercase()) {
        return false;
    }
    let words = words(name, 0..name.len());
    let initials = |all: bool| -> Vec<char> {
        let kept =
            words.iter().map(|word| &name[word.clone()]).filter(|word| all || !is_function_word(&word.to_lowercase()));
        kept.filter_map(|word| word.chars().next()).flat_map(char::to_uppercase).collect()
    };
    short == initials(true) || short == initials(false)
}

/// Words that open a sentence or a question and are no name.
pub(crate) fn is_opener(word: &str) -> bool {
    let lower = word.to_lowercase();
    is_function_word(&lower) || OPENERS.contains(&lower.as_str())
}

fn is_particle(word: &str) -> bool {
    PARTICLES.contains(&word)
}

/// Words that stand between the capitalised words of one name.
const PARTICLES: [&str; 14] =
    ["of", "the", "de", "la", "le", "du", "del", "della", "di", "da", "van", "von", "der", "den"];
/// A longer quotation is somebody's speech, not a title.
const QUOTE_WORDS_MAX: usize = 12;

const OPENERS: [&str; 18] = [
    "name", "tell", "give", "list", "find", "show", "describe", "explain", "compare", "during", "although", "since",
    "however", "until", "whether", "within", "among", "between",
];
const ABBREVIATIONS: [&str; 9] = ["St", "Dr", "Mr", "Mrs", "Ms", "Jr", "Sr", "Prof", "Mt"];
const COMPANY: [&str; 24] = [
    "inc",
    "corp",
    "corporation",
    "company",
    "co",
    "ltd",
    "limited",
    "llc",
    "plc",
    "gmbh",
    "ag",
    "sa",
    "nv",
    "group",
    "holdings",
    "computer",
    "computers",
    "technologies",
    "electronics",
    "motors",
    "systems",
    "software",
    "industries",
    "international",
];
const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];
