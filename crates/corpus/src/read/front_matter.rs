//! Front matter: the metadata block that may open a Markdown file, between `---` lines (YAML) or `+++` lines (TOML).
//!
//! Differs from YAML: scalars, lists and maps in block style, and lists of scalars in brackets; whatever else there is
//! (anchors, tags, maps in braces, folded lines) stays as written. What is no YAML is read as far as it goes, with a
//! remark.

use saphyr_parser::Parser;
use serde_json::Value;

use super::Metadata;
use crate::budget::{Excess, FREE_BYTES, within};
use crate::metadata::add_json;

/// Front matter found at the start of a text.
#[derive(Default)]
pub(super) struct FrontMatter {
    /// Bytes from the start of the text through the closing line and the blank lines after it.
    pub(super) end: usize,
    pub(super) metadata: Metadata,
    /// The title as it is written: a number in it keeps its zeros.
    pub(super) title: Option<String>,
    pub(super) warnings: Vec<String>,
}

impl FrontMatter {
    /// The front matter of `text`, whose byte order mark has been taken off. One that is never closed is text, with a
    /// remark.
    pub(super) fn find(text: &str) -> Result<Option<Self>, Excess> {
        let mut lines = text.split_inclusive('\n');
        let first = lines.next().unwrap_or_default();
        let closing: &[&str] = match first.trim_end() {
            "---" => &["---", "..."],
            "+++" => &["+++"],
            _ => return Ok(None),
        };
        let start = first.len();
        let mut end = start;
        let inner = loop {
            let Some(line) = lines.next() else { return Ok(Self::never_closed(&text[start..], closing)) };
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
        let is_toml = closing.len() == 1;
        if !is_toml && !looks_like_yaml(inner) {
            return Ok(None);
        }
        within("bytes of front matter", inner.len() as u64, FREE_BYTES)?;
        let (fields, title, warnings) = if is_toml { toml(inner) } else { yaml(inner) };
        let mut metadata = Metadata::new();
        fields.iter().try_for_each(|(key, value)| add_json(&mut metadata, key, value))?;
        Ok(Some(Self { end, metadata, title, warnings }))
    }

    /// The remark on a first line that opens front matter, if the next one goes on like it.
    fn never_closed(rest: &str, closing: &[&str]) -> Option<Self> {
        let next = rest.lines().find(|line| !line.trim().is_empty())?;
        let is_key = if closing.len() == 1 { next.contains(" = ") } else { key_value(next).is_some() };
        let remark = format!("front matter opens on line 1, and no line {:?} closes it: read as text", closing[0]);
        is_key.then(|| Self { warnings: vec![remark], ..Self::default() })
    }
}

/// Fields in order, the title as written, and remarks.
type Fields = (Vec<(String, Value)>, Option<String>, Vec<String>);

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

/// The depth to which maps and lists of YAML may nest; what is deeper stays as written.
const DEPTH_MAX: usize = 16;

fn yaml(inner: &str) -> Fields {
    let (mut fields, mut title) = (Vec::new(), None);
    for (key, value, nested) in entries(&inner.lines().collect::<Vec<_>>()) {
        let node = node(value, &nested, 1);
        if key == "title" {
            title = match &node {
                Value::Null | Value::Array(_) | Value::Object(_) => None,
                Value::String(text) => Some(text.clone()),
                _ => Some(without_comment(value).to_string()),
            };
        }
        fields.push((key.to_owned(), node));
    }
    let remark = Parser::new_from_str(inner).find_map(Result::err).map(|error| {
        let line = 1 + error.marker().line(); // the one that opens it is before
        format!("front matter, line {line}: not YAML, read as far as it goes: {}", error.info())
    });
    (fields, title, remark.into_iter().collect())
}

/// The keys of a map with what stands behind each and the lines under it; lines that belong to no key are passed over.
fn entries<'t>(lines: &[&'t str]) -> Vec<(&'t str, &'t str, Vec<&'t str>)> {
    let first = lines.iter().find(|line| !line.trim().is_empty());
    let indent = first.map_or(0, |line| indentation(line));
    let mut entries: Vec<(&str, &str, Vec<&str>)> = Vec::new();
    let mut lines = lines.iter().copied().peekable();
    while let Some(line) = lines.next() {
        let Some((key, value)) = key_value(line.trim_start()).filter(|_| indentation(line) == indent) else { continue };
        let belongs =
            |line: &&str| line.trim().is_empty() || indentation(line) > indent || line.trim_start().starts_with("- ");
        entries.push((key, value, std::iter::from_fn(|| lines.next_if(belongs)).collect()));
    }
    entries
}

/// The value behind a key, or in the lines under it.
fn node(value: &str, nested: &[&str], depth: usize) -> Value {
    match value {
        _ if opens_block(value) && !nested.is_empty() => block(value, nested, depth),
        _ if value.starts_with('[') && value.ends_with(']') => {
            flow(&value[1..value.len() - 1]).into_iter().filter_map(scalar).collect()
        }
        _ => scalar(value).unwrap_or_default(),
    }
}

/// True if the value is in the lines that follow.
fn opens_block(value: &str) -> bool {
    ["", "|", ">", "|-", ">-"].contains(&without_comment(value))
}

/// Lines under a key: a list, a map, or a text as written, without the indentation of its first line.
fn block(mark: &str, lines: &[&str], depth: usize) -> Value {
    let filled = || lines.iter().filter(|line| !line.trim().is_empty());
    let Some(first) = filled().next() else { return Value::Null };
    let indent = indentation(first);
    let inner = &first[indent..];
    if without_comment(mark).is_empty() && depth < DEPTH_MAX {
        if inner.starts_with("- ") {
            return items(lines, indent).iter().map(|item| list_item(item, depth + 1)).collect();
        }
        if key_value(inner).is_some() {
            let entries = entries(lines).into_iter();
            return entries.map(|(key, value, nested)| (key.to_string(), node(value, &nested, depth + 1))).collect();
        }
    }
    let text: Vec<&str> =
        lines.iter().map(|line| line.get(indent..).unwrap_or_else(|| line.trim_start()).trim_end()).collect();
    let text = text.join("\n").trim().to_string();
    if text.is_empty() { Value::Null } else { text.into() }
}

/// The items of a list, each as its lines, the dash replaced by a blank.
fn items(lines: &[&str], indent: usize) -> Vec<Vec<String>> {
    let mut items: Vec<Vec<String>> = Vec::new();
    for line in lines.iter().filter(|line| !line.trim().is_empty()) {
        match line.get(indent..).and_then(|inner| inner.strip_prefix("- ")) {
            Some(rest) => items.push(vec![format!("{}  {rest}", &line[..indent])]),
            None => items.last_mut().into_iter().for_each(|item| item.push((*line).to_string())),
        }
    }
    items
}

fn list_item(lines: &[String], depth: usize) -> Value {
    let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
    match lines[0].trim() {
        first if key_value(first).is_some() => block("", &lines, depth),
        first if lines.len() == 1 => node(first, &[], depth),
        _ => block("|", &lines, depth),
    }
}

fn indentation(line: &str) -> usize {
    line.len() - line.trim_start_matches([' ', '\t']).len()
}

/// The parts of a list in brackets; a comma in quotes parts nothing.
fn flow(list: &str) -> Vec<&str> {
    let (mut parts, mut start, mut quote) = (Vec::new(), 0, None);
    for (at, c) in list.char_indices() {
        match quote {
            Some(open) => quote = Some(open).filter(|&open| open != c),
            None if c == ',' => {
                parts.push(&list[start..at]);
                start = at + 1;
            }
            None => quote = Some(c).filter(|_| ['"', '\''].contains(&c) && list[start..at].trim().is_empty()),
        }
    }
    parts.push(&list[start..]);
    parts.into_iter().map(str::trim).filter(|part| !part.is_empty()).collect()
}

/// A scalar by YAML's core rules: null, true and false, numbers, else text. What is in quotes, and a number that begins
/// with a zero it does not need, is text.
fn scalar(written: &str) -> Option<Value> {
    let text = without_comment(written.trim());
    match text {
        "" | "~" | "null" | "Null" | "NULL" => None,
        "true" | "True" | "TRUE" => Some(true.into()),
        "false" | "False" | "FALSE" => Some(false.into()),
        _ if unquote(text).len() < text.len() => Some(unquote(text)).filter(|text| !text.is_empty()).map(Value::from),
        _ => Some(number(text).unwrap_or_else(|| text.into())),
    }
}

fn number(text: &str) -> Option<Value> {
    let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
    let is_number = digits.starts_with(|c: char| c.is_ascii_digit() || c == '.')
        && digits.contains(|c: char| c.is_ascii_digit())
        && digits.bytes().all(|byte| byte.is_ascii_digit() || b".eE+-".contains(&byte))
        && !(digits.starts_with('0') && digits[1..].starts_with(|c: char| c.is_ascii_digit()));
    if !is_number {
        return None;
    }
    match text.parse::<i64>() {
        Ok(integer) => Some(integer.into()),
        Err(_) => {
            let float: Option<f64> = serde_json::from_str(text).ok().or_else(|| text.parse().ok());
            float.filter(|float| float.is_finite()).map(Value::from)
        }
    }
}

fn without_comment(value: &str) -> &str {
    if value.starts_with(['"', '\'']) {
        value
    } else if value.starts_with('#') {
        ""
    } else {
        value.split_once(" #").map_or(value, |(value, _)| value).trim_end()
    }
}

fn unquote(text: &str) -> &str {
    let quoted = |mark: char| text.strip_prefix(mark)?.strip_suffix(mark);
    quoted('"').or_else(|| quoted('\'')).unwrap_or(text)
}

fn toml(inner: &str) -> Fields {
    let table: toml::Table = match inner.parse::<toml::Table>() {
        Ok(table) => table,
        Err(error) => {
            let line = 2 + error.span().map_or(0, |span| inner[..span.start].matches('\n').count());
            let remark = format!("front matter, line {line}: not TOML, kept as text only: {}", error.message());
            return (Vec::new(), None, vec![remark]);
        }
    };
    let title = table.get("title").and_then(|title| match title {
        toml::Value::String(text) => Some(text.clone()),
        toml::Value::Array(_) | toml::Value::Table(_) => None,
        scalar => Some(scalar.to_string()),
    });
    (table.into_iter().map(|(key, value)| (key, toml_value(value))).collect(), title, Vec::new())
}

fn toml_value(value: toml::Value) -> Value {
    match value {
        toml::Value::String(text) => text.into(),
        toml::Value::Integer(integer) => integer.into(),
        toml::Value::Float(float) if float.is_finite() => float.into(),
        toml::Value::Float(float) => float.to_string().into(),
        toml::Value::Boolean(value) => value.into(),
        toml::Value::Datetime(time) => time.to_string().into(),
        toml::Value::Array(items) => items.into_iter().map(toml_value).collect(),
        toml::Value::Table(fields) => fields.into_iter().map(|(key, value)| (key, toml_value(value))).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn find(text: &str) -> FrontMatter {
        FrontMatter::find(text).unwrap().unwrap()
    }

    /// Compares the metadata as JSON.
    #[track_caller]
    fn check(text: &str, end: usize, title: Option<&str>, metadata: &str) {
        let found = find(text);
        let written = serde_json::to_string(&found.metadata).unwrap();
        assert_eq!((written.as_str(), found.end, found.title.as_deref()), (metadata, end, title));
        assert_eq!(found.warnings, [""; 0]);
    }

    /// Metadata of lines between `---`.
    #[track_caller]
    fn check_yaml(lines: &str, metadata: &str) {
        let text = format!("---\n{lines}\n---\n");
        assert_eq!(serde_json::to_string(&find(&text).metadata).unwrap(), metadata);
    }

    #[test]
    fn yaml_scalars_and_lists() {
        let text = "---\r\ntitle: \"A: b\"\ndate: 2024-01-02 # when\ntags: [a, 'b, c']\nmore:\n  - c\n  - d\n\nauthor:\n  name: X\n...\n\n# T\n";
        let metadata = r#"{"author.name":"X","date":"2024-01-02","more":["c","d"],"tags":["a","b, c"],"title":"A: b"}"#;
        check(text, text.len() - 4, Some("A: b"), metadata);
    }

    #[test]
    fn yaml_has_types() {
        check_yaml(
            "draft: false\nyear: 2020\nzip: 01234\nhalf: .5\nlarge: 1e3\nquoted: \"7\"\nnone: ~\nempty:\nv: 1.2.3\ntel: +43-1",
            r#"{"draft":false,"half":0.5,"large":1000.0,"quoted":"7","tel":"+43-1","v":"1.2.3","year":2020,"zip":"01234"}"#,
        );
        check_yaml("title: 1.10 # draft\ntags: [1, two, 3.0, '4', null]", r#"{"tags":[1,"two",3.0,"4"],"title":1.1}"#);
        assert_eq!(find("---\ntitle: 1.10 # draft\n---\n").title.as_deref(), Some("1.10"));
    }

    #[test]
    fn yaml_maps_and_lists_of_maps() {
        check_yaml(
            "by:\n  name: X\n  at:\n    city: Wien\n    zip: 1010\n  tags:\n  - a\n  - b\nyear: 2020",
            r#"{"by.at.city":"Wien","by.at.zip":1010,"by.name":"X","by.tags":["a","b"],"year":2020}"#,
        );
        check_yaml(
            "authors:\n- name: X\n  born: 1990\n- name: Y\n-   name: Z\n",
            r#"{"authors.born":[1990],"authors.name":["X","Y","Z"]}"#,
        );
        check_yaml("about: |\n  One: line.\n\n    Two.\nyear: 1", r#"{"about":"One: line.\n\n  Two.","year":1}"#);
    }

    #[test]
    fn yaml_too_deep_stays_as_written() {
        let deep: String = (0..1400).map(|n| format!("{}k:\n", " ".repeat(n))).collect();
        assert_eq!(find(&format!("---\n{deep}---\n")).metadata.len(), 1);
    }

    #[test]
    fn toml_scalars_lists_and_tables() {
        let text = "+++\ntitle = \"T\"\nweight = 3\ndate = 2024-01-02\ntags = [\"a\"]\n[by]\nname = \"X\"\n+++\nbody";
        let metadata = r#"{"by.name":"X","date":"2024-01-02","tags":["a"],"title":"T","weight":3}"#;
        check(text, text.len() - 4, Some("T"), metadata);
    }

    #[test]
    fn what_is_no_front_matter() {
        for text in [
            "",
            "---",
            "---\nA paragraph, then a rule.\n\n---\n",
            "---\nA paragraph, and no rule.\n",
            "text\n---\na: b\n---\n",
        ] {
            assert!(FrontMatter::find(text).unwrap().is_none(), "{text:?}");
        }
    }

    #[track_caller]
    fn check_remark(text: &str, end: usize, remark: &str) -> Metadata {
        let found = find(text);
        assert!(found.warnings.len() == 1 && found.warnings[0].starts_with(remark), "{:?}", found.warnings);
        assert_eq!(found.end, end);
        found.metadata
    }

    #[test]
    fn what_is_malformed_is_named_with_its_line() {
        check_remark("+++\na = 1\ntitle\n+++\n", 20, "front matter, line 3: not TOML, kept as text only: ");
        let yaml = "---\nyear: 2020\ntitle: A: b\n---\n";
        let kept = check_remark(yaml, yaml.len(), "front matter, line 3: not YAML, read as far as it goes: ");
        assert_eq!(kept["year"].values(), [crate::Value::Integer(2020)]);
        check_remark("---\ntitle: never closed\n", 0, "front matter opens on line 1, and no line \"---\" closes it");
        check_remark(
            "+++\ntitle = \"never closed\"\n",
            0,
            "front matter opens on line 1, and no line \"+++\" closes it",
        );
    }

    #[test]
    fn deep_and_long_names_are_refused_not_run_into() {
        let long = "k".repeat(3_000);
        let maps = format!("---\n{long}:\n{}---\n", (0..200).map(|n| format!("  {n}{long}: 1\n")).collect::<String>());
        assert_eq!(FrontMatter::find(&maps).err().map(|over| over.what), Some("bytes in the name of a field"));
        let many: String = (0..5_000).map(|n| format!("k{n}: 1\n")).collect();
        assert_eq!(FrontMatter::find(&format!("---\n{many}---\n")).err().map(|over| over.what), Some("fields"));
        for deep in ["a.".repeat(100_000) + "a = 1", format!("a = {}", "[".repeat(100_000)), "a={".repeat(100_000)] {
            check_remark(&format!("+++\n{deep}\n+++\n"), deep.len() + 9, "front matter, line 2: not TOML");
        }
        for deep in
            [format!("a: {}", "[".repeat(100_000)), format!("a: {}", "{a: ".repeat(20_000)), "- ".repeat(100_000)]
        {
            let text = format!("---\nk: v\n{deep}\n---\n");
            assert!(find(&text).warnings.len() <= 1);
        }
        let endless = format!("---\n{}---\n", "key: value\n".repeat(200_000));
        assert_eq!(FrontMatter::find(&endless).err().map(|over| over.what), Some("bytes of front matter"));
    }
}
