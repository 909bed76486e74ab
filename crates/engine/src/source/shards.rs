//! Several sources as one: a statistics round, a search round, and rankings merged by score and public id. Nothing that
//! is answered shows where a corpus was cut, as far as vectors are scanned exactly: the walk of a graph depends on what
//! is in it.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use cento_assembly::Candidate;
use cento_collection::format::calibration::Calibration;
use cento_collection::format::config::CollectionConfig;
use cento_collection::keep::snapshots::At;
use cento_lexical::{Analyzer, Bm25, Explanation, Statistics, Unit};

use crate::cancel::Cancel;
use crate::error::{Error, Result};
use crate::source::documents::{DocumentSection, Excerpt, ListedDocument, LocatedDocument, Part, Sought};
use crate::source::filter::Schema;
use crate::source::links::names::Name;
use crate::source::links::{Heading, Linkers, Linking};
use crate::source::local::Local;
use crate::source::ranking::{Ranking, keep_best, name, sort_ranking};
use crate::source::refs::{Around, ChunkKey, ChunkRef, Named, RankedChunk, document_of};
use crate::source::scope::{Scope, Scoped, Scopes, Wanted};
use crate::source::seam::{
    Counted, DenseQueries, Description, Given, Labelled, LexicalQueries, Matched, Near, Rescored, Source,
};
use crate::source::selected::Pick;
use crate::source::titles::{Holder, Mention};

/// Sources that have one configuration and no document in common.
#[derive(Debug)]
pub(crate) struct Shards {
    sources: Vec<Arc<dyn Source>>,
    /// Folders, or addresses.
    places: Arc<[PathBuf]>,
    description: Arc<Description>,
    analyzer: Arc<Analyzer>,
}

impl Shards {
    /// Opens the collections of these folders.
    pub(crate) fn open(folders: &[PathBuf], at: &At) -> Result<Self> {
        let mut sources: Vec<Arc<dyn Source>> = Vec::with_capacity(folders.len());
        for folder in folders {
            sources.push(Arc::new(Local::open(folder, at)?));
        }
        Self::of(sources, folders.to_vec())
    }

    /// Several sources as one, each with the place that errors name.
    pub(crate) fn of(sources: Vec<Arc<dyn Source>>, places: Vec<PathBuf>) -> Result<Self> {
        let Some(first) = sources.first().map(|source| &source.describe().manifest.config) else {
            return Err(refused(
                "0".to_owned(),
                "have nothing to answer from; name at least one collection".to_owned(),
            ));
        };
        for (source, place) in sources.iter().zip(&places) {
            check_config((first, &places[0]), (&source.describe().manifest.config, place))?;
        }
        let analyzer = Arc::new(Analyzer::new(first.language()?));
        Ok(Self { description: Arc::new(description(&sources)), sources, places: places.into(), analyzer })
    }

    fn each(&self) -> impl Iterator<Item = (usize, &dyn Source)> {
        self.sources.iter().map(|source| &**source).enumerate()
    }

    /// The answers of all shards, each with its number, in their order; those on other machines are asked at once.
    fn all<A: Send>(&self, ask: impl Fn(usize, &dyn Source) -> Result<A> + Sync) -> Result<Vec<(usize, A)>> {
        if !self.is_far() {
            return self.each().map(|(shard, source)| Ok((shard, ask(shard, source)?))).collect();
        }
        let ask = &ask;
        std::thread::scope(|scope| {
            let asked = self.each().map(|(shard, source)| scope.spawn(move || ask(shard, source)));
            let asked: Vec<_> = asked.collect();
            let answer = |(shard, asked): (usize, std::thread::ScopedJoinHandle<'_, Result<A>>)| {
                Ok((shard, asked.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))?))
            };
            asked.into_iter().enumerate().map(answer).collect()
        })
    }

    /// The answers of all shards; of none where there is nothing to ask for.
    fn all_unless<A: Send>(
        &self,
        is_nothing: bool,
        ask: impl Fn(usize, &dyn Source) -> Result<A> + Sync,
    ) -> Result<Vec<(usize, A)>> {
        if is_nothing { Ok(Vec::new()) } else { self.all(ask) }
    }

    /// Asks every shard for the items that lie in it; the answers come in the order of the items.
    fn scatter<I: Clone + Sync, A: Send>(
        &self,
        items: &[I],
        chunk: impl Fn(&I) -> ChunkRef + Sync,
        ask: impl Fn(&dyn Source, &[I]) -> Result<Vec<A>> + Sync,
    ) -> Result<Vec<A>> {
        let of_shard = self.all_unless(items.is_empty(), |shard, source| {
            let places: Vec<usize> = (0..items.len()).filter(|&at| chunk(&items[at]).shard() == shard).collect();
            if places.is_empty() {
                return Ok(Vec::new());
            }
            let own: Vec<I> = places.iter().map(|&at| items[at].clone()).collect();
            Ok(places.into_iter().zip(ask(source, &own)?).collect())
        })?;
        let mut answers: Vec<(usize, A)> = of_shard.into_iter().flat_map(|(_, answers)| answers).collect();
        answers.sort_unstable_by_key(|(at, _)| *at);
        Ok(answers.into_iter().map(|(_, answer)| answer).collect())
    }

    /// The rankings of all shards as one. `of_shard` gives the ranking of each.
    fn merge(&self, of_shard: Vec<Ranking>, unit: Unit, depth: usize) -> Result<Ranking> {
        let placed = |(shard, ranking): (usize, Ranking)| {
            let place =
                move |(RankedChunk { chunk, id }, score)| (RankedChunk { chunk: chunk.of_shard(shard), id }, score);
            ranking.into_iter().map(place)
        };
        let mut merged: Ranking = of_shard.into_iter().enumerate().flat_map(placed).collect();
        keep_best(&mut merged, depth, |ranked| ranked.1);
        name(&mut merged, |chunks| self.ids(unit, chunks))?; // all, to see that no document is in two shards
        sort_ranking(&mut merged, |chunks| self.ids(unit, chunks))?;
        let mut shard_of: HashMap<&str, usize> = HashMap::new();
        for (RankedChunk { chunk, id }, _) in &merged {
            let document = document_of(id.as_deref().unwrap_or_default(), unit);
            let known = *shard_of.entry(document).or_insert_with(|| chunk.shard());
            if known != chunk.shard() {
                return Err(self.twice(document, known, chunk.shard()));
            }
        }
        Ok(merged)
    }

    /// The one answer there is; two mean that a document is in two shards.
    fn only<A>(&self, document: &str, answers: Vec<(usize, A)>) -> Result<Option<(usize, A)>> {
        match &answers[..] {
            [(one, _), (other, _), ..] => Err(self.twice(document, *one, *other)),
            [_] | [] => Ok(answers.into_iter().next()),
        }
    }

    fn twice(&self, document: &str, one: usize, other: usize) -> Error {
        let (one, other) = (self.places[one].display(), self.places[other].display());
        refused(document.to_owned(), format!("is a document of both {one} and {other}; delete it from one of them"))
    }

    fn terms(&self, texts: &[String]) -> Vec<String> {
        let mut terms: Vec<String> = texts.iter().flat_map(|text| self.analyzer.terms(text)).collect();
        terms.sort_unstable();
        terms.dedup();
        terms
    }

    /// The statistics that were given, or those of all shards together.
    fn under(&self, given: Option<&Statistics>, unit: Unit, texts: &[String], cancel: &Cancel) -> Result<Statistics> {
        match given {
            Some(statistics) => Ok(statistics.clone()),
            None => self.statistics(Counted::Units(unit), &self.terms(texts), cancel),
        }
    }
}

impl Source for Shards {
    fn describe(&self) -> &Description {
        &self.description
    }

    fn is_far(&self) -> bool {
        self.sources.iter().any(|source| source.is_far())
    }

    fn until(&self, cancel: &Cancel) -> Option<Arc<dyn Source>> {
        if !self.is_far() {
            return None;
        }
        let of = |source: &Arc<dyn Source>| source.until(cancel).unwrap_or_else(|| Arc::clone(source));
        Some(Arc::new(Self {
            sources: self.sources.iter().map(of).collect(),
            places: Arc::clone(&self.places),
            description: Arc::clone(&self.description),
            analyzer: Arc::clone(&self.analyzer),
        }))
    }

    fn whose(&self, chunk: ChunkRef) -> String {
        self.places.get(chunk.shard()).map_or_else(String::new, |place| place.display().to_string())
    }

    fn schema(&self) -> Result<Schema> {
        let mut all = Schema::of([])?;
        self.all(|_, source| source.schema())?.into_iter().for_each(|(_, schema)| all.extend(schema));
        Ok(all)
    }

    fn scope(&self, wanted: Wanted<'_>) -> Result<Scoped> {
        let (mut scopes, mut unknown_to) = (Vec::new(), Vec::new());
        let mut n_documents = 0;
        for (_, scoped) in self.all(|_, source| source.scope(wanted))? {
            n_documents += scoped.n_documents;
            scopes.push(scoped.scope);
            unknown_to.push(scoped.unknown.into_iter().collect::<HashSet<String>>());
        }
        let mut unknown = Vec::new();
        if let Wanted::Documents(ids) = wanted {
            for id in ids {
                let known = unknown_to.iter().enumerate().filter(|(_, unknown)| !unknown.contains(id));
                if self.only(id, known.map(|(shard, _)| (shard, ())).collect())?.is_none() {
                    unknown.push(id.clone());
                }
            }
        }
        Ok(Scoped { scope: Scope::joined(scopes), n_documents, unknown })
    }

    fn statistics(&self, counted: Counted, terms: &[String], cancel: &Cancel) -> Result<Statistics> {
        let mut sum = Statistics::default();
        for (_, statistics) in self.all(|_, source| source.statistics(counted, terms, cancel))? {
            sum.add(&statistics);
        }
        Ok(sum)
    }

    fn lexical(&self, queries: &LexicalQueries<'_>) -> Result<Vec<Matched>> {
        let own;
        let given = match queries.statistics {
            Some(given) => given,
            None => {
                let of = |unit| self.under(None, unit, queries.texts, queries.cancel);
                let of_rows = queries.counts_chunks().then(|| of(Unit::Row)).transpose()?;
                own = Given { of_units: of(queries.unit)?, of_rows };
                &own
            }
        };
        let mut of_query: Vec<Vec<Ranking>> = queries.texts.iter().map(|_| Vec::new()).collect();
        let of_shard = self.all(|shard, source| {
            let own = OwnScopes::new(queries.scopes, shard);
            source.lexical(&LexicalQueries { scopes: own.scopes(), statistics: Some(given), ..*queries })
        })?;
        for (_, matched) in of_shard {
            of_query.iter_mut().zip(matched).for_each(|(all, matched)| all.push(matched.ranking));
        }
        let merged = |rankings| {
            let ranking = self.merge(rankings, queries.unit, queries.depth)?;
            let statistics = (queries.unit == Unit::Row).then(|| given.of_units.clone());
            Ok(Matched { ranking, statistics })
        };
        of_query.into_iter().map(merged).collect()
    }

    fn explain(
        &self,
        query: &str,
        chunks: &[ChunkRef],
        bm25: Bm25,
        statistics: Option<&Statistics>,
    ) -> Result<Vec<Explanation>> {
        if chunks.is_empty() {
            return Ok(Vec::new());
        }
        let statistics = self.under(statistics, Unit::Row, &[query.to_owned()], &Cancel::default())?;
        self.scatter(chunks, |chunk| *chunk, |source, chunks| source.explain(query, chunks, bm25, Some(&statistics)))
    }

    fn nearest(&self, queries: &DenseQueries<'_>) -> Result<Vec<Near>> {
        let mut of_query: Vec<(Near, Vec<Ranking>)> = Vec::new();
        let of_shard = self.all(|shard, source| {
            let own = OwnScopes::new(queries.scopes, shard);
            source.nearest(&DenseQueries { scopes: own.scopes(), ..*queries })
        })?;
        for (_, nears) in of_shard {
            for (n, near) in nears.into_iter().enumerate() {
                if n == of_query.len() {
                    of_query.push(Default::default());
                }
                let (all, rankings) = &mut of_query[n];
                (all.n_exact, all.n_graph) = (all.n_exact + near.n_exact, all.n_graph + near.n_graph);
                rankings.push(near.ranking);
            }
        }
        let merged = of_query.into_iter().map(|(near, rankings)| {
            let ranking = self.merge(rankings, queries.unit, queries.depth)?;
            Ok(Near { ranking, ..near })
        });
        merged.collect()
    }

    fn rescore(&self, rescored: &Rescored<'_>) -> Result<Ranking> {
        let of_shard = self.all(|shard, source| {
            let own = rescored.found.iter().filter(|(chunk, _)| chunk.shard() == shard);
            let found: Vec<_> = own.copied().collect();
            if found.is_empty() {
                return Ok(Ranking::new());
            }
            let scope = rescored.scope.map(|scope| scope.of_shard(shard));
            source.rescore(&Rescored { found: &found, scope: scope.as_ref(), ..*rescored })
        })?;
        let rankings = of_shard.into_iter().map(|(_, ranking)| ranking).collect();
        self.merge(rankings, Unit::Row, rescored.depth)
    }

    fn ids(&self, unit: Unit, chunks: &[ChunkRef]) -> Result<Vec<Arc<str>>> {
        self.scatter(chunks, |chunk| *chunk, |source, chunks| source.ids(unit, chunks))
    }

    fn chunks(&self, chunks: &[ChunkRef]) -> Result<Vec<Candidate>> {
        self.scatter(chunks, |chunk| *chunk, |source, chunks| source.chunks(chunks))
    }

    fn around(&self, around: &[Around]) -> Result<Vec<ChunkKey>> {
        let of_shard = self.all_unless(around.is_empty(), |shard, source| {
            let own: Vec<_> = around.iter().filter(|around| around.chunk.shard() == shard).cloned().collect();
            if own.is_empty() { Ok(Vec::new()) } else { source.around(&own) }
        })?;
        let keyed = |(shard, keys): (usize, Vec<ChunkKey>)| {
            keys.into_iter().map(move |key| ChunkKey { chunk: key.chunk.of_shard(shard), ..key })
        };
        Ok(of_shard.into_iter().flat_map(keyed).collect())
    }

    fn vectors(&self, chunks: &[ChunkRef]) -> Result<Vec<Vec<f32>>> {
        self.scatter(chunks, |chunk| *chunk, |source, chunks| source.vectors(chunks))
    }

    fn texts(&self, spans: &[(ChunkRef, Range<u64>)]) -> Result<Vec<String>> {
        self.scatter(spans, |(chunk, _)| *chunk, |source, spans| source.texts(spans))
    }

    fn openings(&self, chunks: &[ChunkRef], bytes_max: u64) -> Result<Vec<String>> {
        self.scatter(chunks, |chunk| *chunk, |source, chunks| source.openings(chunks, bytes_max))
    }

    fn titles(&self, chunks: &[ChunkRef]) -> Result<Vec<String>> {
        self.scatter(chunks, |chunk| *chunk, |source, chunks| source.titles(chunks))
    }

    fn named(&self, texts: &[String]) -> Result<Vec<Vec<Mention>>> {
        let mut of_text: Vec<BTreeMap<String, Mention>> = texts.iter().map(|_| BTreeMap::new()).collect();
        for (shard, answers) in self.all_unless(texts.is_empty(), |_, source| source.named(texts))? {
            for (all, mentions) in of_text.iter_mut().zip(answers) {
                for Mention { title, span, holders } in mentions {
                    let own =
                        holders.into_iter().map(|holder| Holder { chunks: holder.chunks.of_shard(shard), ..holder });
                    let named = || Mention { title: title.clone(), span, holders: Vec::new() };
                    all.entry(title.clone()).or_insert_with(named).holders.extend(own);
                }
            }
        }
        Ok(of_text.into_iter().map(|all| all.into_values().collect()).collect())
    }

    fn linking(&self, documents: &[String]) -> Result<Vec<Option<Linking>>> {
        let mut of_document: Vec<Vec<(usize, Linking)>> = documents.iter().map(|_| Vec::new()).collect();
        for (shard, answers) in self.all_unless(documents.is_empty(), |_, source| source.linking(documents))? {
            for (all, linking) in of_document.iter_mut().zip(answers) {
                all.extend(linking.map(|linking| (shard, linking)));
            }
        }
        let only = |(id, found): (&String, _)| Ok(self.only(id, found)?.map(|(_, linking)| linking));
        documents.iter().zip(of_document).map(only).collect()
    }

    fn linkers(&self) -> Result<Linkers> {
        let mut all = Linkers::default();
        for (_, Linkers { ids, n_unknown }) in self.all(|_, source| source.linkers())? {
            all.ids.extend(ids);
            all.n_unknown += n_unknown;
        }
        Ok(all)
    }

    fn called(&self, names: &[Name]) -> Result<Vec<Vec<Holder>>> {
        let mut of_name: Vec<Vec<Holder>> = names.iter().map(|_| Vec::new()).collect();
        for (shard, answers) in self.all_unless(names.is_empty(), |_, source| source.called(names))? {
            for (all, holders) in of_name.iter_mut().zip(answers) {
                let own = holders.into_iter().map(|holder| Holder { chunks: holder.chunks.of_shard(shard), ..holder });
                all.extend(own);
            }
        }
        Ok(of_name)
    }

    fn outline(&self, document: &str) -> Result<Option<Vec<Heading>>> {
        let mut found = Vec::new();
        for (shard, answer) in self.all(|_, source| source.outline(document))? {
            found.extend(answer.map(|outline| (shard, outline)));
        }
        Ok(self.only(document, found)?.map(|(_, outline)| outline))
    }

    fn find(&self, documents: &[(String, Option<u32>)]) -> Result<Vec<Option<Named>>> {
        let mut of_document: Vec<Vec<(usize, Named)>> = documents.iter().map(|_| Vec::new()).collect();
        for (shard, answers) in self.all_unless(documents.is_empty(), |_, source| source.find(documents))? {
            for (all, named) in of_document.iter_mut().zip(answers) {
                all.extend(named.map(|named| (shard, named)));
            }
        }
        let only = |((id, _), found): (&(String, Option<u32>), _)| {
            Ok(self.only(id, found)?.map(|(shard, Named { chunks, chunk })| Named {
                chunks: chunks.of_shard(shard),
                chunk: chunk.map(|chunk| chunk.of_shard(shard)),
            }))
        };
        documents.iter().zip(of_document).map(only).collect()
    }

    fn located(&self, sought: &Sought<'_>) -> Result<Vec<LocatedDocument>> {
        let mut located = Vec::new();
        for (_, documents) in self.all(|_, source| source.located(sought))? {
            located.extend(documents);
        }
        Ok(located)
    }

    fn excerpt(&self, document: &str, part: &Part) -> Result<Option<Excerpt>> {
        let mut found = Vec::new();
        for (shard, answer) in self.all(|_, source| source.excerpt(document, part))? {
            found.extend(answer.map(|excerpt| (shard, excerpt)));
        }
        Ok(self.only(document, found)?.map(|(_, excerpt)| excerpt))
    }

    fn sections(&self, document: &str) -> Result<Option<Vec<DocumentSection>>> {
        let mut found = Vec::new();
        for (shard, answer) in self.all(|_, source| source.sections(document))? {
            found.extend(answer.map(|sections| (shard, sections)));
        }
        Ok(self.only(document, found)?.map(|(_, sections)| sections))
    }

    fn nearest_id(&self, id: &str) -> Result<Option<(usize, String)>> {
        let nearest = self.all(|_, source| source.nearest_id(id))?;
        Ok(nearest.into_iter().filter_map(|(_, nearest)| nearest).min())
    }

    fn documents(&self, pick: &Pick<'_>) -> Result<Vec<ListedDocument>> {
        let mut listed: Vec<(usize, ListedDocument)> = Vec::new();
        for (shard, documents) in self.all(|_, source| source.documents(pick))? {
            listed.extend(documents.into_iter().map(|document| (shard, document)));
        }
        listed.sort_by(|(_, a), (_, b)| a.id.cmp(&b.id));
        if let Some([(one, first), (other, _)]) = listed.array_windows().find(|[(_, a), (_, b)]| a.id == b.id) {
            return Err(self.twice(&first.id, *one, *other));
        }
        Ok(listed.into_iter().map(|(_, document)| document).collect())
    }

    fn at(&self, positions: &[u64]) -> Result<Vec<ChunkRef>> {
        let (mut own, mut first) = (Vec::with_capacity(self.sources.len()), 0);
        for (_, source) in self.each() {
            let end = first + source.describe().n_rows;
            let inside = positions.iter().filter(|position| (first..end).contains(*position));
            own.push(inside.map(|position| position - first).collect::<Vec<u64>>());
            first = end;
        }
        let of_shard = self.all_unless(positions.is_empty(), |shard, source| match own[shard].as_slice() {
            [] => Ok(Vec::new()),
            own => source.at(own),
        })?;
        let placed =
            |(shard, chunks): (usize, Vec<ChunkRef>)| chunks.into_iter().map(move |chunk| chunk.of_shard(shard));
        Ok(of_shard.into_iter().flat_map(placed).collect())
    }

    fn labels(&self) -> Result<Vec<Labelled>> {
        let mut labels = Vec::new();
        for (shard, of_shard) in self.all(|_, source| source.labels())? {
            labels.extend(of_shard.into_iter().map(|Labelled { document, chunks, heading }| Labelled {
                document: document.of_shard(shard),
                chunks: chunks.of_shard(shard),
                heading,
            }));
        }
        Ok(labels)
    }
}

/// The part of a batch's scopes that one shard understands.
struct OwnScopes {
    of_query: Vec<Option<Scope>>,
    of_all: Option<Scope>,
}

impl OwnScopes {
    fn new(scopes: Scopes<'_>, shard: usize) -> Self {
        let own = |scope: &Scope| scope.of_shard(shard);
        Self {
            of_query: scopes.of_query.iter().map(|scope| scope.as_ref().map(own)).collect(),
            of_all: scopes.of_all.map(own),
        }
    }

    fn scopes(&self) -> Scopes<'_> {
        Scopes { of_query: &self.of_query, of_all: self.of_all.as_ref() }
    }
}

/// The shards as one collection. Its generation is the sum of theirs, so that it grows with each commit to any of them.
fn description(sources: &[Arc<dyn Source>]) -> Description {
    let each = || sources.iter().map(|source| source.describe());
    let mut manifest = sources[0].describe().manifest.clone();
    for other in each().skip(1).map(|description| &description.manifest) {
        manifest.generation += other.generation;
        manifest.roots.extend(other.roots.clone());
        manifest.segments.extend(other.segments.iter().cloned());
        manifest.losses.extend(other.losses.iter().cloned());
        manifest.stale.extend(other.stale.iter().cloned());
        manifest.calibration = Calibration::merged(manifest.calibration, other.calibration.clone());
    }
    Description {
        manifest,
        n_documents: each().map(|description| description.n_documents).sum(),
        n_rows: each().map(|description| description.n_rows).sum(),
        n_graph_rows: each().map(|description| description.n_graph_rows).sum(),
        is_pinned: each().all(|description| description.is_pinned),
    }
}

/// Refuses a shard that was built with other settings than the first.
fn check_config(first: (&CollectionConfig, &Path), other: (&CollectionConfig, &Path)) -> Result<()> {
    let Some((setting, known, given)) = first.0.difference(other.0) else { return Ok(()) };
    let (first, other) = (first.1.display(), other.1.display());
    let reason = format!("is {known} in {first} and {given} in {other}; shards must be indexed with the same settings");
    Err(refused(setting, reason))
}

fn refused(value: String, reason: String) -> Error {
    Error::Setting { setting: "shards", value, reason }
}
