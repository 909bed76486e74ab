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
use crate::source::refs::{ChunkKey, ChunkRef};
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

/// Bytes of a document that are looked through: what names hundreds of others says little of each.
const TEXT_BYTES_MAX: u64 = 1 << 16;

/// The links that are followed in a ranking of units, and the documents that they may lift.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Followed<'a> {
    pub(crate) links: Links,
    pub(crate) unit: Unit,
    pub(crate) scope: Option<&'a Scope>,
}

/// The height a link lifts a document to.
struct Lift<'f> {
    link: Link,
    /// Place of the naming document, from 1, its id and its score.
    rank: usize,
    by: &'f str,
    score: f64,
    /// The score before, and where in the ranking it stands.
    own: f64,
    at: Option<usize>,
    lifted: f64,
}

impl Searcher {
    /// Lifts what the best of a fused ranking name, and puts the ranking in order again; who named what was lifted, by
    /// the lifted id. A document that is out of scope is not lifted.
    pub(crate) fn follow_links(
        &self,
        fused: &mut Vec<Fused<ChunkKey>>,
        Followed { links: which, unit, scope }: Followed<'_>,
        cancel: &Cancel,
    ) -> Result<HashMap<String, NamedBy>> {
        let sources = sources(fused, unit);
        let links = self.links_of(&sources, which, unit, cancel)?;
        let best = places(fused, unit, &links);
        if best.is_empty() {
            return Ok(HashMap::new());
        }
        let mut lifts: BTreeMap<String, Lift<'_>> = BTreeMap::new();
        for (n, (source, links)) in sources.iter().zip(&links).enumerate() {
            for link in &**links {
                let at = best.get(link.to.document.as_str()).copied().flatten();
                // What was ranked is in scope; of what was not, the first chunk would answer.
                if at.is_none() && scope.is_some_and(|scope| !scope.contains(link.to.chunk)) {
                    continue;
                }
                let own = at.map_or(0.0, |at| fused[at].score);
                let lifted = (own + WEIGHT * source.score * link.strength).min(CEILING * source.score);
                if lifted > own && lifts.get(&link.to.document).is_none_or(|known| lifted > known.lifted) {
                    let (by, score, rank) = (document(&source.id.id, unit), source.score, n + 1);
                    let lift = Lift { link: link.clone(), rank, by, score, own, at, lifted };
                    lifts.insert(link.to.document.clone(), lift);
                }
            }
        }
        let absent: Vec<Contribution> = fused.first().map_or_else(Vec::new, |found| {
            let absent = |part: &Contribution| Contribution {
                rank: None,
                raw: None,
                normalized: None,
                contribution: 0.0,
                ..part.clone()
            };
            found.contributions.iter().map(absent).collect()
        });
        let lifts: Vec<_> =
            lifts.into_values().map(|lift| (lift.at, lift.named_by(), lift.part(), lift.link.to)).collect();
        let mut named = HashMap::with_capacity(lifts.len());
        for (at, by, part, to) in lifts {
            let at = at.unwrap_or_else(|| {
                let id = match unit {
                    Unit::Row => format!("{}#{}", to.document, to.number),
                    Unit::Document => to.document,
                };
                fused.push(Fused {
                    id: ChunkKey { id: id.into(), chunk: to.chunk },
                    score: 0.0,
                    contributions: absent.clone(),
                });
                fused.len() - 1
            });
            fused[at].score += part.contribution;
            fused[at].contributions.push(part);
            named.insert(fused[at].id.id.to_string(), by);
        }
        fused.sort_unstable_by(|a, b| b.score.total_cmp(&a.score).then_with(|| b.id.cmp(&a.id)));
        Ok(named)
    }

    /// The links of each document at the head of a ranking.
    fn links_of(
        &self,
        sources: &[&Fused<ChunkKey>],
        which: Links,
        unit: Unit,
        cancel: &Cancel,
    ) -> Result<Vec<Arc<[Link]>>> {
        let mut known: Vec<Option<Arc<[Link]>>> =
            sources.iter().map(|source| self.links.of(document(&source.id.id, unit), which)).collect();
        let new: Vec<usize> = (0..sources.len()).filter(|&at| known[at].is_none()).collect();
        if !new.is_empty() {
            cancel.check()?;
            let documents: Vec<String> = new.iter().map(|&at| document(&sources[at].id.id, unit).to_owned()).collect();
            let mut links: Vec<Vec<Link>> = documents.iter().map(|_| Vec::new()).collect();
            if which.count_names() {
                let chunks: Vec<ChunkRef> = new.iter().map(|&at| sources[at].id.chunk).collect();
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

/// The best of each of the first documents of a ranking.
fn sources(fused: &[Fused<ChunkKey>], unit: Unit) -> Vec<&Fused<ChunkKey>> {
    let mut sources: Vec<&Fused<ChunkKey>> = Vec::with_capacity(SOURCES);
    for found in fused {
        if sources.len() == SOURCES {
            break;
        }
        let own = document(&found.id.id, unit);
        if sources.iter().all(|source| document(&source.id.id, unit) != own) {
            sources.push(found);
        }
    }
    sources
}

/// The best place in a ranking of each document that a link leads to; nothing if it is not ranked.
fn places<'l>(fused: &[Fused<ChunkKey>], unit: Unit, links: &'l [Arc<[Link]>]) -> HashMap<&'l str, Option<usize>> {
    let to = links.iter().flat_map(|links| links.iter().map(|link| link.to.document.as_str()));
    let mut best: HashMap<&str, Option<usize>> = to.map(|document| (document, None)).collect();
    if best.is_empty() {
        return best;
    }
    for (at, found) in fused.iter().enumerate() {
        if let Some(best @ None) = best.get_mut(document(&found.id.id, unit)) {
            *best = Some(at);
        }
    }
    best
}

/// The document of a ranked id.
fn document(id: &str, unit: Unit) -> &str {
    match unit {
        Unit::Row => id.rsplit_once('#').map_or(id, |(document, _)| document),
        Unit::Document => id,
    }
}
