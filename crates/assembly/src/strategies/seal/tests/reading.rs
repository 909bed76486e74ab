//! What is found in texts.

use super::super::ledger::Extract;
use super::*;
use crate::question::names::{Aliases, Date, Kind, key, mentions};
use crate::question::needs::{NeedKind, Needs, Wanted};

#[track_caller]
fn check_mentions(text: &str, expected: &[(&str, Kind)]) {
    let found = mentions(text, &sentences(text), &|_| false);
    let found: Vec<(&str, Kind)> = found.iter().map(|found| (&text[found.span.clone()], found.kind)).collect();
    assert_eq!(found, expected);
}

#[test]
fn names_are_runs_of_capitals_with_what_stands_between_them() {
    use Kind::{Name, Quote};
    check_mentions(
        "He entered the Modern Drummer Hall of Fame for Rush.",
        &[("Modern Drummer Hall of Fame", Name), ("Rush", Name)],
    );
    check_mentions(
        "The sonata is by Ludwig van Beethoven and Joseph Haydn.",
        &[("Ludwig van Beethoven", Name), ("Joseph Haydn", Name)],
    );
    for name in ["J. K. Rowling", "J.R.R. Tolkien", "Dr. Ada Quist"] {
        let text = format!("a novel of {name}'s");
        let found = mentions(&text, std::slice::from_ref(&(0..text.len())), &|_| false);
        assert_eq!(found.iter().map(|found| &text[found.span.clone()]).collect::<Vec<_>>(), [name]);
    }
    check_mentions("Then Apple Computer, Inc. rose.", &[("Apple Computer, Inc", Name)]);
    check_mentions("a song called \"nobody's hero,\" by «Rush»", &[("nobody's hero", Quote), ("Rush", Quote)]);
    check_mentions("Founded late, it grew. However it fell.", &[]);
}

#[test]
fn dates_and_numbers_are_told_apart() {
    use Kind::{Date, Name, Number};
    check_mentions("Born March 1, 1891, died 19 August 1974.", &[("March 1, 1891", Date), ("19 August 1974", Date)]);
    check_mentions(
        "In May 1990 it sold 1,200 of 2.5 million.",
        &[("May 1990", Date), ("1,200", Number), ("2.5", Number)],
    );
    check_mentions("on 1993-06-01 and in the 1980s", &[("1993-06-01", Date), ("1980s", Date)]);
    check_mentions("He may march with April Jones.", &[("April Jones", Name)]);
}

#[test]
fn dates_agree_as_far_as_they_go() {
    let agree = |one, other| crate::question::names::Date::parse(one).unwrap().agrees(&Date::parse(other).unwrap());
    assert!(agree("1993", "June 1993") && agree("1 June 1993", "June 1, 1993") && agree("1993-06-01", "1 June 1993"));
    assert!(!agree("1993", "1994") && !agree("May 1993", "June 1993"));
    assert_eq!(Date::parse("12"), None);
}

#[test]
fn two_forms_of_a_name_have_one_key() {
    assert_eq!(key("Apple Computer, Inc."), key("Apple Inc."));
    assert_eq!(key("Rush (band)"), key("Rush"));
    assert_eq!(key("The Beatles"), key("Beatles"));
    assert_ne!(key("Apple Records"), key("Apple Inc."));
    assert_ne!(key("Paris"), key("Paris Hilton"));
    let text = "International Business Machines (IBM) and the Bank of Elbonia (BE) met the Duke (XYZ).";
    let mut aliases = Aliases::default();
    aliases.learn(text, &mentions(text, &sentences(text), &|_| false));
    assert_eq!(aliases.key("IBM"), "international business machines");
    assert_eq!(aliases.key("BE"), "bank of elbonia");
    assert_eq!(aliases.key("XYZ"), "xyz");
}

fn needs(question: &str, titles: &[&str]) -> Needs {
    Needs::read(question, titles, &Aliases::default(), &plain())
}

fn written(needs: &Needs, kind: NeedKind) -> Vec<&str> {
    needs.needs.iter().filter(|need| need.kind == kind).map(|need| need.text.as_str()).collect()
}

#[test]
fn a_question_is_entities_relations_and_qualifiers() {
    let question = "Which Canadian rock band released \"Counterparts\" in 1993 and had a drummer inducted into the Modern Drummer Hall of Fame?";
    let needs = needs(question, &[]);
    assert_eq!(written(&needs, NeedKind::Entity), ["Canadian", "Counterparts", "Modern Drummer Hall of Fame"]);
    assert_eq!(written(&needs, NeedKind::Relation), ["rock", "band", "released", "drummer", "inducted"]);
    assert_eq!(written(&needs, NeedKind::Date), ["1993"]);
    assert_eq!(needs.wanted, Wanted::Name);
    assert_eq!(needs.clauses.len(), 2);
    assert_eq!(needs.weight(), 12.0);
}

#[test]
fn a_title_is_a_name_however_it_is_written() {
    let of = |question, titles: &[&str]| written(&needs(question, titles), NeedKind::Entity).join("|");
    assert_eq!(of("who directed the deep blue sea?", &["The Deep Blue Sea (film)"]), "deep blue sea");
    assert_eq!(of("who directed the deep blue sea?", &["Sea"]), "");
    assert_eq!(of("Where was Paris Hilton born?", &["Paris"]), "Paris Hilton");
    assert_eq!(of("Rush released what?", &["Rush (band)"]), "Rush");
    assert_eq!(of("Rush released what?", &[]), "");
}

#[test]
fn a_two_part_question_has_two_clauses_but_a_name_is_not_divided() {
    let clauses = |question| needs(question, &["Simon and Garfunkel"]).clauses.len();
    assert_eq!(clauses("Who wrote Hamlet and who wrote Faust?"), 2);
    assert_eq!(clauses("Where did Simon and Garfunkel meet?"), 1);
    assert_eq!(clauses("What is it?"), 1);
    assert_eq!(clauses(""), 1);
}

#[test]
fn what_is_wanted_is_not_needed() {
    let needs = |question| needs(question, &[]);
    assert_eq!(needs("In what year did Ada Quist die?").wanted, Wanted::Date);
    assert_eq!(written(&needs("In what year did Ada Quist die?"), NeedKind::Relation), ["die"]);
    assert_eq!(needs("How many songs has Rush written?").wanted, Wanted::Number);
    assert_eq!(written(&needs("Is Oslo larger than Bergen?"), NeedKind::Comparison), ["larger"]);
    assert_eq!(needs("Is Oslo larger than Bergen?").wanted, Wanted::Any);
}

#[track_caller]
fn check_relations(text: &str, expected: &[[&str; 3]]) {
    let passage = passage("p", "", text, 1.0);
    let read = Extract::read(&passage, &plain());
    let said = |said: &super::super::ledger::Statement| {
        [said.head.clone(), said.relation.clone(), said.tail.clone()].map(|span| text[span].to_owned())
    };
    assert_eq!(read.statements.iter().map(said).collect::<Vec<_>>(), expected);
}

#[test]
fn relations_are_what_stands_between_mentions() {
    check_relations(
        "Night Train was directed by Ada Quist in 1931.",
        &[["Night Train", "was directed by", "Ada Quist"]],
    );
    check_relations(
        "Ada Quist (born May 3, 1901) was a Danish film director who lived in Oslo.",
        &[
            ["Ada Quist", "born", "May 3, 1901"],
            ["Ada Quist", "lived in", "Oslo"],
            ["Ada Quist", "was", "Danish film director"],
        ],
    );
    check_relations(
        "Lars Holm painted Copenhagen, married Ada Quist.",
        &[["Lars Holm", "painted", "Copenhagen"], ["Lars Holm", "married", "Ada Quist"]],
    );
    check_relations("Lars Holm was old. He founded Nordlys.", &[["Lars Holm", "founded", "Nordlys"]]);
    check_relations("Lars Holm and Ada Quist. Oslo, Bergen", &[]);
}

/// Every text of a ledger is in the passage it names.
#[track_caller]
pub(super) fn check_verbatim(ledger: &Ledger, passages: &[Passage]) {
    let text = |id: &str| passages.iter().find(|passage| passage.id == id).unwrap().text.as_str();
    for relation in &ledger.relations {
        for part in [&relation.head, &relation.relation, &relation.tail] {
            assert!(!part.is_empty() && text(&relation.passage).contains(part.as_str()), "{relation:?}");
        }
    }
    for qualifier in &ledger.qualifiers {
        assert!(text(&qualifier.passage).contains(&qualifier.text), "{qualifier:?}");
    }
    for entity in ledger.entities.values() {
        for name in &entity.names {
            assert!(entity.passages.iter().any(|passage| text(passage).contains(name.as_str())), "{entity:?}");
        }
    }
}

#[test]
fn the_ledger_is_verbatim_on_wikipedia() {
    let Ok(folder) = std::env::var("CENTO_DATA") else { return println!("skipped: CENTO_DATA is not set") };
    let Ok(corpus) = std::fs::read_to_string(std::path::Path::new(&folder).join("hotpot200/corpus.jsonl")) else {
        return println!("skipped: no hotpot200 in CENTO_DATA");
    };
    let line = |line: &str| serde_json::from_str::<serde_json::Value>(line).unwrap();
    let read = |row: serde_json::Value| {
        passage(row["_id"].as_str().unwrap(), row["title"].as_str().unwrap(), row["text"].as_str().unwrap(), 1.0)
    };
    let passages: Vec<Passage> = corpus.lines().map(|text| read(line(text))).collect();
    let (mut n_relations, mut n_entities) = (0, 0);
    for chunk in passages.chunks(50) {
        let config = SealConfig { loops: 0, ..items(50) };
        let outcome = Repair::new("What?", &config, chunk.to_vec(), plain()).unwrap().finish();
        check_verbatim(&outcome.ledger, chunk);
        n_relations += outcome.ledger.relations.len();
        n_entities += outcome.ledger.entities.len();
    }
    println!("{} passages: {n_relations} relations, {n_entities} entities", passages.len());
    assert!(n_relations > passages.len() && n_entities > 2 * passages.len());
}

/// The kinds of gap that one passage leaves of a question about a number.
fn lacks_number(asked: &str, said: &str) -> bool {
    let question = format!("Which bridge of Rotterdam measures {asked} in all?");
    let text = format!("Willemsbrug is a bridge of Rotterdam that measures {said} in all.");
    let outcome = run(&question, &SealConfig { loops: 0, ..items(1) }, vec![passage("a", "", &text, 1.0)], &[]);
    assert!(outcome.needs.needs.iter().any(|need| need.kind == NeedKind::Number), "{question}");
    outcome.gaps.iter().any(|gap| gap.missing == Missing::Qualifier)
}

#[test]
fn a_number_is_the_value_that_is_written() {
    let same = [
        ("1.5 km", "1.50 km"),
        ("1.5 km", "1.5"),
        ("1.5 kilometres", "1.5 km"),
        ("15 %", "15 percent"),
        ("1,500", "1500"),
        ("1,500", "1'500"),
        ("1.5 million", "1,500,000"),
        ("1.500.000", "1,500,000"),
        ("12,5", "12.5"),
        ("$15", "15 dollars"),
        ("-5 °C", "−5 °C"),
        ("15th", "15"),
        ("2-1", "2-1"),
        ("0.0", "0"),
    ];
    for (asked, said) in same {
        assert!(!lacks_number(asked, said), "{said} says {asked}");
    }
    let other = [
        ("1.5", "15"),
        ("15", "1.5"),
        ("15", "1,5"),
        ("1.5 km", "1.5 miles"),
        ("15 %", "15 km"),
        ("-5 °C", "5 °C"),
        ("5", "-5"),
        ("2-1", "21"),
        ("$15", "€15"),
        ("1.5 million", "1.5 billion"),
        ("1,500", "15,00"),
    ];
    for (asked, said) in other {
        assert!(lacks_number(asked, said), "{said} does not say {asked}");
    }
}
