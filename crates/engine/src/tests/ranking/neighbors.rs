//! A strategy is offered as much beside what was found as its settings ask for.

use super::super::Place;
use crate::{
    BudgetTokenizer, ChunkSearch, ChunkTokens, Context, ContextSettings, IndexOptions, Mode, Policy, Strategy,
};

/// A paragraph of one chunk.
fn paragraph(number: usize, word: &str) -> String {
    let words = ["harbour", "tide", "moon", "wind", "sail", "rope", "mast", "deck"];
    let words: Vec<String> = (0..24).map(|at| format!("{}{number}", words[at % words.len()])).collect();
    format!("The {word} {}.\n\n", words.join(" "))
}

/// A text of a hundred paragraphs, some of which say what is asked for.
fn paragraphs(with: &[usize]) -> String {
    (0..100).map(|number| paragraph(number, if with.contains(&number) { "lighthouse" } else { "sea" })).collect()
}

fn place(name: &str, text: &str) -> Place {
    place_cut(name, text, "48")
}

fn place_cut(name: &str, text: &str, chunk_tokens: &str) -> Place {
    let place = Place::new();
    place.write(name, text);
    place.write("other.txt", "The town has a station and a mill.\n");
    let options = IndexOptions { chunk_tokens: Some(chunk_tokens.parse::<ChunkTokens>().unwrap()), ..place.options() };
    place.index_with(&options, &super::super::QuickFs).unwrap();
    place
}

fn context(place: &Place, strategy: Strategy, policy: &str) -> Context {
    let (policy, tokenizer) = (Policy::parse(policy).unwrap(), BudgetTokenizer::named("o200k").unwrap());
    let search = ChunkSearch { mode: Mode::Lexical, ..ChunkSearch::new("lighthouse") };
    let request = ContextSettings { strategy, ..ContextSettings::new(100_000, &tokenizer, &policy) };
    place.searcher().context(&search, &request).unwrap()
}

/// Numbers of the chunks found, and of those delivered.
fn numbers(context: &Context) -> (Vec<u32>, Vec<u32>) {
    let records = context.trace.records.iter().filter(|record| !record.is_neighbor);
    let number = |id: &str| id.rsplit_once('#').unwrap().1.parse().unwrap();
    let mut found: Vec<u32> = records.map(|record| number(&record.chunk_id)).collect();
    found.sort_unstable();
    (found, context.citations.iter().flat_map(|citation| &citation.chunks).map(|id| number(id)).collect())
}

#[test]
fn a_window_is_as_wide_as_its_radius() {
    let place = place("sea.txt", &paragraphs(&[50]));
    for radius in [0, 3, 20, 40] {
        let policy = format!("[window]\nradius = {radius}\nmax_tokens = 100000");
        let context = context(&place, Strategy::Window, &policy);
        let (found, delivered) = numbers(&context);
        let [found] = found[..] else { panic!("{found:?}") };
        assert_eq!(delivered, (found - radius..=found + radius).collect::<Vec<_>>());
        assert_eq!(context.trace.records.len(), delivered.len(), "nothing else is offered");
        assert_eq!(context.trace.warnings, [""; 0]);
    }
    let narrower = context(&place, Strategy::Window, "[window]\nradius = 20\nmax_tokens = 300");
    let (found, delivered) = numbers(&narrower);
    assert!(delivered.len() > 1 && delivered.len() < 41 && delivered.contains(&found[0]), "{delivered:?}");
    assert!(narrower.trace.warnings[0].contains("1 of 1 windows are narrower than `window.radius`, 20"));
    assert!(narrower.trace.records.len() < 20, "what cannot be in it is not read");
}

#[test]
fn a_parent_is_whole_at_any_depth() {
    let chapters: String = (0..40)
        .map(|number| {
            let word = if number == 3 { "lighthouse" } else { "sea" };
            format!("### Chapter {number}\n\n{}{}", paragraph(number, word), paragraph(100 + number, "sea"))
        })
        .collect();
    let place =
        place("book.md", &format!("# Book\n\n## Before\n\nA word.\n\n## Part\n\n{chapters}## After\n\nAn end.\n"));
    let of = |depth: usize| {
        let policy = format!("[parent]\nhierarchy_depth = {depth}\nmax_tokens = 100000\nfallback = \"none\"");
        context(&place, Strategy::Parent, &policy)
    };
    let texts = [2, 3, 4].map(|depth| of(depth).text);
    assert!(texts[0].contains("harbour3 ") && texts[0].contains("harbour103 ") && !texts[0].contains("harbour4 "));
    for number in 0..40 {
        let (first, second) = (format!("harbour{number} "), format!("harbour{} ", 100 + number));
        assert!(texts[1].contains(&first) && texts[1].contains(&second), "chapter {number}");
    }
    assert!(!texts[1].contains("A word.") && !texts[1].contains("An end."));
    assert!(texts[2].contains("A word.") && texts[2].contains("An end.") && texts[2].contains("harbour39 "));
}

#[test]
fn a_segment_crosses_as_much_as_its_longest_may() {
    let place = place("sea.txt", &paragraphs(&[10, 20]));
    for (strategy, policy) in [
        (Strategy::Rse, "[rse]\nmax_length = 80\noverall_max_length = 200\nirrelevant_chunk_penalty = 0.01"),
        (Strategy::RseKadane, "[kadane]\nmax_segment_length = 100"),
    ] {
        let (found, delivered) = numbers(&context(&place, strategy, policy));
        let [first, last] = found[..] else { panic!("{found:?}") };
        assert!(last - first > 17, "more than the neighbours of both");
        let from = if strategy == Strategy::RseKadane { 0 } else { first };
        assert_eq!(delivered, (from..=last).collect::<Vec<_>>(), "{strategy}");
    }
    let (found, delivered) = numbers(&context(&place, Strategy::Rse, "[rse]\nmax_length = 3"));
    assert_eq!(delivered, found, "no segment can hold both");
}

#[test]
fn strategies_that_look_at_nothing_beside_are_offered_nothing_beside() {
    let place = place("sea.txt", &paragraphs(&[10, 40]));
    for strategy in [Strategy::Flat, Strategy::Mmr, Strategy::Adaptive, Strategy::Bubble, Strategy::Seal] {
        let context = context(&place, strategy, "");
        assert!(context.trace.records.iter().all(|record| !record.is_neighbor), "{strategy}");
    }
}

#[test]
fn a_window_of_sentences_has_as_many_on_either_side() {
    let text = "Hello there. The lighthouse shines. Cats see dogs. A mouse runs. The end comes.\n";
    let place = place_cut("sea.txt", text, "sentence");
    let delivered = |radius: usize| {
        let context = context(&place, Strategy::Window, &format!("[window]\nradius = {radius}"));
        context.citations.iter().map(|citation| citation.span.clone()).collect::<Vec<_>>()
    };
    let sentence = |text_of: &str| text.find(text_of).unwrap() as u64;
    assert_eq!(delivered(0), [sentence("The light")..sentence("Cats")]);
    assert_eq!(delivered(1), [0..sentence("A mouse")]);
    assert_eq!(delivered(2), [0..sentence("The end")]);
}
