//! Counts, ends and windows: in detail for the tiny model's tokenizer, which is BERT's with a small vocabulary, and as
//! laws for the tokenizers of all families.

use std::sync::OnceLock;

use proptest::prelude::*;

use super::*;

const PATH: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../models/tiny/tokenizer.json");

fn tokenizer() -> &'static Tokenizer {
    static TOKENIZER: OnceLock<Tokenizer> = OnceLock::new();
    TOKENIZER.get_or_init(|| Tokenizer::load(Path::new(PATH)).unwrap())
}

fn json() -> Value {
    serde_json::from_slice(&std::fs::read(PATH).unwrap()).unwrap()
}

/// Text between the ends: what each token adds, dropped characters before it included.
#[track_caller]
fn check_ends(text: &str, expected: &[&str]) {
    let ends = tokenizer().ends(text);
    let starts = [0].into_iter().chain(ends.iter().copied());
    let parts: Vec<&str> = starts.zip(&ends).map(|(start, &end)| &text[start..end]).collect();
    assert_eq!(parts, expected);
    assert_eq!(tokenizer().count(text), expected.len());
}

#[test]
fn ends_are_byte_offsets_of_the_original_text() {
    check_ends("", &[]);
    check_ends(" \t\n", &[]);
    check_ends("The city, the river", &["The", " city", ",", " the", " river"]);
    check_ends("é—ü", &["é", "—", "ü"]);
    check_ends("zÉz", &["z", "É", "z"]);
}

#[test]
fn wide_characters_and_unknown_ones_are_tokens() {
    check_ends("日本 中x", &["日", "本", " 中", "x"]);
    check_ends("a 😀 b", &["a", " 😀", " b"]); // [UNK] counts
    check_ends("😀😀 b", &["😀😀", " b"]); // one unknown word
    check_ends(&"x".repeat(101), &["x".repeat(101).as_str()]); // a word too long is one [UNK]
}

#[test]
fn dropped_characters_belong_to_no_token() {
    check_ends("the\u{0}re\u{200d} e\u{301}a", &["the\u{0}re", "\u{200d} e", "\u{301}a"]);
}

#[test]
fn special_tokens_written_out_are_tokens() {
    check_ends("the [SEP] city", &["the", " [SEP]", " city"]);
}

#[test]
fn the_window_keeps_the_first_tokens_between_the_special_ones() {
    let tokenizer = tokenizer();
    let (start, end) = (tokenizer.before[0], tokenizer.after[0]);
    assert_eq!(tokenizer.n_special(), 2);
    assert_eq!(tokenizer.encode("", 8), Ok(Encoded { ids: vec![start, end], truncated: false }));
    let the = tokenizer.inner.token_to_id("the").unwrap();
    for (n_words, truncated) in [(5, false), (6, false), (7, true), (1000, true)] {
        let ids = [vec![start], vec![the; n_words.min(6)], vec![end]].concat();
        assert_eq!(tokenizer.encode(&"the ".repeat(n_words), 8), Ok(Encoded { ids, truncated }));
    }
}

#[test]
fn a_very_long_text_costs_no_more_than_its_prefix() {
    let tokenizer = tokenizer();
    let long = "the city of words. ".repeat(600_000); // 11 MB
    let prefix = tokenizer.cuts.prefix(&long, 128 * PREFIX_BYTES_PER_TOKEN);
    assert!(prefix.len() < 2000);
    assert_eq!(tokenizer.encode(&long, 128), tokenizer.encode(&long[..5000], 128));
}

#[test]
fn other_tokenizers_are_never_cut() {
    let mut json = json();
    assert_eq!(Cuts::of(&json), Cuts::BetweenWords);
    json["added_tokens"][0]["content"] = "two words".into();
    assert_eq!(Cuts::of(&json), Cuts::Nowhere);
    json["added_tokens"] = Value::Null;
    assert_eq!(Cuts::of(&json), Cuts::BetweenWords);
    json["pre_tokenizer"]["type"] = "Metaspace".into(); // with BERT's normaliser, which drops characters
    assert_eq!(Cuts::of(&json), Cuts::Nowhere);
}

/// Each family's tokenizer with a small vocabulary.
fn families() -> &'static [(&'static str, Tokenizer)] {
    static FAMILIES: OnceLock<Vec<(&str, Tokenizer)>> = OnceLock::new();
    FAMILIES.get_or_init(|| {
        let names = ["bert", "roberta", "xlm-roberta", "camembert", "mpnet", "modernbert", "t5"];
        let folder = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../models/parity"));
        names.map(|name| (name, Tokenizer::load(&folder.join(name).join("tokenizer.json")).unwrap())).into()
    })
}

#[test]
fn every_family_may_be_cut_somewhere() {
    let cuts: Vec<_> = families().iter().map(|(name, tokenizer)| (*name, tokenizer.cuts)).collect();
    let (words, spaces) = (Cuts::BetweenWords, Cuts::BeforeSpaces);
    assert_eq!(
        cuts,
        [
            ("bert", words),
            ("roberta", spaces),
            ("xlm-roberta", spaces),
            ("camembert", spaces),
            ("mpnet", words),
            ("modernbert", spaces),
            ("t5", spaces),
        ]
    );
}

#[test]
fn tokenizers_that_reach_over_spaces_are_never_cut() {
    let path = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../models/parity/roberta/tokenizer.json"));
    let json: Value = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
    #[track_caller]
    fn check(mut json: Value, pointer: &str, value: Value, cuts: Cuts) {
        *json.pointer_mut(pointer).unwrap() = value;
        assert_eq!(Cuts::of(&json), cuts);
    }
    check(json.clone(), "/pre_tokenizer/use_regex", false.into(), Cuts::Nowhere);
    check(json.clone(), "/normalizer", serde_json::json!({"type": "Strip"}), Cuts::Nowhere);
    check(json.clone(), "/normalizer", serde_json::json!({"type": "NFC"}), Cuts::BeforeSpaces);
    check(json.clone(), "/added_tokens/0/rstrip", true.into(), Cuts::Nowhere);
    check(json.clone(), "/added_tokens/0/content", "two words".into(), Cuts::Nowhere);
    check(json, "/added_tokens/0/content", "   ".into(), Cuts::BeforeSpaces); // a run of spaces
}

#[test]
fn special_tokens_stand_where_the_family_has_them() {
    for (name, tokenizer) in families() {
        let id = |token: &str| tokenizer.inner.token_to_id(token).unwrap();
        let (start, end) = match *name {
            "bert" | "modernbert" => (vec![id("[CLS]")], id("[SEP]")),
            "t5" => (vec![], id("</s>")),
            _ => (vec![id("<s>")], id("</s>")),
        };
        assert_eq!((&tokenizer.before, &tokenizer.after), (&start, &vec![end]), "{name}");
    }
}

#[test]
fn a_long_text_costs_no_more_than_its_prefix_in_any_family() {
    for (name, tokenizer) in families() {
        let long = "It's the city of words. ".repeat(100_000);
        let prefix = tokenizer.cuts.prefix(&long, 128 * PREFIX_BYTES_PER_TOKEN);
        assert!(prefix.len() < 2000, "{name}");
        assert_eq!(tokenizer.encode(&long, 128), tokenizer.encode(&long[..5000], 128), "{name}");
    }
}

#[test]
fn damaged_files_are_refused() {
    let path = Path::new("tokenizer.json");
    for bytes in [&b""[..], b"{", b"{}", b"[1]", br#"{"version":"1.0","model":{}}"#] {
        assert!(matches!(Tokenizer::parse(path, bytes), Err(Error::Damaged { .. })));
    }
    assert!(matches!(Tokenizer::load(Path::new("/nowhere/tokenizer.json")), Err(Error::Missing { .. })));
    let mut json = json();
    json["model"]["unk_token"] = "[NONE]".into();
    let message = Tokenizer::parse(path, json.to_string().as_bytes()).unwrap_err().to_string();
    assert!(message.contains("[NONE]"), "{message}");
}

/// Words, marks, CJK, special tokens, dropped characters and all places of cutting, in any order.
fn text() -> impl Strategy<Value = String> {
    const PIECES: &[&str] = &[
        "the", "city", "ing", "Unknown", "é", "e\u{301}", "\u{301}", "中", "文", "、", "。", "！", " ", "\t", "\n",
        "\r\n", "\u{a0}", "\u{c}", "\u{0}", "\u{200d}", "😀", ".", ",", ";", "?", "-", "[MASK]", "[", "]", "SEP", "ß",
        "İ", "Σ", "가", "\u{ac00}", "\u{37e}",
    ];
    prop::collection::vec(prop::sample::select(PIECES), 0..60).prop_map(|pieces| pieces.concat())
}

/// Text with everything that the families' tokenizers treat in their own ways.
fn any_text() -> impl Strategy<Value = String> {
    const PIECES: &[&str] = &[
        "the",
        "city",
        "It's",
        "don't",
        "5",
        "2024",
        "é",
        "e\u{301}",
        "\u{301}",
        "\u{345}",
        "ß",
        "ﬁ",
        "…",
        "—",
        "“x”",
        "中",
        "、",
        " ",
        " ",
        " ",
        "  ",
        "\t",
        "\n",
        "\r\n",
        "\u{a0}",
        "\u{3000}",
        "\u{200d}",
        "😀",
        ".",
        ",",
        "?",
        "-",
        "<mask>",
        "<pad>",
        "</s>",
        "[SEP]",
        "<s>NOTUSED",
        "▁",
        "Ġ",
        "'s",
        " 's",
        "İ",
        "가",
        "дом",
        "ℌ",
        "²",
        "½",
        "\u{0}",
        "\u{feff}",
        "\u{1680}",
    ];
    prop::collection::vec(prop::sample::select(PIECES), 0..60).prop_map(|pieces| pieces.concat())
}

proptest! {
    #[test]
    fn the_laws_hold_for_every_family(text in any_text(), n_bytes in 1usize..40, max_tokens in 3usize..40) {
        for (name, tokenizer) in families() {
            let whole = tokenizer.try_tokenize(&text).unwrap();
            let pieces: Vec<&str> = tokenizer.cuts.pieces(&text, n_bytes).collect();
            prop_assert_eq!(pieces.concat(), text.as_str());
            let cut: Vec<u32> = pieces.iter().flat_map(|piece| tokenizer.try_tokenize(piece).unwrap()).collect();
            prop_assert_eq!(&whole, &cut, "{}: {:?}", name, pieces);

            let ends = tokenizer.ends(&text);
            prop_assert_eq!((ends.len(), tokenizer.count(&text)), (whole.len(), whole.len()), "{}", name);
            prop_assert!(ends.is_sorted() && ends.iter().all(|&end| text.is_char_boundary(end)), "{}", name);

            let mut reference = tokenizer.inner.clone();
            let truncation = tokenizers::TruncationParams { max_length: max_tokens, ..Default::default() };
            reference.with_truncation(Some(truncation)).unwrap();
            let reference = reference.encode(text.as_str(), true).unwrap();
            let encoded = tokenizer.encode(&text, max_tokens).unwrap();
            prop_assert_eq!(encoded.ids.as_slice(), reference.get_ids(), "{}", name);
            prop_assert_eq!(encoded.truncated, whole.len() + tokenizer.n_special() > max_tokens, "{}", name);
        }
    }

    #[test]
    fn cutting_changes_no_token(text in text(), n_bytes in 1usize..40) {
        let tokenizer = tokenizer();
        let whole = tokenizer.try_tokenize(&text).unwrap();
        let pieces: Vec<&str> = tokenizer.cuts.pieces(&text, n_bytes).collect();
        prop_assert_eq!(pieces.concat(), text.as_str());
        let cut: Vec<u32> = pieces.iter().flat_map(|piece| tokenizer.try_tokenize(piece).unwrap()).collect();
        prop_assert_eq!(whole, cut);
    }

    #[test]
    fn ends_ascend_at_character_boundaries(text in text()) {
        let tokenizer = tokenizer();
        let ends = tokenizer.ends(&text);
        prop_assert_eq!(ends.len(), tokenizer.count(&text));
        prop_assert_eq!(ends.len(), tokenizer.try_tokenize(&text).unwrap().len());
        prop_assert!(ends.is_sorted());
        prop_assert!(ends.iter().all(|&end| text.is_char_boundary(end)));
    }

    #[test]
    fn a_prefix_has_the_same_first_tokens(text in text(), max_tokens in 3usize..12) {
        let tokenizer = tokenizer();
        let text = text.repeat(20);
        let (encoded, whole) = (tokenizer.encode(&text, max_tokens).unwrap(), tokenizer.try_tokenize(&text).unwrap());
        prop_assert_eq!(encoded.truncated, whole.len() > max_tokens - 2);
        prop_assert_eq!(&encoded.ids[1..encoded.ids.len() - 1], &whole[..whole.len().min(max_tokens - 2)]);
    }
}
