//! Imports and includes of source code: the modules and files that it names.
//!
//! Read by their spelling at the beginning of a line, not by a parser: what a comment or a string holds on a line of
//! its own is taken for code. Targets are full names, so that `use a::{b, c}` has two.

use std::path::Path;
use std::sync::LazyLock;

use regex::Regex;

use super::link::LinkKind;
use super::markup::Markup;
use crate::budget::TARGET_BYTES_MAX;
use crate::format::is_source_code;

/// Depth to which groups of a Rust `use` nest.
const GROUPS_MAX: usize = 8;

static RUST: LazyLock<Regex> = LazyLock::new(|| {
    pattern(r"(?m)^[ \t]*(?:pub(?:\([^)\n]*\))?[ \t]+)?(?:(mod[ \t]+\w+)[ \t]*;|use[ \t]+([A-Za-z0-9_:{}*,\s]+);)")
});

static PYTHON: LazyLock<Regex> = LazyLock::new(|| {
    pattern(r"(?m)^[ \t]*(?:import[ \t]+([^\n#;]+)|from[ \t]+([.\w]+)[ \t]+import[ \t]+(\([^()]*\)|[^\n#;]+))")
});

static JAVASCRIPT: LazyLock<Regex> = LazyLock::new(|| {
    pattern(concat!(
        r#"(?m)^[ \t]*(?:import|export)\b[^'"`;()]*?\bfrom[ \t]*['"]([^'"\n]+)['"]"#,
        r#"|^[ \t]*import[ \t]*['"]([^'"\n]+)['"]"#,
        r#"|\b(?:require|import)[ \t]*\([ \t]*['"]([^'"\n]+)['"]"#
    ))
});

static C: LazyLock<Regex> =
    LazyLock::new(|| pattern(r#"(?m)^[ \t]*#[ \t]*(?:include|import)[ \t]*[<"]([^>"\n]+)[>"]"#));

fn pattern(pattern: &str) -> Regex {
    Regex::new(pattern).expect("a test compiles every pattern")
}

/// Adds the imports of a text from a file of source code; false if it is none.
pub(super) fn find(text: &str, origin: &str, markup: &mut Markup) -> bool {
    let extension = Path::new(origin).extension().and_then(|extension| extension.to_str()).unwrap_or_default();
    let extension = extension.to_ascii_lowercase();
    match extension.as_str() {
        "rs" => rust(text, markup),
        "py" | "pyi" => python(text, markup),
        "js" | "mjs" | "cjs" | "jsx" | "ts" | "tsx" | "vue" | "svelte" => {
            groups(&JAVASCRIPT, text, LinkKind::Import, markup)
        }
        "c" | "h" | "cc" | "cpp" | "cxx" | "hpp" | "hh" | "m" | "mm" => groups(&C, text, LinkKind::Include, markup),
        _ => {}
    }
    is_source_code(&extension)
}

/// Adds the group of each match that took part.
fn groups(pattern: &Regex, text: &str, kind: LinkKind, markup: &mut Markup) {
    for found in pattern.captures_iter(text) {
        for group in found.iter().skip(1).flatten() {
            markup.add(kind, group.as_str(), group.range());
        }
    }
}

fn rust(text: &str, markup: &mut Markup) {
    for found in RUST.captures_iter(text) {
        if let Some(module) = found.get(1) {
            let name = module.as_str().split_whitespace().collect::<Vec<_>>().join(" ");
            markup.add(LinkKind::Import, &name, module.range());
        }
        if let Some(tree) = found.get(2) {
            let written: String = tree.as_str().split_whitespace().collect::<Vec<_>>().join(" ");
            uses("", &written, 0, &mut |target| markup.add(LinkKind::Import, target, tree.range()));
        }
    }
}

/// The paths of a tree of a Rust `use`, below what stands before it.
fn uses(before: &str, tree: &str, depth: usize, add: &mut dyn FnMut(&str)) {
    let joined = |rest: &str| if before.is_empty() { rest.to_owned() } else { format!("{before}::{rest}") };
    let tree = tree.trim().trim_start_matches("::");
    let group = tree.split_once('{').filter(|_| tree.ends_with('}'));
    let Some((path, group)) = group.filter(|_| depth < GROUPS_MAX) else {
        let path = tree.split(" as ").next().unwrap_or(tree).trim();
        let path = path.trim_end_matches('*').trim_end_matches("::").trim();
        if path.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_:".contains(&byte)) {
            match path {
                "" | "self" if !before.is_empty() => add(before),
                "" => {}
                path => add(&joined(path)),
            }
        }
        return;
    };
    let path = path.trim().trim_end_matches("::");
    let before = if path.is_empty() { before.to_owned() } else { joined(path) };
    if before.len() > TARGET_BYTES_MAX {
        add(&before); // counted once: its length times its branches is more than a file
        return;
    }
    for branch in branches(&group[..group.len() - 1]) {
        uses(&before, branch, depth + 1, add);
    }
}

/// The parts of a group between commas that no inner group holds.
fn branches(group: &str) -> Vec<&str> {
    let (mut branches, mut start, mut depth) = (Vec::new(), 0, 0_usize);
    for (at, byte) in group.bytes().enumerate() {
        match byte {
            b'{' => depth += 1,
            b'}' => depth = depth.saturating_sub(1),
            b',' if depth == 0 => {
                branches.push(&group[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    branches.push(&group[start..]);
    branches
}

fn python(text: &str, markup: &mut Markup) {
    for found in PYTHON.captures_iter(text) {
        let names = |list: &str| -> Vec<String> {
            let list = list.trim_matches(|c: char| c.is_whitespace() || "()\\".contains(c));
            let lines = list.lines().map(|line| line.split('#').next().unwrap_or(line));
            let names = lines.flat_map(|line| line.split(',')).map(|name| name.split_whitespace().next().unwrap_or(""));
            let is_name =
                |name: &&str| !name.is_empty() && name.chars().all(|c| c.is_alphanumeric() || "_.*".contains(c));
            names.filter(is_name).map(str::to_owned).collect()
        };
        if let Some(modules) = found.get(1) {
            names(modules.as_str()).iter().for_each(|name| markup.add(LinkKind::Import, name, modules.range()));
        }
        if let (Some(all), Some(module), Some(list)) = (found.get(0), found.get(2), found.get(3)) {
            let module = module.as_str();
            if module.len() > TARGET_BYTES_MAX {
                markup.add(LinkKind::Import, module, all.range()); // counted once, as in Rust
                continue;
            }
            let dot = if module.ends_with('.') { "" } else { "." };
            for name in names(list.as_str()) {
                let target = if name == "*" { module.to_owned() } else { format!("{module}{dot}{name}") };
                markup.add(LinkKind::Import, &target, module_start(all.start(), all.as_str())..all.end());
            }
        }
    }
}

/// Where the words of a statement begin, behind its indentation.
fn module_start(start: usize, statement: &str) -> usize {
    start + statement.len() - statement.trim_start().len()
}
