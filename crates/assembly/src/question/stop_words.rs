//! Function words: what carries grammar and no content.

/// English words that carry grammar, not content. Other languages keep theirs, which makes the gate a little stricter
/// there.
pub(crate) fn is_function_word(word: &str) -> bool {
    FUNCTION_WORDS.binary_search(&word).is_ok()
}

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
}
