//! Words of a text as redundancy compares them: lower case, pairs of letters where a script writes no spaces, hashed
//! alike everywhere.

/// Distinct content words a chunk must have for its pairwise overlap to mean anything.
pub const MIN_CONTENT_WORDS: usize = 8;

pub(super) const FNV_PRIME: u64 = 0x100_0000_01b3;

const FNV_OFFSET: u64 = 0xcbf2_9ce4_8422_2325;

/// FNV-1a, the same on every machine.
fn hash(word: &str) -> u64 {
    word.bytes().fold(FNV_OFFSET, hash_on)
}

fn hash_on(hash: u64, byte: u8) -> u64 {
    (hash ^ u64::from(byte)).wrapping_mul(FNV_PRIME)
}

/// Hashes of the words of a text, those that are kept.
pub(super) fn hashes(text: &str, keep: impl Fn(&str) -> bool) -> Vec<u64> {
    if text.is_ascii() {
        return ascii_hashes(&text.to_ascii_lowercase(), keep);
    }
    words(text).filter(|word| keep(word)).map(|word| hash(&word)).collect()
}

/// The same for a text in lower case of nothing but ASCII, in one pass.
fn ascii_hashes(lower: &str, keep: impl Fn(&str) -> bool) -> Vec<u64> {
    let (mut hashes, mut first, mut hash) = (Vec::new(), 0, FNV_OFFSET);
    for (at, byte) in lower.bytes().enumerate() {
        if byte.is_ascii_alphanumeric() {
            hash = hash_on(hash, byte);
            continue;
        }
        if first < at && keep(&lower[first..at]) {
            hashes.push(hash);
        }
        (first, hash) = (at + 1, FNV_OFFSET);
    }
    if first < lower.len() && keep(&lower[first..]) {
        hashes.push(hash);
    }
    hashes
}

/// Words of a text in lower case: runs of letters and digits, and pairs of neighbours where a script writes no spaces.
pub(super) fn words(text: &str) -> impl Iterator<Item = String> + '_ {
    text.split(|c: char| !c.is_alphanumeric()).filter(|run| !run.is_empty()).flat_map(|run| {
        let run = run.to_lowercase();
        if !run.chars().any(writes_no_spaces) {
            return vec![run];
        }
        let letters: Vec<char> = run.chars().collect();
        letters.windows(2.min(letters.len())).map(|pair| pair.iter().collect()).collect()
    })
}

/// Thai to Khmer, Chinese and Japanese.
fn writes_no_spaces(c: char) -> bool {
    matches!(c, '\u{e00}'..='\u{eff}' | '\u{1000}'..='\u{109f}' | '\u{1780}'..='\u{17ff}' | '\u{3040}'..='\u{30ff}' | '\u{3400}'..='\u{9fff}' | '\u{f900}'..='\u{faff}' | '\u{20000}'..='\u{3ffff}')
}

/// The text with every run of white space as one space.
pub(super) fn spaced_once(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scripts_without_spaces_are_read_as_pairs_of_letters() {
        assert_eq!(words("東京都").collect::<Vec<_>>(), ["東京", "京都"]);
        assert_eq!(words("Éa 1x都").collect::<Vec<_>>(), ["éa", "1x", "x都"]);
    }

    #[test]
    fn letters_of_ascii_and_others_are_hashed_alike() {
        let ascii = "The Harbour, of 1952 -- it's  shut_down\n(again).";
        let slow: Vec<u64> = words(ascii).map(|word| hash(&word)).collect();
        assert_eq!(hashes(ascii, |_| true), slow);
        let beyond = format!("{ascii} é");
        assert_eq!(hashes(&beyond, |word| word != "é"), slow);
    }
}
