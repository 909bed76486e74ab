//! The calls of a source, each sent to its server, and the answer held against what was asked.

use std::collections::{HashMap, HashSet};
use std::ops::Range;
use std::sync::Arc;

use cento_assembly::Candidate;
use cento_lexical::{Bm25, Explanation, Statistics, Unit};

use super::rankings::{Ranked, near, number, ranking};
use super::wire::{self, COUNT_MAX, Call, Fault, PickWords, SoughtWords, WantedWords};
use super::{QUERIES_MAX, Remote};
use crate::cancel::Cancel;
use crate::error::{Error, Result};
use crate::source::documents::{DocumentSection, Excerpt, ListedDocument, LocatedDocument, Part, Sought};
use crate::source::filter::Schema;
use crate::source::links::names::Name;
use crate::source::links::{Heading, Linkers, Linking};
use crate::source::ranking::Ranking;
use crate::source::refs::{Around, ChunkKey, ChunkRef, Chunks, Named};
use crate::source::scope::{Scope, Scoped, Scopes, Wanted};
use crate::source::seam::{
    Counted, DenseQueries, Description, Labelled, LexicalQueries, Matched, Near, Rescored, Source,
};
use crate::source::selected::Pick;
use crate::source::titles::{Holder, Mention, SHARED_MAX, words_of_text};

fn wanted_words(wanted: Wanted<'_>) -> WantedWords {
    match wanted {
        Wanted::All => WantedWords::All,
        Wanted::Documents(ids) => WantedWords::Documents(ids.to_vec()),
        Wanted::Filter(filter) => WantedWords::Filter(filter.as_str().to_owned()),
        Wanted::Phrases(phrases) => WantedWords::Phrases(phrases.phrases.to_vec(), phrases.unit),
    }
}

fn sought_words(sought: &Sought<'_>) -> SoughtWords {
    match *sought {
        Sought::Id(id) => SoughtWords::Id(id.to_owned()),
        Sought::Records(records) => {
            let mut records: Vec<String> = records.iter().map(|id| (*id).to_owned()).collect();
            records.sort_unstable();
            SoughtWords::Records(records)
        }
        Sought::File { names, end } => SoughtWords::File { names: names.to_vec(), end: end.map(str::to_owned) },
    }
}

fn pick_words(pick: &Pick<'_>) -> PickWords {
    match *pick {
        Pick::All => PickWords::All,
        Pick::Documents(ids) => PickWords::Documents(ids.to_vec()),
        Pick::Under(folder) => PickWords::Under(folder.to_owned()),
        Pick::Matching(glob) => PickWords::Matching(glob.glob().glob().to_owned()),
        Pick::Filter(filter) => PickWords::Filter(filter.as_str().to_owned()),
    }
}

impl Remote {
    fn check_chunks(&self, chunks: impl IntoIterator<Item = ChunkRef>) -> Result<()> {
        self.checked(wire::check_chunks(chunks, &self.segments))
    }

    fn check_range(&self, chunks: &Chunks) -> Result<()> {
        self.checked(self.rows_are_there(chunks))
    }

    fn rows_are_there(&self, chunks: &Chunks) -> Result<(), Fault> {
        let (_, segment, rows) = chunks.place();
        let n_rows = self.segments.get(segment).copied();
        match n_rows.is_some_and(|n_rows| rows.start <= rows.end && rows.end <= n_rows) {
            true => Ok(()),
            false => Err(format!("rows {rows:?} of segment {segment}")),
        }
    }

    fn check_holders(&self, holders: &[Holder]) -> Result<(), Fault> {
        wire::check_chunks(holders.iter().map(|holder| holder.chunks.start()), &self.segments)?;
        holders.iter().try_for_each(|holder| self.rows_are_there(&holder.chunks))
    }

    fn check_span(&self, [start, end]: [u64; 2]) -> Result<()> {
        self.held(start <= end, || format!("bytes from {start} to {end}"))
    }

    /// The units that a ranking is asked for.
    fn ranked<'a>(&'a self, unit: Unit, depth: usize, scope: Option<&'a Scope>) -> Ranked<'a> {
        Ranked { segments: &self.segments, unit, depth, scope }
    }

    fn dimensions(&self) -> usize {
        self.description.manifest.config.query_dimensions()
    }
}

impl Source for Remote {
    fn describe(&self) -> &Description {
        &self.description
    }

    fn is_far(&self) -> bool {
        true
    }

    fn until(&self, cancel: &Cancel) -> Option<Arc<dyn Source>> {
        Some(Arc::new(self.within(cancel)))
    }

    fn whose(&self, _: ChunkRef) -> String {
        self.carrier.name().to_owned()
    }

    fn schema(&self) -> Result<Schema> {
        self.ask(Call::Schema)
    }

    fn scope(&self, wanted: Wanted<'_>) -> Result<Scoped> {
        let cancel = match wanted {
            Wanted::Phrases(phrases) => phrases.cancel,
            Wanted::All | Wanted::Documents(_) | Wanted::Filter(_) => &self.cancel,
        };
        let words: wire::ScopedWords = self.ask_unless(Call::Scope(wanted_words(wanted)), cancel)?;
        let scope = self.checked(wire::scope(&words.scope, &self.segments))?;
        let wire::ScopedWords { n_documents, unknown, .. } = words;
        let most = self.description.n_documents;
        self.held(n_documents <= most, || format!("a scope of {n_documents} documents of {most}"))?;
        let mut asked = match wanted {
            Wanted::Documents(ids) => ids,
            Wanted::All | Wanted::Filter(_) | Wanted::Phrases(_) => &[],
        }
        .iter();
        let are_asked = unknown.iter().all(|unknown| asked.any(|id| id == unknown));
        self.held(are_asked, || "ids that nobody asked for".to_owned())?;
        Ok(Scoped { scope, n_documents, unknown })
    }

    fn statistics(&self, counted: Counted, terms: &[String], cancel: &Cancel) -> Result<Statistics> {
        let mut sum = Statistics::default();
        for (at, terms) in together(terms).enumerate() {
            let call = Call::Statistics { counted, terms: terms.to_vec() };
            let statistics: Statistics = self.ask_unless(call, cancel)?;
            let (totals, df) = (statistics.totals, &statistics.df);
            let most = match counted {
                Counted::Units(Unit::Document) => self.description.n_documents,
                Counted::Units(Unit::Row) | Counted::Texts => self.description.n_rows,
            };
            let are_counts = totals.n <= most && totals.text <= COUNT_MAX && totals.beside <= COUNT_MAX;
            let is_of_terms = df.len() <= terms.len() && terms.iter().all(|term| df.contains_key(term));
            let is_so = are_counts && is_of_terms && df.values().all(|df| *df <= totals.n);
            self.held(is_so, || "statistics of other terms, or of more than there is".to_owned())?;
            match at {
                0 => sum = statistics,
                _ => sum.df.extend(statistics.df),
            }
        }
        Ok(sum)
    }

    fn lexical(&self, queries: &LexicalQueries<'_>) -> Result<Vec<Matched>> {
        let (mut matched, unit, depth) = (Vec::with_capacity(queries.texts.len()), queries.unit, queries.depth);
        for (texts, from) in queries.texts.chunks(QUERIES_MAX).zip((0..).step_by(QUERIES_MAX)) {
            let scopes = some(queries.scopes, from, texts.len());
            let call = |texts: &[String]| {
                Call::Lexical(wire::LexicalWords {
                    texts: texts.to_vec(),
                    scopes: wire::scopes_words(scopes),
                    unit,
                    score: queries.score,
                    bm25: wire::bm25_words(queries.bm25),
                    depth,
                    statistics: queries.statistics.cloned(),
                })
            };
            let words: Vec<wire::RankingWords> = self.ask_unless(call(texts), queries.cancel)?;
            self.held(words.len() == texts.len(), || format!("{} rankings for {}", words.len(), texts.len()))?;
            for (at, words) in words.into_iter().enumerate() {
                let ranking = self.checked(ranking(words, self.ranked(unit, depth, scopes.of(at))))?;
                matched.push(Matched { ranking, statistics: None });
            }
        }
        Ok(matched)
    }

    fn explain(
        &self,
        query: &str,
        chunks: &[ChunkRef],
        bm25: Bm25,
        statistics: Option<&Statistics>,
    ) -> Result<Vec<Explanation>> {
        let call = |chunks: &[ChunkRef]| {
            let (query, bm25, statistics) = (query.to_owned(), wire::bm25_words(bm25), statistics.cloned());
            Call::Explain { query, chunks: chunks.to_vec(), bm25, statistics }
        };
        self.all(chunks, &self.cancel, call, |_, words| wire::explanation(words, query.len()))
    }

    fn nearest(&self, queries: &DenseQueries<'_>) -> Result<Vec<Near>> {
        let (dimensions, unit, depth) = (self.dimensions(), queries.unit, queries.depth);
        let mut nears = Vec::with_capacity(queries.vectors.len() / dimensions);
        for (vectors, from) in queries.vectors.chunks(QUERIES_MAX * dimensions).zip((0..).step_by(QUERIES_MAX)) {
            let n = vectors.len() / dimensions;
            let scopes = some(queries.scopes, from, n);
            let call = Call::Nearest(wire::NearestWords {
                vectors: wire::vector_words(vectors),
                scopes: wire::scopes_words(scopes),
                unit,
                column: queries.column,
                depth,
                scan: queries.scan,
                ef: queries.ef,
            });
            let words: Vec<wire::NearWords> = self.ask_unless(call, queries.cancel)?;
            self.held(words.len() == n, || format!("{} rankings for {n}", words.len()))?;
            for (at, words) in words.into_iter().enumerate() {
                nears.push(self.checked(near(words, self.ranked(unit, depth, scopes.of(at))))?);
            }
        }
        Ok(nears)
    }

    fn rescore(&self, rescored: &Rescored<'_>) -> Result<Ranking> {
        let found = rescored.found.iter().map(|(chunk, score)| (*chunk, score.to_bits())).collect();
        let Rescored { vector, scope, column, depth, cancel, .. } = *rescored;
        let (vector, words) = (wire::vector_words(vector), scope.map(wire::scope_words));
        let words = self.ask_unless(Call::Rescore { vector, found, scope: words, column, depth }, cancel)?;
        self.checked(ranking(words, self.ranked(Unit::Row, depth, scope)))
    }

    /// Asks in the order in which chunks are stored: then the parts of a long answer have few texts in common.
    fn chunks(&self, chunks: &[ChunkRef]) -> Result<Vec<Candidate>> {
        let mut stored: Vec<usize> = (0..chunks.len()).collect();
        stored.sort_unstable_by_key(|&at| chunks[at]);
        let in_order: Vec<ChunkRef> = stored.iter().map(|&at| chunks[at]).collect();
        let call = |chunks: &[ChunkRef]| Call::Chunks(chunks.to_vec());
        let read = self.all(&in_order, &self.cancel, call, |_, words| wire::candidate(words))?;
        let mut placed: Vec<(usize, Candidate)> = stored.into_iter().zip(read).collect();
        placed.sort_unstable_by_key(|(at, _)| *at);
        Ok(placed.into_iter().map(|(_, candidate)| candidate).collect())
    }

    fn around(&self, around: &[Around]) -> Result<Vec<ChunkKey>> {
        let mut all: Vec<ChunkKey> = Vec::new();
        for some in together(around) {
            let keys: Vec<ChunkKey> = self.ask(Call::Around(some.to_vec()))?;
            self.check_chunks(keys.iter().map(|key| key.chunk))?;
            let mut asked: HashMap<usize, Range<u32>> = HashMap::new();
            for Around { chunk, numbers, .. } in some {
                let known = asked.entry(chunk.place().0).or_insert_with(|| numbers.clone());
                *known = known.start.min(numbers.start)..known.end.max(numbers.end);
            }
            for key in &keys {
                let number = self.checked(number(&key.id))?;
                let is_asked = asked.get(&key.chunk.place().0).is_some_and(|numbers| numbers.contains(&number));
                self.held(is_asked, || format!("chunk {number} of a document, which is beside none"))?;
            }
            all.extend(keys);
        }
        all.sort_unstable_by_key(|key| key.chunk);
        all.dedup();
        let mut ids = HashSet::with_capacity(all.len());
        let are_distinct = all.array_windows().all(|[one, next]| one.chunk != next.chunk);
        let are_distinct = are_distinct && all.iter().all(|key| ids.insert(&*key.id));
        self.held(are_distinct, || "chunks of two ids, or ids of two chunks".to_owned())?;
        Ok(all)
    }

    fn vectors(&self, chunks: &[ChunkRef]) -> Result<Vec<Vec<f32>>> {
        let call = |chunks: &[ChunkRef]| Call::Vectors(chunks.to_vec());
        self.all(chunks, &self.cancel, call, |_, words: String| wire::unit_vector(&words, self.dimensions()))
    }

    fn texts(&self, spans: &[(ChunkRef, Range<u64>)]) -> Result<Vec<String>> {
        let call = |spans: &[(ChunkRef, Range<u64>)]| Call::Texts(spans.to_vec());
        self.all(spans, &self.cancel, call, |(_, span), text: String| {
            match span.end.checked_sub(span.start) == Some(text.len() as u64) {
                true => Ok(text),
                false => Err("a text of another length than its span".to_owned()),
            }
        })
    }

    fn openings(&self, chunks: &[ChunkRef], bytes_max: u64) -> Result<Vec<String>> {
        let call = |chunks: &[ChunkRef]| Call::Openings(chunks.to_vec(), bytes_max);
        self.all(chunks, &self.cancel, call, |_, text| Ok(text))
    }

    fn titles(&self, chunks: &[ChunkRef]) -> Result<Vec<String>> {
        self.all(chunks, &self.cancel, |chunks| Call::Titles(chunks.to_vec()), |_, title| Ok(title))
    }

    fn named(&self, texts: &[String]) -> Result<Vec<Vec<Mention>>> {
        let call = |texts: &[String]| Call::Named(texts.to_vec());
        self.all(texts, &self.cancel, call, |text, mentions: Vec<Mention>| {
            let mut titles = HashSet::with_capacity(mentions.len());
            for Mention { title, span, holders } in &mentions {
                let named = text.get(span.clone()).ok_or_else(|| format!("a title in bytes {span:?}"))?;
                if *title != words_of_text(named) || !titles.insert(title) || holders.len() > SHARED_MAX + 1 {
                    return Err("a title that the text does not name so, or twice".to_owned());
                }
                self.check_holders(holders)?;
            }
            Ok(mentions)
        })
    }

    fn linking(&self, documents: &[String]) -> Result<Vec<Option<Linking>>> {
        let call = |documents: &[String]| Call::Linking(documents.to_vec());
        self.all(documents, &self.cancel, call, |document, linking: Option<Linking>| {
            let spans = linking.iter().flat_map(|linking| linking.links.iter().flatten());
            let are_spans = spans.into_iter().all(|link| link.start <= link.end);
            match are_spans && linking.as_ref().is_none_or(|linking| linking.id == *document) {
                true => Ok(linking),
                false => Err("links of another document, or outside of a text".to_owned()),
            }
        })
    }

    fn linkers(&self) -> Result<Linkers> {
        let linkers: Linkers = self.ask(Call::Linkers)?;
        let most = self.description.n_documents;
        let are_counts = linkers.n_unknown <= most && linkers.ids.len() as u64 <= most;
        self.held(are_counts, || "more documents than it has".to_owned())?;
        Ok(linkers)
    }

    fn called(&self, names: &[Name]) -> Result<Vec<Vec<Holder>>> {
        let call = |names: &[Name]| Call::Called(names.to_vec());
        self.all(names, &self.cancel, call, |_, holders: Vec<Holder>| {
            self.check_holders(&holders)?;
            Ok(holders)
        })
    }

    fn outline(&self, document: &str) -> Result<Option<Vec<Heading>>> {
        let outline: Option<Vec<Heading>> = self.ask(Call::Outline(document.to_owned()))?;
        outline.iter().flatten().try_for_each(|heading| self.check_span(heading.span))?;
        Ok(outline)
    }

    fn find(&self, documents: &[(String, Option<u32>)]) -> Result<Vec<Option<Named>>> {
        let call = |documents: &[(String, Option<u32>)]| Call::Find(documents.to_vec());
        let found = self.all(documents, &self.cancel, call, |(_, number), named: Option<Named>| {
            let is_so =
                |named: &Named| named.chunk.is_none_or(|chunk| number.is_some() && named.chunks.contains(chunk));
            match named.as_ref().is_none_or(is_so) {
                true => Ok(named),
                false => Err("a chunk outside of its document".to_owned()),
            }
        })?;
        found.iter().flatten().try_for_each(|named| self.check_range(&named.chunks))?;
        Ok(found)
    }

    fn excerpt(&self, document: &str, part: &Part) -> Result<Option<Excerpt>> {
        let answer: Result<Option<wire::ExcerptWords>, wire::Absent> =
            self.ask(Call::Excerpt(document.to_owned(), part.clone()))?;
        match answer {
            Ok(words) => self.checked(words.map(|words| wire::excerpt(words, document, part)).transpose()),
            Err(wire::Absent { what, has }) => Err(Error::OutOfRange { id: document.to_owned(), what, has }),
        }
    }

    fn sections(&self, document: &str) -> Result<Option<Vec<DocumentSection>>> {
        let sections: Option<Vec<DocumentSection>> = self.ask(Call::Sections(document.to_owned()))?;
        for (at, section) in sections.iter().flatten().enumerate() {
            self.check_span(section.span)?;
            let is_before = section.parent.is_none_or(|parent| (parent as usize) < at);
            self.held(is_before, || format!("section {at} before the one around it"))?;
        }
        Ok(sections)
    }

    fn located(&self, sought: &Sought<'_>) -> Result<Vec<LocatedDocument>> {
        let located: Vec<LocatedDocument> = self.ask(Call::Located(sought_words(sought)))?;
        let is_sought = |located: &LocatedDocument| match sought {
            Sought::Id(id) => located.id == *id,
            Sought::Records(_) | Sought::File { .. } => true,
        };
        let n_max = if matches!(sought, Sought::Id(_)) { 1 } else { self.description.n_documents };
        let are_sought = located.len() as u64 <= n_max && located.iter().all(is_sought);
        self.held(are_sought, || "documents that were not sought".to_owned())?;
        Ok(located)
    }

    fn nearest_id(&self, id: &str) -> Result<Option<(usize, String)>> {
        self.ask(Call::NearestId(id.to_owned()))
    }

    fn documents(&self, pick: &Pick<'_>) -> Result<Vec<ListedDocument>> {
        let words: Vec<wire::ListedWords> = self.ask(Call::Documents(pick_words(pick)))?;
        let listed: Vec<ListedDocument> =
            self.checked(words.into_iter().map(wire::listed).collect::<Result<_, Fault>>())?;
        let is_list = listed.len() as u64 <= self.description.n_documents && listed.is_sorted_by(|a, b| a.id < b.id);
        self.held(is_list, || "a list in no order, or with a document twice".to_owned())?;
        Ok(listed)
    }

    fn at(&self, positions: &[u64]) -> Result<Vec<ChunkRef>> {
        let mut all = Vec::with_capacity(positions.len());
        for some in together(positions).filter(|some| !some.is_empty()) {
            let chunks: Vec<ChunkRef> = self.ask(Call::At(some.to_vec()))?;
            self.check_chunks(chunks.iter().copied())?;
            self.held(chunks.len() == some.len(), || format!("{} chunks for {}", chunks.len(), some.len()))?;
            all.extend(chunks);
        }
        Ok(all)
    }

    fn labels(&self) -> Result<Vec<Labelled>> {
        let labels: Vec<Labelled> = self.ask(Call::Labels)?;
        for Labelled { document, chunks, .. } in &labels {
            self.check_range(document)?;
            self.check_range(chunks)?;
        }
        Ok(labels)
    }
}

/// Items as calls ask for them: all in one, unless they are too many.
fn together<T>(items: &[T]) -> impl Iterator<Item = &[T]> {
    let none = items.is_empty().then_some(items);
    none.into_iter().chain(items.chunks(super::ITEMS_MAX))
}

/// The scopes of `n` queries from one on.
fn some(scopes: Scopes<'_>, from: usize, n: usize) -> Scopes<'_> {
    let own = scopes.of_query.get(from..).unwrap_or_default();
    Scopes { of_query: &own[..own.len().min(n)], of_all: scopes.of_all }
}
