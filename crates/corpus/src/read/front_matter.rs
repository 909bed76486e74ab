//! Front matter: the metadata block that may open a Markdown file, between `---` lines (YAML) or `+++` lines (TOML).
//!
//! Differs from YAML: top-level `key: value` lines, and lists as JSON; whatever is nested stays as written.

use std::collections::BTreeMap;

use super::{Metadata, metadata_value};

/// Front matter found at the start of a text.
pub(super) struct FrontMatter {
    /// Bytes from the start of the text through the closing line and the blank lines after it.
    pub(super) end: usize,
    pub(super) metadata: Metadata,
    pub(super) warning: Option<String>,
}

impl FrontMatter {
    /// The front matter of `text`, whose byte order mark has been taken off.
    pub(super) fn find(text: &str) -> Option<Self> {
        let mut lines = text.split_inclusive('\n');
        let first = lines.next()?;
        let closing: &[&str] = match first.trim_end() {
            "---" => &["---", "..."],
            "+++" => &["+++"],
            _ => return None,
        };
        let start = first.len();
        let mut end = start;
        let inner = loop {
            let line = lines.next()?;
            if closing.contains(&line.trim_end()) {
                let inner = &text[start..end];
                end += line.len();
                break inner;
            }
            end += line.len();
        };
        while let Some(line) = lines.next().filter(|line| line.trim().is_empty()) {
            end += line.len();
        }
        if closing.len() == 1 {
            let (metadata, warning) = toml(inner);
            return Some(Self { end, metadata, warning });
        }
        looks_like_yaml(inner).then(|| Self { end, metadata: yaml(inner), warning: None })
    }
}

/// Two thematic breaks around a paragraph are no front matter: the first line must be a key or a comment.
fn looks_like_yaml(inner: &str) -> bool {
    let first = inner.lines().find(|line| !line.trim().is_empty());
    first.is_none_or(|line| line.starts_with('#') || key_value(line).is_some())
}

fn key_value(line: &str) -> Option<(&str, &str)> {
    let (key, value) = line.split_once(':')?;
    let key = key.trim_end();
    let is_key = !key.is_empty()
        && key.chars().all(|c| c.is_alphanumeric() || "_-. \"'".contains(c))
        && !key.starts_with([' ', '-']);
    (is_key && (value.is_empty() || value.starts_with([' ', '\t', '\r']))).then(|| (unquote(key), value.trim()))
}

fn yaml(inner: &str) -> Metadata {
    let mut metadata = BTreeMap::new();
    let mut lines = inner.lines().peekable();
    while let Some(line) = lines.next() {
        let Some((key, value)) = key_value(line) else { continue };
        let mut nested = Vec::new();
        while let Some(line) = lines.next_if(|line| line.trim().is_empty() || line.starts_with([' ', '\t', '-'])) {
            nested.push(line);
        }
        let value = match value {
            "" | "|" | ">" | "|-" | ">-" if !nested.is_empty() => nested_value(&nested),
            _ if value.starts_with('[') && value.ends_with(']') => list(value[1..value.len() - 1].split(',')),
            _ => unquote(without_comment(value)).to_string(),
        };
        if !value.is_empty() {
            metadata.insert(key.to_string(), value);
        }
    }
    metadata
}

/// Lines under a key: a list of scalars as JSON, anything else as written, without the indentation of its first line.
fn nested_value(lines: &[&str]) -> String {
    let items: Vec<&str> = lines.iter().map(|line| line.trim()).filter(|line| !line.is_empty()).collect();
    if !items.is_empty() && items.iter().all(|item| item.starts_with("- ") && key_value(&item[2..]).is_none()) {
        return list(items.iter().map(|item| &item[2..]));
    }
    let indent =
        lines.iter().find(|line| !line.trim().is_empty()).map_or(0, |line| line.len() - line.trim_start().len());
    let text: Vec<&str> =
        lines.iter().map(|line| line.get(indent..).unwrap_or_else(|| line.trim_start()).trim_end()).collect();
    text.join("\n").trim().to_string()
}

fn list<'a>(items: impl Iterator<Item = &'a str>) -> String {
    let items: Vec<&str> = items.map(|item| unquote(item.trim())).filter(|item| !item.is_empty()).collect();
    serde_json::Value::from(items).to_string()
}

fn without_comment(value: &str) -> &str {
    if value.starts_with(['"', '\'']) {
        value
    } else {
        value.split_once(" #").map_or(value, |(value, _)| value).trim_end()
    }
}

fn unquote(text: &str) -> &str {
    let quoted = |mark: char| text.strip_prefix(mark)?.strip_suffix(mark);
    quoted('"').or_else(|| quoted('\'')).unwrap_or(text)
}

fn toml(inner: &str) -> (Metadata, Option<String>) {
    match inner.parse::<toml::Table>() {
        Ok(table) => (table.into_iter().filter_map(|(key, value)| Some((key, toml_value(value)?))).collect(), None),
        Err(error) => {
            (BTreeMap::new(), Some(format!("front matter is not TOML, kept as text only: {}", error.message())))
        }
    }
}

fn toml_value(value: toml::Value) -> Option<String> {
    match value {
        toml::Value::Datetime(time) => Some(time.to_string()),
        other => serde_json::to_value(other).ok().as_ref().and_then(metadata_value),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, end: usize, metadata: &[(&str, &str)]) {
        let found = FrontMatter::find(text).unwrap();
        let pairs: Vec<(&str, &str)> =
            found.metadata.iter().map(|(key, value)| (key.as_str(), value.as_str())).collect();
        assert_eq!((found.end, pairs.as_slice(), found.warning), (end, metadata, None));
    }

    #[test]
    fn yaml_scalars_and_lists() {
        let text = "---\r\ntitle: \"A: b\"\ndate: 2024-01-02 # when\ntags: [a, 'b']\nmore:\n  - c\n  - d\n\nauthor:\n  name: X\n...\n\n# T\n";
        let metadata = [
            ("author", "name: X"),
            ("date", "2024-01-02"),
            ("more", r#"["c","d"]"#),
            ("tags", r#"["a","b"]"#),
            ("title", "A: b"),
        ];
        check(text, text.len() - 4, &metadata);
    }

    #[test]
    fn toml_scalars_and_lists() {
        let text = "+++\ntitle = \"T\"\nweight = 3\ndate = 2024-01-02\ntags = [\"a\"]\n+++\nbody";
        check(text, text.len() - 4, &[("date", "2024-01-02"), ("tags", r#"["a"]"#), ("title", "T"), ("weight", "3")]);
    }

    #[test]
    fn what_is_no_front_matter() {
        for text in [
            "",
            "---",
            "---\nA paragraph, then a rule.\n\n---\n",
            "---\ntitle: never closed\n",
            "text\n---\na: b\n---\n",
        ] {
            assert!(FrontMatter::find(text).is_none(), "{text:?}");
        }
    }

    #[test]
    fn bad_toml_is_reported() {
        assert!(FrontMatter::find("+++\ntitle\n+++\n").unwrap().warning.is_some());
    }
}
