//! The places that a writer may read: folders of this machine, which requests call by their labels.

use std::path::PathBuf;

use cento_corpus::guard::Guard;
use cento_corpus::{Commands, Passwords, Root};

use crate::error::{AtPath, Error, Result};

/// The way the collections of a service may be changed.
#[derive(Debug, Clone, Default)]
pub struct Writing {
    /// Files and folders that may be indexed, each by its label; nothing outside.
    pub roots: Vec<Root>,
    /// The folder that new collections are made in; without one none is made.
    pub new_collections: Option<PathBuf>,
    /// The way files are read in children; without one, formats that want it are refused.
    pub guard: Option<Guard>,
    /// Passwords that are tried on encrypted files.
    pub passwords: Passwords,
    /// Commands that read files below the roots; files that are handed over are none of theirs.
    pub commands: Commands,
}

impl Writing {
    /// The file or folder that a name stands for: the label of a root, or a label and a path below it, as
    /// `notes/drafts`. Its documents have the ids that they have when the whole root is indexed.
    ///
    /// # Errors
    /// [`Error::Setting`] for a name under no root, one that goes up, and one that a link stands in the way of.
    pub(super) fn root(&self, name: &str) -> Result<Root> {
        let refused = |reason: String| Error::Setting { setting: "paths", value: name.to_owned(), reason };
        let below = |root: &Root| {
            let rest = name.strip_prefix(root.label.as_str())?;
            if rest.is_empty() { Some("") } else { rest.strip_prefix('/').filter(|rest| !rest.is_empty()) }
                .map(str::to_owned)
        };
        let longest = |(root, _): &(&Root, String)| root.label.len();
        let found = self.roots.iter().filter_map(|root| Some((root, below(root)?))).max_by_key(longest);
        let Some((root, rest)) = found else {
            let labels: Vec<&str> = self.roots.iter().map(|root| root.label.as_str()).collect();
            let known =
                if labels.is_empty() { "there are none".to_owned() } else { format!("of {}", labels.join(", ")) };
            return Err(refused(format!("lies under no root that may be indexed; {known}")));
        };
        let mut path = root.path.canonicalize().at(&root.path)?;
        if !rest.is_empty() {
            for part in rest.split('/') {
                if part.is_empty() || [".", ".."].contains(&part) || part.contains(['\\', ':', '\0']) {
                    return Err(refused("is no path below a root: its parts are names between slashes".to_owned()));
                }
                path.push(part);
                match path.symlink_metadata() {
                    Ok(found) if found.is_symlink() => return Err(refused("leads over a link".to_owned())),
                    Ok(_) => {}
                    Err(_) => return Err(refused("is not there".to_owned())),
                }
            }
        }
        Ok(Root { label: name.to_owned(), path })
    }

    /// A text with the folders of this machine called by their labels.
    pub(super) fn without_folders(&self, text: &str) -> String {
        let mut named: Vec<(PathBuf, &str)> = Vec::new();
        for root in &self.roots {
            named.extend(root.path.canonicalize().ok().map(|path| (path, root.label.as_str())));
            named.push((root.path.clone(), &root.label));
        }
        named.sort_by_key(|(path, _)| std::cmp::Reverse(path.as_os_str().len()));
        named.iter().fold(text.to_owned(), |text, (path, label)| match path.display().to_string().as_str() {
            "" | "." | "/" => text,
            path => text.replace(path, label),
        })
    }
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[test]
    fn a_name_leads_below_a_root_and_nowhere_else() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        std::fs::create_dir_all(at("notes/sub")).unwrap();
        std::fs::create_dir_all(at("notes-secret")).unwrap();
        std::fs::write(at("notes/sub/a.md"), "a").unwrap();
        for (name, target) in [("notes/out", at("notes-secret")), ("notes/in", at("notes/sub"))] {
            std::os::unix::fs::symlink(target, at(name)).unwrap();
        }
        let root = |label: &str, path: &str| Root { label: label.to_owned(), path: at(path) };
        let writing =
            Writing { roots: vec![root("notes", "notes"), root("notes/sub/deep", "notes")], ..Writing::default() };
        for (name, path) in [
            ("notes", "notes"),
            ("notes/sub", "notes/sub"),
            ("notes/sub/a.md", "notes/sub/a.md"),
            ("notes/sub/deep", "notes"),
        ] {
            let found = writing.root(name).unwrap();
            assert_eq!((found.label.as_str(), found.path), (name, at(path).canonicalize().unwrap()), "{name}");
        }
        for name in [
            "",
            "/",
            "note",
            "notes-secret",
            "notes/",
            "notes//sub",
            "notes/..",
            "notes/../notes-secret",
            "notes/./sub",
            "notes/sub/../../notes-secret",
            "/etc",
            "notes/out",
            "notes/out/x",
            "notes/in",
            "notes/in/a.md",
            "notes/gone",
            "notes/a\0",
            "notes\\sub",
            "../notes",
            "notes/C:",
            "~",
        ] {
            let error = writing.root(name).unwrap_err();
            assert!(matches!(error, Error::Setting { setting: "paths", .. }), "{name:?}: {error}");
            assert!(!error.to_string().contains(&at("").display().to_string()), "{error}");
        }
    }
}
