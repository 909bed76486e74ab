//! HTML: the visible text, with headings as sections, list items marked, table rows as lines.
//!
//! The text is extracted: html5ever keeps no positions, so there is no map to the source. Scripts, styles and
//! navigation are left out; everything else that a browser shows of the body is kept.
//! Cost: two walks over the tree, without recursion.

mod tree;
mod writer;

use self::tree::{tree, walk};
use self::writer::{Anchors, Writer, layout_tables};
use super::{Decoded, file_stem};
use crate::budget::Excess;
use crate::document::{Document, TextKind, blocks_from_starts};
use crate::format::Format;
use crate::links;

pub(super) fn document(source: Decoded, origin: &str) -> Result<Document, Excess> {
    let html = tree(&source.text)?;
    let layout = layout_tables(&html);
    let mut writer = Writer::new(layout);
    walk(&html, |step| writer.step(step));
    writer.links.write_captured(writer.text.len()..writer.text.len()); // in a row of empty cells
    let Writer { text, starts, outline, title, first_heading, metadata, links: Anchors { markup, .. }, .. } = writer;
    let title = (title.filter(|title| !title.is_empty()))
        .or_else(|| first_heading.and_then(|(level, text)| (level == 1).then_some(text)))
        .unwrap_or_else(|| file_stem(origin));
    let mut warnings = source.warnings;
    if text.is_empty() && !source.text.is_empty() {
        warnings.push("no visible text".into());
    }
    let sections = outline.finish(text.len());
    let blocks = blocks_from_starts(&text, starts)?;
    let kind = TextKind::Extracted;
    let mut document = Document {
        id: origin.into(),
        origin: origin.into(),
        format: Format::Html,
        title,
        text,
        kind,
        sections,
        blocks,
        metadata,
        links: Vec::new(),
        warnings,
    };
    links::find(&mut document, markup);
    Ok(document)
}

#[cfg(test)]
mod tests {
    use scraper::Html;

    use super::super::parse;
    use super::*;
    use crate::format::ReadAs;

    #[track_caller]
    fn check(html: &str, text: &str) {
        let document = parse(html.into(), "docs/page.html", ReadAs::Auto).unwrap();
        assert_eq!(document.text, text);
        assert_eq!(document.kind, TextKind::Extracted);
    }

    #[test]
    fn paragraphs_and_inline_markup() {
        check(
            "<p>One <b>t</b>wo<br>three  \n four<div>five<p>six</div>seven",
            "One two\nthree four\n\nfive\n\nsix\n\nseven",
        );
    }

    #[test]
    fn what_is_not_text_is_dropped() {
        let html = "<head><title>T</title><style>s</style></head><nav>n</nav><script>x</script><p>a<svg><title>v</title></svg><!-- c -->\
            <noscript>no</noscript><template>t</template> b";
        check(html, "a b");
        assert_eq!(parse(html.into(), "p.html", Format::Html).unwrap().title, "T");
    }

    #[test]
    fn lists() {
        check("<ul><li>a<li><p>b</p><ol start=3><li>c<li>d</ol></ul>end", "- a\n\n- b\n\n  3. c\n  4. d\n\nend");
        check("<dl><dt>term<dd>what it is</dl>", "term\n  what it is");
    }

    #[test]
    fn data_tables_have_a_row_a_line() {
        check(
            "<table><caption>Cap</caption><tr><th>a<th>b<tr><td><p>1</p><td></td><tr><td></table>after",
            "Cap\na | b\n1 | \n\nafter",
        );
    }

    #[test]
    fn layout_tables_are_read_cell_by_cell() {
        check("<table><tr><td><h2>H</h2>x<td>y<table><tr><td>1<td>2</table></table>", "H\n\nx\n\ny\n\n1 | 2");
    }

    #[test]
    fn preformatted_text_is_kept() {
        check("<p>see<pre>\n\n  a\n    b <b>c</b>\n</pre>", "see\n\n  a\n    b c");
    }

    #[test]
    fn headings_are_sections() {
        let html = "<h1>A\n<i>b</i></h1><p>x<h3>C</h3>y<h2>D</h2>";
        let document = parse(html.into(), "p.html", Format::Html).unwrap();
        let found: Vec<(u8, &str, &str)> = document.sections[1..]
            .iter()
            .map(|section| (section.level, section.heading.as_str(), &document.text[section.span.clone()]))
            .collect();
        assert_eq!(found, [(1, "A b", "A b\n\nx\n\nC\n\ny\n\nD"), (3, "C", "C\n\ny\n\n"), (2, "D", "D")]);
        assert_eq!(document.title, "A b");
    }

    #[test]
    fn deep_nesting_and_no_text() {
        check(&("<div>".repeat(1_000) + "x"), "x");
        assert_eq!(parse("<p></p>".into(), "p.html", Format::Html).unwrap().warnings, ["no visible text"]);
    }

    #[test]
    fn a_page_that_costs_its_square_is_refused() {
        let over = |html: String| parse(html.into(), "p.html", Format::Html).unwrap_err().to_string();
        let words = "elements inside each other, the limit for one document is 1024";
        assert!(over("<div>".repeat(50_000)).contains(words));
        // Nodes behind the body hang from the root, wherever the parser is.
        assert!(over("<div></body><!---->".repeat(20_000)).contains(words));
        let formats: String = (0..900).map(|n| format!("<b id={n}>")).collect();
        assert!(over(format!("<p>{formats}</p>{}", "<p>x".repeat(50_000))).contains(" nodes, the limit"));
        let words = "attributes of one element, the limit for one document is 4096";
        let attributes = |n: usize| (0..n).map(|n| format!(" a{n}")).collect::<String>();
        assert_eq!(over(format!("<p{}>x", attributes(5_000))), format!("p.html: 5000 {words}"));
        assert!(over(format!("<svg><style><p a='>'{}>x", attributes(5_000).replace(' ', "/"))).ends_with(words));
        assert!(over(format!("<p{}", attributes(100_000))).contains("attributes of one element"));
        assert!(over((0..5_000).map(|n| format!("<body a{n}>")).collect()).ends_with(words));
    }

    #[test]
    fn a_page_in_pieces_is_the_page() {
        // Pieces end inside characters, entities, tags, comments and between the two bytes of a line's end.
        let unit = "<p title='a b'>Größe &amp; &#x1F30A;<!-- c -->\r\n<b>fett</b> <script>if (a<b) {}</script></p>";
        for shift in 0..unit.len() {
            let page = format!("{}{}", "x".repeat(shift), unit.repeat(30));
            let whole = Html::parse_document(&page);
            assert_eq!(tree(&page).unwrap(), whole, "{shift}");
        }
    }
}
