//! What a text becomes.

use proptest::prelude::*;

use super::{english, segment, text};
use crate::{Analyzer, Bm25, Language, Part, Searcher, TERM_BYTES_MAX, Unit};

#[track_caller]
fn check(language: Language, text: &str, terms: &str) {
    assert_eq!(Analyzer::new(language).terms(text).join(" "), terms, "{language}: {text:?}");
}

/// Guards `ANALYSIS_VERSION`: if an expectation here has to change, that number goes up, so that old segments say so.
#[test]
fn english_is_stemmed_lower_cased_and_without_stop_words() {
    check(Language::English, "The Quick brown foxes' jumping", "quick brown fox jump");
    check(Language::English, "Homer's poems, and those of Virgil’s pupils", "homer poem those virgil pupil");
    check(Language::English, "don't won’t O'Neil", "don't won't o'neil neil");
    check(
        Language::English,
        "relational generalizations of p53 and IL-2 in COVID-19",
        "relat general p53 il 2 covid 19",
    );
    check(Language::English, "the of and", "");
}

#[test]
fn identifiers_are_found_whole_and_by_their_parts() {
    check(Language::English, "get_user_name", "get_user_nam get user name");
    check(Language::English, "parseHTTPRequest", "parsehttprequest pars http request");
    check(Language::English, "os.path.join(x)", "os.path.join os path join x");
    check(Language::English, "version 1.2.3, about 3,141.59", "version 1.2.3 about 3,141.59");
    check(Language::English, "__init__ H2O 3D mRNA", "__init__ init h2o h2 3d mrna rna");
    check(Language::None, "MAX_VALUE", "max_value max value");
}

#[test]
fn forms_of_the_same_word_meet() {
    check(Language::English, "café cafe\u{301} CAFÉ naïve", "cafe cafe cafe naiv");
    check(Language::English, "ﬁle ｆｉｌｅ co\u{AD}operate Łódź", "file file cooper lodz");
    check(Language::None, "Ünïcödé \u{202B}שלום\u{202C}", "unicode שלום");
    check(Language::German, "Häuser Haus", "haus haus");
    check(Language::Spanish, "año ano", "año ano");
    check(Language::French, "l'avion de l’amie", "avion ami");
    check(Language::Russian, "кошками и кошка", "кошк кошк");
    check(Language::Arabic, "ـ كتاب", "كتاب");
}

#[test]
fn scripts_without_spaces_give_characters_and_pairs() {
    check(Language::English, "東京都に。行く", "東 東京 京 京都 都 都に に 行 行く く");
    check(Language::None, "GPUを使う2024年", "gpu を を使 使 使う う 2024 年");
    check(Language::None, "서울시 iPhone手机", "서 서울 울 울시 시 iphone phone 手 手机 机");
    check(Language::None, "ที่นี่", "ที่ ที่นี่ นี่");
}

#[test]
fn what_is_no_word_gives_nothing() {
    check(Language::English, "😀 🏳️‍🌈 ❤️ — … !? +-*/ \u{0}\u{FFFF}\u{200B}", "");
    check(Language::English, " \u{64B}", "");
    check(Language::English, "", "");
    check(Language::English, "C++ 👍 ok", "c ok");
}

#[test]
fn a_long_word_is_cut_and_no_byte_of_it_lost() {
    for word in ["a".repeat(100_000), "é7".repeat(1_000), "Ab_".repeat(500)] {
        let terms = Analyzer::new(Language::Danish).terms(&word);
        assert_eq!(terms.concat(), word.to_lowercase());
        assert!(terms.iter().all(|term| term.len() <= TERM_BYTES_MAX));
    }
    // Longer than tantivy keeps: found all the same, and the pieces count in the length.
    let analyzer = english();
    let blob = format!("start {} end", "x7".repeat(50_000));
    let rows = [text(&blob), text("another")];
    let segment = segment(&analyzer, &rows);
    let part = Part { segment: &segment, live: None, allowed: None, document_of_row: &[0, 1] };
    let searcher = Searcher::new(vec![part], Unit::Row, Bm25::default()).unwrap();
    let hits = searcher.score(&"x7".repeat(50_000)).unwrap();
    assert_eq!(hits[0].iter().map(|hit| hit.unit).collect::<Vec<_>>(), [0]);
    let n_pieces = 100_000usize.div_ceil(TERM_BYTES_MAX);
    assert_eq!(searcher.explain("start", 0, 0).unwrap().terms[0].length, (n_pieces + 2) as f64);
}

#[test]
fn names_of_languages_read_back() {
    for &language in Language::ALL {
        assert_eq!(language.to_string().parse::<Language>().unwrap(), language);
        assert_eq!(language.to_string().to_uppercase().parse::<Language>().unwrap(), language);
    }
    assert_eq!(Language::default(), Language::English);
    let error = "klingon".parse::<Language>().unwrap_err().to_string();
    assert!(error.contains("klingon") && error.contains("english") && error.contains("none"), "{error}");
}

#[test]
fn fingerprints_tell_languages_apart() {
    let fingerprints: std::collections::BTreeSet<_> =
        Language::ALL.iter().map(|&language| Analyzer::new(language).fingerprint()).collect();
    assert_eq!(fingerprints.len(), Language::ALL.len());
}

/// Any text at all, with the characters that decide boundaries more often than chance has them.
fn any_text() -> impl Strategy<Value = String> {
    prop::collection::vec(
        prop_oneof![
            any::<char>(),
            prop::char::range('a', 'z'),
            prop::char::range('A', 'Z'),
            prop::char::range('\u{300}', '\u{400}'),
            prop::char::range('\u{E01}', '\u{E5B}'),
            prop::char::range('\u{B82}', '\u{BFA}'),
            prop::char::range('\u{620}', '\u{64F}'),
            prop::char::range('\u{3041}', '\u{30FF}'),
            prop::sample::select(vec!['\'', '’', '_', '.', ' ', '1', 'ß', 'İ', 'ﷺ', '\u{AD}', '\u{200D}']),
        ],
        0..60,
    )
    .prop_map(|chars| chars.into_iter().collect())
}

proptest! {
    #[test]
    fn any_text_has_terms_or_none_in_every_language(text in any_text()) {
        for &language in Language::ALL {
            let analyzer = Analyzer::new(language);
            let terms = analyzer.terms(&text);
            prop_assert_eq!(&analyzer.terms(&text), &terms);
            for term in terms {
                prop_assert!(!term.is_empty(), "{language}: {text:?}");
                prop_assert!(!term.contains(char::is_whitespace), "{language}: {text:?} gives {term:?}");
            }
        }
    }
}
