//! Links: a document that one of the best names climbs towards it.
//!
//! A link e → d stands where the text of e has the title of d. Its strength is the title's idf over that of one
//! document's own word, `min(1, Σ idf / ln N)`, over the square root of the documents that e names: a rare name says
//! much, and one name of many little. A link that the author of e made, where its kind counts ([`Links::count_made`]),
//! has the strength 1 over the square root of the documents that e so links to. For e among the [`SOURCES`] best of the
//! fused ranking H
//!
//! `H'(d) = max(H(d), min(H(d) + WEIGHT · H(e) · strength, CEILING · H(e)))`
//!
//! so that a named document climbs up to, and never past, the one that names it. Of a ranking of chunks a document has
//! the score of its best chunk, and that chunk climbs; the first chunk where the ranking has none.
//! Cost: the texts of three documents are read and looked through, and their links resolved, each once while the
//! collection is open.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use cento_assembly::fuse::{Contribution, Fused};
use cento_corpus::LinkKind;
use cento_lexical::{Statistics, Unit};

use crate::cancel::Cancel;
use crate::error::Result;
use crate::retrieve::links::Resolved;
use crate::retrieve::request::Links;
use crate::retrieve::rules::known::{Link, NamedBy};
use crate::retrieve::searcher::Searcher;
use crate::source::ranking::{name, sort_ranking};
use crate::source::refs::{ChunkRef, Chunks, RankedChunk, document_of};
use crate::source::scope::Scope;
use crate::source::seam::Counted;
use crate::source::titles::{Mention, SHARED_MAX};

/// Name of the part of a score that a title in a text gives.
const NAMED: &str = "named";
/// Name of the part of a score that a link of an author gives.
const LINKED: &str = "linked";

/// Documents at the head of a ranking whose links count. Chosen with the other two constants on twelve sets.
const SOURCES: usize = 3;
/// Share of a source's score that its strongest link gives.
const WEIGHT: f64 = 0.6;
/// Share of a source's score that no document climbs past by its link.
const CEILING: f64 = 0.999;

/// Chunks at the head of a ranking whose ids are read together, until those of [`SOURCES`] documents are known.
const NAMED_TOGETHER: usize = 16;

/// Bytes of a document that are looked through: what names hundreds of others says little of each.
const TEXT_BYTES_MAX: u64 = 1 << 16;

/// The links that are followed in a ranking of units, and the documents that they may lift.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Followed<'a> {
    pub(crate) links: Links,
    pub(crate) unit: Unit,
    pub(crate) scope: Option<&'a Scope>,
}

/// A document at the head of a ranking, by its best chunk.
struct Namer {
    document: String,
    chunk: ChunkRef,
    score: f64,
}

/// The height a link lifts a document to.
struct Lift<'s> {
    link: Link,
    /// Place of the naming document, from 1, its id and its score.
    rank: usize,
    by: &'s str,
    score: f64,
    /// The score before, and where in the ranking it stands.
    own: f64,
    at: Option<usize>,
    lifted: f64,
}

impl Searcher {
    /// Lifts what the best of a fused ranking name, and puts the ranking in order again; who named what was lifted, by
    /// the lifted chunk. A document that is out of scope is not lifted.
    pub(crate) fn follow_links(
        &self,
        fused: &mut Vec<Fused<RankedChunk>>,
        Followed { links: which, unit, scope }: Followed<'_>,
        cancel: &Cancel,
    ) -> Result<HashMap<ChunkRef, NamedBy>> {
        let sources = self.sources(fused, unit)?;
        let links = self.links_of(&sources, which, cancel)?;
        if links.iter().all(|links| links.is_empty()) {
            return Ok(HashMap::new());
        }
        let best = places(fused, &links);
        let mut lifts: BTreeMap<String, Lift<'_>> = BTreeMap::new();
        for (n, (source, links)) in sources.iter().zip(&links).enumerate() {
            for link in &**links {
                let first = link.to.chunks.start();
                let at = best.get(&first).copied();
                // What was ranked is in scope; of what was not, the first chunk would answer.
                if at.is_none() && scope.is_some_and(|scope| !scope.contains(first)) {
                    continue;
                }
                let own = at.map_or(0.0, |at| fused[at].score);
                let lifted = (own + WEIGHT * source.score * link.strength).min(CEILING * source.score);
                if lifted > own && lifts.get(&link.to.document).is_none_or(|known| lifted > known.lifted) {
                    let (by, score, rank) = (source.document.as_str(), source.score, n + 1);
                    let lift = Lift { link: link.clone(), rank, by, score, own, at, lifted };
                    lifts.insert(link.to.document.clone(), lift);
                }
            }
        }
        let mut named = HashMap::with_capacity(lifts.len());
        for lift in lifts.values() {
            let at = lift.at.unwrap_or_else(|| {
                let to = &lift.link.to;
                let id = match unit {
                    Unit::Row => format!("{}#{}", to.document, to.number).into(),
                    Unit::Document => to.document.as_str().into(),
                };
                let id = RankedChunk { chunk: to.chunks.start(), id: Some(id) };
                fused.push(Fused { id, score: 0.0, contributions: Vec::new() });
                fused.len() - 1
            });
            let part = lift.part();
            fused[at].score += part.contribution;
            fused[at].contributions.push(part);
            named.insert(fused[at].id.chunk, lift.named_by());
        }
        sort_ranking(fused, |chunks| self.source.ids(unit, chunks))?;
        Ok(named)
    }

    /// The best of each of the first documents of a ranking.
    fn sources(&self, fused: &mut [Fused<RankedChunk>], unit: Unit) -> Result<Vec<Namer>> {
        let mut sources: Vec<Namer> = Vec::with_capacity(SOURCES);
        for some in fused.chunks_mut(NAMED_TOGETHER) {
            name(&mut *some, |chunks| self.source.ids(unit, chunks))?;
            for Fused { id: RankedChunk { chunk, id }, score, .. } in some {
                let document = document_of(id.as_deref().unwrap_or_default(), unit);
                if sources.iter().all(|source| source.document != document) {
                    sources.push(Namer { document: document.to_owned(), chunk: *chunk, score: *score });
                }
                if sources.len() == SOURCES {
                    return Ok(sources);
                }
            }
        }
        Ok(sources)
    }

    /// The links of each document at the head of a ranking.
    fn links_of(&self, sources: &[Namer], which: Links, cancel: &Cancel) -> Result<Vec<Arc<[Link]>>> {
        let mut known: Vec<Option<Arc<[Link]>>> =
            sources.iter().map(|source| self.links.of(&source.document, which)).collect();
        let new: Vec<usize> = (0..sources.len()).filter(|&at| known[at].is_none()).collect();
        if !new.is_empty() {
            cancel.check()?;
            let documents: Vec<String> = new.iter().map(|&at| sources[at].document.clone()).collect();
            let mut links: Vec<Vec<Link>> = documents.iter().map(|_| Vec::new()).collect();
            if which.count_names() {
                let chunks: Vec<ChunkRef> = new.iter().map(|&at| sources[at].chunk).collect();
                let mentions = self.source.named(&self.source.openings(&chunks, TEXT_BYTES_MAX)?)?;
                links = self.weighed(&documents, mentions, cancel)?;
            }
            let made = self.resolved(&documents, which)?;
            for ((links, document), resolved) in links.iter_mut().zip(&documents).zip(made) {
                links.extend(authored(document, resolved));
            }
            for ((at, document), links) in new.into_iter().zip(documents).zip(links) {
                let links: Arc<[Link]> = links.into();
                self.links.keep(document, which, Arc::clone(&links));
                known[at] = Some(links);
            }
        }
        Ok(known.into_iter().flatten().collect())
    }

    /// The links that the titles in documents' texts are, with their strengths.
    fn weighed(&self, documents: &[String], mentions: Vec<Vec<Mention>>, cancel: &Cancel) -> Result<Vec<Vec<Link>>> {
        let titles: Vec<Vec<Titled>> =
            documents.iter().zip(mentions).map(|(document, mentions)| self.titled(document, mentions)).collect();
        let terms: Vec<String> = titles.iter().flatten().flat_map(|(_, terms)| terms.iter().cloned()).collect();
        if terms.is_empty() {
            return Ok(titles.iter().map(|_| Vec::new()).collect());
        }
        let statistics = self.source.statistics(Counted::Texts, &terms, cancel)?;
        let links = |titles: Vec<Titled>| {
            let n_links: usize = titles.iter().map(|(mention, _)| mention.holders.len()).sum();
            let mut links = Vec::with_capacity(n_links);
            for (Mention { title, span, holders }, terms) in titles {
                let strength = rarity(&statistics, &terms) / (n_links as f64).sqrt();
                if strength > 0.0 {
                    let link = |to| Link { to, title: title.clone(), span: span.clone(), kind: None, strength };
                    links.extend(holders.into_iter().map(link));
                }
            }
            links
        };
        Ok(titles.into_iter().map(links).collect())
    }

    /// The titles of other documents that a document's text names, and their terms.
    fn titled(&self, document: &str, mentions: Vec<Mention>) -> Vec<Titled> {
        let mut titles = Vec::new();
        for mut mention in mentions {
            if mention.holders.len() > SHARED_MAX {
                continue;
            }
            mention.holders.retain(|holder| holder.document != document);
            let mut terms = self.analyzer.terms(&mention.title);
            terms.sort_unstable();
            terms.dedup();
            if !mention.holders.is_empty() && !terms.is_empty() {
                titles.push((mention, terms));
            }
        }
        titles
    }
}

/// A title that a text names, and its terms.
type Titled = (Mention, Vec<String>);

/// The links that the author of a document made to others, the first to each, with their strengths.
fn authored(document: &str, resolved: Vec<Resolved>) -> Vec<Link> {
    let mut links: Vec<Link> = Vec::new();
    let mut met = HashSet::from([document.to_owned()]);
    for Resolved { link, to, .. } in resolved {
        let Some(to) = to.filter(|to| met.insert(to.document.clone())) else { continue };
        links.push(Link { to, title: link.target, span: link.start..link.end, kind: Some(link.kind), strength: 0.0 });
    }
    let strength = 1.0 / (links.len().max(1) as f64).sqrt();
    links.iter_mut().for_each(|link| link.strength = strength);
    links
}

impl Lift<'_> {
    fn named_by(&self) -> NamedBy {
        let Link { title, span, kind, .. } = &self.link;
        let (span, link) = ([span.start as u64, span.end as u64], kind.map(LinkKind::name));
        NamedBy { document: self.by.to_owned(), title: title.clone(), span, link }
    }

    /// The part of the lifted score: `raw` is the score of the naming document, `normalized` the strength of the link.
    fn part(&self) -> Contribution {
        Contribution {
            arm: if self.link.kind.is_some() { LINKED } else { NAMED }.into(),
            rank: Some(self.rank),
            raw: Some(self.score),
            normalized: Some(self.link.strength),
            weight: WEIGHT,
            contribution: self.lifted - self.own,
        }
    }
}

/// The part of what a word of one document alone would say that a title says, in \[0, 1\].
fn rarity(statistics: &Statistics, terms: &[String]) -> f64 {
    let most = (statistics.totals.n as f64).ln();
    let sum: f64 = terms.iter().map(|term| statistics.idf(term).unwrap_or_default()).sum();
    if most > 0.0 { (sum / most).min(1.0) } else { 0.0 }
}

/// The best place in a ranking of each document that a link leads to, if it is ranked, by its first chunk.
fn places(fused: &[Fused<RankedChunk>], links: &[Arc<[Link]>]) -> HashMap<ChunkRef, usize> {
    let mut to: Vec<&Chunks> = links.iter().flat_map(|links| links.iter().map(|link| &link.to.chunks)).collect();
    to.sort_unstable_by_key(|chunks| chunks.start());
    to.dedup();
    let mut best = HashMap::with_capacity(to.len());
    for (at, Fused { id: RankedChunk { chunk, .. }, .. }) in fused.iter().enumerate() {
        let n_before = to.partition_point(|chunks| chunks.start() <= *chunk);
        if let Some(chunks) = to[..n_before].last().filter(|chunks| chunks.contains(*chunk)) {
            best.entry(chunks.start()).or_insert(at);
        }
    }
    best
}
