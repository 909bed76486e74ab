//! Quantities: numbers by the value that is written. `1.5 million km` and `1,500,000 kilometres` are one, `15` and
//! `1.5` are two.
//!
//! Thousands are groups of three digits behind a comma, a full stop, an apostrophe or a thin space, where that cannot
//! be a decimal: `1,500` and `1.500.000` are, `1.500` and `12,5` are not. A sign counts where no word stands before it.
//! Units are told apart and never converted; a number without a unit agrees with any.

use super::names::{Kind, Mention, words};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::ops::Range;

/// A number and what it counts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Quantity {
    /// The number as a decimal in its shortest form: `-1.5`, `1500000`.
    pub number: String,
    /// Its unit in the spelling of the table here; none where none of them is written beside it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unit: Option<String>,
}

impl Quantity {
    /// The quantity of a word of a text that begins with a digit; none for what is no single number ("2-1", "3D").
    pub fn at(text: &str, word: &Range<usize>) -> Option<Self> {
        let part = &text[word.clone()];
        let written = number_bytes(part);
        if written == 0 {
            return None;
        }
        let (suffix, span) = (&part[written..], word.start..word.start + written);
        let span = if suffix.is_empty() { grouped(text, span) } else { span };
        let (whole, fraction) = decimal(&text[span.clone()])?;
        let (negative, currency) = before(&text[..span.start]);
        let (zeros, unit) = match suffix.strip_prefix('-') {
            Some(behind) if behind.starts_with(|c: char| c.is_ascii_digit()) => return None,
            Some(behind) => measured(behind, currency),
            None if suffix.is_empty() => measured(&text[span.end..], currency),
            None => attached(suffix, currency)?,
        };
        let number = shifted(whole, fraction, zeros);
        let number = if negative && number != "0" { format!("-{number}") } else { number };
        Some(Self { number, unit: currency.or(unit).map(str::to_owned) })
    }

    /// The quantities of sentences, each with the number of its sentence; the parts of a date are none.
    pub(crate) fn of(text: &str, sentences: &[Range<usize>], mentions: &[Mention]) -> Vec<(usize, Self)> {
        let is_part = |word: &Range<usize>| {
            let mut dates = mentions.iter().filter(|mention| mention.kind == Kind::Date);
            dates.any(|date| date.span != *word && date.span.start <= word.start && word.end <= date.span.end)
        };
        let mut found = Vec::new();
        for (number, sentence) in sentences.iter().enumerate() {
            let words = words(text, sentence.clone()).into_iter();
            let numbers = words.filter(|word| text[word.start..].starts_with(|c: char| c.is_ascii_digit()));
            found.extend(
                numbers.filter(|word| !is_part(word)).filter_map(|word| Some((number, Self::at(text, &word)?))),
            );
        }
        found
    }

    /// Says if both are the same: one number, and no unit that differs.
    pub fn agrees(&self, other: &Self) -> bool {
        self.is_comparable(other) && self.number == other.number
    }

    /// Says if both cannot be true of one thing: another number, of units that do not differ.
    pub fn contradicts(&self, other: &Self) -> bool {
        self.is_comparable(other) && self.number != other.number
    }

    fn is_comparable(&self, other: &Self) -> bool {
        self.unit.is_none() || other.unit.is_none() || self.unit == other.unit
    }
}

/// Bytes of the digits that a word begins with, and of what parts them.
fn number_bytes(word: &str) -> usize {
    let ends_at = |&(at, c): &(usize, char)| {
        let parts = ".,'’".contains(c) && word[at + c.len_utf8()..].starts_with(|c: char| c.is_ascii_digit());
        !(c.is_ascii_digit() || parts)
    };
    word.char_indices().find(ends_at).map_or(word.len(), |(at, _)| at)
}

/// The whole of a number whose thousands are parted by spaces that are not of words: all of its groups.
fn grouped(text: &str, mut span: Range<usize>) -> Range<usize> {
    let digits = |text: &str| text.len() - text.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    let last_digits = |text: &str| text.len() - text.trim_end_matches(|c: char| c.is_ascii_digit()).len();
    while text[span.clone()].len() >= 3 && digits(&text[span.clone()]) == 3 {
        let Some(space) = text[..span.start].chars().next_back().filter(|c| THIN.contains(c)) else { break };
        let until = span.start - space.len_utf8();
        let n = last_digits(&text[..until]);
        if !(1..=3).contains(&n) {
            break;
        }
        span.start = until - n;
    }
    while digits(&text[span.clone()]) <= 3 {
        let Some(space) = text[span.end..].chars().next().filter(|c| THIN.contains(c)) else { break };
        let from = span.end + space.len_utf8();
        if digits(&text[from..]) != 3 {
            break;
        }
        span.end = from + 3;
    }
    span
}

/// The digits before and behind the decimal point; none if it is no number.
fn decimal(written: &str) -> Option<(String, String)> {
    let is_point = |c: &char| matches!(c, '.' | ',');
    let points: Vec<(usize, char)> = written.char_indices().filter(|(_, c)| is_point(c)).collect();
    let point = match &points[..] {
        [] => None,
        [.., (at, last)] if points.iter().filter(|(_, c)| c == last).count() == 1 => {
            let is_group = points.len() == 1 && *last == ',' && written.len() - at == 4 && (1..=3).contains(at);
            (!is_group || written.starts_with('0')).then_some(*at)
        }
        _ => None,
    };
    let (whole, fraction) = point.map_or((written, ""), |at| (&written[..at], &written[at + 1..]));
    let groups: Vec<&str> = whole.split(|c: char| !c.is_ascii_digit()).collect();
    let are_thousands = groups.len() == 1 || (groups[0].len() <= 3 && groups[1..].iter().all(|group| group.len() == 3));
    let is_one_kind = whole.chars().filter(|c| !c.is_ascii_digit()).collect::<BTreeSet<_>>().len() <= 1;
    let is_decimal = fraction.chars().all(|c| c.is_ascii_digit());
    (are_thousands && is_one_kind && is_decimal).then(|| (groups.concat(), fraction.to_owned()))
}

/// A decimal times a power of ten, in its shortest form.
fn shifted(mut whole: String, mut fraction: String, zeros: usize) -> String {
    for _ in 0..zeros {
        whole.push(if fraction.is_empty() { '0' } else { fraction.remove(0) });
    }
    let (whole, fraction) = (whole.trim_start_matches('0'), fraction.trim_end_matches('0'));
    let whole = if whole.is_empty() { "0" } else { whole };
    if fraction.is_empty() { whole.to_owned() } else { format!("{whole}.{fraction}") }
}

/// The sign and the currency that stand before a number.
fn before(text: &str) -> (bool, Option<&'static str>) {
    let (text, inner) = unsigned(text);
    let sign = CURRENCIES.iter().find(|(mark, _)| text.ends_with(mark) || text.ends_with(&format!("{mark} ")));
    let Some((mark, currency)) = sign else { return (inner, None) };
    let text = text.trim_end_matches(' ');
    let (_, outer) = unsigned(&text[..text.len() - mark.len()]);
    (inner || outer, Some(currency))
}

/// A text without the sign that it ends with, and whether there is one.
fn unsigned(text: &str) -> (&str, bool) {
    if let Some(word) = ["minus ", "Minus "].iter().find(|word| text.ends_with(*word)) {
        return (&text[..text.len() - word.len()], true);
    }
    let Some(rest) = text.strip_suffix(['-', '−', '–']) else { return (text, false) };
    let is_sign = rest.chars().next_back().is_none_or(|c| !c.is_alphanumeric() && !".,)%°".contains(c));
    if is_sign { (rest, true) } else { (text, false) }
}

/// The power of ten and the unit that stand behind a number.
fn measured(behind: &str, currency: Option<&str>) -> (usize, Option<&'static str>) {
    let (rest, zeros) = match magnitude(word(behind), currency) {
        Some(zeros) => (&behind[behind.len() - after(behind).len() + word(behind).len()..], zeros),
        None => (behind, 0),
    };
    let rest = after(rest);
    let unit = UNITS.iter().flat_map(|(unit, spellings)| spellings.iter().map(move |spelling| (*unit, *spelling)));
    let mut written = unit.filter(|(_, spelling)| {
        let ends = |behind: &str| !behind.starts_with(char::is_alphanumeric);
        rest.strip_prefix(spelling).is_some_and(|behind| ends(behind) || !spelling.ends_with(char::is_alphabetic))
    });
    (zeros, written.next().map(|(unit, _)| unit))
}

/// The same of letters that a number ends with; none if they are neither.
fn attached(suffix: &str, currency: Option<&str>) -> Option<(usize, Option<&'static str>)> {
    if ["st", "nd", "rd", "th"].contains(&suffix) {
        return Some((0, Some(ORDINAL)));
    }
    let found = measured(suffix, currency);
    (found != (0, None)).then_some(found)
}

/// The rest after at most one space or hyphen.
fn after(text: &str) -> &str {
    text.strip_prefix(|c: char| c == ' ' || c == '-' || c == '\n' || THIN.contains(&c)).unwrap_or(text)
}

/// The word that comes next.
fn word(text: &str) -> &str {
    let text = after(text);
    text.find(|c: char| !c.is_alphabetic()).map_or(text, |end| &text[..end])
}

fn magnitude(word: &str, currency: Option<&str>) -> Option<usize> {
    Some(match word {
        "hundred" => 2,
        "thousand" | "k" => 3,
        "million" | "millions" | "mn" | "M" => 6,
        "m" if currency.is_some() => 6,
        "billion" | "billions" | "bn" => 9,
        "trillion" | "trillions" => 12,
        _ => return None,
    })
}

/// Spaces that stand inside a number.
const THIN: [char; 3] = ['\u{a0}', '\u{2009}', '\u{202f}'];
const ORDINAL: &str = "th";
/// Marks of currencies, and their unit.
const CURRENCIES: [(&str, &str); 8] =
    [("$", "$"), ("€", "€"), ("£", "£"), ("¥", "¥"), ("USD", "$"), ("EUR", "€"), ("GBP", "£"), ("JPY", "¥")];
/// Units and their spellings. "Pounds" is of weight and of money, "in" is mostly no inch.
const UNITS: [(&str, &[&str]); 36] = [
    ("%", &["%", "percent", "per cent"]),
    ("‰", &["‰"]),
    ("$", &["$", "dollars", "dollar", "USD"]),
    ("€", &["€", "euros", "euro", "EUR"]),
    ("£", &["£", "GBP"]),
    ("¥", &["¥", "yen", "JPY"]),
    ("°C", &["°C", "° C", "degrees Celsius"]),
    ("°F", &["°F", "° F", "degrees Fahrenheit"]),
    ("°", &["°", "degrees", "degree"]),
    ("km/h", &["km/h", "kilometres per hour", "kilometers per hour", "kph"]),
    ("mph", &["mph", "miles per hour"]),
    ("km²", &["km²", "km2", "square kilometres", "square kilometers"]),
    ("sq mi", &["sq mi", "square miles"]),
    ("m²", &["m²", "m2", "square metres", "square meters"]),
    ("km", &["km", "kilometres", "kilometers", "kilometre", "kilometer"]),
    ("m", &["m", "metres", "meters", "metre", "meter"]),
    ("cm", &["cm", "centimetres", "centimeters", "centimetre", "centimeter"]),
    ("mm", &["mm", "millimetres", "millimeters", "millimetre", "millimeter"]),
    ("mi", &["mi", "miles", "mile"]),
    ("ft", &["ft", "feet", "foot"]),
    ("yd", &["yd", "yards", "yard"]),
    ("inch", &["inches", "inch"]),
    ("kg", &["kg", "kilograms", "kilogram", "kilos"]),
    ("g", &["g", "grams", "gram"]),
    ("t", &["t", "tonnes", "tonne", "tons", "ton"]),
    ("lb", &["lb", "lbs"]),
    ("ha", &["ha", "hectares", "hectare"]),
    ("acre", &["acres", "acre"]),
    ("l", &["l", "litres", "liters", "litre", "liter"]),
    ("year", &["years", "year"]),
    ("month", &["months", "month"]),
    ("week", &["weeks", "week"]),
    ("day", &["days", "day"]),
    ("hour", &["hours", "hour", "h"]),
    ("minute", &["minutes", "minute", "min"]),
    ("second", &["seconds"]),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, number: &str, unit: Option<&str>) {
        let start = text.find(|c: char| c.is_ascii_digit()).unwrap();
        let word = words(text, 0..text.len()).into_iter().find(|word| word.start == start).unwrap();
        let found = Quantity::at(text, &word).unwrap_or_else(|| panic!("{text} is a quantity"));
        assert_eq!((found.number.as_str(), found.unit.as_deref()), (number, unit), "{text}");
    }

    #[test]
    fn a_quantity_is_its_value_and_its_unit() {
        check("it has 15", "15", None);
        check("0.50", "0.5", None);
        check("007", "7", None);
        check("0,500 of it", "0.5", None);
        check("1,234,567.80", "1234567.8", None);
        check("1.234.567,80", "1234567.8", None);
        check("1'234.5", "1234.5", None);
        check("12\u{202f}345\u{202f}678 kg", "12345678", Some("kg"));
        check("-1.5 million km", "-1500000", Some("km"));
        check("a loss (−0.25 %)", "-0.25", Some("%"));
        check("minus 5 degrees Celsius", "-5", Some("°C"));
        check("-$3.5bn", "-3500000000", Some("$"));
        check("EUR 20", "20", Some("€"));
        check("a 15-year-old", "15", Some("year"));
        check("a 40-km ride", "40", Some("km"));
        check("40km", "40", Some("km"));
        check("the 21st", "21", Some("th"));
        check("90 min", "90", Some("minute"));
        check("5 mice", "5", None);
        check("page 10–15", "10", None);
        check("-0.0", "0", None);
    }

    #[test]
    fn what_is_no_single_number_is_none() {
        for text in ["2-1", "3D", "1.2.3", "12,34,567", "1,23.4,5", "747s"] {
            assert_eq!(Quantity::at(text, &(0..text.len())), None, "{text}");
        }
    }

    #[test]
    fn a_group_of_a_number_is_the_whole_of_it() {
        let text = "some 1\u{a0}500 people";
        let found: Vec<String> = Quantity::of(text, std::slice::from_ref(&(0..text.len())), &[])
            .into_iter()
            .map(|(_, it)| it.number)
            .collect();
        assert_eq!(found, ["1500", "1500"]);
    }

    proptest::proptest! {
        #[test]
        fn a_number_in_any_dress_is_itself(whole in 1_000u64..1_000_000_000_000, cents in 1u8..100) {
            let digits = whole.to_string();
            let grouped = |mark: &str| {
                let head = digits.len() % 3;
                let mut groups: Vec<&str> = (head..digits.len()).step_by(3).map(|at| &digits[at..at + 3]).collect();
                if head > 0 {
                    groups.insert(0, &digits[..head]);
                }
                groups.join(mark)
            };
            let plain = format!("{whole}.{cents:02}");
            let read = |text: &str| Quantity::at(text, &words(text, 0..text.len())[0]).unwrap().number;
            let value = read(&plain);
            proptest::prop_assert_eq!(value.trim_end_matches('0'), plain.trim_end_matches('0'));
            for dressed in [
                format!("{},{cents:02}", grouped(".")),
                format!("{}.{cents:02}", grouped(",")),
                format!("{}.{cents:02}", grouped("'")),
                format!("{plain}0 km"),
            ] {
                proptest::prop_assert_eq!(&read(&dressed), &value, "{}", dressed);
            }
        }
    }
}
