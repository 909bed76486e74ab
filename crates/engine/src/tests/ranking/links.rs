//! Links: documents that the best of a ranking name climb towards them, as the rule says word for word.

use std::collections::HashSet;
use std::path::PathBuf;

use cento_lexical::{Analyzer, Language};

use super::super::random::Random;
use super::super::{Place, QuickFs, index_notes};
use crate::{
    BudgetTokenizer, ChunkSearch, ContextSettings, Filter, Links, Merge, Mode, Policy, RunQuery, RunRequest, Scan,
    Searcher, SearcherOptions, Selection, delete,
};

const QUERIES: [&str; 5] = ["w1 w2 w3", "w4 harbour w7", "where is Quill Tower", "w5 w5 mist", "the guide speaks"];

/// Documents with titles, some of which several have, whose texts name others.
fn write(place: &Place) {
    let mut random = Random::new(11);
    let names: Vec<String> = (0..14).map(|n| format!("Quill {}{n}", ["Tower", "Abbey", "Ford"][n % 3])).collect();
    let mut titles: Vec<String> = names.clone();
    titles.extend(["The", "Of the", "Harbour (film)", "Harbour", "Mist", "Mist", "Mist (1999)"].map(str::to_owned));
    titles.extend(["Echo", "Echo", "Echo", "Echo", "Quill", "A. B. Crane's Boat"].map(str::to_owned));
    for (number, title) in titles.iter().enumerate() {
        let mut words: Vec<String> = (0..40).map(|_| format!("w{}", random.below(25))).collect();
        for _ in 0..random.below(5) {
            let named = ["harbour", "MIST", "echo", "the", "quill", "a b crane's boat"];
            let named = named.map(str::to_owned).into_iter().chain(names.iter().map(|name| name.to_lowercase()));
            let named: Vec<String> = named.collect();
            let at = random.below(words.len());
            words[at] = named[random.below(named.len())].clone();
        }
        let (first, second) = words.split_at(20);
        let text = format!("# {title}\n\n{}.\n\n## History\n\n{}\n", first.join(" "), second.join(", "));
        place.write(&format!("{number}.md"), &text);
    }
    place.write("guide.md", "# Guide\n\nThe guide speaks of an echo. The guide speaks.\n");
}

struct Read {
    id: String,
    title: String,
    words: Vec<String>,
}

fn words(text: &str) -> Vec<String> {
    let runs = text.split(|c: char| !c.is_alphanumeric()).filter(|run| !run.is_empty());
    runs.map(str::to_lowercase).collect()
}

fn title_words(title: &str) -> Vec<String> {
    words(title.split_once(" (").map_or(title, |(before, _)| before))
}

fn read(searcher: &Searcher) -> Vec<Read> {
    let listed = searcher.list(&Selection::All).unwrap();
    let read = |id: String| {
        let whole = searcher.get(&id).unwrap();
        Read { id, title: whole.title, words: words(&whole.text) }
    };
    listed.into_iter().map(|document| read(document.id)).collect()
}

/// The documents that one names, and how strongly.
fn naive_links<'d>(searcher: &Searcher, documents: &'d [Read], from: &Read) -> Vec<(&'d str, f64)> {
    let analyzer = Analyzer::new(Language::English);
    let mut links = Vec::new();
    for to in documents {
        let title = title_words(&to.title);
        let n_shared = documents.iter().filter(|other| title_words(&other.title) == title).count();
        let terms: HashSet<String> = analyzer.terms(&title.join(" ")).into_iter().collect();
        let is_named = from.words.windows(title.len().max(1)).any(|window| window == title);
        if to.id != from.id && n_shared <= 3 && !terms.is_empty() && is_named {
            let idf: f64 = searcher.idfs(&Vec::from_iter(terms)).unwrap().iter().sum();
            let n = searcher.source.describe().n_rows as f64;
            links.push((to.id.as_str(), (idf / n.ln()).min(1.0)));
        }
    }
    let n_links = links.len() as f64;
    links.into_iter().map(|(to, rarity)| (to, rarity / n_links.sqrt())).collect()
}

pub(super) fn document(id: &str) -> &str {
    id.split_once('#').map_or(id, |(document, _)| document)
}

/// A fused ranking with its links followed; `hidden` documents are named by nobody.
fn naive(searcher: &Searcher, fused: &[(String, f64)], hidden: &[&str]) -> Vec<(String, f64)> {
    let documents = read(searcher);
    let ids: Vec<&str> = documents.iter().map(|document| document.id.as_str()).collect();
    let links = |head: &str| {
        let from = documents.iter().find(|from| from.id == head).unwrap();
        naive_links(searcher, &documents, from).into_iter().map(|(to, strength)| (to.to_owned(), strength)).collect()
    };
    climbed(&ids, &links, fused, hidden)
}

/// A fused ranking of these documents with some links followed; none leads to a `hidden` one.
pub(super) fn climbed(
    documents: &[&str],
    links: &dyn Fn(&str) -> Vec<(String, f64)>,
    fused: &[(String, f64)],
    hidden: &[&str],
) -> Vec<(String, f64)> {
    let mut heads: Vec<(&str, f64)> = Vec::new();
    for (id, score) in fused {
        if heads.len() < 3 && heads.iter().all(|(head, _)| *head != document(id)) {
            heads.push((document(id), *score));
        }
    }
    let mut lifted = fused.to_vec();
    for to in documents {
        let at = fused.iter().position(|(id, _)| document(id) == *to);
        let own = at.map_or(0.0, |at| fused[at].1);
        let mut best = own;
        for (head, score) in &heads {
            let links = links(head);
            let link = links.iter().find(|(named, _)| named == to && !hidden.contains(&named.as_str()));
            best = link.map_or(best, |(_, strength)| best.max((own + 0.6 * score * strength).min(0.999 * score)));
        }
        match at {
            Some(at) => lifted[at].1 = best,
            None if best > 0.0 && fused[0].0.contains('#') => lifted.push((format!("{to}#0"), best)),
            None if best > 0.0 => lifted.push(((*to).to_owned(), best)),
            None => {}
        }
    }
    lifted.sort_by(|a, b| b.1.total_cmp(&a.1).then_with(|| b.0.cmp(&a.0)));
    lifted
}

#[track_caller]
pub(super) fn assert_same(ranking: &[(String, f64)], expected: &[(String, f64)]) {
    let ids = |ranking: &[(String, f64)]| ranking.iter().map(|(id, _)| id.clone()).collect::<Vec<_>>();
    assert_eq!(ids(ranking), ids(expected));
    for ((id, score), (_, expected)) in ranking.iter().zip(expected) {
        assert!((score - expected).abs() < 1e-12, "{id}: {score}, {expected}");
    }
}

pub(super) fn run(searcher: &Searcher, query: &str, request: &RunRequest) -> Vec<(String, f64)> {
    let query = RunQuery { text: query.to_owned(), scope: None };
    searcher.run(&[query], request, &mut |_| {}).unwrap().remove(0)
}

pub(super) fn search(searcher: &Searcher, request: &ChunkSearch) -> Vec<(String, f64)> {
    let hits = searcher.search(request).unwrap().hits;
    hits.into_iter().map(|hit| (hit.id, hit.score)).collect()
}

pub(super) fn chunks(query: &str, links: Links) -> ChunkSearch {
    ChunkSearch { k: 1000, links, scan: Scan::Exact, ..ChunkSearch::new(query) }
}

#[test]
fn documents_and_chunks_climb_as_the_rule_says() {
    let place = Place::new();
    write(&place);
    place.index();
    let searcher = place.searcher();
    let mut n_lifted = 0;
    for query in QUERIES {
        for candidates in [1000, 5] {
            let request = |links| RunRequest { k: candidates, candidates, links, ..RunRequest::default() };
            let fused = run(&searcher, query, &RunRequest { k: 5, ..request(Links::None) });
            let all = run(&searcher, query, &RunRequest { k: candidates, ..request(Links::None) });
            assert_eq!(fused[..], all[..5]);
            if candidates == 1000 {
                assert_same(&run(&searcher, query, &request(Links::Named)), &naive(&searcher, &all, &[]));
            }
            let request = |links| ChunkSearch { candidates, k: candidates, ..chunks(query, links) };
            let (fused, named) = (search(&searcher, &request(Links::None)), search(&searcher, &request(Links::Named)));
            if candidates == 1000 {
                assert_same(&named, &naive(&searcher, &fused, &[]));
                n_lifted += named.iter().filter(|ranked| !fused.contains(ranked)).count();
            }
            let few = ChunkSearch { k: 3, ..request(Links::Named) };
            assert_eq!(search(&searcher, &few)[..], named[..3], "the best do not depend on how many are asked for");
        }
    }
    assert!(n_lifted > 10, "{n_lifted}");
}

#[test]
fn what_was_lifted_says_by_whom_and_adds_up() {
    let place = Place::new();
    place.write("mill.md", "# Old Mill\n\nThe wheel of the old mill turned by water, as at Tern Ford.\n");
    place.write("ford.md", "# Tern Ford (village)\n\nA village by a river.\n");
    place.write("other.md", "# Unrelated\n\nA wheel turned by nothing in particular.\n");
    place.index();
    let searcher = place.searcher();
    let query = "the wheel of the old mill";
    let hits = searcher.search(&chunks(query, Links::Named)).unwrap().hits;
    let ford = hits.iter().find(|hit| hit.document == "notes/ford.md").unwrap();
    let by = ford.named_by.as_ref().unwrap();
    let text = searcher.get(&format!("{} bytes {}-{}", by.document, by.span[0], by.span[1])).unwrap().text;
    assert_eq!((by.document.as_str(), by.title.as_str(), text.as_str()), ("notes/mill.md", "tern ford", "Tern Ford"));
    assert_eq!(ford.rank, 2, "up to the one that names it, and not past it");
    for hit in &hits {
        let sum: f64 = hit.contributions.iter().map(|part| part.contribution).sum();
        assert!((sum - hit.score).abs() < 1e-12, "{hit:?}");
        assert_eq!(hit.named_by.is_some(), hit.contributions.iter().any(|part| part.arm == "named"));
    }
    for mode in [Mode::Dense, Mode::Lexical] {
        let by_one_arm = |links| search(&searcher, &ChunkSearch { mode, ..chunks(query, links) });
        assert_eq!(by_one_arm(Links::Named), by_one_arm(Links::None));
    }
}

#[test]
fn a_link_passes_no_document_that_may_not_answer() {
    let place = Place::new();
    write(&place);
    place.index();
    let searcher = place.searcher();
    for query in QUERIES {
        let named = search(&searcher, &chunks(query, Links::Named));
        let mut documents: Vec<&str> = named.iter().map(|(id, _)| document(id)).collect();
        documents.sort_unstable();
        documents.dedup();
        for hidden in documents {
            let filter = Some(Filter::parse(&format!("not (id = \"{hidden}\")")).unwrap());
            let within = |links| ChunkSearch { filter: filter.clone(), ..chunks(query, links) };
            let expected = naive(&searcher, &search(&searcher, &within(Links::None)), &[hidden]);
            assert_same(&search(&searcher, &within(Links::Named)), &expected);
            let request = |links| RunRequest { links, filter: filter.clone(), ..RunRequest::default() };
            let expected = naive(&searcher, &run(&searcher, query, &request(Links::None)), &[hidden]);
            assert_same(&run(&searcher, query, &request(Links::Named)), &expected);
        }
    }
}

/// The answers to all queries, scores to the last bit, with who named what.
fn all(searcher: &Searcher) -> String {
    let hits = |query: &&str| searcher.search(&chunks(query, Links::Named)).unwrap().hits;
    let hits = QUERIES.iter().flat_map(hits).map(|hit| serde_json::to_string(&hit).unwrap());
    let runs = QUERIES.iter().map(|query| format!("{:?}", run(searcher, query, &RunRequest::default())));
    hits.chain(runs).collect::<Vec<_>>().join("\n")
}

#[test]
fn links_do_not_depend_on_how_a_collection_grew() {
    let place = Place::new();
    write(&place);
    place.index();
    let whole = all(&place.searcher());
    assert!(whole.contains("named_by"));

    let grown = Place::new();
    write(&grown);
    let names: Vec<PathBuf> = {
        let mut files: Vec<_> = std::fs::read_dir(grown.notes()).unwrap().map(|file| file.unwrap().path()).collect();
        files.sort();
        files
    };
    let aside = tempfile::tempdir().unwrap();
    for file in &names {
        std::fs::rename(file, aside.path().join(file.file_name().unwrap())).unwrap();
    }
    for some in names.chunks(5) {
        for file in some {
            std::fs::rename(aside.path().join(file.file_name().unwrap()), file).unwrap();
        }
        grown.index();
    }
    assert!(grown.searcher().manifest().segments.len() > 3);
    assert_eq!(all(&grown.searcher()), whole);
    grown.compact(Merge::All);
    assert_eq!(all(&grown.searcher()), whole);

    // One of the four that share a title goes: the other three are named now.
    let echo = |searcher: &Searcher| all(searcher).contains(r#""title":"echo""#);
    assert!(!echo(&grown.searcher()));
    let fourth = read(&grown.searcher()).into_iter().find(|document| document.title == "Echo").unwrap().id;
    delete(&grown.collection(), &[fourth], &QuickFs).unwrap();
    assert!(echo(&grown.searcher()));
    let before = all(&grown.searcher());
    grown.compact(Merge::All);
    assert_eq!(all(&grown.searcher()), before);
}

#[test]
fn links_cross_shards() {
    let place = Place::new();
    write(&place);
    place.index();
    for n in [2, 3] {
        let folder = |what: &str, shard: usize| place.folder.path().join(format!("{what}-{n}-{shard}"));
        (0..n).for_each(|shard| std::fs::create_dir(folder("notes", shard)).unwrap());
        for (at, file) in std::fs::read_dir(place.notes()).unwrap().enumerate() {
            let file = file.unwrap();
            std::fs::hard_link(file.path(), folder("notes", at % n).join(file.file_name())).unwrap();
        }
        let index = |shard| {
            let collection = folder("collection", shard);
            index_notes(&folder("notes", shard), &collection, &place.options(), &QuickFs).unwrap();
            collection
        };
        let folders: Vec<PathBuf> = (0..n).map(index).collect();
        let shards = Searcher::open_shards(&folders, SearcherOptions::default()).unwrap();
        assert_eq!(all(&shards), all(&place.searcher()));
    }
}

#[test]
fn a_context_chooses_from_the_ranking_that_a_search_shows() {
    let place = Place::new();
    write(&place);
    place.index();
    let searcher = place.searcher();
    let (tokenizer, policy) = (BudgetTokenizer::named("o200k").unwrap(), Policy::default());
    let settings = ContextSettings::new(200, &tokenizer, &policy);
    let mut n_lifted = 0;
    for query in QUERIES {
        for links in [Links::Named, Links::None] {
            let request = ChunkSearch { links, ..ChunkSearch::new(query) };
            let records = searcher.context(&request, &settings).unwrap().trace.records;
            for hit in searcher.search(&request).unwrap().hits {
                let record = records.iter().find(|record| record.chunk_id == hit.id).unwrap();
                assert_eq!(record.retrieval_score, hit.score, "{query}: {}", hit.id);
                n_lifted += usize::from(hit.named_by.is_some());
            }
        }
    }
    assert!(n_lifted > 0);
}
