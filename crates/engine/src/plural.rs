//! Nouns behind numbers, in messages.

use std::borrow::Cow;

/// A noun behind a number: as it stands behind 1, else its regular plural.
pub fn plural(n: u64, one: &str) -> Cow<'_, str> {
    if n == 1 {
        return Cow::Borrowed(one);
    }
    match one.strip_suffix('y').filter(|stem| !stem.ends_with(['a', 'e', 'o', 'u'])) {
        Some(stem) => Cow::Owned(format!("{stem}ies")),
        None => Cow::Owned(format!("{one}s")),
    }
}

/// A number and its noun: `1 chunk`, `2 chunks`.
pub fn counted(n: u64, one: &str) -> String {
    format!("{n} {}", plural(n, one))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_has_no_plural_and_all_others_do() {
        let said = [0, 1, 2].map(|n| counted(n, "chunk"));
        assert_eq!(said, ["0 chunks", "1 chunk", "2 chunks"]);
        assert_eq!([counted(2, "query"), counted(1, "query"), counted(3, "day")], ["2 queries", "1 query", "3 days"]);
    }
}
