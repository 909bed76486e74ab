//! Chunks: a document's text in pieces that are embedded, found and cited.
//!
//! The chunks partition the text byte for byte. A chunk ends after a sentence, between paragraphs where that leaves it
//! at least half full, and never runs from one section's text into another's; a heading with no text of its own travels
//! with the first text under it. Header and chunk together fit the window.
//! Cost: each block is tokenised once, each chunk of more than one block once more for its true count.

use std::ops::Range;

use serde::{Deserialize, Serialize};

use crate::anchor::Anchor;
use crate::document::{BlockKind, Document, TextKind};
use crate::header::{HeaderStyle, Headers, Place};
use crate::piece::{self, BYTES_PER_TOKEN_MAX, Limits, Piece, Size, Tokens};

/// Tokens a chunk aims at.
pub const DEFAULT_CHUNK_TOKENS: usize = 128;

/// Changes whenever the same document and configuration would be cut differently.
pub const CHUNKER_VERSION: u32 = 1;

/// A chunk may exceed its target by target / `SLACK` where that saves a sentence from being cut or takes up a small
/// piece; a piece is small below target / `SLACK`.
const SLACK: usize = 4;

/// A span of a document, and where it stands.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Chunk {
    /// Bytes of the document's canonical text.
    pub span: Range<usize>,
    /// Innermost section of its text.
    pub section: u32,
    /// Tokens of the text alone, by itself.
    pub n_tokens: u32,
    /// Front matter, or without a letter or digit: never embedded or delivered.
    pub hidden: bool,
    /// Where it stands in the source file.
    pub anchor: Anchor,
    /// Outermost lines left out of its header, the document's line being the first: the header of a chunk is cut from
    /// the outside until it takes no more than half the window.
    pub header_skip: u32,
}

/// The length that chunks may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ChunkSize {
    /// About this many tokens; tables, fences and rows longer than that stay whole while they fit the window.
    Target(usize),
    /// One sentence, a heading before it included; tables, fences and rows stay whole. What does not fit the window is
    /// cut.
    Sentence,
    /// One chunk a document, whatever its length (front matter apart): may exceed the window.
    Document,
}

/// The settings by which a document is cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChunkConfig {
    /// The length that chunks may have.
    pub size: ChunkSize,
    /// Limit on tokens of header and chunk text together, special tokens and prompt not included; the two are counted
    /// apart, and a tokenizer that splits at line ends counts them the same together.
    ///
    /// The one exception is a single character of more tokens than are left, since text is never cut inside one.
    pub window_tokens: usize,
    /// The header whose tokens are reserved.
    pub header: HeaderStyle,
}

impl Default for ChunkConfig {
    /// The default target in the window of a 256-token encoder with two special tokens, structured headers.
    fn default() -> Self {
        Self { size: ChunkSize::Target(DEFAULT_CHUNK_TOKENS), window_tokens: 254, header: HeaderStyle::Structured }
    }
}

/// Cuts `document` into chunks whose spans partition its text, in order; an empty text has none.
pub fn chunk(document: &Document, config: &ChunkConfig, tokens: &dyn Tokens) -> Vec<Chunk> {
    let headers = Headers::new(document, config.header);
    let mut chunker =
        Chunker { document, config, tokens, headers, chunks: Vec::new(), line: (0, 1), counted: (String::new(), 0) };
    for region in regions(document, config.size) {
        chunker.cut(&region);
    }
    chunker.chunks
}

/// The header of a chunk of `document`: empty, or lines that each end in a line feed.
///
/// A heading, or the title, whose text lies inside the chunk is left out, and so are the outermost
/// [`Chunk::header_skip`] lines, which would have taken too much of the window.
pub fn header(document: &Document, chunk: &Chunk, style: HeaderStyle) -> String {
    Headers::new(document, style).of(chunk)
}

impl Headers<'_> {
    /// The header of a chunk, as [`header`] says.
    pub fn of(&self, chunk: &Chunk) -> String {
        let place = Place { span: chunk.span.clone(), section: chunk.section, page: chunk.anchor.page };
        self.compose(&place, chunk.header_skip)
    }
}

/// Consecutive blocks that may share a chunk.
#[derive(Debug)]
struct Region {
    blocks: Range<usize>,
    section: u32,
    page: Option<u32>,
    hidden: bool,
    /// Nothing but headings so far: the text of the first subsection still belongs to them.
    bare: bool,
}

fn regions(document: &Document, size: ChunkSize) -> Vec<Region> {
    let mut regions: Vec<Region> = Vec::new();
    for (index, block) in document.blocks.iter().enumerate() {
        let hidden = block.kind == BlockKind::Hidden;
        let bare = block.kind == BlockKind::Heading || !piece::has_words(&document.text[block.span.clone()]);
        let parent = document.sections[block.section as usize].parent;
        match regions.last_mut() {
            Some(last)
                if last.hidden == hidden
                    && (size == ChunkSize::Document
                        // A chunk is cited with the page that it begins on: it ends there too.
                        || last.page == block.anchor.page
                            && (last.section == block.section || last.bare && parent == Some(last.section))) =>
            {
                last.blocks.end = index + 1;
                last.section = block.section;
                last.bare &= bare;
            }
            _ => regions.push(Region {
                blocks: index..index + 1,
                section: block.section,
                page: block.anchor.page,
                hidden,
                bare: bare && !hidden,
            }),
        }
    }
    regions
}

/// Pieces in a row that will be one chunk.
#[derive(Clone, Debug)]
struct Group {
    pieces: Range<usize>,
    size: Size,
    kind: GroupKind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum GroupKind {
    /// Headings alone.
    Headings,
    /// Without a letter or digit.
    Blank,
    /// A row of a sheet.
    Row,
    /// Anything else.
    Text,
}

struct Chunker<'a> {
    document: &'a Document,
    config: &'a ChunkConfig,
    tokens: &'a dyn Tokens,
    headers: Headers<'a>,
    chunks: Vec<Chunk>,
    /// A byte offset and the line it is on.
    line: (usize, u32),
    /// The last header counted, and its tokens.
    counted: (String, usize),
}

impl Chunker<'_> {
    fn cut(&mut self, region: &Region) {
        let blocks = &self.document.blocks[region.blocks.clone()];
        let span = blocks[0].span.start..blocks[blocks.len() - 1].span.end;
        let section = match self.config.size {
            ChunkSize::Target(_) | ChunkSize::Sentence => region.section,
            ChunkSize::Document => innermost_around(self.document, region.blocks.clone(), &span),
        };
        let place = Place { span: 0..0, section, page: blocks[0].anchor.page };
        let (header_skip, header_tokens) = self.longest_header(&place);
        let whole = self.config.window_tokens.saturating_sub(header_tokens).max(1);
        let of_target = |target: usize| {
            let target = target.clamp(1, whole);
            Limits { target, sentence: (target + target / SLACK).min(whole), whole }
        };
        let cut = match self.config.size {
            ChunkSize::Document => None,
            ChunkSize::Target(_) | ChunkSize::Sentence if region.hidden => None,
            ChunkSize::Target(target) => Some((of_target(target), of_target(target))),
            // Sentences are cut to fit the window, and none is joined to another.
            ChunkSize::Sentence => {
                let limits = Limits { target: whole, sentence: whole, whole };
                Some((limits, Limits { target: 0, ..limits }))
            }
        };
        let Some((limits, joined)) = cut else {
            let hidden = region.hidden || !piece::has_words(&self.document.text[span.clone()]);
            let n_tokens = self.count(&span);
            return self.push(region.blocks.clone(), span, n_tokens, header_skip, hidden);
        };
        let mut pieces = Vec::new();
        for index in region.blocks.clone() {
            let block = &self.document.blocks[index];
            piece::cut_block(
                &self.document.text,
                block.span.clone(),
                block.kind,
                index,
                limits,
                self.tokens,
                &mut pieces,
            );
        }
        for group in join_small(pack(&pieces, joined), joined) {
            self.emit(&pieces[group.pieces.clone()], header_skip);
        }
    }

    /// Number of outermost lines a place's longest header must lose to take half the window at most, and its tokens.
    ///
    /// Lines too long for half a window are passed over unread, or each section would read them again.
    fn longest_header(&mut self, place: &Place) -> (u32, usize) {
        let half = self.config.window_tokens / 2;
        let n_lines = self.headers.n_lines(place.section);
        for skip in 0..n_lines {
            if self.headers.n_bytes(place.section, skip) > half.saturating_mul(BYTES_PER_TOKEN_MAX) {
                continue;
            }
            let n_tokens = self.header_tokens(place, skip);
            if n_tokens <= half {
                return (skip, n_tokens);
            }
        }
        let n_tokens = self.header_tokens(place, n_lines);
        (n_lines, n_tokens)
    }

    fn header_tokens(&mut self, place: &Place, skip: u32) -> usize {
        let header = self.headers.compose(place, skip);
        if header != self.counted.0 {
            self.counted = (header.clone(), piece::count(&header, self.tokens));
        }
        self.counted.1
    }

    /// Counts a group by itself and writes it as one chunk, or as halves where the tokens of its pieces did not add up.
    fn emit(&mut self, pieces: &[Piece], header_skip: u32) {
        let (first, last) = (&pieces[0], &pieces[pieces.len() - 1]);
        let span = first.span.start..last.span.end;
        let is_one_block = self.document.blocks[first.block].span == span;
        let n_tokens = if is_one_block { block_size(pieces).n_tokens } else { self.count(&span) };
        let place = Place {
            span: span.clone(),
            section: self.document.blocks[last.block].section,
            page: self.document.blocks[first.block].anchor.page,
        };
        let hidden = !piece::has_words(&self.document.text[span.clone()]);
        if hidden || n_tokens + self.header_tokens(&place, header_skip) <= self.config.window_tokens {
            return self.push(first.block..last.block + 1, span, n_tokens, header_skip, hidden);
        }
        let middle = span.start + span.len() / 2;
        if pieces.len() > 1 {
            let at = pieces[1..].partition_point(|piece| piece.span.start < middle).min(pieces.len() - 2) + 1;
            self.emit(&pieces[..at], header_skip);
            return self.emit(&pieces[at..], header_skip);
        }
        let text = &self.document.text;
        let words = piece::word_ends(&text[span.clone()]);
        let at = words
            .get(words.len() / 2)
            .map_or_else(|| piece::character_end(text, span.start, middle), |end| span.start + end);
        if at == span.end {
            return self.push(first.block..last.block + 1, span, n_tokens, header_skip, hidden); // one character
        }
        for half in [span.start..at, at..span.end] {
            self.emit(&[Piece { span: half, ..first.clone() }], header_skip);
        }
    }

    fn push(&mut self, blocks: Range<usize>, span: Range<usize>, n_tokens: usize, header_skip: u32, hidden: bool) {
        let anchor = self.anchor(blocks.clone(), &span);
        let section = match self.config.size {
            ChunkSize::Target(_) | ChunkSize::Sentence => self.document.blocks[blocks.end - 1].section,
            ChunkSize::Document => innermost_around(self.document, blocks, &span),
        };
        let n_tokens = u32::try_from(n_tokens).unwrap_or(u32::MAX);
        self.chunks.push(Chunk { span, section, n_tokens, hidden, anchor, header_skip });
    }

    fn anchor(&mut self, blocks: Range<usize>, span: &Range<usize>) -> Anchor {
        let text = &self.document.text;
        let (first, last) = (&self.document.blocks[blocks.start], &self.document.blocks[blocks.end - 1]);
        let mut anchor = first.anchor.clone();
        if self.document.format.has_lines_of_file() {
            let content = &text[span.clone()];
            let start = span.start
                + (content.len() - content.trim_start_matches(|c: char| c.is_whitespace() || c == '\u{feff}').len());
            let start = if start == span.end { span.start } else { start };
            let n_lines = text.as_bytes()[self.line.0.min(start)..start].iter().filter(|&&byte| byte == b'\n').count();
            self.line = (start, self.line.1 + n_lines as u32);
            anchor.line = Some(self.line.1);
        }
        if self.document.kind == TextKind::Source {
            anchor.source = Some(span.start as u64..span.end as u64);
        } else if let (Some(from), Some(to)) = (&first.anchor.source, &last.anchor.source) {
            anchor.source = Some(from.start..to.end);
        }
        anchor
    }

    fn count(&self, span: &Range<usize>) -> usize {
        piece::count(&self.document.text[span.clone()], self.tokens)
    }
}

/// The innermost section that holds all of `span`.
fn innermost_around(document: &Document, blocks: Range<usize>, span: &Range<usize>) -> u32 {
    let mut section = document.blocks[blocks.start].section;
    loop {
        let around = &document.sections[section as usize];
        match around.parent {
            Some(parent) if around.span.start > span.start || around.span.end < span.end => section = parent,
            _ => return section,
        }
    }
}

/// Joins pieces in order while they fit the target; see the head of this file for where it stops earlier.
fn pack(pieces: &[Piece], limits: Limits) -> Vec<Group> {
    let mut groups: Vec<Group> = Vec::new();
    for (index, piece) in pieces.iter().enumerate() {
        let starts_block = index == 0 || pieces[index - 1].block != piece.block;
        let kind = match piece.kind {
            BlockKind::Row => GroupKind::Row,
            _ if piece.blank => GroupKind::Blank,
            BlockKind::Heading => GroupKind::Headings,
            _ => GroupKind::Text,
        };
        match groups.last_mut() {
            Some(group) if joins(group, piece, kind, starts_block.then(|| block_size(&pieces[index..])), limits) => {
                group.pieces.end = index + 1;
                group.size = group.size + piece.size;
                group.kind = match (group.kind, kind) {
                    (same, other) if same == other => same,
                    (GroupKind::Headings, GroupKind::Blank) | (GroupKind::Blank, GroupKind::Headings) => {
                        GroupKind::Headings
                    }
                    _ => GroupKind::Text,
                };
            }
            _ => groups.push(Group { pieces: index..index + 1, size: piece.size, kind }),
        }
    }
    groups
}

/// True if `piece` goes into `group`; `block` is the size of its block where the piece begins one.
fn joins(group: &Group, piece: &Piece, kind: GroupKind, block: Option<Size>, limits: Limits) -> bool {
    let joined = group.size + piece.size;
    let is_small = |size: Size| size.fits(limits.target / SLACK);
    match (group.kind, kind) {
        (GroupKind::Row, _) | (_, GroupKind::Row) => block.is_none() && joined.fits(limits.target),
        (GroupKind::Blank, GroupKind::Blank) => true, // hidden, unless text follows or precedes
        (GroupKind::Headings, _) => joined.fits(limits.whole),
        (GroupKind::Text, GroupKind::Headings) => false, // a heading inside a quotation or list
        (_, GroupKind::Blank) | (GroupKind::Blank, _) => {
            joined.fits(limits.sentence) || is_small(piece.size) && joined.fits(limits.whole)
        }
        _ if !piece.size.fits(limits.sentence) => is_small(group.size) && joined.fits(limits.whole),
        _ => {
            let half_full = group.size.n_tokens * 2 >= limits.target;
            joined.fits(limits.target)
                && !(half_full && block.is_some_and(|block| !(group.size + block).fits(limits.target)))
        }
    }
}

/// Size of the block that the first of `pieces` begins.
fn block_size(pieces: &[Piece]) -> Size {
    pieces
        .iter()
        .take_while(|piece| piece.block == pieces[0].block)
        .fold(Size::default(), |sum, piece| sum + piece.size)
}

/// Joins a small group to the one before it, or the one before to it, within the slack; with a whole table or fence,
/// within the window.
fn join_small(groups: Vec<Group>, limits: Limits) -> Vec<Group> {
    let mut joined: Vec<Group> = Vec::with_capacity(groups.len());
    for group in groups {
        let is_small = |size: Size| size.fits(limits.target / SLACK);
        match joined.last_mut() {
            Some(last)
                if last.kind == GroupKind::Text && group.kind == GroupKind::Text && {
                    let both = last.size + group.size;
                    let is_long = !last.size.fits(limits.sentence) || !group.size.fits(limits.sentence);
                    (is_small(last.size) || is_small(group.size))
                        && both.fits(if is_long { limits.whole } else { limits.sentence })
                } =>
            {
                last.pieces.end = group.pieces.end;
                last.size = last.size + group.size;
            }
            _ => joined.push(group),
        }
    }
    joined
}
