//! Text and figures as a page writes them: escaped, grouped by thousands, with as many decimals as say something.

use std::borrow::Cow;
use std::fmt::Write as _;

/// Decimals are never more than this.
const DECIMALS_MAX: usize = 9;
/// Figures further apart than this each have decimals of their own.
const SPREAD_MAX: f64 = 1000.0;

/// Text as HTML or an attribute shows it literally; controls, which HTML forbids, become U+FFFD.
pub(crate) fn escape(text: &str) -> Cow<'_, str> {
    let plain = |c: char| !matches!(c, '&' | '<' | '>' | '"' | '\'') && !is_forbidden(c);
    if text.chars().all(plain) {
        return Cow::Borrowed(text);
    }
    let mut escaped = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            c if is_forbidden(c) => escaped.push('\u{FFFD}'),
            c => escaped.push(c),
        }
    }
    Cow::Owned(escaped)
}

fn is_forbidden(c: char) -> bool {
    (c.is_control() && !matches!(c, '\n' | '\t')) || matches!(c, '\u{FFFE}' | '\u{FFFF}')
}

/// A figure with so many decimals, thousands apart, a true minus; scientific where digits would be many or all zero.
pub(crate) fn number(value: f64, decimals: usize) -> String {
    let decimals = decimals.min(DECIMALS_MAX);
    let magnitude = value.abs();
    if !value.is_finite() {
        return "—".to_owned();
    }
    if magnitude >= 1e9 || (magnitude > 0.0 && magnitude < 0.5 * 0.1_f64.powi(decimals as i32)) {
        return format!("{value:.2e}").replace('-', "−");
    }
    let digits = format!("{magnitude:.decimals$}");
    let n_whole = digits.find('.').unwrap_or(digits.len());
    let mut text = String::with_capacity(digits.len() + 4);
    if value < 0.0 {
        text.push('−');
    }
    for (at, digit) in digits.char_indices() {
        if at > 0 && at < n_whole && (n_whole - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A deviation with its sign.
fn signed(value: f64, decimals: usize) -> String {
    let sign = if value > 0.0 { "+" } else { "" };
    format!("{sign}{}", number(value, decimals))
}

/// A figure with the digits it has, and no more.
pub(crate) fn exact(value: f64) -> String {
    number(value, digits(value))
}

/// Decimals of the shortest text that reads back as this figure.
fn digits(value: f64) -> usize {
    let shortest = format!("{value}");
    shortest.find('.').map_or(0, |dot| shortest.len() - dot - 1)
}

/// Decimals that figures of one kind share, so that they can be compared at a glance.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Precision {
    /// None where figures are so far apart that each has its own.
    decimals: Option<usize>,
}

impl Precision {
    /// As many as the largest figure needs for three or four digits and `least`, that of a tolerance, asks for, and no
    /// more than there are.
    pub(crate) fn of(values: impl Iterator<Item = f64>, least: usize) -> Self {
        let (mut largest, mut smallest, mut n_digits) = (0.0_f64, f64::INFINITY, 0);
        for value in values.filter(|value| value.is_finite() && *value != 0.0) {
            largest = largest.max(value.abs());
            smallest = smallest.min(value.abs());
            n_digits = n_digits.max(digits(value));
        }
        let shared = n_digits == 0 || largest <= SPREAD_MAX * smallest || least > 0 && largest < 10.0;
        Self { decimals: shared.then(|| decimals_of(largest).max(least).min(n_digits)) }
    }

    /// Whether all figures have the same decimals.
    pub(crate) fn is_shared(self) -> bool {
        self.decimals.is_some()
    }

    pub(crate) fn text(self, value: f64) -> String {
        match self.decimals {
            Some(decimals) if value.abs() < 0.5 * 0.1_f64.powi(decimals as i32) => number(0.0, decimals),
            Some(decimals) => number(value, decimals),
            None => number(value, decimals_of(value).min(digits(value))),
        }
    }

    /// A difference of two such figures, one decimal finer: one just beyond a tolerance looks like it.
    pub(crate) fn difference(self, value: f64) -> String {
        let decimals = self.decimals.map_or_else(|| decimals_of(value), |decimals| decimals + 1);
        signed(value, decimals.min(digits(value)))
    }
}

/// Decimals that show a figure of this magnitude to three or four digits.
fn decimals_of(value: f64) -> usize {
    match value.abs() {
        0.0 => 0,
        magnitude if magnitude < 0.01 => (2.0 - magnitude.log10().floor()).min(DECIMALS_MAX as f64) as usize,
        magnitude if magnitude < 10.0 => 3,
        magnitude if magnitude < 100.0 => 2,
        magnitude if magnitude < 1000.0 => 1,
        _ => 0,
    }
}

/// Decimals that show a step, such as a tolerance or the distance of two ticks: 2 for 0.05, 0 for 20.
pub(crate) fn decimals_of_step(step: f64) -> usize {
    if !(step.is_finite() && step > 0.0) {
        return 0;
    }
    (-(step * (1.0 + 1e-9)).log10().floor()).clamp(0.0, DECIMALS_MAX as f64) as usize
}

/// Wall time as one reads it.
pub(crate) fn duration(seconds: f64) -> String {
    let whole = seconds.round().clamp(0.0, 1e12) as u64;
    match seconds {
        _ if !seconds.is_finite() || seconds < 0.0 => "—".to_owned(),
        seconds if seconds < 9.95 => format!("{seconds:.1} s"),
        _ if whole < 60 => format!("{whole} s"),
        _ if whole < 3600 => format!("{} min {:02} s", whole / 60, whole % 60),
        _ => format!("{} h {:02} min", whole / 3600, whole % 3600 / 60),
    }
}

/// Memory in binary units.
pub(crate) fn bytes(n_bytes: u64) -> String {
    const GIB: f64 = (1_u64 << 30) as f64;
    let gib = n_bytes as f64 / GIB;
    if gib >= 10.0 { format!("{gib:.0} GiB") } else { format!("{gib:.1} GiB") }
}

/// A count with its noun.
pub(crate) fn plural(count: usize, noun: &str) -> String {
    if count == 1 { format!("1 {noun}") } else { format!("{} {noun}s", number(count as f64, 0)) }
}

/// Paragraphs parted by blank lines; `code` in backticks, addresses as links, all else literal.
pub(crate) fn prose(text: &str) -> String {
    let mut html = String::new();
    let mut paragraph = String::new();
    for line in text.lines().chain([""]) {
        if !line.trim().is_empty() {
            paragraph.push_str(line.trim());
            paragraph.push('\n');
        } else if !paragraph.is_empty() {
            let _ = writeln!(html, "<p>{}</p>", inline(paragraph.trim_end()));
            paragraph.clear();
        }
    }
    html
}

/// One run of text: `code` in backticks, addresses as links, all else literal.
pub(crate) fn inline(text: &str) -> String {
    let mut html = String::new();
    let mut rest = text;
    while let Some((before, code, after)) = code_span(rest) {
        html.push_str(&links(before));
        let _ = write!(html, "<code>{}</code>", command(code));
        rest = after;
    }
    html.push_str(&links(rest));
    html
}

/// The text around the first pair of backticks.
fn code_span(text: &str) -> Option<(&str, &str, &str)> {
    let (before, rest) = text.split_once('`')?;
    let (code, after) = rest.split_once('`')?;
    (!code.is_empty()).then_some((before, code, after))
}

fn links(text: &str) -> String {
    let mut html = String::new();
    for word in text.split_inclusive(char::is_whitespace) {
        let address = word.trim_matches(|c: char| c.is_whitespace() || "()[]<>,.;:'\"".contains(c));
        let is_web =
            ["https://", "http://"].iter().any(|scheme| address.len() > scheme.len() && address.starts_with(scheme));
        match word.split_once(address) {
            Some((before, after)) if is_web => {
                let shown = address.split_once("://").map_or(address, |(_, shown)| shown);
                let (address, shown) = (escape(address), escape(shown));
                let _ = write!(html, "{}<a href=\"{address}\">{shown}</a>{}", escape(before), escape(after));
            }
            _ => html.push_str(&unbroken(word)),
        }
    }
    html
}

/// A command line, literally; it is not broken within an option.
pub(crate) fn command(text: &str) -> String {
    text.split_inclusive(char::is_whitespace).map(unbroken).collect()
}

/// A word; browsers would break an option after its first hyphens.
fn unbroken(word: &str) -> Cow<'_, str> {
    const N_CHARACTERS_MAX: usize = 32;
    let option = word.trim_end();
    if !option.starts_with('-') || option.chars().count() > N_CHARACTERS_MAX {
        return escape(word);
    }
    Cow::Owned(format!("<span class=\"option\">{}</span>{}", escape(option), &word[option.len()..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markup_in_text_is_shown_and_not_obeyed() {
        assert_eq!(escape("plain"), "plain");
        assert_eq!(escape("<a href=\"x\">'&'"), "&lt;a href=&quot;x&quot;&gt;&#39;&amp;&#39;");
        assert_eq!(escape("nul\0 esc\u{1b} line\n"), "nul\u{FFFD} esc\u{FFFD} line\n");
        assert_eq!(inline("`<b>` & <i>"), "<code>&lt;b&gt;</code> &amp; &lt;i&gt;");
    }

    #[test]
    fn prose_knows_paragraphs_code_and_addresses_and_nothing_else() {
        assert_eq!(prose("one\ntwo\n\n \n*three*"), "<p>one\ntwo</p>\n<p>*three*</p>\n");
        assert_eq!(prose(" \n\n"), "");
        assert_eq!(inline("a `b c` d"), "a <code>b c</code> d");
        assert_eq!(inline("a ` b `` c"), "a ` b `` c".replace("` b `", "<code> b </code>"));
        assert_eq!(inline("odd ` tick"), "odd ` tick");
        assert_eq!(
            inline("see (https://a.example/x?y=1&z), end"),
            "see (<a href=\"https://a.example/x?y=1&amp;z\">a.example/x?y=1&amp;z</a>), end"
        );
        assert_eq!(inline("javascript:alert(1) https://"), "javascript:alert(1) https://");
    }

    #[test]
    fn numbers_group_thousands_and_never_round_to_a_false_zero() {
        assert_eq!(number(1234567.891, 1), "1,234,567.9");
        assert_eq!(number(999.0, 0), "999");
        assert_eq!(number(-0.25, 2), "−0.25");
        assert_eq!(number(0.0, 3), "0.000");
        assert_eq!(number(-0.0, 1), "0.0");
        assert_eq!(number(0.0001, 2), "1.00e−4");
        assert_eq!(number(3.2e12, 2), "3.20e12");
        assert_eq!(number(f64::NAN, 2), "—");
        assert_eq!(number(-1e-12, 9), "−1.00e−12");
        assert_eq!(exact(0.005), "0.005");
        assert_eq!(exact(20.0), "20");
        assert_eq!(signed(0.5, 1), "+0.5");
    }

    #[test]
    fn decimals_follow_magnitude_and_step() {
        assert_eq!([0.0, 0.0042, 0.5, 42.0, 420.0, 4200.0].map(decimals_of), [0, 5, 3, 2, 1, 0]);
        assert_eq!([0.05, 0.1, 0.001, 1.0, 20.0, 0.0, f64::NAN].map(decimals_of_step), [2, 1, 3, 0, 0, 0, 0]);
    }

    #[test]
    fn figures_of_one_kind_share_their_decimals() {
        let texts = |values: &[f64], least| {
            let precision = Precision::of(values.iter().copied(), least);
            values.iter().map(|value| precision.text(*value)).collect::<Vec<_>>()
        };
        assert_eq!(texts(&[121.4, 64.3, -2.6], 0), ["121.4", "64.3", "−2.6"]);
        assert_eq!(texts(&[0.74461, 0.5, 0.0], 0), ["0.745", "0.500", "0.000"]);
        assert_eq!(texts(&[0.74461, 0.5], 4), ["0.7446", "0.5000"]);
        assert_eq!(texts(&[9.8, 7.81], 6), ["9.80", "7.81"], "no more than there are");
        assert_eq!(texts(&[1834.2, 0.35, 12.0], 2), ["1,834", "0.35", "12"], "too far apart to share");
        assert_eq!(texts(&[0.4, 1.2e-9], 3), ["0.400", "0.000"], "less than any tolerance shows");
        assert_eq!(texts(&[5e6, 1.0, f64::NAN], 2), ["5,000,000", "1", "—"]);
        let precision = Precision::of([0.387, 0.414].into_iter(), 0);
        assert_eq!(
            [0.0266, -32.0, 0.387 - 0.414].map(|value| precision.difference(value)),
            ["+0.0266", "−32", "−0.0270"]
        );
    }

    #[test]
    fn a_command_is_not_broken_within_an_option() {
        assert_eq!(command("a --b <c>"), "a <span class=\"option\">--b</span> &lt;c&gt;");
        assert_eq!(command(&format!("-{}", "x".repeat(40))), format!("-{}", "x".repeat(40)));
    }

    #[test]
    fn durations_are_read_at_a_glance() {
        let texts = [0.04, 9.96, 59.6, 75.0, 3660.0, f64::NAN].map(duration);
        assert_eq!(texts, ["0.0 s", "10 s", "1 min 00 s", "1 min 15 s", "1 h 01 min", "—"]);
    }
}
