//! The tokenizers against tiktoken, token by token.

use proptest::prelude::*;
use tiktoken_rs::CoreBPE;

use super::*;

fn expected(bpe: &CoreBPE, text: &str) -> Vec<usize> {
    let tokens = bpe._decode_native_and_split(bpe.encode_ordinary(text));
    let add = |end: &mut usize, token: Vec<u8>| {
        *end += token.len();
        Some(*end)
    };
    tokens.scan(0, add).collect()
}

#[track_caller]
fn check(text: &str) {
    for (ours, theirs) in
        [(o200k(), tiktoken_rs::o200k_base_singleton()), (cl100k(), tiktoken_rs::cl100k_base_singleton())]
    {
        assert_eq!(ours.ends(text), expected(theirs, text), "{text:?}");
        assert_eq!(ours.count(text), theirs.encode_ordinary(text).len());
    }
}

#[test]
fn texts_have_the_tokens_of_tiktoken() {
    for text in [
        "",
        " ",
        "a",
        "Parents may take twelve months of leave.\n",
        "=== [1] docs/a.md > Tides > Spring tides (bytes 120-161)\n\n",
        "don't WON'T we'll I'D  two  spaces\t\ttabs \r\n\r\n  end   ",
        "1234567890 3.14159 x²+y² ½ Ⅷ",
        "東京は日本の首都である。서울은 한국의 수도이다 Москва ist überall — naïve café Ελλάδα हिन्दी ไทย",
        "👍🏽👨‍👩‍👧‍👦 \u{0} \u{200b} \u{feff} a\u{301}",
        "fn main() { let x: Vec<u8> = vec![0; 1 << 20]; }//////\n\n\n\t\t\t}",
        "<|endoftext|> is text here",
    ] {
        check(text);
    }
    let sources = [include_str!("mod.rs"), include_str!("table.rs"), include_str!("../../../../README.md")];
    sources.into_iter().for_each(check);
}

#[test]
fn long_words_are_merged_as_tiktoken_merges_them() {
    for word in ["a", "ab", "abcdefghij", "日本", "=", " ", "xyzzy", "ﷺ"] {
        [9, 20, 99, 100, 101, 1_000].into_iter().for_each(|n| check(&word.repeat(n)));
    }
    let mut state = 1_u64;
    let mut letter = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        char::from(b'a' + (state >> 59) as u8 % 26)
    };
    check(&(0..5_000).map(|_| letter()).collect::<String>());
}

proptest! {
    #[test]
    fn any_text_has_the_tokens_of_tiktoken(text in any::<String>(), words in "[ a-zA-Z'0-9\\n.,äß]{0,80}") {
        check(&text);
        check(&words);
    }
}

#[test]
fn a_text_is_parted_inside_long_runs_of_blanks_alone() {
    let check = |text: &str, n_parts: usize| {
        let parts: Vec<&str> = parts(text).collect();
        assert_eq!((parts.concat().as_str(), parts.len()), (text, n_parts));
    };
    check("", 0);
    check("a b", 1);
    check(&"a  ".repeat(BLANKS_MAX), 1);
    check(&format!("a{}b", " ".repeat(BLANKS_MAX - 1)), 1);
    check(&format!("a{}b", " ".repeat(BLANKS_MAX)), 2);
    check(&format!("a{}b", "\u{2003}".repeat(BLANKS_MAX * 2 + 1)), 3);
}
