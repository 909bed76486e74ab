//! Rust files as tokens: the part of each that is not a test, its functions, its string literals.

use std::path::{Path, PathBuf};

use proc_macro2::{Delimiter, Group, TokenStream, TokenTree};

/// Keywords that open an item; a comma inside of one does not end it.
const ITEMS: [&str; 13] =
    ["pub", "mod", "use", "fn", "struct", "enum", "trait", "impl", "const", "static", "type", "unsafe", "macro_rules"];

/// All Rust files below a folder, ascending.
pub(super) fn files(folder: &Path) -> Vec<PathBuf> {
    let (mut found, mut folders) = (Vec::new(), vec![folder.to_owned()]);
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                found.push(path);
            }
        }
    }
    found.sort();
    found
}

/// The tokens of a file, without its tests.
pub(super) fn tokens(path: &Path) -> Vec<TokenTree> {
    let text = std::fs::read_to_string(path).unwrap();
    let stream: TokenStream = text.parse().unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    outside_tests(stream)
}

/// The tokens of one level, without the items that only tests compile.
pub(super) fn outside_tests(stream: TokenStream) -> Vec<TokenTree> {
    let tokens: Vec<TokenTree> = stream.into_iter().collect();
    let (mut kept, mut at) = (Vec::new(), 0);
    while at < tokens.len() {
        match attribute(&tokens[at..]) {
            Some(group) if tests_only(group) => at = end_of_item(&tokens, at),
            Some(_) => {
                kept.extend_from_slice(&tokens[at..at + 2]);
                at += 2;
            }
            None => {
                kept.push(tokens[at].clone());
                at += 1;
            }
        }
    }
    kept
}

/// The brackets of an attribute that begins here.
fn attribute(tokens: &[TokenTree]) -> Option<&Group> {
    match tokens {
        [TokenTree::Punct(hash), TokenTree::Group(group), ..]
            if hash.as_char() == '#' && group.delimiter() == Delimiter::Bracket =>
        {
            Some(group)
        }
        _ => None,
    }
}

fn tests_only(attribute: &Group) -> bool {
    let words = attribute.stream().to_string();
    words == "test" || (words.starts_with("cfg") && words.contains("test") && !words.contains("not"))
}

/// Past the item whose attributes begin at `from`.
fn end_of_item(tokens: &[TokenTree], from: usize) -> usize {
    let mut at = from;
    while attribute(&tokens[at..]).is_some() {
        at += 2;
    }
    let is_item = ITEMS.iter().any(|keyword| is_word(tokens.get(at), keyword));
    while let Some(token) = tokens.get(at) {
        at += 1;
        match token {
            TokenTree::Punct(punct) if punct.as_char() == ';' || (punct.as_char() == ',' && !is_item) => break,
            TokenTree::Group(group) if group.delimiter() == Delimiter::Brace && is_item => break,
            _ => {}
        }
    }
    at
}

pub(super) fn is_word(token: Option<&TokenTree>, word: &str) -> bool {
    matches!(token, Some(TokenTree::Ident(ident)) if ident == word)
}

pub(super) fn is_punct(token: Option<&TokenTree>, sign: char) -> bool {
    matches!(token, Some(TokenTree::Punct(punct)) if punct.as_char() == sign)
}

/// Each function: its first line, its lines, its name.
pub(super) fn functions(tokens: &[TokenTree], found: &mut Vec<(usize, usize, String)>) {
    for (at, token) in tokens.iter().enumerate() {
        if let TokenTree::Group(group) = token {
            functions(&outside_tests(group.stream()), found);
        }
        let (true, Some(TokenTree::Ident(name))) = (is_word(Some(token), "fn"), tokens.get(at + 1)) else { continue };
        let signature = tokens[at..].iter().take_while(|token| !is_punct(Some(token), ';'));
        let mut bodies = signature.filter_map(|token| match token {
            TokenTree::Group(group) if group.delimiter() == Delimiter::Brace => Some(group),
            _ => None,
        });
        if let Some(body) = bodies.next() {
            let (first, last) = (token.span().start().line, body.span_close().end().line);
            found.push((first, last + 1 - first, name.to_string()));
        }
    }
}

/// Each literal but those of documentation: its line and its source.
pub(super) fn literals(tokens: &[TokenTree], found: &mut Vec<(usize, String)>) {
    for (at, token) in tokens.iter().enumerate() {
        match token {
            TokenTree::Group(group) => {
                let inner = outside_tests(group.stream());
                let documents = is_word(inner.first(), "doc") && at > 0;
                if !documents {
                    literals(&inner, found);
                }
            }
            TokenTree::Literal(literal) => found.push((literal.span().start().line, literal.to_string())),
            TokenTree::Ident(_) | TokenTree::Punct(_) => {}
        }
    }
}
