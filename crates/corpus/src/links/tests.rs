//! Links as they are found: `kind target` and the text where each stands.

use crate::budget::{LINKS_MAX, TARGET_BYTES_MAX};
use crate::format::ReadAs;
use crate::read::parse;

#[track_caller]
fn check(origin: &str, text: &str, expected: &[(&str, &str, &str)]) {
    let document = parse(text.into(), origin, ReadAs::Auto).unwrap();
    let found: Vec<(&str, &str, &str)> = document
        .links
        .iter()
        .map(|link| (link.kind.name(), link.target.as_str(), &document.text[link.start..link.end]))
        .collect();
    assert_eq!(found, expected, "{}", document.text);
}

#[test]
fn markdown_has_links_of_four_kinds_and_none_in_code() {
    check(
        "d/a.md",
        "See [one](b.md#top), [two][l], [l] and <https://x.org/c>.\n\n`[no](n.md)` ![no](n.png) [mail](mailto:a@b.c)\n\n\
         ```\n[no](n.md) [[no]]\n```\n\n<a class=x href='d.html'>html</a>\n\n[l]: ../e.md \"title\"\n",
        &[
            ("inline", "b.md#top", "[one](b.md#top)"),
            ("reference", "../e.md", "[two][l]"),
            ("reference", "../e.md", "[l]"),
            ("autolink", "https://x.org/c", "<https://x.org/c>"),
            ("html", "d.html", "<a class=x href='d.html'>"),
        ],
    );
}

#[test]
fn prose_has_wiki_links_dois_and_numbers_but_not_in_headings() {
    check(
        "d/a.md",
        "# Article 5\n\n[[Page|its text]] and [[#Heading]], [[not]](x.md); see Article 12 or §3.2, Annex IV.\n\n\
         (https doi 10.1000/ab(c)d.) {{#include ../l/main.rs:2:7}} `[[code]]` articles 7, section 4.1.\n",
        &[
            ("wiki", "Page", "[[Page|its text]]"),
            ("wiki", "#Heading", "[[#Heading]]"),
            ("inline", "x.md", "[[not]](x.md)"),
            ("numbered", "Article 12", "Article 12"),
            ("numbered", "§3.2", "§3.2"),
            ("numbered", "Annex IV", "Annex IV"),
            ("doi", "10.1000/ab(c)d", "10.1000/ab(c)d"),
            ("include", "../l/main.rs", "{{#include ../l/main.rs:2:7}}"),
            ("numbered", "section 4.1", "section 4.1"),
        ],
    );
}

#[test]
fn metadata_names_related_documents() {
    check(
        "d/a.md",
        "---\ntitle: A\nrelated:\n  - b.md\n  - \"[[Page|text]]\"\nsee_also: Other title\n---\n\nText.\n",
        &[("related", "b.md", "b.md"), ("wiki", "Page", "[[Page|text]]"), ("related", "Other title", "Other title")],
    );
}

#[test]
fn html_has_its_links_where_their_words_stand() {
    check(
        "d/a.html",
        "<body><nav><a href=n.html>no</a></nav><h2>About <a href='h.html'>it</a></h2><p>Read <a href=\"b.html#x\">the \
         <b>next</b> one</a>, or <a name=x>this</a>.<ul><li><a href=c.html>third</a></ul>\
         <table><tr><td>1<td><a href=t.html>cell</a></table><a href=e.html><img src=i.png></a>",
        &[
            ("html", "h.html", "About it"),
            ("html", "b.html#x", "the next one"),
            ("html", "c.html", "third"),
            ("html", "t.html", "1 | cell"),
            ("html", "e.html", ""),
        ],
    );
}

#[test]
fn code_has_its_imports() {
    check(
        "d/a.rs",
        "//! [x](y.md)\nmod inner;\npub(crate) mod other;\nuse crate::a::{self, b::C as D, e::*};\n    use super::f;\n",
        &[
            ("import", "mod inner", "mod inner"),
            ("import", "mod other", "mod other"),
            ("import", "crate::a", "crate::a::{self, b::C as D, e::*}"),
            ("import", "crate::a::b::C", "crate::a::{self, b::C as D, e::*}"),
            ("import", "crate::a::e", "crate::a::{self, b::C as D, e::*}"),
            ("import", "super::f", "super::f"),
        ],
    );
    check(
        "d/a.py",
        "import os, a.b as c\nfrom . import (x,  # one\n    y)\n  from ..p.q import z as w\nfrom m import *\n",
        &[
            ("import", "a.b", "os, a.b as c"),
            ("import", "os", "os, a.b as c"),
            ("import", ".x", "from . import (x,  # one\n    y)"),
            ("import", ".y", "from . import (x,  # one\n    y)"),
            ("import", "..p.q.z", "from ..p.q import z as w"),
            ("import", "m", "from m import *"),
        ],
    );
    check(
        "d/a.ts",
        "import x, {\n  y } from './x';\nimport \"./side\";\nexport * from \"../z.js\";\nconst r = require('r'), l = import('./l');\n",
        &[
            ("import", "./x", "./x"),
            ("import", "./side", "./side"),
            ("import", "../z.js", "../z.js"),
            ("import", "r", "r"),
            ("import", "./l", "./l"),
        ],
    );
    check(
        "d/a.c",
        "#include <stdio.h>\n# include \"a/b.h\"\n",
        &[("include", "stdio.h", "stdio.h"), ("include", "a/b.h", "a/b.h")],
    );
}

#[test]
fn links_over_the_limits_are_counted_and_said() {
    let many: String = (0..LINKS_MAX + 3).map(|n| format!("[x]({n}.md)\n")).collect();
    let long = format!("[x]({})\n", "a".repeat(TARGET_BYTES_MAX + 1));
    for (text, n_links, n_left_out) in [(many, LINKS_MAX, 3), (long, 0, 1)] {
        let document = parse(text.into(), "d/a.md", ReadAs::Auto).unwrap();
        assert_eq!(document.links.len(), n_links);
        let warning = document.warnings.last().unwrap();
        assert!(warning.starts_with(&format!("links left out: {n_left_out},")), "{warning}");
    }
}
