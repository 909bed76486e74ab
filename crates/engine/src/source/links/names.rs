//! Names: what the target of a link may be called in a collection, the likeliest first.
//!
//! A path is taken from the document that has the link, with and without the extension of a page, and as the index page
//! of a folder; an address by its path; a wiki page also by its title; a module by the rules of its language. Case does
//! not count, so that a corpus answers alike on all systems.

use std::borrow::Cow;

use cento_corpus::{Link, LinkKind};
use percent_encoding::percent_decode_str;
use serde::{Deserialize, Serialize};

use crate::source::titles::words_of;

/// Extensions of pages, any of which a link may mean by another or by none.
const PAGES: [&str; 11] = ["md", "markdown", "mdx", "html", "htm", "xhtml", "rst", "txt", "adoc", "org", "tex"];
/// Extensions of modules, which imports leave out.
const MODULES: [&str; 11] = ["rs", "py", "pyi", "js", "mjs", "cjs", "jsx", "ts", "tsx", "vue", "svelte"];
/// Pages that stand for their folder.
const INDEX_PAGES: [&str; 3] = ["index", "readme", "_index"];
/// Modules that stand for their folder.
const INDEX_MODULES: [&str; 5] = ["mod", "lib", "main", "__init__", "index"];
/// Folders above a document that a name is looked for in.
const ANCESTORS_MAX: usize = 12;
/// Folders of an address that stand before the collection's own.
const ADDRESS_FOLDERS_MAX: usize = 3;

/// Modules inside each other that an import is followed into.
const MODULES_MAX: usize = 12;

/// A name that a document may have.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) enum Name {
    /// An id, or the own id of a record.
    Id(String),
    /// A path with its extension, in lower case.
    File(String),
    /// The path of a page without its extension, or of a folder with an index page, in lower case.
    Page(String),
    /// The same of a module.
    Module(String),
    /// The end of a page's path, in lower case.
    Stem(String),
    /// The words of a title, in lower case.
    Title(String),
    /// A field of metadata and its value.
    Field(Cow<'static, str>, String),
    /// A numbered part, `article 12`, in a document, or in those of a folder, or anywhere (`within` is empty).
    Number { within: String, part: String },
}

/// The names that a target may have, and the place in the document that it names.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Sought {
    pub(crate) names: Vec<Name>,
    pub(crate) anchor: Option<Anchor>,
}

/// A place in a document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Anchor {
    /// The slug of a heading, or its words.
    Slug(String),
    /// A numbered part: `article 12`.
    Number(String),
}

/// The names of the target of a link of the document `id` from the file `origin`.
pub(crate) fn sought(id: &str, origin: &str, link: &Link) -> Sought {
    let target = link.target.as_str();
    let only = |names| Sought { names, anchor: None };
    match link.kind {
        LinkKind::Inline | LinkKind::Reference | LinkKind::Autolink | LinkKind::Html => path(id, origin, target),
        LinkKind::Related => {
            let mut sought = path(id, origin, target);
            sought.names.push(Name::Title(words_of(target)));
            sought
        }
        LinkKind::Wiki => wiki(id, origin, target),
        LinkKind::Import => only(import(origin, target)),
        LinkKind::Include => only(include(origin, target)),
        LinkKind::Doi => only(doi(target)),
        LinkKind::Numbered => numbered(id, origin, target),
    }
}

/// The names of a document that do not depend on its content.
pub(super) fn of_document(id: &str, own_id: Option<&str>, title: &str) -> Vec<Name> {
    let file = id.to_lowercase();
    let mut names = vec![Name::Id(id.to_owned())];
    names.extend(own_id.map(|own| Name::Id(own.to_owned())));
    if let Some(module) = without_extension(&file, &MODULES) {
        names.extend(folder_of(module, &INDEX_MODULES).map(|folder| Name::Module(folder.to_owned())));
        names.push(Name::Module(module.to_owned()));
    }
    let page = without_extension(&file, &PAGES).unwrap_or(&file);
    names.extend(folder_of(page, &INDEX_PAGES).map(|folder| Name::Page(folder.to_owned())));
    names.push(Name::Stem(last(page).to_owned()));
    names.push(Name::Page(page.to_owned()));
    names.push(Name::File(file));
    names.extend(Some(words_of(title)).filter(|words| !words.is_empty()).map(Name::Title));
    names
}

/// A path or an address, and what stands behind `#`.
fn path(id: &str, origin: &str, target: &str) -> Sought {
    let (place, fragment) = target.split_once('#').unwrap_or((target, ""));
    let anchor = Some(decoded(fragment)).filter(|fragment| !fragment.is_empty()).map(Anchor::Slug);
    if let Some((scheme, address)) = place.split_once("://")
        && scheme.bytes().all(|byte| byte.is_ascii_alphanumeric())
    {
        return Sought { names: addressed(origin, place, address), anchor };
    }
    let written = decoded(place.split('?').next().unwrap_or(place));
    if written.is_empty() {
        return Sought { names: vec![Name::Id(id.to_owned())], anchor };
    }
    let mut names = Vec::new();
    match written.strip_prefix('/') {
        Some(rest) => {
            let mut folders: Vec<&str> = ancestors(folder(origin)).collect();
            folders.reverse();
            folders.into_iter().filter_map(|folder| joined(folder, rest)).for_each(|path| paged(&path, &mut names));
        }
        None => joined(folder(origin), &written).into_iter().for_each(|path| paged(&path, &mut names)),
    }
    names.push(Name::Id(written));
    Sought { names, anchor }
}

/// An address: by itself, as a DOI, or by the end of its path where that is of several parts or names a page.
fn addressed(origin: &str, whole: &str, address: &str) -> Vec<Name> {
    let address = decoded(address.split('?').next().unwrap_or(address));
    let (host, path) = address.split_once('/').unwrap_or((&address, ""));
    if ["doi.org", "dx.doi.org"].contains(&host) {
        return doi(path);
    }
    let mut names = vec![Name::Id(whole.to_owned()), Name::Field("url".into(), whole.to_owned())];
    let label = origin.split('/').next().unwrap_or(origin);
    let parts: Vec<&str> = path.split('/').filter(|part| !part.is_empty()).collect();
    for before in 0..=ADDRESS_FOLDERS_MAX {
        let Some(rest) = parts.get(before..).filter(|rest| !rest.is_empty()) else { break };
        if rest.len() > 1 || without_extension(rest[0], &PAGES).is_some() {
            joined(label, &rest.join("/")).into_iter().for_each(|path| paged(&path, &mut names));
        }
    }
    names
}

/// A page of a wiki: beside the document, from the root, anywhere by its name, by its title.
fn wiki(id: &str, origin: &str, target: &str) -> Sought {
    let (page, fragment) = target.split_once('#').unwrap_or((target, ""));
    let anchor = Some(fragment.trim()).filter(|fragment| !fragment.is_empty());
    let anchor = anchor.map(|fragment| Anchor::Slug(fragment.to_owned()));
    let page = page.trim();
    if page.is_empty() {
        return Sought { names: vec![Name::Id(id.to_owned())], anchor };
    }
    let mut names = Vec::new();
    let label = origin.split('/').next().unwrap_or(origin);
    for place in [folder(origin), label] {
        joined(place, page).into_iter().for_each(|path| paged(&path, &mut names));
    }
    let stem = page.to_lowercase();
    let stem = last(without_extension(&stem, &PAGES).unwrap_or(&stem));
    names.extend([stem.to_owned(), stem.replace(' ', "-"), stem.replace(' ', "_")].map(Name::Stem));
    names.push(Name::Title(words_of(&page.replace('_', " "))));
    Sought { names, anchor }
}

/// A module, by the language of the file that imports it; the longest path first, since its end may be an item.
fn import(origin: &str, target: &str) -> Vec<Name> {
    let mut names = Vec::new();
    match extension(origin).to_ascii_lowercase().as_str() {
        "rs" => rust(origin, target, &mut names),
        "py" | "pyi" => python(origin, target, &mut names),
        _ => script(origin, target, &mut names),
    }
    names
}

fn rust(origin: &str, target: &str, names: &mut Vec<Name>) {
    let own_folder = folder(origin);
    let stem = last(origin.strip_suffix(".rs").unwrap_or(origin));
    let own = if INDEX_MODULES.contains(&stem) { own_folder.to_owned() } else { format!("{own_folder}/{stem}") };
    if let Some(name) = target.strip_prefix("mod ") {
        names.push(Name::Module(format!("{own}/{name}").to_lowercase()));
        return;
    }
    let parts: Vec<&str> = target.split("::").collect();
    match parts[0] {
        "std" | "core" | "alloc" => {}
        "crate" => {
            let source = ancestors(own_folder).find(|folder| last(folder) == "src").unwrap_or(own_folder);
            modules(source, &parts[1..], names);
            names.push(Name::Module(source.to_lowercase()));
        }
        "self" | "super" => {
            let n_up = parts.iter().filter(|part| **part == "super").count();
            let Some(base) = ancestors(&own).nth(n_up) else { return };
            let rest = parts.iter().position(|part| !["self", "super"].contains(part)).unwrap_or(parts.len());
            modules(base, &parts[rest..], names);
            names.push(Name::Module(base.to_lowercase()));
        }
        other => {
            modules(&own, &parts, names);
            for above in ancestors(own_folder) {
                for package in [other.to_owned(), other.replace('_', "-")] {
                    let source = format!("{above}/{package}/src");
                    modules(&source, &parts[1..], names);
                    names.push(Name::Module(source.to_lowercase()));
                }
            }
        }
    }
}

fn python(origin: &str, target: &str, names: &mut Vec<Name>) {
    let name = target.trim_start_matches('.');
    let n_dots = target.len() - name.len();
    let parts: Vec<&str> = name.split('.').filter(|part| !part.is_empty()).collect();
    let own = folder(origin);
    if n_dots == 0 {
        ancestors(own).for_each(|above| modules(above, &parts, names));
    } else if let Some(base) = ancestors(own).nth(n_dots - 1) {
        modules(base, &parts, names);
        names.push(Name::Module(base.to_lowercase()));
    }
}

/// JavaScript and TypeScript: relative paths, and those below a folder of sources; packages by name are elsewhere.
fn script(origin: &str, target: &str, names: &mut Vec<Name>) {
    let module = |path: String, names: &mut Vec<Name>| {
        let path = path.to_lowercase();
        let bare = without_extension(&path, &MODULES).unwrap_or(&path).to_owned();
        names.extend([Name::File(path), Name::Module(bare)]);
    };
    let own = folder(origin);
    if target.starts_with("./") || target.starts_with("../") {
        joined(own, target).into_iter().for_each(|path| module(path, names));
    } else if let Some(rest) = target.strip_prefix("@/").or_else(|| target.strip_prefix("~/")) {
        for above in ancestors(own) {
            joined(&format!("{above}/src"), rest).into_iter().for_each(|path| module(path, names));
        }
    }
}

/// A file that another one includes: beside it, or below a folder above it.
fn include(origin: &str, target: &str) -> Vec<Name> {
    let own = folder(origin);
    let mut names: Vec<Name> = joined(own, target).map(|path| Name::File(path.to_lowercase())).into_iter().collect();
    for above in ancestors(own) {
        for below in [above.to_owned(), format!("{above}/include"), format!("{above}/src")] {
            names.extend(joined(&below, target).map(|path| Name::File(path.to_lowercase())));
        }
    }
    names
}

/// A DOI, as metadata writes it.
fn doi(doi: &str) -> Vec<Name> {
    let spellings = [doi.to_owned(), doi.to_lowercase()];
    let mut names: Vec<Name> = spellings.iter().map(|doi| Name::Id(doi.clone())).collect();
    for doi in &spellings {
        let fields = ["", "doi:", "https://doi.org/", "http://dx.doi.org/"];
        names.extend(fields.map(|before| Name::Field("doi".into(), format!("{before}{doi}"))));
    }
    names.push(Name::Field("url".into(), format!("https://doi.org/{doi}")));
    names
}

/// A numbered part: of the document itself, of one in its folder, of one anywhere.
fn numbered(id: &str, origin: &str, target: &str) -> Sought {
    let Some(part) = part(target) else { return Sought::default() };
    let within = [id, if id == origin { folder(origin) } else { origin }, ""];
    let names = within.map(|within| Name::Number { within: within.to_owned(), part: part.clone() });
    Sought { names: names.to_vec(), anchor: Some(Anchor::Number(part)) }
}

/// The names of a document as the holder of a numbered part.
pub(super) fn of_part(id: &str, origin: &str, part: &str) -> [Name; 3] {
    let within = [id, if id == origin { folder(origin) } else { origin }, ""];
    within.map(|within| Name::Number { within: within.to_owned(), part: part.to_owned() })
}

/// Words for parts, each with the one that stands for it.
const PARTS: [(&str, &str); 10] = [
    ("article", "article"),
    ("art", "article"),
    ("section", "section"),
    ("sec", "section"),
    ("§", "section"),
    ("chapter", "chapter"),
    ("clause", "clause"),
    ("rule", "rule"),
    ("annex", "annex"),
    ("appendix", "annex"),
];

/// The numbered part that a text begins with: `Article 12 – …` is `article 12`.
fn part(text: &str) -> Option<String> {
    let text = text.trim_start();
    let (word, rest) = match text.strip_prefix('§') {
        Some(rest) => ("§", rest),
        None => text.split_once(|c: char| c.is_whitespace())?,
    };
    let word = word.trim_end_matches('.').to_lowercase();
    let (_, word) = PARTS.iter().find(|(known, _)| *known == word)?;
    let number = rest.split_whitespace().next()?.trim_end_matches(|c: char| !c.is_alphanumeric());
    let is_number = !number.is_empty() && number.len() <= 24 && number.chars().all(|c| c.is_alphanumeric() || c == '.');
    is_number.then(|| format!("{word} {}", number.to_lowercase()))
}

/// The numbered parts that a heading is: `3.2 Scope` is a section, a chapter and a clause.
pub(super) fn parts_of_heading(heading: &str) -> Vec<String> {
    if let Some(part) = part(heading) {
        return vec![part];
    }
    let Some((number, _)) = heading.trim_start().split_once(char::is_whitespace) else { return Vec::new() };
    let number = number.trim_end_matches(['.', ')']);
    let mut numbers = number.split('.');
    let is_number = numbers.all(|digits| (1..=3).contains(&digits.len()) && digits.bytes().all(|b| b.is_ascii_digit()));
    if is_number && number.len() <= 24 {
        ["section", "chapter", "clause"].map(|word| format!("{word} {number}")).to_vec()
    } else {
        Vec::new()
    }
}

/// A path as a file and as a page.
fn paged(path: &str, names: &mut Vec<Name>) {
    let file = path.to_lowercase();
    let page = without_extension(&file, &PAGES).unwrap_or(&file).to_owned();
    names.extend([Name::File(file), Name::Page(page)]);
}

/// The modules at the end of a path and before its end: what follows a module is an item of it.
fn modules(base: &str, parts: &[&str], names: &mut Vec<Name>) {
    for end in (1..=parts.len().min(MODULES_MAX)).rev() {
        names.push(Name::Module(format!("{base}/{}", parts[..end].join("/")).to_lowercase()));
    }
}

fn decoded(text: &str) -> String {
    percent_decode_str(text).decode_utf8_lossy().trim().to_owned()
}

/// The folder of a file, without the slash.
fn folder(path: &str) -> &str {
    path.rsplit_once('/').map_or("", |(folder, _)| folder)
}

fn last(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

fn extension(path: &str) -> &str {
    last(path).rsplit_once('.').map_or("", |(_, extension)| extension)
}

/// A path without its extension, if that is one of these.
fn without_extension<'p>(path: &'p str, extensions: &[&str]) -> Option<&'p str> {
    let (stem, extension) = path.rsplit_once('.')?;
    extensions.contains(&extension).then_some(stem)
}

/// The folder that a file stands for by its name.
fn folder_of<'p>(stem: &'p str, indexes: &[&str]) -> Option<&'p str> {
    let (folder, name) = stem.rsplit_once('/')?;
    indexes.contains(&name).then_some(folder)
}

/// A folder and those above it, the nearest first.
fn ancestors<'p>(folder: &'p str) -> impl Iterator<Item = &'p str> {
    let above = |folder: &&'p str| (*folder).rsplit_once('/').map(|(above, _)| above);
    std::iter::successors(Some(folder), above).take(ANCESTORS_MAX)
}

/// A path from a folder; `None` if it leads out of the root.
fn joined(folder: &str, path: &str) -> Option<String> {
    let mut parts: Vec<&str> = folder.split('/').filter(|part| !part.is_empty()).collect();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()?),
            part => parts.push(part),
        }
    }
    (!parts.is_empty()).then(|| parts.join("/"))
}

#[cfg(test)]
mod tests;
