//! Model cards, citations and texts under a budget tokenizer: any text is an error, or keeps its promises.
#![no_main]

use std::sync::LazyLock;

use cento_engine::BudgetTokenizer;
use cento_models::Card;
use libfuzzer_sys::fuzz_target;

static TOKENIZERS: LazyLock<[BudgetTokenizer<'static>; 2]> =
    LazyLock::new(|| ["o200k", "cl100k"].map(|name| BudgetTokenizer::named(name).unwrap()));

fuzz_target!(|text: &str| {
    if let Ok(card) = Card::parse("card.toml", text) {
        assert!(card.files.iter().all(|file| !file.path.starts_with('/') && !file.path.contains("..")), "{card:?}");
    }
    for tokenizer in &*TOKENIZERS {
        let ends = tokenizer.ends(text);
        assert_eq!(ends.len(), tokenizer.count(text));
        assert!(ends.is_sorted() && ends.last().copied().unwrap_or_default() == text.len());
    }
});
