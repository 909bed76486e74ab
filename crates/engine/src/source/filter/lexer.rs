//! Tokens of a filter: words, values and marks, each with its place.

use std::fmt;
use std::ops::Range;

use cento_corpus::Date;

use super::tree::Constant;
use super::{FilterError, Place};

/// A token.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Token {
    /// A keyword or the name of a field.
    Word(String),
    /// A name in backticks.
    Name(String),
    /// A string, number or date; `true` and `false` are words.
    Value(Constant),
    /// One of [`MARKS`].
    Mark(&'static str),
    End,
}

/// Marks, those first that begin with another.
const MARKS: [&str; 9] = ["!=", "<=", ">=", "=", "<", ">", "(", ")", ","];

/// Marks of other languages, each with its form here.
const FOREIGN: [(&str, &str); 8] =
    [("==", "="), ("<>", "!="), ("=>", ">="), ("=<", "<="), ("&", "and"), ("|", "or"), ("!", "not"), (COLON, "=")];

/// The mark between a field and an unquoted value of the query languages of search engines.
const COLON: &str = ":";

impl fmt::Display for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Word(word) => write!(f, "`{word}`"),
            Self::Name(name) => write!(f, "the field `{name}`"),
            Self::Value(constant) => write!(f, "{constant}"),
            Self::Mark(mark) => write!(f, "`{mark}`"),
            Self::End => f.write_str("the end"),
        }
    }
}

impl fmt::Display for Constant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Boolean(value) => value.fmt(f),
            Self::Integer(value) => value.fmt(f),
            Self::Float(value) => value.fmt(f),
            Self::Date(date) => date.fmt(f),
            Self::String(text, _) => write!(f, "{text:?}"),
        }
    }
}

/// The tokens of a text with their bytes; the last is [`Token::End`].
pub(super) fn tokens(text: &str) -> Result<Vec<(Token, Range<usize>)>, FilterError> {
    let mut tokens = Vec::new();
    let mut at = 0;
    loop {
        at = text.len() - text[at..].trim_start().len();
        let (token, n_bytes) = token(text, at)?;
        let is_end = token == Token::End;
        tokens.push((token, at..at + n_bytes));
        at += n_bytes;
        if is_end {
            return Ok(tokens);
        }
    }
}

/// The token at a place that is not blank, and its length in bytes.
fn token(text: &str, at: usize) -> Result<(Token, usize), FilterError> {
    let rest = &text[at..];
    let Some(first) = rest.chars().next() else { return Ok((Token::End, 0)) };
    if first.is_alphabetic() || first == '_' {
        let n_bytes = run(rest, is_of_word);
        return Ok((Token::Word(rest[..n_bytes].to_owned()), n_bytes));
    }
    let is_digit = |c: char| c.is_ascii_digit();
    if is_digit(first) || "+-.".contains(first) && rest[1..].starts_with(|c| is_digit(c) || c == '.') {
        let n_bytes = run(rest, |c| c.is_ascii_alphanumeric() || "_.:+-".contains(c));
        return Ok((Token::Value(number_or_date(text, at..at + n_bytes)?), n_bytes));
    }
    match first {
        '"' | '\'' => {
            let (string, n_bytes) = string(text, at, first)?;
            let date = Date::parse(&string);
            return Ok((Token::Value(Constant::String(string, date)), n_bytes));
        }
        '`' => {
            let Some(n_bytes) = rest[1..].find('`') else {
                return Err(syntax(text, at..at + 1, "this backtick is never closed".to_owned()));
            };
            return Ok((Token::Name(rest[1..=n_bytes].to_owned()), n_bytes + 2));
        }
        _ => {}
    }
    let mark = MARKS.iter().find(|mark| rest.starts_with(**mark));
    if let Some((foreign, ours)) = FOREIGN.iter().find(|(foreign, _)| rest.starts_with(*foreign) && mark != Some(&"!="))
    {
        let example = (*foreign == COLON).then(|| around(text, at)).flatten();
        let example = example.map_or_else(String::new, |example| format!(", as in {example}"));
        return Err(syntax(text, at..at + foreign.len(), format!("`{foreign}` is written `{ours}` here{example}")));
    }
    match mark {
        Some(mark) => Ok((Token::Mark(mark), mark.len())),
        None => Err(syntax(text, at..at + first.len_utf8(), format!("{first:?} means nothing here"))),
    }
}

fn is_of_word(c: char) -> bool {
    c.is_alphanumeric() || "_.-".contains(c)
}

/// The condition that the words around a colon mean, as it is written here; none if one of them is missing.
fn around(text: &str, at: usize) -> Option<String> {
    let field = text[..at].trim_end().rsplit(|c| !is_of_word(c)).next().filter(|field| !field.is_empty())?;
    let rest = text[at + COLON.len()..].trim_start();
    let value = match rest.chars().next()? {
        mark @ ('"' | '\'') => rest[..string(rest, 0, mark).ok()?.1].to_owned(),
        _ => {
            let value = &rest[..run(rest, |c| !c.is_whitespace() && !"(),".contains(c))];
            let is_plain = ["true", "false"].contains(&value) || number_or_date(value, 0..value.len()).is_ok();
            if is_plain { value.to_owned() } else { format!("{value:?}") }
        }
    };
    (value != "\"\"").then(|| format!("{field} = {value}"))
}

/// Bytes of the characters at the start for which `is` holds.
fn run(text: &str, is: impl Fn(char) -> bool) -> usize {
    text.find(|c| !is(c)).unwrap_or(text.len())
}

fn number_or_date(text: &str, span: Range<usize>) -> Result<Constant, FilterError> {
    let written = &text[span.clone()];
    if let Some(date) = Date::parse(written) {
        return Ok(Constant::Date(date));
    }
    if let Ok(integer) = written.parse() {
        return Ok(Constant::Integer(integer));
    }
    // Read as metadata was, so that the same digits are the same number.
    let float: Option<f64> = serde_json::from_str(written).ok().or_else(|| written.parse().ok());
    match float.filter(|float| float.is_finite()) {
        Some(float) => Ok(Constant::Float(float)),
        None => {
            let message = format!(
                "`{written}` is no number and no date; dates are written 2020-05-17 or 2020-05-17T10:30:00Z, strings in quotes"
            );
            Err(syntax(text, span, message))
        }
    }
}

/// The string that a quotation mark opens, and its length in bytes, marks included.
fn string(text: &str, at: usize, mark: char) -> Result<(String, usize), FilterError> {
    let mut string = String::new();
    let mut characters = text[at + 1..].char_indices();
    while let Some((offset, c)) = characters.next() {
        let place = at + 1 + offset;
        match c {
            _ if c == mark => return Ok((string, offset + 2)),
            '\\' => string.push(match characters.next() {
                Some((_, c @ ('\\' | '"' | '\''))) => c,
                Some((_, 'n')) => '\n',
                Some((_, 't')) => '\t',
                other => {
                    let end = other.map_or(text.len(), |(offset, c)| at + 1 + offset + c.len_utf8());
                    let message = r#"after a backslash expected \, ", ', n or t"#.to_owned();
                    return Err(syntax(text, place..end, message));
                }
            }),
            c => string.push(c),
        }
    }
    Err(syntax(text, at..at + 1, "this string is never closed".to_owned()))
}

/// An error at a place.
pub(super) fn syntax(text: &str, span: Range<usize>, message: String) -> FilterError {
    FilterError::Syntax { message, place: Place::new(text, &span) }
}
