//! Links that authors made, resolved: where the links of a document lead, and which documents link to it.
//!
//! A target means the document that has the likeliest of its names ([`sought`]). A name that several documents have
//! means none of them, but for the path of a page, where the one with the linking document's extension comes first.
//! Cost: a look into a table for each name, some ten a link; what links to a document is found by resolving all links
//! of the collection (some 10 µs each).

use std::cmp::Reverse;
use std::collections::HashMap;

use cento_corpus::Link;
use schemars::JsonSchema;
use serde::Serialize;

use crate::error::{Error, Result};
use crate::plural::counted;
use crate::retrieve::request::Links;
use crate::retrieve::searcher::Searcher;
use crate::source::links::names::{Anchor, Name, Sought, sought};
use crate::source::links::{Linkers, Linking, headings};
use crate::source::titles::Holder;

/// Documents whose links are read together.
const BATCH_DOCUMENTS: usize = 256;
/// Links whose names are looked up together: some thousands of names, and a bound where targets are made to have many.
const LINKS_TOGETHER: usize = 256;

/// The links of a document, or of the part of it that was asked for.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct DocumentLinks {
    /// Format of this answer.
    pub version: u32,
    /// Id of the document.
    pub document: String,
    /// Its links, in the order of its text.
    pub outgoing: Vec<OutgoingLink>,
    /// The links of other documents to it, by their document and place.
    pub incoming: Vec<IncomingLink>,
    /// Warnings to whoever asks.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
}

/// A link of the document.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct OutgoingLink {
    /// The way it is written.
    pub kind: &'static str,
    /// Its target as written.
    pub target: String,
    /// Bytes of the document's text where it stands; empty at 0 where it is not part of the text.
    pub span: [u64; 2],
    /// The document it leads to; nothing where that is not in the collection.
    pub document: Option<String>,
    /// The section it leads to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub section: Option<LinkedSection>,
}

/// The section of a document that a link leads to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct LinkedSection {
    /// Its heading.
    pub heading: String,
    /// Its bytes in the text of its document.
    pub span: [u64; 2],
}

/// A link of another document.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
pub struct IncomingLink {
    /// Id of the document that has it.
    pub document: String,
    /// Bytes of that document's text where it stands; empty at 0 where it is not part of the text.
    pub span: [u64; 2],
    /// The way it is written.
    pub kind: &'static str,
    /// Its target as written.
    pub target: String,
}

/// A link with what it leads to.
pub(crate) struct Resolved {
    pub(crate) link: Link,
    pub(crate) to: Option<Holder>,
    anchor: Option<Anchor>,
}

impl Searcher {
    /// The links of a document, and those of others to it. Of a part of it, the links that stand there; what links to
    /// it is of all of it.
    ///
    /// # Errors
    /// Those of [`Searcher::get`]; [`Error::LinksUnknown`] if its links were not looked for when it was indexed.
    pub fn links(&self, citation: &str) -> Result<DocumentLinks> {
        let excerpt = self.get(citation)?;
        let [start, end] = excerpt.span;
        let mut outgoing = Vec::new();
        for resolved in self.resolved(std::slice::from_ref(&excerpt.document), Links::All)?.pop().unwrap_or_default() {
            let Resolved { link, to, anchor } = resolved;
            if link.start as u64 >= start && link.end as u64 <= end {
                outgoing.push(self.outgoing(link, to, anchor)?);
            }
        }
        let Linkers { ids, n_unknown } = self.source.linkers()?;
        let mut incoming = Vec::new();
        for batch in ids.chunks(BATCH_DOCUMENTS) {
            for (from, links) in
                batch.iter().zip(self.resolved(batch, Links::All)?).filter(|(id, _)| **id != excerpt.document)
            {
                let leads_here = |to: &Holder| to.document == excerpt.document;
                let here = links.into_iter().filter(|resolved| resolved.to.as_ref().is_some_and(leads_here));
                incoming.extend(here.map(|Resolved { link, .. }| IncomingLink {
                    document: from.clone(),
                    span: [link.start as u64, link.end as u64],
                    kind: link.kind.name(),
                    target: link.target,
                }));
            }
        }
        incoming.sort_unstable();
        let mut warnings = excerpt.warnings;
        if n_unknown > 0 {
            warnings.push(format!(
                "indexed before links were looked for, and not seen to link here: {}; index anew",
                counted(n_unknown as u64, "document")
            ));
        }
        Ok(DocumentLinks { version: 1, document: excerpt.document, outgoing, incoming, warnings })
    }

    fn outgoing(&self, link: Link, to: Option<Holder>, anchor: Option<Anchor>) -> Result<OutgoingLink> {
        let mut section = None;
        if let (Some(holder), Some(anchor)) = (&to, &anchor)
            && let Some(outline) = self.source.outline(&holder.document)?
        {
            let meant = headings::meant(&outline, anchor);
            section = meant.map(|meant| LinkedSection { heading: meant.text.clone(), span: meant.span });
        }
        Ok(OutgoingLink {
            kind: link.kind.name(),
            target: link.target,
            span: [link.start as u64, link.end as u64],
            document: to.map(|holder| holder.document),
            section,
        })
    }

    /// The links of documents, of the kinds that count, with what they lead to.
    ///
    /// # Errors
    /// [`Error::LinksUnknown`] for a document whose links were not looked for when it was indexed; by default
    /// ([`Links::Named`]) it has none, since nobody asked for them.
    pub(crate) fn resolved(&self, documents: &[String], which: Links) -> Result<Vec<Vec<Resolved>>> {
        let (mut of_document, mut all) = (Vec::with_capacity(documents.len()), Vec::new());
        for (id, linking) in documents.iter().zip(self.source.linking(documents)?) {
            let Linking { id, origin, links } = linking.ok_or_else(|| self.gone(id))?;
            let links = match links {
                Some(links) => links,
                None if which == Links::default() => Vec::new(),
                None => return Err(Error::LinksUnknown { document: id.clone() }),
            };
            let at = of_document.len();
            all.extend(links.into_iter().filter(|link| which.count_made(link.kind)).map(|link| (at, link)));
            of_document.push((id, origin, Vec::new()));
        }
        let mut all = all.into_iter().peekable();
        while all.peek().is_some() {
            let some: Vec<(usize, Link)> = all.by_ref().take(LINKS_TOGETHER).collect();
            self.resolve(some, &mut of_document)?;
        }
        Ok(of_document.into_iter().map(|(.., resolved)| resolved).collect())
    }

    /// Resolves links, each with the number of its document.
    fn resolve(&self, links: Vec<(usize, Link)>, of_document: &mut [Linked]) -> Result<()> {
        let of = |(at, link): &(usize, Link)| sought(&of_document[*at].0, &of_document[*at].1, link);
        let sought: Vec<Sought> = links.iter().map(of).collect();
        let mut asked = Asked::default();
        sought.iter().flat_map(|sought| &sought.names).for_each(|name| asked.add(name));
        let holders = self.source.called(&asked.names)?;
        for ((at, link), Sought { names, anchor }) in links.into_iter().zip(sought) {
            let (_, origin, resolved) = &mut of_document[at];
            let to = names.iter().find_map(|name| chosen(name, &holders[asked.places[name]], origin)).cloned();
            resolved.push(Resolved { link, to, anchor });
        }
        Ok(())
    }

    fn gone(&self, id: &str) -> Error {
        Error::UnknownDocument { id: id.to_owned(), nearest: None }
    }
}

/// A document by its id, its file, and its links so far.
type Linked = (String, String, Vec<Resolved>);

/// Names, each asked for once.
#[derive(Default)]
struct Asked {
    names: Vec<Name>,
    places: HashMap<Name, usize>,
}

impl Asked {
    fn add(&mut self, name: &Name) {
        if !self.places.contains_key(name) {
            self.places.insert(name.clone(), self.names.len());
            self.names.push(name.clone());
        }
    }
}

/// The document that a name means to one that links from the file `origin`.
fn chosen<'h>(name: &Name, holders: &'h [Holder], origin: &str) -> Option<&'h Holder> {
    let extension = |path: &str| path.rsplit_once('.').map(|(_, extension)| extension.to_lowercase());
    match (name, holders) {
        (_, []) => None,
        (_, [only]) => Some(only),
        (Name::File(_) | Name::Page(_) | Name::Module(_), several) => several
            .iter()
            .max_by_key(|holder| (extension(&holder.document) == extension(origin), Reverse(&holder.document))),
        (Name::Id(_) | Name::Stem(_) | Name::Title(_) | Name::Field(..) | Name::Number { .. }, _) => None,
    }
}
