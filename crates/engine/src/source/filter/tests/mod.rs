//! What filters admit, by hand; what is wrong with a filter is shown where it is; nothing makes one panic.

mod damage;
mod naive;
mod places;

use cento_corpus::{Format, Metadata};

use super::*;
use cento_collection::format::metadata::{Described, MetadataColumns, MetadataWriter};
use cento_collection::fs::{Folder, OsFs};

/// The columns of some documents, named `r/0.md`, `r/1.md`, ….
fn columns(documents: &[Metadata]) -> (tempfile::TempDir, MetadataColumns) {
    let mut writer = MetadataWriter::default();
    for (n, metadata) in documents.iter().enumerate() {
        let id = format!("r/{n}.md");
        writer.push(&Described { id: &id, origin: &id, title: "", format: Format::Markdown, metadata });
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("metadata.columns");
    writer.write(&OsFs, &path).unwrap();
    let opened = Folder::open(folder.path()).unwrap();
    (folder, MetadataColumns::open(&opened, "metadata.columns", documents.len()).unwrap())
}

fn documents(lines: &str) -> Vec<Metadata> {
    lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

const NOTES: &str = r#"{"year": 2019, "tags": ["sea", "moon"], "date": "2020-05-17", "draft": true}
{"year": 2020.5, "tags": [], "date": "2020-05-17T10:30:00Z", "lang": "de", "draft": false}
{"year": "unknown", "tags": "sea", "date": "2021-01-01", "a b": 1}
{"year": 9007199254740993, "id": "own"}"#;

/// Compares the documents of [`NOTES`] that a filter admits.
#[track_caller]
fn check(filter: &str, expected: &[u32]) {
    let (_folder, columns) = columns(&documents(NOTES));
    let filter = Filter::parse(filter).unwrap_or_else(|error| panic!("{error}"));
    Schema::of([&columns]).unwrap().check(&filter).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(filter.documents(&columns).unwrap().iter().collect::<Vec<_>>(), expected);
}

#[test]
fn numbers_compare_as_numbers() {
    check("year = 2019", &[0]);
    check("year = 2019.0", &[0]);
    check("year > 2019", &[1, 3]);
    check("year >= 2020.5", &[1, 3]);
    check("year < 2020.5", &[0]);
    check("year <= 2020.5", &[0, 1]);
    check("year in (2020.5, 7, 2019)", &[0, 1]);
    check("year = 9007199254740993", &[3]);
    check("year > 9007199254740992.0", &[3]);
    check("year > -1e300 and year < 1e300", &[0, 1, 3]);
    check("year = \"unknown\"", &[2]);
}

#[test]
fn a_list_holds_if_one_of_it_does() {
    check("tags = \"sea\"", &[0, 2]);
    check("tags = 'sea' and tags = 'moon'", &[0]);
    check("tags != \"moon\"", &[2]);
    check("tags starts with \"mo\"", &[0]);
    check("tags exists", &[0, 2]);
    check("tags not in (\"moon\")", &[2]);
}

#[test]
fn what_is_missing_compares_with_nothing() {
    check("lang = \"de\"", &[1]);
    check("lang != \"de\"", &[]);
    check("lang != \"en\"", &[1]);
    check("not lang = \"de\"", &[0, 2, 3]);
    check("lang is missing", &[0, 2, 3]);
    check("not (lang is missing)", &[1]);
    check("draft = false or draft is missing", &[1, 2, 3]);
}

#[test]
fn a_date_covers_its_day_and_a_time_its_second() {
    check("date = 2020-05-17", &[0, 1]);
    check("date = \"2020-05-17\"", &[0, 1]);
    check("date > 2020-05-17", &[2]);
    check("date <= 2020-05-17", &[0, 1]);
    check("date < 2020-05-17", &[]);
    check("date = 2020-05-17T10:30", &[1]);
    check("date = 2020-05-17T12:30:00+02:00", &[1]);
    check("date < 2020-05-17T10:30:00Z", &[0]);
    check("date in (2021-01-01, '2020-05-17T10:30:00')", &[1, 2]);
}

#[test]
fn words_are_read_in_any_case_and_names_in_backticks() {
    check("YEAR_ exists OR Not (`a b` = 1)".replace("YEAR_", "year").as_str(), &[0, 1, 2, 3]);
    check("`a b` = 1", &[2]);
    check("meta.id = \"own\"", &[3]);
    check("id = \"r/3.md\" and path STARTS WITH '3'", &[3]);
    check("type = \"markdown\" and type = \"md\" and root = \"r\"", &[0, 1, 2, 3]);
    check("year = 2019 or year = 2020.5 and lang = \"en\"", &[0]);
    check("(year = 2019 or year = 2020.5) and lang = \"de\"", &[1]);
    check("not not draft = true", &[0]);
    check("draft < true", &[1]);
}

/// Compares the message on a filter of [`NOTES`].
#[track_caller]
fn check_error(filter: &str, expected: &str) {
    let (_folder, columns) = columns(&documents(NOTES));
    let schema = Schema::of([&columns]).unwrap();
    let error = Filter::parse(filter).and_then(|filter| schema.check(&filter)).unwrap_err();
    assert_eq!(error.to_string(), expected);
}

#[test]
fn what_was_expected_is_shown_where_it_was() {
    check_error("year >=", "filter: expected a value, found the end\n  year >=\n         ^");
    check_error(
        "type = pdf",
        "filter: expected a value, found `pdf`; a string stands in quotes: \"pdf\"\n  type = pdf\n         ^^^",
    );
    check_error(
        "year 2020",
        "filter: expected =, !=, <, <=, >, >=, `in`, `not in`, `starts with`, `exists` or `is missing`, found 2020\n  year 2020\n       ^^^^",
    );
    check_error("year == 2020", "filter: `==` is written `=` here\n  year == 2020\n       ^^");
    check_error("type: pdf", "filter: `:` is written `=` here, as in type = \"pdf\"\n  type: pdf\n      ^");
    for (written, meant) in [
        ("(year:2020)", "year = 2020"),
        ("by.name:'ann b' and a = 1", "by.name = 'ann b'"),
        ("a = 1 or day :2020-05-17", "day = 2020-05-17"),
        ("open: true", "open = true"),
        ("type:application/pdf", "type = \"application/pdf\""),
    ] {
        let told = Filter::parse(written).unwrap_err().to_string();
        assert!(told.contains(&format!("here, as in {meant}\n")), "{told}");
        assert!(Filter::parse(meant).is_ok(), "{meant}");
    }
    for written in [": pdf", "type:", "type: \"", "`a b`: 1", "type:()"] {
        let told = Filter::parse(written).unwrap_err().to_string();
        assert!(told.contains("`:` is written `=` here\n"), "{told}");
    }
    check_error("a = 1 && b = 2", "filter: `&` is written `and` here\n  a = 1 && b = 2\n        ^");
    check_error("", "filter: expected a field, `not` or `(`, found the end\n  \n  ^");
    check_error("(a = 1", "filter: expected `and`, `or` or `)`, found the end\n  (a = 1\n        ^");
    check_error("a = 1)", "filter: expected `and`, `or` or the end, found `)`\n  a = 1)\n       ^");
    check_error("a in 1", "filter: expected `(`, found 1\n  a in 1\n       ^");
    check_error("a in (1 2)", "filter: expected `,` or `)`, found 2\n  a in (1 2)\n          ^");
    check_error("é = \"ü", "filter: this string is never closed\n  é = \"ü\n      ^");
    check_error("é = 'ü\\x'", "filter: after a backslash expected \\, \", ', n or t\n  é = 'ü\\x'\n        ^^");
    check_error(
        "date > 2020-13-01",
        "filter: `2020-13-01` is no number and no date; dates are written 2020-05-17 or 2020-05-17T10:30:00Z, strings in quotes\n  date > 2020-13-01\n         ^^^^^^^^^^",
    );
    check_error("a starts with 1", "filter: expected a string, found 1\n  a starts with 1\n                ^");
    check_error("a = 1; b", "filter: ';' means nothing here\n  a = 1; b\n       ^");
}

#[test]
fn an_unknown_field_names_the_nearest_and_a_wrong_type_those_there_are() {
    check_error(
        "lang exists and yaer = 2020",
        "filter: no field `yaer` in this collection; nearest: `year`; it has a b, date, draft, id, lang, meta.id, path, root, tags, title, type, year\n  lang exists and yaer = 2020\n                  ^^^^",
    );
    check_error(
        "lang = 2020",
        "filter: field `lang` holds strings, and 2020 is an integer\n  lang = 2020\n         ^^^^\nstrings stand in quotes; numbers, dates, true and false do not",
    );
    check_error(
        "date in (2020-05-17, \"May\")",
        "filter: field `date` holds dates, and \"May\" is a string\n  date in (2020-05-17, \"May\")\n                       ^^^^^\nstrings stand in quotes; numbers, dates, true and false do not",
    );
    check_error(
        "draft starts with \"t\"",
        "filter: field `draft` holds booleans, and \"t\" is a string\n  draft starts with \"t\"\n                    ^^^\nstrings stand in quotes; numbers, dates, true and false do not",
    );
}

#[test]
fn what_asks_where_chunks_stand_admits_no_whole_documents() {
    let check = |filter: &str, expected: Option<&str>| {
        let filter = Filter::parse(filter).unwrap();
        assert_eq!(filter.is_of_chunks(), expected.is_some());
        assert_eq!(filter.check_of_documents().err().map(|error| error.to_string()).as_deref(), expected);
    };
    check("year = 2020 and meta.page = 3 and chunk.pages = 1 and chunk.chunk.page = 1", None);
    check(
        "year = 2020 and not (page = 3)",
        Some(
            "filter: `page` says where a chunk stands in its file, and documents are listed and deleted whole; name them by fields of their own, as path or type; where `page` is one, write `meta.page`\n  year = 2020 and not (page = 3)\n                       ^^^^",
        ),
    );
    check(
        "chunk.row in (1, 2)",
        Some(
            "filter: `chunk.row` says where a chunk stands in its file, and documents are listed and deleted whole; name them by fields of their own, as path or type; where `chunk.row` is one, write `meta.chunk.row`\n  chunk.row in (1, 2)\n  ^^^^^^^^^",
        ),
    );
}

#[test]
fn places_of_chunks_have_types_and_are_near_what_is_no_field() {
    check_error(
        "pages <= 12",
        "filter: no field `pages` in this collection; nearest: `page`; it has a b, date, draft, id, lang, meta.id, path, root, tags, title, type, year\n  pages <= 12\n  ^^^^^",
    );
    check_error(
        "page = \"12\"",
        "filter: field `page` holds integers, and \"12\" is a string\n  page = \"12\"\n         ^^^^\nstrings stand in quotes; numbers, dates, true and false do not",
    );
    check_error(
        "sheet = 2",
        "filter: field `sheet` holds strings, and 2 is an integer\n  sheet = 2\n          ^\nstrings stand in quotes; numbers, dates, true and false do not",
    );
    check_error(
        "meta.page = 2",
        "filter: no field `meta.page` in this collection; nearest: `meta.id`; it has a b, date, draft, id, lang, meta.id, path, root, tags, title, type, year\n  meta.page = 2\n  ^^^^^^^^^",
    );
    let many = vec!["page = 1"; FILTER_PLACES_MAX + 1].join(" or ");
    check_error(
        &many,
        "filter: 65 conditions ask where chunks stand, the limit is 64; several values stand in one: page in (3, 4)",
    );
}

#[test]
fn a_long_filter_is_shown_around_the_place() {
    let text = format!("{}year ! 3{}", "year = 2019 or ".repeat(500), " or year = 2019".repeat(500));
    let message = Filter::parse(&text).unwrap_err().to_string();
    let lines: Vec<&str> = message.lines().collect();
    assert!(lines[1].starts_with("  …") && lines[1].ends_with('…') && lines[1].chars().count() == 80, "{message}");
    assert_eq!(lines[1].chars().nth(lines[2].find('^').unwrap()), Some('!'), "{message}");
}

#[test]
fn depth_and_length_have_their_limits_and_width_has_none() {
    for text in ["(".repeat(100_000), "not ".repeat(100_000), "not (".repeat(100_000)] {
        let message = Filter::parse(&text).unwrap_err().to_string();
        assert!(message.contains("more than 64 deep"), "{message}");
    }
    let deep = format!("{}year = 2019{}", "(".repeat(FILTER_DEPTH_MAX), ")".repeat(FILTER_DEPTH_MAX));
    check(&deep, &[0]);
    check(&format!("{} year = 2019", "year = 7 or not year = 7 and ".repeat(20_000)), &[0]);
    let long = format!("lang = \"{}\"", "x".repeat(FILTER_BYTES_MAX));
    assert!(matches!(Filter::parse(&long), Err(FilterError::TooLong { .. })));
}

#[test]
fn twenty_thousand_mutated_filters_never_panic() {
    const SEEDS: [&str; 7] = [
        "type = \"pdf\" and year >= 2020",
        "not (lang in ('de', \"e\\\"n\") or date < 2020-05-17T10:30:00Z) and `a b` != -1.5e3",
        "tags starts with \"é\" or draft is missing and title exists",
        "year not in (1, 2.5, true, 2020-05-17)",
        "((((year = 1))))",
        "date <= '2020-05-17' or date > 2020-02-30",
        "not (page <= 12 and year = 2020) or sheet starts with 'S' and chunk.row in (1, 2.0)",
    ];
    const PIECES: [&str; 24] = [
        "(",
        ")",
        "\"",
        "'",
        "`",
        "\\",
        "=",
        "!",
        "<",
        ">",
        ",",
        "-",
        ".",
        "0",
        "9e999",
        "2020-05-17",
        "é",
        "🌙",
        "\n",
        "\0",
        " not ",
        " and ",
        " in ",
        "year",
    ];
    let (_folder, columns) = columns(&documents(NOTES));
    let schema = Schema::of([&columns]).unwrap();
    let mut state = 1_u64;
    let mut next = |n: usize| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize % n
    };
    let (mut n_read, mut n_refused) = (0, 0);
    for _ in 0..20_000 {
        let mut text: Vec<char> = SEEDS[next(SEEDS.len())].chars().collect();
        for _ in 0..next(4) {
            let at = next(text.len() + 1);
            let until = (at + next(4)).min(text.len());
            let piece: Vec<char> = PIECES[next(PIECES.len())].chars().collect();
            let piece = if next(3) == 0 { Vec::new() } else { piece };
            text.splice(at..until, piece);
        }
        let text: String = text.into_iter().collect();
        match Filter::parse(&text).and_then(|filter| schema.check(&filter).map(|()| filter)) {
            Ok(filter) => {
                n_read += 1;
                if filter.check_of_documents().is_ok() {
                    filter.documents(&columns).unwrap();
                }
            }
            Err(error) => {
                n_refused += 1;
                assert!(error.to_string().starts_with("filter: "));
            }
        }
    }
    assert!(n_read > 1000 && n_refused > 1000, "{n_read} read, {n_refused} refused");
}
