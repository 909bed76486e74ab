//! Function words: what carries grammar and no content.

/// English words that carry grammar, not content. Other languages keep theirs, which makes the gate a little stricter
/// there.
pub(crate) fn is_function_word(word: &str) -> bool {
    is_like_one(word) && FUNCTION_WORDS.binary_search(&word).is_ok()
}

/// Says if a function word has the length and the first letter of a word, as few others have.
fn is_like_one(word: &str) -> bool {
    let first = word.bytes().next().map_or(0, |first| first.wrapping_sub(b'a'));
    FIRST_LETTERS.get(word.len()).is_some_and(|letters| first < 26 && letters >> first & 1 == 1)
}

/// The first letters of the function words of each length, a bit each.
const FIRST_LETTERS: [u32; 16] = {
    let mut letters = [0; 16];
    let mut at = 0;
    while at < FUNCTION_WORDS.len() {
        let word = FUNCTION_WORDS[at].as_bytes();
        letters[word.len()] |= 1 << (word[0] - b'a');
        at += 1;
    }
    letters
};

const FUNCTION_WORDS: [&str; 104] = [
    "a", "about", "after", "all", "also", "an", "and", "any", "are", "as", "at", "be", "because", "been", "before",
    "being", "both", "but", "by", "can", "could", "did", "do", "does", "each", "for", "from", "had", "has", "have",
    "he", "her", "here", "him", "his", "how", "i", "if", "in", "into", "is", "it", "its", "just", "may", "me", "more",
    "most", "must", "my", "no", "not", "of", "on", "only", "or", "other", "our", "out", "over", "s", "same", "she",
    "should", "so", "some", "such", "t", "than", "that", "the", "their", "them", "then", "there", "these", "they",
    "this", "those", "through", "to", "under", "up", "upon", "us", "very", "was", "we", "were", "what", "when",
    "where", "which", "while", "who", "whom", "whose", "why", "will", "with", "within", "without", "would", "you",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn function_words_are_sorted_for_the_search() {
        assert!(FUNCTION_WORDS.is_sorted());
    }

    #[test]
    fn every_function_word_is_like_one() {
        assert!(FUNCTION_WORDS.iter().all(|word| is_function_word(word)));
        assert!(["", "tide", "éa", "{", "Zebra", "internationalisation"].iter().all(|word| !is_function_word(word)));
        assert!(!is_like_one("zone") && is_like_one("tide"));
    }
}
