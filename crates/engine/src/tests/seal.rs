//! A repair over a collection.

use super::Place;
use crate::{BudgetTokenizer, ChunkSearch, Context, ContextSettings, Mode, Policy, SealBudget, SealConfig, Strategy};

const QUESTION: &str = "In which town was the director of Night Train born?";

/// The second hop shares no word with the question but "born", which others have too.
fn two_hops() -> Place {
    let place = Place::new();
    place.write("film.md", "# Night Train\n\nNight Train is a drama film directed by Ada Quist.\n");
    place.write("ada.md", "# Ada Quist\n\nAda Quist was born in Tromso to a baker.\n");
    for number in 0..6 {
        let text = format!("# Town {number}\n\nThe town has a station, and a director was born in town {number}.\n");
        place.write(&format!("town{number}.md"), &text);
    }
    place.index();
    place
}

#[test]
fn a_repair_finds_the_second_hop_and_asks_each_query_once() {
    let (place, tokenizer) = (two_hops(), BudgetTokenizer::named("o200k").unwrap());
    let searcher = place.searcher();
    let retrieval = searcher.retrieval(ChunkSearch { mode: Mode::Lexical, ..ChunkSearch::new("") });
    let seal = |loops, budget| {
        let config = SealConfig { budget, loops, ..SealConfig::default() };
        retrieval.seal(QUESTION, &config, &[], &tokenizer, None).unwrap()
    };
    let ada = "notes/ada.md#0".to_owned();
    let without = seal(0, SealBudget::Items(2));
    assert!(without.outcome.kept.len() == 2 && !without.outcome.kept.contains(&ada) && without.n_searches == 1);
    let with = seal(1, SealBudget::Items(2));
    assert!(with.outcome.kept.len() == 2 && with.outcome.kept.contains(&ada), "{:?}", with.outcome);
    assert!(with.n_searches > 0);
    let again = seal(1, SealBudget::Items(2));
    assert_eq!((again.n_searches, &again.outcome), (0, &with.outcome));
    assert!(with.outcome.kept.iter().all(|kept| with.candidates.iter().any(|candidate| candidate.id == *kept)));

    for tokens in [1, 20, 40, 80] {
        let sealed = seal(2, SealBudget::Tokens(tokens));
        let text = |id: &String| &sealed.candidates.iter().find(|candidate| candidate.id == *id).unwrap().text;
        let delivered: usize = sealed.outcome.kept.iter().map(|id| tokenizer.count(text(id))).sum();
        let headers = sealed.outcome.n_tokens - delivered;
        assert!(sealed.outcome.n_tokens <= tokens && headers == 24 * sealed.outcome.kept.len());
    }
}

#[test]
fn a_document_taken_from_the_candidates_is_not_found_again() {
    let (place, tokenizer) = (two_hops(), BudgetTokenizer::named("o200k").unwrap());
    let searcher = place.searcher();
    let mut pool = searcher.pool(&ChunkSearch { mode: Mode::Lexical, ..ChunkSearch::new(QUESTION) }).unwrap();
    let policy = Policy::default();
    let request = ContextSettings { strategy: Strategy::Seal, ..ContextSettings::new(120, &tokenizer, &policy) };
    let delivers = |context: Context| context.citations.iter().any(|citation| citation.document == "notes/ada.md");
    assert!(delivers(pool.context(&request).unwrap()));
    pool.remove_document("notes/ada.md");
    assert!(!delivers(pool.context(&request).unwrap()));
}

#[test]
fn what_is_cut_because_nothing_fits_whole_is_neither_excluded_nor_blocked() {
    let (place, tokenizer) = (two_hops(), BudgetTokenizer::named("o200k").unwrap());
    let searcher = place.searcher();
    let pool = searcher.pool(&ChunkSearch { mode: Mode::Lexical, ..ChunkSearch::new(QUESTION) }).unwrap();
    let delivered = |policy: &str, exclude: &[String]| {
        let policy = Policy::parse(policy).unwrap();
        let settings = ContextSettings::new(34, &tokenizer, &policy);
        let context = pool.context(&ContextSettings { strategy: Strategy::Seal, exclude, ..settings }).unwrap();
        let repair = context.trace.manifest.repair.unwrap();
        assert!(repair.kept.is_empty() && context.citations.len() == 1, "{:?}", repair.kept);
        context.citations[0].document.clone()
    };
    let best = delivered("", &[]);
    assert_eq!(best, "notes/film.md");
    let other = delivered("", std::slice::from_ref(&best));
    assert_ne!(other, best);
    assert_eq!(delivered("[seal]\nblocked_titles = [\"Night Train\"]", &[]), other);
}

#[test]
fn the_default_searches_once_more_for_names_that_were_not_found() {
    let (place, tokenizer) = (two_hops(), BudgetTokenizer::named("o200k").unwrap());
    let searcher = place.searcher();
    let search = ChunkSearch { mode: Mode::Lexical, candidates: 1, ..ChunkSearch::new(QUESTION) };
    let asked = |policy: &str, search: &ChunkSearch| {
        let policy = Policy::parse(policy).unwrap();
        searcher.pool(search).unwrap().context(&ContextSettings::new(400, &tokenizer, &policy)).unwrap()
    };
    let delivered =
        |context: &Context| context.citations.iter().map(|citation| citation.document.clone()).collect::<Vec<_>>();
    let with = asked("", &search);
    assert_eq!(delivered(&with), ["notes/film.md", "notes/ada.md"]);
    assert_eq!(with.trace.manifest.searched_for, ["Ada Quist"]);
    let ada = with.trace.records.iter().find(|record| record.chunk_id == "notes/ada.md#0").unwrap();
    assert!(ada.is_neighbor, "a name found it, not the question");
    let without = asked("[cento]\nbridges = false", &search);
    assert_eq!((delivered(&without), without.trace.manifest.searched_for.len()), (vec!["notes/film.md".to_owned()], 0));
    let mut pool = searcher.pool(&search).unwrap();
    let policy = Policy::default();
    let exclude = ["notes/film.md".to_owned()];
    let excluded = ContextSettings { exclude: &exclude, ..ContextSettings::new(400, &tokenizer, &policy) };
    let named = pool.context(&excluded).unwrap().trace.manifest.searched_for;
    assert!(!named.contains(&"Ada Quist".to_owned()), "what is excluded names nothing: {named:?}");
    pool.remove_document("notes/ada.md");
    assert_eq!(delivered(&pool.context(&ContextSettings::new(400, &tokenizer, &policy)).unwrap()), ["notes/film.md"]);
}
