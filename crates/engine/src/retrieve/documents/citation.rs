//! The words of a citation, as marks, remarks and people write them: the name of a document or file, and a part of it.

use std::ops::Range;

use crate::source::documents::Part;

/// The readings of a citation, to be tried in this order: a name may itself hold what else names a part, so the words
/// as they stand come first. The last one names the least.
///
/// `NAME`, `NAME#3`, `NAME:12-40` and `NAME:12` (lines), `NAME bytes 10-20`, each with a mark `[1]` before it and a
/// remark behind two blanks, and whole marks of a context: `=== [1] NAME > Heading (rows 1-3, extracted bytes 10-20,
/// cut)`.
pub(super) fn readings(citation: &str) -> Vec<(&str, Part)> {
    let mut readings = vec![(citation, Part::Whole)];
    let words = without_mark(citation);
    let spellings = [words, words.split_once("  ").map_or(words, |(place, _)| place.trim_end())];
    for words in spellings {
        readings.push((words, Part::Whole));
        readings.extend(bytes_of_mark(words));
        readings.extend(placed(words));
    }
    let mut met: Vec<(&str, Part)> = Vec::with_capacity(readings.len());
    for reading in readings {
        if !met.contains(&reading) {
            met.push(reading);
        }
    }
    met
}

/// The words behind `=== [1]` or `[1]`.
fn without_mark(citation: &str) -> &str {
    let words = citation.trim();
    let behind = words.trim_start_matches('=').trim_start().strip_prefix('[').and_then(|rest| rest.split_once(']'));
    match behind {
        Some((n, rest)) if !n.is_empty() && n.bytes().all(|byte| byte.is_ascii_digit()) => rest.trim_start(),
        Some(_) | None => words,
    }
}

/// A mark's document and bytes; what stands before a heading may be a part of the name, so the longest name comes
/// first.
fn bytes_of_mark(words: &str) -> Vec<(&str, Part)> {
    let place = words.strip_suffix(')').and_then(|words| words.rsplit_once(" ("));
    let Some((path, place)) = place else { return Vec::new() };
    let bytes = place.split(", ").find_map(|part| part.trim_start_matches("extracted ").strip_prefix("bytes "));
    let Some(bytes) = bytes.and_then(range::<u64>) else { return Vec::new() };
    let heads = path.rmatch_indices(" > ").map(|(at, _)| &path[..at]);
    std::iter::once(path).chain(heads).map(|name| (name, Part::Bytes(bytes.clone()))).collect()
}

/// A name with one part behind it.
fn placed(words: &str) -> Option<(&str, Part)> {
    let bytes = || {
        let (name, bytes) = words.rsplit_once(" bytes ")?;
        Some((name.trim_end_matches(" extracted"), Part::Bytes(range(bytes)?)))
    };
    let chunk = || {
        let (name, index) = words.rsplit_once('#')?;
        Some((name, Part::Chunk(index.parse().ok()?)))
    };
    let lines = || {
        let (name, lines) = words.rsplit_once(':')?;
        let lines = range(lines).or_else(|| lines.parse().ok().map(|line| line..line))?;
        Some((name, Part::Lines(lines.start..=lines.end)))
    };
    bytes().or_else(chunk).or_else(lines)
}

fn range<N: std::str::FromStr>(words: &str) -> Option<Range<N>> {
    let (start, end) = words.split_once('-')?;
    Some(start.parse().ok()?..end.parse().ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_spelling_names_its_document_and_part() {
        for (citation, name, part) in [
            ("docs/a.md", "docs/a.md", Part::Whole),
            ("docs/a.md#3", "docs/a.md", Part::Chunk(3)),
            ("docs/a.md:10-20", "docs/a.md", Part::Lines(10..=20)),
            ("docs/a.md:7", "docs/a.md", Part::Lines(7..=7)),
            ("docs/a.md bytes 10-20", "docs/a.md", Part::Bytes(10..20)),
            ("a b.csv extracted bytes 10-20", "a b.csv", Part::Bytes(10..20)),
            ("[12] docs/a.md:10-20  Tides > Spring: tides", "docs/a.md", Part::Lines(10..=20)),
            ("=== [1] docs/a.md > A > B (c) (bytes 1-2)", "docs/a.md", Part::Bytes(1..2)),
            ("docs/a.csv (rows 1-3, extracted bytes 1-2, cut)", "docs/a.csv", Part::Bytes(1..2)),
            ("c#/a#b.md", "c#/a#b.md", Part::Whole),
            ("c#/a.md:10-20", "c#/a.md", Part::Lines(10..=20)),
        ] {
            let readings = readings(citation);
            assert_eq!(readings[0], (citation, Part::Whole));
            assert!(readings.contains(&(name, part)), "{citation}: {readings:?}");
        }
        assert_eq!(readings("x > y > z (bytes 1-2)")[1].0, "x > y > z");
    }
}
