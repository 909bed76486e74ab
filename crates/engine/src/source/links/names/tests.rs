//! Names of targets, as links of every kind write them.

use super::*;

/// The names of a link of `origin`, as `kind name`.
fn names(kind: LinkKind, origin: &str, target: &str) -> Vec<String> {
    let link = Link { start: 0, end: 0, kind, target: target.to_owned() };
    let words = |name: &Name| match name {
        Name::Id(id) => format!("id {id}"),
        Name::File(path) => format!("file {path}"),
        Name::Page(path) => format!("page {path}"),
        Name::Module(path) => format!("module {path}"),
        Name::Stem(stem) => format!("stem {stem}"),
        Name::Title(words) => format!("title {words}"),
        Name::Field(field, value) => format!("{field} {value}"),
        Name::Number { within, part } => format!("number {within} {part}"),
    };
    sought(origin, origin, &link).names.iter().map(words).collect()
}

#[test]
fn a_path_is_taken_from_its_document_and_never_out_of_the_root() {
    let inline = |target| names(LinkKind::Inline, "d/guide/a.md", target);
    assert_eq!(inline("../My%20Page.html?x#top"), ["file d/my page.html", "page d/my page", "id ../My Page.html"]);
    assert_eq!(inline("b/"), ["file d/guide/b", "page d/guide/b", "id b/"]);
    assert_eq!(inline("#top"), ["id d/guide/a.md"]);
    assert_eq!(inline("../../../x.md"), ["id ../../../x.md"]);
    assert_eq!(inline("/x.md")[..2], ["file d/x.md", "page d/x"]);
    let address = inline("https://docs.org/book/ch01.html#a");
    assert_eq!(address[2..], ["file d/book/ch01.html", "page d/book/ch01", "file d/ch01.html", "page d/ch01"]);
    assert_eq!(inline("https://doi.org/10.1/X")[..2], ["id 10.1/X", "id 10.1/x"]);
    assert!(inline("https://crates.io/rand").iter().all(|name| !name.starts_with("page")));
}

#[test]
fn modules_are_named_as_their_language_does() {
    let import = |origin, target| names(LinkKind::Import, origin, target);
    assert_eq!(import("d/src/a/b.rs", "mod c"), ["module d/src/a/b/c"]);
    assert_eq!(import("d/src/a/mod.rs", "mod c"), ["module d/src/a/c"]);
    assert_eq!(import("d/src/a/b.rs", "crate::x::Y"), ["module d/src/x/y", "module d/src/x", "module d/src"]);
    assert_eq!(import("d/src/a/b.rs", "super::x"), ["module d/src/a/x", "module d/src/a"]);
    assert_eq!(import("d/src/a/b.rs", "std::fs"), Vec::<String>::new());
    assert!(import("d/one/src/lib.rs", "my_two::x").contains(&"module d/my-two/src/x".to_owned()));
    assert_eq!(import("d/p/q/a.py", "..x.y"), ["module d/p/x/y", "module d/p/x", "module d/p"]);
    assert_eq!(import("d/p/a.py", "m")[..2], ["module d/p/m", "module d/m"]);
    assert_eq!(import("d/p/a.ts", "../b.js"), ["file d/b.js", "module d/b"]);
    assert_eq!(import("d/p/a.ts", "react"), Vec::<String>::new());
    let include = names(LinkKind::Include, "d/p/a.c", "x/B.h");
    assert_eq!(include[0], "file d/p/x/b.h");
    assert!(include.contains(&"file d/include/x/b.h".to_owned()));
}

#[test]
fn a_document_has_the_names_that_links_to_it_have() {
    for (origin, kind, target, id, title) in [
        ("d/a.md", LinkKind::Inline, "guide/", "d/guide/README.md", ""),
        ("d/a.md", LinkKind::Inline, "Guide", "d/guide.rst", ""),
        ("d/a.md", LinkKind::Html, "guide.html", "d/guide.md", ""),
        ("d/a.md", LinkKind::Inline, "/x/b.png", "d/x/b.png", ""),
        ("d/a.md", LinkKind::Wiki, "Deep Page#part", "d/far/away/Deep-Page.md", ""),
        ("d/a.md", LinkKind::Wiki, "the_Moon", "d/17.md", "The Moon (satellite)"),
        ("d/a.md", LinkKind::Related, "The moon", "d/17.md", "The Moon"),
        ("d/src/a.rs", LinkKind::Import, "crate::b::C", "d/src/b/mod.rs", ""),
        ("d/src/a.rs", LinkKind::Import, "other::C", "d/other/src/lib.rs", ""),
        ("d/p/a.py", LinkKind::Import, ".b.f", "d/p/b/__init__.py", ""),
        ("d/a.ts", LinkKind::Import, "./b", "d/b/index.tsx", ""),
    ] {
        let link = Link { start: 0, end: 0, kind, target: target.to_owned() };
        let known = of_document(id, None, title);
        assert!(sought(origin, origin, &link).names.iter().any(|name| known.contains(name)), "{target}: {known:?}");
    }
}

#[test]
fn numbers_are_of_the_document_of_its_folder_or_of_anybody() {
    assert_eq!(
        names(LinkKind::Numbered, "law/a/7.md", "Art. 12"),
        ["number law/a/7.md article 12", "number law/a article 12", "number  article 12"]
    );
    for (heading, parts) in [
        ("Article 12 – Right to be heard", vec!["article 12"]),
        ("§3.2 Scope", vec!["section 3.2"]),
        ("Annex IV", vec!["annex iv"]),
        ("3.2. Scope", vec!["section 3.2", "chapter 3.2", "clause 3.2"]),
        ("2024 in review", vec![]),
        ("Articles", vec![]),
    ] {
        assert_eq!(parts_of_heading(heading), parts, "{heading}");
    }
}
