//! Links that authors made: documents that the best of a ranking link to climb as the rule says, however the collection
//! grew and is cut; what a document links to and what links to it.

use std::collections::BTreeSet;
use std::io::{Cursor, Write};
use std::path::PathBuf;

use cento_vector::file;

use super::super::random::Random;
use super::super::{Place, QuickFs, copied, index_notes};
use super::links::{assert_same, chunks, climbed, document, run, search};
use crate::{Error, Filter, Links, Merge, RunRequest, Searcher, SearcherOptions, delete};

const QUERIES: [&str; 4] = ["w1 w2 w3", "w4 w7 w9", "where is page 3", "w5 w5 w11"];

const N_PAGES: usize = 24;

/// Pages whose texts link to each other in several ways, and out of the collection.
fn write(place: &Place) {
    let mut random = Random::new(5);
    for number in 0..N_PAGES {
        let mut words: Vec<String> = (0..40).map(|_| format!("w{}", random.below(25))).collect();
        for _ in 0..random.below(6) {
            let (at, to) = (random.below(words.len()), random.below(N_PAGES + 3)); // three are nowhere
            words[at] = match random.below(4) {
                0 => format!("[page](p{to}.md)"),
                1 => format!("[page](./p{to}.html#history \"words\")"),
                2 => format!("[[p{to}|page]]"),
                _ => format!("[page][p{to}.md]"),
            };
        }
        let labels: String = (0..N_PAGES + 3).map(|to| format!("[p{to}.md]: p{to}.md\n")).collect();
        let (first, second) = words.split_at(20);
        let text =
            format!("# Page {number}\n\n{}.\n\n## History\n\n{}\n\n{labels}", first.join(" "), second.join(", "));
        place.write(&format!("p{number}.md"), &text);
    }
}

/// The pages that the text of one links to, read word by word; each as strongly.
fn naive_links(searcher: &Searcher, from: &str) -> Vec<(String, f64)> {
    let text = searcher.get(from).unwrap().text;
    let mut linked = BTreeSet::new();
    for word in text.split_whitespace().filter(|word| word.starts_with('[') && !word.ends_with(':')) {
        let digits = word.split_once('p').and_then(|(_, rest)| rest.strip_prefix("age").or(Some(rest))).unwrap();
        let number: String =
            digits.chars().skip_while(|c| !c.is_ascii_digit()).take_while(char::is_ascii_digit).collect();
        let to = format!("notes/p{number}.md");
        if to != from && searcher.source.find(&[(to.clone(), None)]).unwrap()[0].is_some() {
            linked.insert(to);
        }
    }
    let strength = 1.0 / (linked.len() as f64).sqrt();
    linked.into_iter().map(|to| (to, strength)).collect()
}

fn naive(searcher: &Searcher, fused: &[(String, f64)], hidden: &[&str]) -> Vec<(String, f64)> {
    let pages: Vec<String> = (0..N_PAGES).map(|number| format!("notes/p{number}.md")).collect();
    let pages: Vec<&str> = pages.iter().map(String::as_str).collect();
    climbed(&pages, &|from| naive_links(searcher, from), fused, hidden)
}

#[test]
fn documents_and_chunks_climb_to_what_links_to_them() {
    let place = Place::new();
    write(&place);
    place.index();
    let searcher = place.searcher();
    let mut n_lifted = 0;
    for query in QUERIES {
        let request = |links| RunRequest { links, ..RunRequest::default() };
        let expected = naive(&searcher, &run(&searcher, query, &request(Links::None)), &[]);
        assert_same(&run(&searcher, query, &request(Links::Authored)), &expected);
        let fused = search(&searcher, &chunks(query, Links::None));
        let linked = search(&searcher, &chunks(query, Links::Authored));
        assert_same(&linked, &naive(&searcher, &fused, &[]));
        n_lifted += linked.iter().filter(|ranked| !fused.contains(ranked)).count();
        let few = crate::ChunkSearch { k: 3, ..chunks(query, Links::Authored) };
        assert_eq!(search(&searcher, &few)[..], linked[..3], "the best do not depend on how many are asked for");
    }
    assert!(n_lifted > 8, "{n_lifted}");
}

#[test]
fn what_was_lifted_says_which_link_did_it_and_adds_up() {
    let place = Place::new();
    place.write("mill.md", "# Old Mill\n\nThe wheel of the old mill turned by water, as [there](ford.html#river).\n");
    place.write("ford.md", "# Tern Ford\n\nA village by a river.\n");
    place.write("other.md", "# Unrelated\n\nA wheel turned by nothing in particular.\n");
    place.index();
    let searcher = place.searcher();
    for links in [Links::Authored, Links::All] {
        let hits = searcher.search(&chunks("the wheel of the old mill", links)).unwrap().hits;
        let ford = hits.iter().find(|hit| hit.document == "notes/ford.md").unwrap();
        let by = ford.named_by.as_ref().unwrap();
        let text = searcher.get(&format!("{} bytes {}-{}", by.document, by.span[0], by.span[1])).unwrap().text;
        assert_eq!(
            (by.link, by.title.as_str(), text.as_str()),
            (Some("inline"), "ford.html#river", "[there](ford.html#river)")
        );
        assert_eq!(ford.rank, 2, "up to the one that links to it, and not past it");
        for hit in &hits {
            let sum: f64 = hit.contributions.iter().map(|part| part.contribution).sum();
            assert!((sum - hit.score).abs() < 1e-12, "{hit:?}");
            assert_eq!(hit.named_by.is_some(), hit.contributions.iter().any(|part| part.arm == "linked"));
        }
    }
}

#[test]
fn what_code_imports_climbs_unasked_and_what_a_page_links_to_does_not() {
    let place = Place::new();
    place.write("mill.py", "from .ford import cross\n\n# The wheel of the old mill turned by water.\n");
    place.write("ford.py", "def cross():\n    # A village by a river.\n    return 1\n");
    place.write("wheel.md", "# Wheels\n\nThe wheel of the old mill, and [more](far.md).\n");
    place.write("far.md", "# Afar\n\nA village by another river.\n");
    place.write("other.md", "# Unrelated\n\nA wheel turned by nothing in particular.\n");
    place.index();
    let query = "the wheel of the old mill";
    let lifted = |searcher: &Searcher, links| {
        let hits = searcher.search(&chunks(query, links)).unwrap().hits;
        let by = |hit: &crate::Hit| Some((hit.document.clone(), hit.named_by.as_ref()?.link?));
        hits.iter().filter_map(by).collect::<Vec<_>>()
    };
    let searcher = place.searcher();
    let (ford, far) = (("notes/ford.py".to_owned(), "import"), ("notes/far.md".to_owned(), "inline"));
    assert_eq!(lifted(&searcher, Links::Named), [ford.clone()]);
    let mut all = lifted(&searcher, Links::All);
    all.sort();
    assert_eq!(all, [far, ford]);
    assert_eq!(lifted(&searcher, Links::None), []);
    drop(searcher);
    without_links(&place);
    assert_eq!(lifted(&place.searcher(), Links::Named), [], "a collection of before answers as it did");
}

#[test]
fn a_link_passes_no_document_that_may_not_answer() {
    let place = Place::new();
    write(&place);
    place.index();
    let searcher = place.searcher();
    for query in QUERIES {
        for (id, _) in &search(&searcher, &chunks(query, Links::Authored))[..8] {
            let hidden = document(id);
            let filter = Some(Filter::parse(&format!("not (id = \"{hidden}\")")).unwrap());
            let within = |links| crate::ChunkSearch { filter: filter.clone(), ..chunks(query, links) };
            let expected = naive(&searcher, &search(&searcher, &within(Links::None)), &[hidden]);
            assert_same(&search(&searcher, &within(Links::Authored)), &expected);
        }
    }
}

/// All answers that links have a part in, scores to the last bit, and the links of every page.
fn all(searcher: &Searcher) -> String {
    let mut all = String::new();
    for links in [Links::Authored, Links::All] {
        for query in QUERIES {
            for hit in searcher.search(&chunks(query, links)).unwrap().hits {
                all += &serde_json::to_string(&hit).unwrap();
            }
            all += &format!("{:?}\n", run(searcher, query, &RunRequest { links, ..RunRequest::default() }));
        }
    }
    for listed in searcher.list(&crate::Selection::All).unwrap() {
        all += &serde_json::to_string(&searcher.links(&listed.id).unwrap()).unwrap();
        all.push('\n');
    }
    all
}

#[test]
fn links_do_not_depend_on_how_a_collection_grew_or_is_cut() {
    let place = Place::new();
    write(&place);
    place.index();
    let whole = all(&place.searcher());
    assert!(whole.contains("\"link\":\"wiki\"") && whole.contains("\"link\":\"reference\""));

    let grown = Place::new();
    for first in (0..N_PAGES).step_by(7) {
        for number in first..(first + 7).min(N_PAGES) {
            let name = format!("p{number}.md");
            std::fs::copy(place.notes().join(&name), grown.notes().join(&name)).unwrap();
        }
        grown.index();
    }
    assert!(grown.searcher().manifest().segments.len() > 3);
    assert_eq!(all(&grown.searcher()), whole);
    grown.compact(Merge::All);
    assert_eq!(all(&grown.searcher()), whole);

    delete(&grown.collection(), &["notes/p3.md".to_owned()], &QuickFs).unwrap();
    let before = all(&grown.searcher());
    assert!(before.contains("\"document\":null"), "links to what is gone stay, and lead nowhere");
    grown.compact(Merge::All);
    assert_eq!(all(&grown.searcher()), before);

    let folder = |what: &str, shard: usize| place.folder.path().join(format!("{what}-{shard}"));
    (0..3).for_each(|shard| std::fs::create_dir(folder("notes", shard)).unwrap());
    for number in 0..N_PAGES {
        let name = format!("p{number}.md");
        std::fs::hard_link(place.notes().join(&name), folder("notes", number % 3).join(&name)).unwrap();
    }
    let index = |shard| {
        index_notes(&folder("notes", shard), &folder("collection", shard), &place.options(), &QuickFs).unwrap();
        folder("collection", shard)
    };
    let folders: Vec<PathBuf> = (0..3).map(index).collect();
    assert_eq!(all(&Searcher::open_shards(&folders, SearcherOptions::default()).unwrap()), whole);
}

#[test]
fn every_kind_of_link_leads_to_its_document() {
    let place = Place::new();
    place.write("a.md", "---\nrelated: [\"b.md\"]\n---\n# A\n\n[b](b.md#part-two) [gone](gone.md) [[Bee]] <https://x.org/notes/b.html>\n\nAs Article 7 says (10.1000/x).\n");
    place.write("b.md", "# Bee\n\nText.\n\n## Part two\n\nMore.\n");
    place.write("law.md", "# Law\n\n## Article 7. Bread\n\nBread is flour.\n");
    place.write("doi.md", "---\ndoi: https://doi.org/10.1000/x\n---\n# Paper\n\nText.\n");
    place.write("page.html", "<h1>Page</h1><p>See <a href='b.html'>bee</a>.</p>");
    place.write("main.rs", "mod inner;\n\nfn main() {}\n");
    place.write("inner.rs", "use crate::gone::x;\n\npub fn x() {}\n");
    place.index();
    let searcher = place.searcher();
    let outgoing = |id: &str| -> Vec<String> {
        let links = searcher.links(id).unwrap().outgoing;
        let words = |link: &crate::OutgoingLink| {
            let section = link.section.as_ref().map_or_else(String::new, |section| format!(" > {}", section.heading));
            let document = link.document.as_deref().unwrap_or("nowhere");
            format!("{} {} {document}{section}", link.kind, link.target)
        };
        links.iter().map(words).collect()
    };
    assert_eq!(
        outgoing("notes/a.md"),
        [
            "related b.md notes/b.md",
            "inline b.md#part-two notes/b.md > Part two",
            "inline gone.md nowhere",
            "wiki Bee notes/b.md",
            "autolink https://x.org/notes/b.html notes/b.md",
            "numbered Article 7 notes/law.md > Article 7. Bread",
            "doi 10.1000/x notes/doi.md",
        ]
    );
    assert_eq!(outgoing("notes/page.html"), ["html b.html notes/b.md"]);
    assert_eq!(outgoing("notes/main.rs"), ["import mod inner notes/inner.rs"]);
    assert_eq!(outgoing("notes/inner.rs"), ["import crate::gone::x notes/main.rs"]);
    let incoming = searcher.links("notes/b.md").unwrap().incoming;
    let from: Vec<(&str, &str)> = incoming.iter().map(|link| (link.document.as_str(), link.kind)).collect();
    let by_a = ["related", "inline", "wiki", "autolink"].map(|kind| ("notes/a.md", kind));
    assert_eq!(from, [&by_a[..], &[("notes/page.html", "html")]].concat());
    let part = searcher.links("notes/a.md:8").unwrap();
    assert!(part.outgoing.iter().all(|link| ["numbered", "doi"].contains(&link.kind)) && part.outgoing.len() == 2);
}

/// The collection as a version left it that did not look for links.
fn without_links(place: &Place) {
    for segment in std::fs::read_dir(place.collection().join("segments")).unwrap() {
        let segment = segment.unwrap().path();
        std::fs::remove_file(segment.join("links.table")).unwrap();
        let path = segment.join("documents.table");
        let bytes = std::fs::read(&path).unwrap();
        let number = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap());
        let kind: [u8; 8] = bytes[16..24].try_into().unwrap();
        let mut payload = bytes[file::HEADER_BYTES..][..number(40) as usize].to_vec();
        let record_bytes = size_of::<cento_collection::format::segment::DocumentRecord>();
        for record in payload[..number(24) as usize * record_bytes].chunks_mut(record_bytes) {
            record[record_bytes - 4..].fill(0);
        }
        let mut writer = file::Writer::new(Cursor::new(Vec::new()), kind).unwrap();
        writer.write_all(&payload).unwrap();
        std::fs::remove_file(&path).unwrap();
        std::fs::write(&path, writer.finish([number(24), number(32)]).unwrap().into_inner()).unwrap();
    }
}

#[test]
fn a_collection_without_links_opens_and_gets_them_by_indexing_again() {
    let place = Place::new();
    write(&place);
    place.index();
    let whole = all(&place.searcher());
    without_links(&place);
    let old = place.searcher();
    assert!(!search(&old, &chunks(QUERIES[0], Links::Named)).is_empty());
    let refused = old.search(&chunks(QUERIES[0], Links::Authored)).unwrap_err();
    assert!(matches!(refused, Error::LinksUnknown { .. }) && refused.to_string().contains("index its files again"));
    assert!(matches!(old.links("notes/p1.md"), Err(Error::LinksUnknown { .. })));

    // Compaction keeps what is not known, and one document that is indexed again does not make the others known.
    place.write("p1.md", "# Page 1\n\nIt [links](p2.md).\n");
    place.index_with(&crate::IndexOptions { ..place.options() }, &QuickFs).unwrap();
    drop(old);
    let report = place.index();
    assert_eq!((report.n_added, report.n_changed), (0, 0), "all were indexed again");
    write(&place);
    place.index();
    assert_eq!(all(&place.searcher()), whole);
}

#[test]
fn compaction_keeps_that_links_were_not_looked_for() {
    let place = Place::new();
    place.write("a.md", "# A\n\n[b](b.md)\n");
    place.index();
    without_links(&place);
    let old = copied(&place.collection());
    let merged = |collection: &std::path::Path| {
        let options = crate::CompactOptions { merge: Merge::All, graph_rows_min: 1, ..Default::default() };
        crate::compact(collection, &options, &QuickFs, &mut |_| {}).unwrap()
    };
    place.write("b.md", "# B\n\n[a](a.md)\n");
    let notes = tempfile::tempdir().unwrap();
    std::fs::copy(place.notes().join("b.md"), notes.path().join("b.md")).unwrap();
    let root = crate::Root { label: "more".to_owned(), path: notes.path().to_owned() };
    crate::index(old.path(), &[root], &place.options(), &QuickFs, &mut |_| {}).unwrap();
    merged(old.path());
    let searcher = Searcher::open(old.path(), SearcherOptions::default()).unwrap();
    assert!(matches!(searcher.links("notes/a.md"), Err(Error::LinksUnknown { .. })));
    let links = searcher.links("more/b.md").unwrap();
    assert_eq!((links.outgoing.len(), links.warnings.len()), (1, 1));
    assert!(
        links.warnings[0].starts_with("indexed before links were looked for, and not seen to link here: 1 document;"),
        "{:?}",
        links.warnings
    );
}
