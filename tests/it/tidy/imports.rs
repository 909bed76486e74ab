//! The modules of a crate, and which of them import which.
//!
//! A module is a file. An import goes to the file that defines what it names: a file that only declares and re-exports is
//! looked through. Tests may import what they like, and `error` is known by all.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use proc_macro2::{Delimiter, TokenTree};

use super::source::{is_punct, is_word, outside_tests, tokens};

/// Re-exports followed before a name is given up.
const STEPS_MAX: usize = 16;

/// One import: the importing file, the imported one, the line, the path as written.
#[derive(Debug, Clone)]
pub(super) struct Import {
    pub(super) from: PathBuf,
    pub(super) to: PathBuf,
    pub(super) line: usize,
    pub(super) path: String,
}

/// A crate's module tree, without its tests.
#[derive(Debug)]
pub(super) struct Modules {
    modules: Vec<Module>,
}

#[derive(Debug)]
struct Module {
    file: PathBuf,
    parent: Option<usize>,
    children: BTreeMap<String, usize>,
    /// Items of its own.
    defined: BTreeSet<String>,
    /// Local names and the paths that they stand for.
    names: BTreeMap<String, Vec<String>>,
    globs: Vec<Vec<String>>,
    paths: Vec<(usize, Vec<String>)>,
}

/// Where a path leads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Target {
    Module(usize),
    Item(usize),
}

impl Modules {
    /// Reads a crate from `lib.rs` or `main.rs` on.
    pub(super) fn read(sources: &Path) -> Self {
        let root = ["lib.rs", "main.rs"].map(|name| sources.join(name)).into_iter().find(|root| root.exists());
        let root = root.unwrap_or_else(|| panic!("{} has no lib.rs and no main.rs", sources.display()));
        let mut modules = Self { modules: Vec::new() };
        modules.add(root.clone(), None, sources, &tokens(&root));
        modules
    }

    /// The files of the crate that are not tests.
    pub(super) fn files(&self) -> BTreeSet<PathBuf> {
        self.modules.iter().map(|module| module.file.clone()).collect()
    }

    fn add(&mut self, file: PathBuf, parent: Option<usize>, folder: &Path, tokens: &[TokenTree]) -> usize {
        let at = self.modules.len();
        self.modules.push(Module {
            file,
            parent,
            children: BTreeMap::new(),
            defined: BTreeSet::new(),
            names: BTreeMap::new(),
            globs: Vec::new(),
            paths: Vec::new(),
        });
        self.declare(at, folder, tokens);
        self.scan(at, tokens);
        at
    }

    /// The items of a module's own level. `folder` is where the files of its children lie.
    fn declare(&mut self, module: usize, folder: &Path, all: &[TokenTree]) {
        for (at, token) in all.iter().enumerate() {
            let TokenTree::Ident(keyword) = token else { continue };
            let named = match all.get(at + 1) {
                Some(TokenTree::Punct(bang)) if bang.as_char() == '!' => all.get(at + 2),
                next => next,
            };
            let Some(TokenTree::Ident(name)) = named else { continue };
            let (name, keyword) = (name.to_string(), keyword.to_string());
            match keyword.as_str() {
                "mod" => {
                    let inner = folder.join(&name);
                    let child = match all.get(at + 2) {
                        Some(TokenTree::Group(body)) => {
                            let file = self.modules[module].file.clone();
                            self.add(file, Some(module), &inner, &outside_tests(body.stream()))
                        }
                        _ => {
                            let paths = [inner.with_extension("rs"), inner.join("mod.rs")];
                            let Some(file) = paths.into_iter().find(|path| path.exists()) else { continue };
                            self.add(file.clone(), Some(module), &inner, &tokens(&file))
                        }
                    };
                    self.modules[module].children.insert(name, child);
                }
                "struct" | "enum" | "union" | "trait" | "type" | "const" | "static" | "fn" | "macro_rules" => {
                    self.modules[module].defined.insert(name);
                }
                _ => {}
            }
        }
    }

    /// The imports and paths of a module, at any depth but that of its inline modules.
    fn scan(&mut self, module: usize, all: &[TokenTree]) {
        let mut at = 0;
        while at < all.len() {
            let starts = !(at > 1 && is_punct(all.get(at - 1), ':') && is_punct(all.get(at - 2), ':'));
            let inline = is_word(all.get(at), "mod") && matches!(all.get(at + 2), Some(TokenTree::Group(_)));
            if inline {
                at += 3;
                continue;
            }
            match &all[at] {
                TokenTree::Ident(word) if word == "use" => {
                    let end = all[at..].iter().position(|token| is_punct(Some(token), ';'));
                    let end = end.map_or(all.len(), |length| at + length);
                    self.import(module, Vec::new(), &all[at + 1..end]);
                    at = end;
                }
                TokenTree::Ident(word) if starts => {
                    let line = word.span().start().line;
                    let path = segments(&all[at..]);
                    if path.len() > 1 {
                        self.modules[module].paths.push((line, path));
                    }
                }
                TokenTree::Group(group) => self.scan(module, &outside_tests(group.stream())),
                _ => {}
            }
            at += 1;
        }
    }

    /// One tree of a `use`, below what stands before it.
    fn import(&mut self, module: usize, before: Vec<String>, tree: &[TokenTree]) {
        let Some(first) = tree.iter().position(|token| !is_punct(Some(token), ':')) else { return };
        let (tree, mut path) = (&tree[first..], before);
        let own = segments(tree);
        let line = tree[0].span().start().line;
        let rest = &tree[(own.len() * 3).saturating_sub(2)..];
        if own != ["self"] {
            path.extend(own); // `{self, …}` names the module before the brace
        }
        match rest.iter().find(|token| !is_punct(Some(token), ':')) {
            Some(TokenTree::Group(group)) if group.delimiter() == Delimiter::Brace => {
                let inner: Vec<TokenTree> = group.stream().into_iter().collect();
                for branch in inner.split(|token| is_punct(Some(token), ',')) {
                    self.import(module, path.clone(), branch);
                }
            }
            Some(TokenTree::Punct(star)) if star.as_char() == '*' => {
                self.modules[module].paths.push((line, path.clone()));
                self.modules[module].globs.push(path);
            }
            Some(TokenTree::Ident(_)) => {
                let Some(TokenTree::Ident(alias)) = rest.last() else { return };
                let alias = alias.to_string();
                self.modules[module].paths.push((line, path.clone()));
                self.modules[module].names.insert(alias, path);
            }
            _ => {
                self.modules[module].paths.push((line, path.clone()));
                if let Some(name) = path.last().cloned() {
                    self.modules[module].names.insert(name, path);
                }
            }
        }
    }

    fn lead(&self, module: usize, path: &[String], steps: usize) -> Option<Target> {
        let (first, rest) = path.split_first()?;
        if steps == 0 {
            return None;
        }
        match first.as_str() {
            "crate" => self.lead_in(0, rest, steps - 1),
            "self" => self.lead_in(module, rest, steps - 1),
            "super" => match rest.first() {
                Some(next) if next == "super" => self.lead(self.modules[module].parent?, rest, steps),
                _ => self.lead_in(self.modules[module].parent?, rest, steps - 1),
            },
            name => {
                let here = &self.modules[module];
                let known = here.children.contains_key(name) || here.names.get(name).is_some_and(|to| to != path);
                if known { self.lead_in(module, path, steps - 1) } else { None }
            }
        }
    }

    fn lead_in(&self, module: usize, path: &[String], steps: usize) -> Option<Target> {
        let Some((first, rest)) = path.split_first() else { return Some(Target::Module(module)) };
        let here = &self.modules[module];
        if let Some(child) = here.children.get(first) {
            return self.lead_in(*child, rest, steps);
        }
        if here.defined.contains(first) {
            return Some(Target::Item(module));
        }
        if let Some(target) = here.names.get(first) {
            let target: Vec<String> = target.iter().chain(rest).cloned().collect();
            return self.lead(module, &target, steps.checked_sub(1)?);
        }
        here.globs.iter().find_map(|glob| {
            let target: Vec<String> = glob.iter().chain(path).cloned().collect();
            self.lead(module, &target, steps.checked_sub(1)?)
        })
    }

    /// Every import of one file from another.
    pub(super) fn imports(&self) -> Vec<Import> {
        let mut found = Vec::new();
        for (at, module) in self.modules.iter().enumerate() {
            for (line, path) in &module.paths {
                let globs = module.globs.contains(path);
                let to = match self.lead(at, path, STEPS_MAX) {
                    Some(Target::Item(to)) => &self.modules[to],
                    Some(Target::Module(to)) if globs && !self.modules[to].defined.is_empty() => &self.modules[to],
                    _ => continue,
                };
                if to.file != module.file {
                    let (from, to) = (module.file.clone(), to.file.clone());
                    found.push(Import { from, to, line: *line, path: path.join("::") });
                }
            }
        }
        found
    }

    /// The groups of files that import each other, directly or in a circle.
    pub(super) fn cycles(&self) -> Vec<Vec<Import>> {
        let is_error = |file: &Path| file.file_name().is_some_and(|name| name == "error.rs");
        let mut imports = self.imports();
        imports.retain(|import| !is_error(&import.from) && !is_error(&import.to));
        let reached: BTreeMap<PathBuf, BTreeSet<PathBuf>> =
            self.files().into_iter().map(|file| (file.clone(), reach(&file, &imports))).collect();
        let mut done = BTreeSet::new();
        let mut cycles = Vec::new();
        for (file, others) in &reached {
            if !others.contains(file) || done.contains(file) {
                continue;
            }
            let circle: BTreeSet<&PathBuf> = others.iter().filter(|other| reached[*other].contains(file)).collect();
            done.extend(circle.iter().map(|file| (*file).clone()));
            let inside = |import: &&Import| circle.contains(&import.from) && circle.contains(&import.to);
            cycles.push(imports.iter().filter(inside).cloned().collect());
        }
        cycles
    }
}

/// `a::b::c` at the start of tokens.
fn segments(tokens: &[TokenTree]) -> Vec<String> {
    let mut path = Vec::new();
    let mut at = 0;
    while let Some(TokenTree::Ident(name)) = tokens.get(at) {
        path.push(name.to_string());
        if !(is_punct(tokens.get(at + 1), ':') && is_punct(tokens.get(at + 2), ':')) {
            break;
        }
        at += 3;
    }
    path
}

/// The files that a file imports, and those that they do.
fn reach(file: &Path, imports: &[Import]) -> BTreeSet<PathBuf> {
    let (mut reached, mut next) = (BTreeSet::new(), vec![file.to_owned()]);
    while let Some(file) = next.pop() {
        for import in imports.iter().filter(|import| import.from == file) {
            if reached.insert(import.to.clone()) {
                next.push(import.to.clone());
            }
        }
    }
    reached
}

#[test]
fn a_circle_is_found_through_what_only_re_exports_and_not_through_tests() {
    let place = tempfile::tempdir().unwrap();
    let files = [
        ("lib.rs", "mod shapes;\nmod area;\npub use shapes::Square;"),
        ("shapes/mod.rs", "mod square;\npub use self::square::Square;\n#[cfg(test)]\nmod tests;"),
        ("shapes/square.rs", "pub struct Square;\nfn grow() { crate::area::of() }"),
        ("shapes/tests.rs", "use super::*;"),
        ("area.rs", "use crate::Square;\npub fn of() {}\n#[cfg(test)]\nmod tests { use crate::shapes; }"),
    ];
    for (name, text) in files {
        let path = place.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
    let cycles = Modules::read(place.path()).cycles();
    let names = |path: &Path| path.strip_prefix(place.path()).unwrap().display().to_string();
    let found: Vec<_> = cycles.concat().iter().map(|it| (names(&it.from), it.line, names(&it.to))).collect();
    let (area, square) = ("area.rs".to_owned(), "shapes/square.rs".to_owned());
    assert_eq!(found, [(square.clone(), 2, area.clone()), (area, 1, square)]);

    std::fs::write(place.path().join("area.rs"), "pub fn of() {}").unwrap();
    assert!(Modules::read(place.path()).cycles().is_empty());
}
