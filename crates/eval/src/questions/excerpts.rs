//! Excerpt sets: questions whose gold is spans of the files in a folder.
//!
//! `questions.jsonl` has `{id, question, answer | answers, scope?, refs: [{doc, start, end, text}]}`; offsets count
//! code points.
//! Cost: every file of `docs/` in memory, and one offset in 128 code points of each.

use std::collections::{BTreeMap, HashSet};
use std::path::Path;

use serde::Deserialize;

use super::{Evidence, OneOrMany, Question, Questions, answers};
use crate::error::{Error, Result};
use crate::lines::{self, Lines, read_bounded};

/// Names that an error about an unknown document proposes, at most.
const NEAR_MAX: usize = 3;

#[derive(Deserialize)]
struct Record {
    id: String,
    question: String,
    answer: Option<OneOrMany>,
    answers: Option<OneOrMany>,
    scope: Option<OneOrMany>,
    refs: Vec<Reference>,
}

#[derive(Deserialize)]
struct Reference {
    doc: String,
    start: usize,
    end: usize,
    text: String,
}

/// Reads the questions of a folder with `questions.jsonl` and `docs/`.
pub(super) fn read(path: &Path) -> Result<Questions> {
    let files = Files::read(&path.join("docs"))?;
    let mut lines = Lines::open(&path.join("questions.jsonl"))?;
    let path = lines.path().to_owned();
    let (mut questions, mut ids) = (Vec::new(), HashSet::new());
    while let Some((line, text)) = lines.next()? {
        let record: Record = lines::record(&path, line, text)?;
        if !ids.insert(record.id.clone()) {
            return Err(Error::Duplicate { path, line, what: format!("question {}", record.id) });
        }
        if !record.refs.is_empty() {
            questions.push(files.question(record, &path, line)?);
        }
    }
    let texts = files.files.into_values().map(|file| (file.id, file.text.map(|text| text.text))).collect();
    Ok(Questions { questions, texts })
}

/// The files of the folder, by name.
struct Files {
    files: BTreeMap<String, File>,
}

struct File {
    id: String,
    /// The name without the extension.
    stem: String,
    text: Option<Text>,
}

impl Files {
    /// The files of a folder, not of folders in it; hidden ones are left out, as indexing leaves them out.
    fn read(folder: &Path) -> Result<Self> {
        let mut files = BTreeMap::new();
        for entry in fs_err::read_dir(folder)? {
            let path = entry?.path();
            let (Some(name), Some(stem)) = (path.file_name(), path.file_stem()) else { continue };
            let (name, stem) = (name.to_string_lossy().into_owned(), stem.to_string_lossy().into_owned());
            if path.is_file() && !name.starts_with('.') {
                let text = String::from_utf8(read_bounded(&path)?).ok().map(Text::new);
                files.insert(name.clone(), File { id: format!("docs/{name}"), stem, text });
            }
        }
        Ok(Self { files })
    }

    fn question(&self, record: Record, path: &Path, line: u64) -> Result<Question> {
        let Record { id, question: text, answer, answers: several, scope, refs } = record;
        let unknown = |name: &str, reason: String| {
            let (path, question, name) = (path.to_owned(), id.clone(), name.to_owned());
            Error::Document { path, line, question, name, reason }
        };
        let file = |name: &str| self.named(name).map_err(|reason| unknown(name, reason));
        let scope = match scope.map(Vec::from) {
            Some(names) => Some(names.iter().map(|name| Ok(file(name)?.id.clone())).collect::<Result<Vec<String>>>()?),
            None => None,
        };
        let mut evidence = Vec::with_capacity(refs.len());
        for reference in refs {
            let file = file(&reference.doc)?;
            evidence.push(file.evidence(&reference).map_err(|reason| {
                let (path, question, document) = (path.to_owned(), id.clone(), file.id.clone());
                Error::Reference { path, line, question, document, reason }
            })?);
        }
        let mut documents: Vec<String> = evidence.iter().map(|evidence| evidence.document.clone()).collect();
        documents.sort_unstable();
        documents.dedup();
        let answers = answers([answer, several]);
        Ok(Question { id, text, scope, answers, documents, evidence, facts: Vec::new() })
    }

    /// The one file of this name, or with this name before its extension; else the reason why there is none.
    fn named(&self, name: &str) -> std::result::Result<&File, String> {
        if let Some(file) = self.files.get(name) {
            return Ok(file);
        }
        let found: Vec<(&String, &File)> = self.files.iter().filter(|(_, file)| file.stem == name).collect();
        match found[..] {
            [(_, file)] => Ok(file),
            [] => Err(format!("which no file of docs/ has{}", self.near(name))),
            _ => {
                let names: Vec<&str> = found.iter().map(|(name, _)| name.as_str()).collect();
                Err(format!("which {} have; give the extension too", names.join(" and ")))
            }
        }
    }

    /// The names most like this one, for an error.
    fn near(&self, name: &str) -> String {
        let wanted = name.to_lowercase();
        let distance = |stem: &str| strsim::damerau_levenshtein(&wanted, &stem.to_lowercase());
        let mut near: Vec<(usize, &str)> =
            self.files.values().map(|file| (distance(&file.stem), file.stem.as_str())).collect();
        near.sort_unstable();
        near.truncate(NEAR_MAX);
        match near[..] {
            [] => ", the folder is empty".to_owned(),
            _ => format!("; near it: {}", near.iter().map(|(_, stem)| *stem).collect::<Vec<_>>().join(", ")),
        }
    }
}

impl File {
    /// The bytes that a reference means, or the reason why it is none.
    fn evidence(&self, reference: &Reference) -> std::result::Result<Evidence, String> {
        let Reference { start, end, text, .. } = reference;
        let Some(file) = &self.text else { return Err("the file is not UTF-8".to_owned()) };
        let (Some(first), Some(last)) = (file.byte(*start), file.byte(*end)) else {
            return Err(format!("characters {start}..{end} are outside the file, which has {}", file.n_chars));
        };
        if first >= last {
            return Err(format!("characters {start}..{end} are no span"));
        }
        let found = &file.text[first..last];
        if found == text {
            Ok(Evidence { document: self.id.clone(), span: first as u64..last as u64, text: found.to_owned() })
        } else {
            Err(format!(
                "characters {start}..{end} are {:?}, the reference says {:?}",
                beginning(found),
                beginning(text)
            ))
        }
    }
}

/// The first characters of a text, for an error.
fn beginning(text: &str) -> String {
    text.chars().take(40).collect()
}

/// A text in which code points are found by number.
struct Text {
    text: String,
    n_chars: usize,
    /// The byte at which every [`STEP`]th code point starts.
    starts: Vec<usize>,
}

/// Code points between two known bytes.
const STEP: usize = 128;

impl Text {
    fn new(text: String) -> Self {
        let starts = text.char_indices().step_by(STEP).map(|(start, _)| start).collect();
        Self { n_chars: text.chars().count(), starts, text }
    }

    /// The byte at which a code point starts; the length of the text is the start of the one after the last.
    fn byte(&self, char: usize) -> Option<usize> {
        if char >= self.n_chars {
            return (char == self.n_chars).then_some(self.text.len());
        }
        let start = self.starts[char / STEP];
        Some(start + self.text[start..].chars().take(char % STEP).map(char::len_utf8).sum::<usize>())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn code_points_are_found_where_counting_finds_them(unit in "[a-é€😀 ]{1,6}", n in 1_usize..100) {
            let text = Text::new(unit.repeat(n));
            let starts: Vec<usize> = text.text.char_indices().map(|(start, _)| start).chain([text.text.len()]).collect();
            for (char, start) in starts.iter().enumerate() {
                prop_assert_eq!(text.byte(char), Some(*start));
            }
            prop_assert_eq!(text.byte(starts.len()), None);
        }
    }
}
