//! The tree of a page, as a browser makes it, and a walk over it.
//!
//! Cost: html5ever takes the square of the nesting depth and of an element's attributes, and copies open formatting
//! into every paragraph: it is fed in pieces, and given up over a budget. The walk does not recurse.

use std::cell::Cell;

use ego_tree::NodeId;
use html5ever::TokenizerResult;
use html5ever::buffer_queue::BufferQueue;
use html5ever::tokenizer::{Token, TokenSink, TokenSinkResult, Tokenizer, TokenizerOpts};
use html5ever::tree_builder::{TreeBuilder, TreeBuilderOpts, TreeSink};
use scraper::{Html, HtmlTreeSink, Node};

use crate::budget::{ATTRIBUTES_MAX, Excess, FREE_BYTES, NESTED_ELEMENTS_MAX, NODES_PER_BYTE_MAX, within};

/// Bytes that html5ever is given between two looks at the tree it makes of them.
const PIECE_BYTES: usize = 1024;

/// The tree of a page, as a browser makes it.
pub(super) fn tree(source: &str) -> Result<Html, Excess> {
    let builder = TreeBuilder::new(HtmlTreeSink::new(Html::new_document()), TreeBuilderOpts::default());
    let tokenizer = Tokenizer::new(Watched::new(builder), TokenizerOpts::default());
    let (mut rest, mut n_nodes) = (source, 0);
    let nodes_max = source.len() as u64 * NODES_PER_BYTE_MAX + FREE_BYTES / 64;
    let input = BufferQueue::default();
    while !rest.is_empty() {
        let (piece, behind) = rest.split_at(rest.floor_char_boundary(PIECE_BYTES));
        rest = behind;
        input.push_back(piece.into());
        while !matches!(tokenizer.feed(&input), TokenizerResult::Done) {}
        tokenizer.sink.look(piece)?;
        let html = tokenizer.sink.builder.sink.0.borrow();
        let nodes = html.tree.nodes();
        within("nodes", nodes.len() as u64, nodes_max)?;
        let n_known = std::mem::replace(&mut n_nodes, nodes.len());
        let deepest = nodes.skip(n_known).map(|node| node.ancestors().count()).max();
        within("elements inside each other", deepest.unwrap_or(0) as u64, NESTED_ELEMENTS_MAX)?;
    }
    tokenizer.end();
    Ok(tokenizer.sink.builder.sink.finish())
}

type Builder = TreeBuilder<NodeId, HtmlTreeSink>;

/// Counts attributes on their way to the tree.
struct Watched {
    builder: Builder,
    /// Most attributes of an element; those of `html` and `body` come from all tags of these names.
    n_attributes: Cell<u64>,
    n_of_page: Cell<u64>,
    has_token: Cell<bool>,
    /// Words since the last token: attributes of a tag that is still open, perhaps.
    n_words: Cell<u64>,
}

/// Words of one tag, comment or attribute that may be attributes, before it has ended and says what it is.
const OPEN_WORDS_MAX: u64 = 16 * ATTRIBUTES_MAX;

impl Watched {
    fn new(builder: Builder) -> Self {
        let (n_attributes, n_of_page, n_words) = (Cell::new(0), Cell::new(0), Cell::new(0));
        Self { builder, n_attributes, n_of_page, has_token: Cell::new(false), n_words }
    }

    /// Looks at the counts after a piece of the page.
    fn look(&self, piece: &str) -> Result<(), Excess> {
        const WHAT: &str = "attributes of one element";
        within(WHAT, self.n_attributes.get(), ATTRIBUTES_MAX)?;
        let words = piece.bytes().filter(|byte| byte.is_ascii_whitespace() || b"/\"'".contains(byte)).count() as u64;
        let before = if self.has_token.take() { 0 } else { self.n_words.get() };
        self.n_words.set(before + words);
        within(WHAT, self.n_words.get(), OPEN_WORDS_MAX)
    }
}

impl TokenSink for Watched {
    type Handle = NodeId;

    fn process_token(&self, token: Token, line_number: u64) -> TokenSinkResult<NodeId> {
        self.has_token.set(true);
        if let Token::TagToken(tag) = &token {
            let n = tag.attrs.len() as u64;
            let is_of_page = ["html", "body"].contains(&&*tag.name);
            self.n_of_page.set(self.n_of_page.get() + if is_of_page { n } else { 0 });
            self.n_attributes.set(self.n_attributes.get().max(n).max(self.n_of_page.get()));
        }
        self.builder.process_token(token, line_number)
    }

    fn end(&self) {
        self.builder.end();
    }

    fn adjusted_current_node_present_but_not_in_html_namespace(&self) -> bool {
        self.builder.adjusted_current_node_present_but_not_in_html_namespace()
    }
}

/// A node is met when it opens, with its number in tree order, and once more when it closes.
#[derive(Clone, Copy)]
pub(super) enum Step<'a> {
    Open(usize, &'a Node),
    Close(&'a Node),
}

/// Visits the tree in order; where `visit` answers no to an opening node, what it holds is passed over.
pub(super) fn walk<'a>(html: &'a Html, mut visit: impl FnMut(Step<'a>) -> bool) {
    let mut node = html.tree.root();
    let mut number = 0;
    loop {
        number += 1;
        let enters = visit(Step::Open(number, node.value()));
        if let Some(child) = node.first_child().filter(|_| enters) {
            node = child;
            continue;
        }
        if enters {
            visit(Step::Close(node.value()));
        }
        loop {
            if let Some(next) = node.next_sibling() {
                node = next;
                break;
            }
            let Some(parent) = node.parent() else { return };
            node = parent;
            visit(Step::Close(node.value()));
        }
    }
}
