//! From tokens to conditions, by recursive descent; the grammar is that of [`super`].

use std::ops::Range;
use std::str::FromStr;

use super::FilterError;
use super::anchor::FILTER_PLACES_MAX;
use super::lexer::{Token, syntax, tokens};
use super::tree::{Condition, Constant, FILTER_BYTES_MAX, FILTER_DEPTH_MAX, Filter, Literal, Node, Test};
use cento_collection::format::metadata::Comparison;

/// Words that are no field unless they stand in backticks.
const RESERVED: [&str; 4] = ["and", "or", "not", "in"];

impl Filter {
    /// Reads a filter.
    ///
    /// # Errors
    /// [`FilterError::Syntax`], with the place and what was expected there; [`FilterError::TooLong`],
    /// [`FilterError::TooManyPlaces`].
    pub fn parse(text: &str) -> Result<Self, FilterError> {
        let filter = Self { text: text.to_owned(), root: parse(text)? };
        match filter.n_places() {
            n if n > FILTER_PLACES_MAX => Err(FilterError::TooManyPlaces { n, limit: FILTER_PLACES_MAX }),
            _ => Ok(filter),
        }
    }
}

impl FromStr for Filter {
    type Err = FilterError;

    fn from_str(text: &str) -> Result<Self, FilterError> {
        Self::parse(text)
    }
}

fn parse(text: &str) -> Result<Node, FilterError> {
    if text.len() > FILTER_BYTES_MAX {
        return Err(FilterError::TooLong { n_bytes: text.len(), limit_bytes: FILTER_BYTES_MAX });
    }
    let mut parser = Parser { text, tokens: tokens(text)?, at: 0 };
    let root = parser.filter(0)?;
    match parser.peek() {
        Token::End => Ok(root),
        _ => Err(parser.expected("`and`, `or` or the end")),
    }
}

struct Parser<'t> {
    text: &'t str,
    tokens: Vec<(Token, Range<usize>)>,
    at: usize,
}

impl Parser<'_> {
    fn filter(&mut self, depth: usize) -> Result<Node, FilterError> {
        let mut nodes = vec![self.both(depth)?];
        while self.word("or") {
            nodes.push(self.both(depth)?);
        }
        Ok(if nodes.len() == 1 { nodes.remove(0) } else { Node::Or(nodes) })
    }

    fn both(&mut self, depth: usize) -> Result<Node, FilterError> {
        let mut nodes = vec![self.one(depth)?];
        while self.word("and") {
            nodes.push(self.one(depth)?);
        }
        Ok(if nodes.len() == 1 { nodes.remove(0) } else { Node::And(nodes) })
    }

    fn one(&mut self, depth: usize) -> Result<Node, FilterError> {
        if depth > FILTER_DEPTH_MAX {
            let message = format!("parentheses and `not` lie more than {FILTER_DEPTH_MAX} deep in each other");
            return Err(syntax(self.text, self.span(), message));
        }
        if self.word("not") {
            return Ok(Node::Not(Box::new(self.one(depth + 1)?)));
        }
        if self.mark("(") {
            let inner = self.filter(depth + 1)?;
            return if self.mark(")") { Ok(inner) } else { Err(self.expected("`and`, `or` or `)`")) };
        }
        self.condition().map(Node::Condition)
    }

    fn condition(&mut self) -> Result<Condition, FilterError> {
        let span = self.span();
        let field = match self.peek() {
            Token::Name(name) => name.clone(),
            Token::Word(word) if !RESERVED.iter().any(|reserved| word.eq_ignore_ascii_case(reserved)) => word.clone(),
            _ => return Err(self.expected("a field, `not` or `(`")),
        };
        self.at += 1;
        Ok(Condition { field, span, test: self.test()? })
    }

    fn test(&mut self) -> Result<Test, FilterError> {
        if self.word("exists") {
            return Ok(Test::Exists);
        }
        if self.word("is") {
            return if self.word("missing") { Ok(Test::Missing) } else { Err(self.expected("`missing`")) };
        }
        if self.word("starts") {
            if !self.word("with") {
                return Err(self.expected("`with`"));
            }
            return match self.peek() {
                Token::Value(Constant::String(..)) => Ok(Test::StartsWith(self.literal()?)),
                _ => Err(self.expected("a string")),
            };
        }
        if self.word("not") {
            return if self.word("in") { Ok(Test::NoneOf(self.literals()?)) } else { Err(self.expected("`in`")) };
        }
        if self.word("in") {
            return Ok(Test::AnyOf(self.literals()?));
        }
        let Token::Mark(mark @ ("=" | "!=" | "<" | "<=" | ">" | ">=")) = *self.peek() else {
            return Err(self.expected("=, !=, <, <=, >, >=, `in`, `not in`, `starts with`, `exists` or `is missing`"));
        };
        self.at += 1;
        let literal = self.literal()?;
        Ok(match mark {
            "=" => Test::AnyOf(vec![literal]),
            "!=" => Test::NoneOf(vec![literal]),
            "<" => Test::Compare(Comparison::Less, literal),
            "<=" => Test::Compare(Comparison::AtMost, literal),
            ">" => Test::Compare(Comparison::Greater, literal),
            _ => Test::Compare(Comparison::AtLeast, literal),
        })
    }

    fn literals(&mut self) -> Result<Vec<Literal>, FilterError> {
        if !self.mark("(") {
            return Err(self.expected("`(`"));
        }
        let mut literals = vec![self.literal()?];
        while self.mark(",") {
            literals.push(self.literal()?);
        }
        if self.mark(")") { Ok(literals) } else { Err(self.expected("`,` or `)`")) }
    }

    fn literal(&mut self) -> Result<Literal, FilterError> {
        let span = self.span();
        let constant = match self.peek() {
            Token::Value(constant) => constant.clone(),
            Token::Word(word) if word.eq_ignore_ascii_case("true") => Constant::Boolean(true),
            Token::Word(word) if word.eq_ignore_ascii_case("false") => Constant::Boolean(false),
            Token::Word(word) => {
                let message = format!("expected a value, found `{word}`; a string stands in quotes: \"{word}\"");
                return Err(syntax(self.text, span, message));
            }
            _ => return Err(self.expected("a value")),
        };
        self.at += 1;
        Ok(Literal { constant, span })
    }

    fn peek(&self) -> &Token {
        &self.tokens[self.at].0 // the end is never passed
    }

    fn span(&self) -> Range<usize> {
        self.tokens[self.at].1.clone()
    }

    /// Takes this keyword if it is next.
    fn word(&mut self, keyword: &str) -> bool {
        let is_next = matches!(self.peek(), Token::Word(word) if word.eq_ignore_ascii_case(keyword));
        self.at += usize::from(is_next);
        is_next
    }

    /// Takes this mark if it is next.
    fn mark(&mut self, mark: &str) -> bool {
        let is_next = matches!(self.peek(), Token::Mark(next) if *next == mark);
        self.at += usize::from(is_next);
        is_next
    }

    fn expected(&self, what: &str) -> FilterError {
        syntax(self.text, self.span(), format!("expected {what}, found {}", self.peek()))
    }
}
