//! Cutting a set by document.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

/// The documents of a set, in order.
pub(super) enum Corpus {
    /// Lines of a `corpus.jsonl`.
    Lines(Vec<String>),
    /// A folder, and files in it.
    Files(PathBuf, Vec<PathBuf>),
}

impl Corpus {
    pub(super) fn of(set: &Path, n_documents: usize) -> Result<Self> {
        let lines = set.join("corpus.jsonl");
        if lines.is_file() {
            let text = std::fs::read_to_string(&lines).with_context(|| lines.display().to_string())?;
            return Ok(Self::Lines(text.lines().take(n_documents).map(str::to_owned).collect()));
        }
        let Some(folder) = ["docs", "src"].map(|name| set.join(name)).into_iter().find(|folder| folder.is_dir()) else {
            bail!("{}: has no corpus.jsonl, no docs and no src", set.display());
        };
        let mut files = Vec::new();
        let mut folders = vec![folder.clone()];
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(&folder).with_context(|| folder.display().to_string())? {
                let path = entry?.path();
                if path.is_dir() { folders.push(path) } else { files.push(path) }
            }
        }
        files.sort_unstable();
        files.truncate(n_documents);
        Ok(Self::Files(folder, files))
    }

    /// Writes one of `n` pieces to a folder: every `n`th document, where it was.
    pub(super) fn write(&self, folder: &Path, n: usize, piece: usize) -> Result<()> {
        std::fs::create_dir_all(folder)?;
        match self {
            Self::Lines(lines) => {
                let line = |(at, line): (usize, &String)| {
                    if at % n == piece { line.clone() + "\n" } else { " ".repeat(line.len()) + "\n" }
                };
                std::fs::write(folder.join("corpus.jsonl"), lines.iter().enumerate().map(line).collect::<String>())?;
            }
            Self::Files(root, files) => {
                for file in files.iter().skip(piece).step_by(n) {
                    let to = folder.join(file.strip_prefix(root)?);
                    std::fs::create_dir_all(to.parent().unwrap_or(folder))?;
                    std::fs::copy(file, &to).with_context(|| file.display().to_string())?;
                    let modified = std::fs::metadata(file)?.modified()?;
                    std::fs::File::options().write(true).open(&to)?.set_modified(modified)?;
                }
            }
        }
        Ok(())
    }
}
