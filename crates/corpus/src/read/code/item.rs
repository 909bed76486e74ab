//! The name of an item, as a person would say it: `class Parser`, `fn parse`, `Parser.parse`.

use std::ops::Range;

use tree_sitter::Node;

use super::language::{Language, Role};

/// Longest name that is shown; what stands behind that is left out. Signatures of generated code have no end.
const NAME_BYTES_MAX: usize = 160;

/// Declarators inside each other in C: pointers to arrays of functions.
const DECLARATORS_MAX: usize = 16;

/// An item of a file, before it is known where it stands.
#[derive(Debug)]
pub(super) struct Named {
    /// Its own name, without what it is in.
    pub(super) name: String,
    /// The name with its keyword.
    pub(super) title: String,
    /// The end of the name in the text.
    pub(super) end: usize,
    /// Items may stand in it.
    pub(super) holds: bool,
    /// Its methods are called after it.
    pub(super) is_class: bool,
}

/// The name of a node that may be an item, inside the class `class`; none if it is no item after all.
pub(super) fn name(node: Node<'_>, role: Role, language: Language, class: Option<&str>, text: &str) -> Option<Named> {
    let field = |name: &str| node.child_by_field_name(name);
    let said = |span: Range<usize>| shown(text.get(span).unwrap_or_default());
    let function = |word: &str, name: String, end: usize| {
        let title = match class {
            Some(class) => format!("{class}{}{name}", language.separator()),
            None if word.is_empty() => format!("{name}()"),
            None => format!("{word} {name}"),
        };
        Named { name, title, end, holds: false, is_class: false }
    };
    let holder = |word: &str, name: String, end: usize, role: Role| {
        let title = format!("{word} {name}");
        Named { name, title, end, holds: !matches!(role, Role::Type(_)), is_class: matches!(role, Role::Class(_)) }
    };
    match role {
        Role::Function(word) => {
            let span = match field("declarator") {
                Some(declarator) => declared(declarator)?.byte_range(),
                None => field("name")?.byte_range(),
            };
            let name = said(span.clone());
            let name = match field("receiver") {
                Some(receiver) => {
                    format!("{}.{name}", receiver_of(text.get(receiver.byte_range()).unwrap_or_default()))
                }
                None => name,
            };
            Some(function(word, name, span.end))
        }
        Role::Class("impl") => {
            let of = field("type")?.byte_range();
            let name = said(of.clone());
            let title = match field("trait") {
                Some(implemented) => format!("impl {} for {name}", said(implemented.byte_range())),
                None => format!("impl {name}"),
            };
            let bare = name.split('<').next().unwrap_or(&name).to_owned();
            Some(Named { name: bare, title, end: of.end, holds: true, is_class: true })
        }
        Role::Type(word) | Role::Class(word) | Role::Module(word) => {
            // Without a body it is a mention, or stands in another file.
            let has_body = field("body").is_some() || matches!(language, Language::Rust | Language::Go);
            let is_elsewhere = matches!(role, Role::Module(_)) && field("body").is_none();
            if !has_body || is_elsewhere {
                return None;
            }
            let named = field("name")?;
            Some(holder(word, said(named.byte_range()), named.end_byte(), role))
        }
        Role::Typedef => {
            let (of, named) = (field("type")?, field("declarator")?);
            let has = |name: &str| of.child_by_field_name(name).is_some();
            let word = match of.kind() {
                "struct_specifier" => "struct",
                "union_specifier" => "union",
                "enum_specifier" => "enum",
                _ => return None,
            };
            let is_nameless = has("body") && !has("name");
            is_nameless.then(|| holder(word, said(named.byte_range()), of.start_byte() + word.len(), Role::Type(word)))
        }
        Role::Value => assigned(field("name")?, field("value")?, &function, &holder, &said),
        Role::Assigned(name, value) => assigned(field(name)?, field(value)?, &function, &holder, &said),
        Role::Wrapper | Role::WrapperOfOne | Role::Lead => None,
    }
}

/// The item that a name is given as its value, if it is one.
fn assigned(
    name: Node<'_>,
    value: Node<'_>,
    function: &dyn Fn(&str, String, usize) -> Named,
    class: &dyn Fn(&str, String, usize, Role) -> Named,
    said: &dyn Fn(Range<usize>) -> String,
) -> Option<Named> {
    match value.kind() {
        "arrow_function" | "function_expression" | "generator_function" => {
            Some(function("function", said(name.byte_range()), name.end_byte()))
        }
        "class" => Some(class("class", said(name.byte_range()), name.end_byte(), Role::Class("class"))),
        _ => None,
    }
}

/// The name inside the declarators of C: that of `parse` in `*parse(int)[2]`.
fn declared(declarator: Node<'_>) -> Option<Node<'_>> {
    let mut at = declarator;
    for _ in 0..DECLARATORS_MAX {
        match at.child_by_field_name("declarator") {
            Some(inner) => at = inner,
            // References have no field for what they refer to.
            None if at.kind() == "reference_declarator" => at = at.named_child(0)?,
            None => return Some(at),
        }
    }
    None
}

/// The type of a receiver in Go: `Parser` of `(p *Parser[T])`.
fn receiver_of(receiver: &str) -> String {
    let inner = receiver.trim_matches(['(', ')', ' ']);
    let of = inner.rsplit_once([' ', '*']).map_or(inner, |(_, of)| of);
    shown(of.split('[').next().unwrap_or(of))
}

/// Words in one line, and not too many of them.
fn shown(text: &str) -> String {
    let end = text.floor_char_boundary(NAME_BYTES_MAX);
    let mut shown = text[..end].split_whitespace().collect::<Vec<_>>().join(" ");
    if end < text.len() {
        shown.push('…');
    }
    shown
}
