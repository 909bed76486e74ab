//! The report as one HTML page that needs nothing beside itself: no script to be read, no font, no other file.
//!
//! First the verdict in words, then a line for each reproduction, then each with its figures, charts, pictures and
//! commands.
//! Differs: the same report gives the same bytes; the page holds no clock.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use super::chart::{self, picture, strip};
use super::markup::{bytes, command, duration, escape, inline, plural, prose};
use super::report::{Cache, Counts, NEAR_TOLERANCES, Report, Reproduction, Step, Verdict};
use super::table::{self, badge};

const STYLE: &str = include_str!("page/style.css");
/// Buttons that copy commands; without script there are none.
const SCRIPT: &str = include_str!("page/script.js");

/// The whole page.
pub(crate) fn html(report: &Report) -> String {
    let anchors = anchors(&report.reproductions);
    let headline = headline(report);
    let mut html = String::from("<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n");
    html.push_str("<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n");
    html.push_str("<meta name=\"color-scheme\" content=\"light dark\">\n<link rel=\"icon\" href=\"data:,\">\n");
    let _ = writeln!(html, "<title>{headline} · cento reproduce</title>");
    let _ = writeln!(html, "<style>\n{STYLE}</style>\n</head>\n<body>\n<main>");
    html.push_str(&head(report, &headline));
    html.push_str(&overview(report, &anchors));
    for (reproduction, anchor) in report.reproductions.iter().zip(&anchors) {
        html.push_str(&article(reproduction, anchor));
    }
    html.push_str(&foot());
    let _ = writeln!(html, "</main>\n<script>\n{SCRIPT}</script>\n</body>\n</html>");
    html
}

/// The overall verdict in words.
fn headline(report: &Report) -> String {
    let verdicts: Vec<Verdict> = report.reproductions.iter().filter_map(Reproduction::verdict).collect();
    let count = |wanted| verdicts.iter().filter(|verdict| **verdict == wanted).count();
    let all = verdicts.len();
    match (report.verdict(), count(Verdict::Near), count(Verdict::Fail)) {
        (None, ..) => "Nothing was compared".to_owned(),
        (Some(Verdict::Ok), ..) if all == 1 => "The reproduction agrees".to_owned(),
        (Some(Verdict::Ok), ..) => format!("All {all} reproductions agree"),
        (Some(Verdict::Near), near, _) => format!("{near} of {} near, none fails", plural(all, "reproduction")),
        (Some(Verdict::Fail), _, 1) => format!("1 of {} fails", plural(all, "reproduction")),
        (Some(Verdict::Fail), _, fail) => format!("{fail} of {all} reproductions fail"),
    }
}

/// Headline, counts, and what it ran on.
fn head(report: &Report, headline: &str) -> String {
    let mut html = String::from("<header>\n");
    let _ = writeln!(html, "<p class=\"kicker\">cento reproduce <span>{}</span></p>", escape(&report.cento));
    let _ = writeln!(html, "<h1>{headline}</h1>");
    let counts = report.counts();
    let _ = write!(html, "<p class=\"lede\">{}", report.verdict().map_or_else(String::new, badge));
    match counts.total() {
        0 => html.push_str(" No figure had an expectation."),
        total => {
            let _ = write!(html, " {} compared: {}.", plural(total, "figure"), count_words(counts));
        }
    }
    match report.reproductions.iter().filter(|reproduction| reproduction.failure.is_some()).count() {
        0 => {}
        n_stopped => {
            let _ = write!(html, " {} did not run to the end.", plural(n_stopped, "reproduction"));
        }
    }
    html.push_str("</p>\n<dl class=\"facts\">\n");
    let machine = &report.machine;
    let cache = match report.cache {
        Cache::Warm => "warm (what was embedded before is reused)",
        Cache::Cold => "cold (everything made anew)",
    };
    let facts = [
        ("Processor", format!("{}, {}", machine.cpu, plural(machine.n_cores, "core"))),
        ("Instructions", machine.instructions.clone()),
        ("Memory", bytes(machine.memory_bytes)),
        ("System", machine.os.clone()),
        ("Cache", cache.to_owned()),
        ("Time", duration(report.seconds)),
    ];
    for (term, text) in facts {
        let _ = writeln!(html, "<div><dt>{term}</dt><dd>{}</dd></div>", escape(&text));
    }
    html.push_str("</dl>\n</header>\n");
    html
}

/// "73 OK, 2 near, 1 FAIL", without what there is none of.
fn count_words(counts: Counts) -> String {
    let parts = [(counts.n_ok, Verdict::Ok), (counts.n_near, Verdict::Near), (counts.n_fail, Verdict::Fail)];
    let words = parts.iter().filter(|(n, _)| *n > 0).map(|(n, verdict)| format!("{n} {}", verdict.label()));
    words.collect::<Vec<_>>().join(", ")
}

/// A line for each reproduction: verdict, link, figures, how far off they are, time.
fn overview(report: &Report, anchors: &[String]) -> String {
    if report.reproductions.is_empty() {
        return String::new();
    }
    let mut html = String::from("<nav aria-label=\"Reproductions\">\n<table class=\"overview\">\n<thead><tr>");
    html.push_str("<th scope=\"col\">Verdict</th><th scope=\"col\">Reproduction</th>");
    let _ = write!(
        html,
        "<th scope=\"col\">Figures</th><th scope=\"col\" class=\"off\">Deviation in tolerances{}</th>",
        strip::axis()
    );
    html.push_str("<th scope=\"col\">Time</th></tr></thead>\n<tbody>\n");
    for (reproduction, anchor) in report.reproductions.iter().zip(anchors) {
        let verdict = verdict_badge(reproduction);
        let (title, strip) = (escape(&reproduction.title), strip::svg(reproduction.cells()));
        let _ = write!(html, "<tr><td>{verdict}</td><th scope=\"row\"><a href=\"#{anchor}\">{title}</a></th>");
        let _ = write!(html, "<td class=\"counts\">{}</td><td class=\"off\">{strip}</td>", figures(reproduction));
        let _ = writeln!(html, "<td class=\"time\">{}</td></tr>", duration(reproduction.seconds));
    }
    html.push_str("</tbody>\n</table>\n</nav>\n");
    html
}

/// What was compared, or why nothing was.
fn figures(reproduction: &Reproduction) -> String {
    match reproduction.counts() {
        counts if counts.total() > 0 => count_words(counts),
        _ if reproduction.failure.is_some() => "did not finish".to_owned(),
        _ => "not compared".to_owned(),
    }
}

fn verdict_badge(reproduction: &Reproduction) -> String {
    reproduction.verdict().map_or_else(|| "<span class=\"badge\">shown</span>".to_owned(), badge)
}

/// One reproduction: facts in the margin, then text, figures, charts, pictures and commands.
fn article(reproduction: &Reproduction, anchor: &str) -> String {
    let mut html = format!("<article id=\"{anchor}\">\n");
    let title = escape(&reproduction.title);
    let _ = writeln!(html, "<h2>{title}</h2>");
    let _ = writeln!(html, "<aside>\n<p>{}</p>\n<dl>", verdict_badge(reproduction));
    let facts = [
        ("Name", format!("<code>{}</code>", escape(&reproduction.name))),
        ("Source", inline(&reproduction.source)),
        ("Figures", figures(reproduction)),
        ("Time", duration(reproduction.seconds)),
    ];
    for (term, text) in facts {
        let _ = writeln!(html, "<div><dt>{term}</dt><dd>{text}</dd></div>");
    }
    html.push_str("</dl>\n</aside>\n<div class=\"body\">\n");
    let _ = write!(html, "<div class=\"prose\">\n{}</div>\n", prose(&reproduction.text));
    if let Some(failure) = &reproduction.failure {
        let message = inline(failure);
        let _ = writeln!(
            html,
            "<div class=\"failure\"><p>Did not run to the end:</p><p class=\"message\">{message}</p></div>"
        );
    }
    reproduction.tables.iter().for_each(|table| html.push_str(&table::figure(table)));
    reproduction.charts.iter().for_each(|chart| html.push_str(&chart::figure(chart)));
    reproduction.pictures.iter().for_each(|picture| html.push_str(&picture::figure(picture)));
    html.push_str(&steps(&reproduction.steps));
    html.push_str("</div>\n</article>\n");
    html
}

/// The commands, to be run again by hand.
fn steps(steps: &[Step]) -> String {
    if steps.is_empty() {
        return String::new();
    }
    let seconds = steps.iter().map(|step| step.seconds).sum();
    let (n_commands, time) = (plural(steps.len(), "command"), duration(seconds));
    let mut html = format!("<details class=\"steps\"><summary>{n_commands}, {time}</summary>\n<ol>\n");
    for step in steps {
        let (command, time) = (command(&step.command), duration(step.seconds));
        let _ = writeln!(html, "<li><pre><code>{command}</code></pre><span class=\"time\">{time}</span></li>");
    }
    html.push_str("</ol>\n</details>\n");
    html
}

fn foot() -> String {
    format!(
        "<footer>\n<p>A figure is <b>OK</b> where it lies within its tolerance of the expected figure, <b>near</b> \
         within {NEAR_TOLERANCES} tolerances, and a <b>FAIL</b> beyond them or where it is missing. A reproduction is \
         as good as its worst figure, and one that did not run to its end is a FAIL. Figures without an expectation \
         are shown, not judged. In the overview every figure compared is a stroke, placed by its deviation in \
         tolerances: the band is what is OK, a cross is a FAIL, a figure that is missing has none.</p>\n</footer>\n"
    )
}

/// Names as fragments of an address, each once.
fn anchors(reproductions: &[Reproduction]) -> Vec<String> {
    let mut taken = BTreeSet::new();
    let mut anchors = Vec::with_capacity(reproductions.len());
    for reproduction in reproductions {
        let slug: String = reproduction
            .name
            .chars()
            .map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '-' })
            .collect();
        let slug = if slug.is_empty() { "reproduction".to_owned() } else { slug };
        let numbered = (2..).map(|n| format!("{slug}-{n}"));
        let anchor = [slug.clone()].into_iter().chain(numbered).find(|anchor| taken.insert(anchor.clone()));
        anchors.extend(anchor);
    }
    anchors
}

#[cfg(test)]
mod tests;
