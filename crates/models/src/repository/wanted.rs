//! `ORG/NAME[@REVISION]`: the name of a repository, checked, so that it may become part of an address or of a path.

use sha2::{Digest, Sha256};

/// Most bytes of an owner, a name or a revision.
const PART_BYTES_MAX: usize = 96;
/// Fewest digits that name a commit.
const COMMIT_DIGITS_MIN: usize = 7;
/// Digits of a checksum that keep names apart that are no folders.
const APART_BYTES: usize = 4;
/// Stands between owner, name and revision in the name of a folder. The hub has no name with it.
const BETWEEN: &str = "--";

/// A repository of the hub, and a revision of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Wanted {
    /// `owner/name`.
    pub(crate) repository: String,
    /// A branch, a tag or a commit; none stands for the main branch.
    pub(crate) revision: Option<String>,
}

impl Wanted {
    /// Nothing for a text that is no such name.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let (repository, revision) = match text.split_once('@') {
            Some((repository, revision)) => (repository, Some(revision)),
            None => (text, None),
        };
        let (owner, name) = repository.split_once('/')?;
        let is_right = [owner, name].iter().all(|part| is_part(part) && !part.contains(BETWEEN))
            && revision.is_none_or(|revision| revision.split('/').all(is_part) && revision.len() <= PART_BYTES_MAX);
        is_right.then(|| Self { repository: repository.to_owned(), revision: revision.map(str::to_owned) })
    }

    /// The name of its card: one plain folder, another for each revision asked for.
    pub(crate) fn card_name(&self) -> String {
        let repository = self.repository.to_ascii_lowercase(); // the hub takes a name in any case
        let name = repository.replace('/', BETWEEN);
        let name = match name.trim_start_matches(|c: char| !c.is_ascii_alphanumeric()) {
            plain if plain == name => name,
            plain => format!("{plain}-{}", apart(&repository)),
        };
        match &self.revision {
            None => name,
            Some(revision) => {
                let plain = revision.to_ascii_lowercase().replace('/', "-");
                let is_itself = plain == *revision;
                let plain = if is_itself { plain } else { format!("{plain}-{}", apart(revision)) };
                format!("{name}{BETWEEN}{plain}")
            }
        }
    }

    /// True if a card of this repository, pulled as `asked` and pinned to `commit`, is of the revision wanted.
    pub(crate) fn is_revision(&self, asked: Option<&str>, commit: &str) -> bool {
        match &self.revision {
            None => asked.is_none(),
            Some(revision) => asked == Some(revision) || (is_commit(revision) && commit.starts_with(revision.as_str())),
        }
    }
}

/// Keeps a name apart from others of which the same folder would be made.
fn apart(name: &str) -> String {
    Sha256::digest(name.as_bytes())[..APART_BYTES].iter().map(|byte| format!("{byte:02x}")).collect()
}

/// True for lowercase hexadecimal digits, enough of them to name a commit.
pub(crate) fn is_commit(revision: &str) -> bool {
    (COMMIT_DIGITS_MIN..=40).contains(&revision.len())
        && revision.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'))
}

/// A part of an address that is itself wherever it stands: no dots alone, nothing to be escaped.
fn is_part(part: &str) -> bool {
    (1..=PART_BYTES_MAX).contains(&part.len())
        && !part.starts_with(['.', '-'])
        && !part.contains("..")
        && part.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_.".contains(&b))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_repositories_are_told_from_everything_else() {
        let check = |text: &str, parts: Option<(&str, Option<&str>)>| {
            let wanted = Wanted::parse(text);
            let found = wanted.as_ref().map(|wanted| (wanted.repository.as_str(), wanted.revision.as_deref()));
            assert_eq!(found, parts, "{text}");
        };
        check("BAAI/bge-small-en-v1.5", Some(("BAAI/bge-small-en-v1.5", None)));
        check("a/b@refs/pr/1", Some(("a/b", Some("refs/pr/1"))));
        for text in ["bge", "a/b/c", "../b", "a/..", "a/b@", "a/b@../c", "a/b@x/../../y", "/b", "a/", "a/b?c", "a b/c"]
        {
            check(text, None);
        }
    }

    #[test]
    fn each_revision_has_a_folder_of_its_own() {
        let name = |text: &str| Wanted::parse(text).unwrap().card_name();
        assert_eq!(name("BAAI/Bge-M3"), "baai--bge-m3");
        assert_eq!(name("a/b@v1.0"), "a--b--v1.0");
        assert!(name("a/b@refs/pr/1").starts_with("a--b--refs-pr-1-"));
        assert_ne!(name("a/b@V1"), name("a/b@v1"));
    }

    #[test]
    fn no_two_repositories_share_a_folder() {
        let name = |text: &str| Wanted::parse(text).map(|wanted| wanted.card_name());
        for text in ["a--b/c", "a/b--c", "a/b--v1.0"] {
            assert_eq!(name(text), None, "{text} would lie where another model does");
        }
        assert!(name("a/b@v--1").is_some(), "a branch may be called so");
        assert_ne!(name("_a/b"), name("a/b"));
        assert!(name("_a/b").unwrap().starts_with("a--b-"));
    }
}
