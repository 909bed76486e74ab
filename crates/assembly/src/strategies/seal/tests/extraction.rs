//! What another reader says, believed as far as the texts bear it out.

use super::super::extraction::{Extraction, Sufficiency};
use super::super::ledger::Extract;
use super::*;
use crate::question::names::Aliases;
use proptest::prelude::*;

const TEXT: &str =
    "Night Train is a drama film. It was made by bell\nhooks-ray, Annual Inc and ada quist in twelve weeks.";

/// The additions to what the patterns find: spans of new mentions, of joined ones, relations; and how many findings are
/// dropped.
#[track_caller]
fn check(said: &Extraction, mentions: &[&str], joined: &[&str], relations: &[&str], n_dropped: usize) {
    let passage = passage("a", "", TEXT, 1.0);
    let (before, mut after) = (Extract::read(&passage, &plain()), Extract::read(&passage, &plain()));
    assert_eq!(after.add(&passage, said, &mut Aliases::default(), &plain()), n_dropped);
    let new = after.mentions.iter().filter(|mention| !before.mentions.contains(mention));
    assert_eq!(new.map(|mention| &TEXT[mention.span.clone()]).collect::<Vec<_>>(), mentions);
    assert_eq!(after.joined.iter().map(|mention| &TEXT[mention.span.clone()]).collect::<Vec<_>>(), joined);
    let new = after.statements.iter().filter(|said| !before.statements.contains(said));
    assert_eq!(new.map(|said| &TEXT[said.relation.clone()]).collect::<Vec<_>>(), relations);
    assert!(before.mentions.iter().all(|mention| after.mentions.contains(mention)), "nothing is taken away");
}

fn names(names: &[&str]) -> Extraction {
    let entities = names.iter().map(|name| ((*name).to_owned(), Vec::new())).collect();
    Extraction { entities, ..Extraction::default() }
}

fn triple(triple: [&str; 3]) -> Extraction {
    Extraction { triples: vec![triple.map(str::to_owned)], ..Extraction::default() }
}

#[test]
fn what_the_passage_does_not_say_is_dropped() {
    check(&names(&["Night Train", "ada quist"]), &["ada quist"], &[], &[], 0);
    check(&names(&["bell hooks-ray"]), &["bell\nhooks-ray"], &[], &[], 0);
    check(&names(&["Ada Quist", "Ann", "ada quis", "Oslo", "", " ", "it", "was a"]), &[], &[], &[], 8);
    check(
        &names(&["drama film. It was made by bell\nhooks-ray, Annual Inc and ada quist in twelve weeks."]),
        &[],
        &[],
        &[],
        1,
    );
    let qualifiers = vec!["twelve weeks".to_owned(), "1931".to_owned()];
    check(&Extraction { qualifiers, ..Extraction::default() }, &["twelve weeks"], &[], &[], 1);
    check(&names(&["Oslo"; 200]), &[], &[], &[], 200);
}

#[test]
fn a_triple_joins_its_sides_and_is_quoted_where_its_relation_is() {
    let sides = ["Night Train", "ada quist"];
    check(&triple(["Night Train", "made by", "ada quist"]), &["ada quist"], &sides, &["made by"], 0);
    check(&triple(["Night Train", "director", "ada quist"]), &["ada quist"], &sides, &[], 0);
    check(&triple(["Night Train", "made by", "Oslo"]), &[], &[], &[], 1);
    check(&triple(["Night Train", "is", "Night Train"]), &[], &[], &[], 1);
    check(&triple(["bell hooks-ray", "and", "ada quist"]), &["bell\nhooks-ray", "ada quist"], &[], &["and"], 0);
}

#[test]
fn another_form_of_a_name_is_one_only_if_both_are_there_and_it_is_written_as_one() {
    let passage = passage("a", "", "The Norsk Data Company, or ND, made the film.", 1.0);
    let mut aliases = Aliases::default();
    let others = ["ND", "the film", "NDC", "Norsk Data Company"].map(str::to_owned).to_vec();
    let said = Extraction { entities: vec![("Norsk Data Company".to_owned(), others)], ..Extraction::default() };
    let dropped = Extract::read(&passage, &plain()).add(&passage, &said, &mut aliases, &plain());
    assert_eq!((dropped, said.len()), (2, 5));
    assert_eq!((aliases.key("ND").as_str(), aliases.key("the film").as_str()), ("norsk data", "film"));
    aliases.join("Norsk Data", "ND"); // it would be its own other form
    aliases.join("Norsk Data", "Statoil");
    aliases.join("ND", "Equinor");
    assert_eq!((aliases.key("ND").as_str(), aliases.key("Norsk Data").as_str()), ("statoil", "statoil"));
}

proptest! {
    #[test]
    fn whatever_is_said_what_is_believed_is_in_the_passage(
        text in "[aÅ東1 .,\n]{0,60}",
        said in prop::collection::vec("[aÅ東1 .,\n]{0,6}", 0..9),
    ) {
        let passage = passage("a", "", &text, 1.0);
        let mut extract = Extract::read(&passage, &plain());
        let known = extract.mentions.clone();
        let triples = said.windows(3).map(|three| [0, 1, 2].map(|at| three[at].clone())).collect();
        let entities = said.iter().map(|name| (name.clone(), said.clone())).collect();
        let all = Extraction { entities, triples, qualifiers: said.clone() };
        let mut aliases = Aliases::default();
        prop_assert!(extract.add(&passage, &all, &mut aliases, &plain()) <= all.len());
        let flat = |text: &str| text.replace('\n', " ").trim().to_owned();
        for mention in extract.mentions.iter().chain(&extract.joined).filter(|mention| !known.contains(mention)) {
            let written = flat(&text[mention.span.clone()]);
            prop_assert!(said.iter().any(|said| flat(said) == written), "{written:?}");
        }
        for said in &said {
            prop_assert_eq!(aliases.key(said), aliases.key(&aliases.key(said)));
        }
        let mut ledger = Ledger::default();
        ledger.add(&passage, &extract, &aliases);
        super::reading::check_verbatim(&ledger, &[passage]);
    }
}

const QUESTION: &str = "In which town was the director of Night Train born?";

/// A film whose director's name is in lower case, which the patterns do not see.
fn film() -> (Vec<Passage>, Vec<Passage>) {
    let first = vec![
        passage("film", "Night Train", "Night Train is a drama film. It was directed by ada quist.", 0.9),
        passage("night", "Night sky", "The night sky of a film city is seldom dark.", 0.5),
        passage("list", "Drama", "A drama film is a film of a serious kind.", 0.4),
    ];
    let born = ["harbour", "station"]
        .map(|title| passage(title, title, "The town has a station, and a director was born there.", 0.0));
    let ada = passage("ada", "ada quist", "ada quist was born in Tromso as the daughter of a baker.", 0.0);
    let corpus = first.iter().cloned().chain(born).chain([ada]).collect();
    (first, corpus)
}

/// Runs a repair whose reader says the same of every passage.
fn told(said: &Extraction, judged: &Sufficiency, config: &SealConfig) -> (Outcome, usize) {
    let ((first, corpus), mut n_dropped) = (film(), 0);
    let mut repair = Repair::new(QUESTION, config, first, plain()).unwrap();
    loop {
        if repair.n_loops_left() > 0 {
            let of_all: Vec<_> = repair.untold().map(|passage| (passage.id.clone(), said.clone())).collect();
            n_dropped += repair.tell(&of_all);
            assert_eq!(repair.untold().count(), 0);
            n_dropped += repair.judged(judged);
        }
        let queries = repair.next_queries();
        if queries.is_empty() {
            return (repair.finish(), n_dropped);
        }
        let offers = queries.iter().map(|query| search(&query.text, &corpus)).collect();
        repair.offer(offers).unwrap();
    }
}

#[test]
fn a_name_that_the_patterns_do_not_see_leads_to_the_second_hop() {
    let (first, corpus) = film();
    let alone = run(QUESTION, &items(2), first, &corpus);
    assert!(!alone.kept.contains(&"ada".to_owned()), "{alone:?}");
    let said = triple(["Night Train", "directed by", "ada quist"]);
    let (outcome, n_dropped) = told(&said, &Sufficiency::default(), &items(2));
    assert_eq!((outcome.kept, n_dropped), (vec!["film".to_owned(), "ada".to_owned()], 1), "{:?}", outcome.loops);
    assert!(outcome.ledger.relations.iter().any(|said| said.tail == "ada quist" && said.relation == "directed by"));
    super::reading::check_verbatim(&outcome.ledger, &corpus);
}

#[test]
fn a_reader_that_lies_changes_nothing() {
    let (first, corpus) = film();
    let alone = run(QUESTION, &SealConfig { loops: 3, ..items(2) }, first, &corpus);
    let mut lies = triple(["Night Train", "directed by", "Steven Spielberg"]);
    lies.entities.push(("Steven Spielberg".to_owned(), vec!["Night Train".to_owned()]));
    lies.qualifiers.push("1946".to_owned());
    for sufficient in [true, false] {
        let missing = vec!["Steven Spielberg".to_owned(), "Cincinnati".to_owned(), String::new()];
        let (outcome, n_dropped) =
            told(&lies, &Sufficiency { sufficient, missing }, &SealConfig { loops: 3, ..items(2) });
        assert_eq!(outcome, alone);
        assert!(n_dropped >= 2 * 4);
    }
}

#[test]
fn what_a_judge_misses_of_the_question_or_the_ledger_is_searched_for() {
    let first = vec![
        passage(
            "film",
            "Night Train",
            "Night Train is a film, directed in the town of Narvik by Ada Quist, born there.",
            0.9,
        ),
        passage("other", "Town", "A town is larger than a village.", 0.5),
    ];
    let config = SealConfig { coverage_min: 0.0, ..items(2) };
    let repair = || Repair::new(QUESTION, &config, first.clone(), plain()).unwrap();
    let mut alone = repair();
    assert!(alone.next_queries().is_empty() && alone.finish().stopped == Stopped::Sufficient);
    let judged = |missing: &str| {
        let mut repair = repair();
        let n_dropped = repair.judged(&Sufficiency { sufficient: false, missing: vec![missing.to_owned()] });
        (n_dropped, repair.next_queries().into_iter().map(|query| query.target).collect::<Vec<_>>())
    };
    assert_eq!(judged("Oslo"), (1, vec![]));
    let (n_dropped, targets) = judged("mayor of Narvik");
    assert!(n_dropped == 0 && targets.contains(&"narvik".to_owned()), "{targets:?}");
    let (n_dropped, targets) = judged("born");
    assert!(n_dropped == 0 && !targets.is_empty());
}
