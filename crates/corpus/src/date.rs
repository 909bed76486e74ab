//! Dates: ISO 8601 dates, alone or with a time of day, as stretches of time since 1970.
//!
//! Units: microseconds since 1970-01-01T00:00:00Z. A date covers its day, a time without seconds its minute, a time with
//! seconds its second, a time with a fraction that microsecond. Without an offset a time is UTC.
//! Source: the days of a date as in Hinnant, "chrono-Compatible Low-Level Date Algorithms", `days_from_civil`.

use std::fmt;
use std::ops::Range;

const SECOND: i64 = 1_000_000;
const MINUTE: i64 = 60 * SECOND;
const HOUR: i64 = 60 * MINUTE;
const DAY: i64 = 24 * HOUR;

/// A date as written and the time it covers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Date {
    text: String,
    start: i64,
    micros: i64,
}

impl Date {
    /// Reads `2020-05-17`, `2020-05-17T10:30`, `2020-05-17 10:30:00.5`, `2020-05-17T10:30:00+02:00`, …; `None` for anything else,
    /// dates that no calendar has among them.
    pub fn parse(text: &str) -> Option<Self> {
        let mut rest = Rest(text.as_bytes());
        let (year, month, day) = (rest.number(4)?, rest.after(b'-', 2)?, rest.after(b'-', 2)?);
        if !(1..=12).contains(&month) || !(1..=days_of_month(year, month)).contains(&day) {
            return None;
        }
        let midnight = days_since_1970(year, month, day) * DAY;
        let (time, micros) = match rest.0.first() {
            None => (0, DAY),
            Some(b'T' | b't' | b' ') => rest.time()?,
            Some(_) => return None,
        };
        rest.0.is_empty().then(|| Self { text: text.to_owned(), start: midnight + time, micros })
    }

    /// Where it starts.
    pub fn start(&self) -> i64 {
        self.start
    }

    /// All that it covers.
    pub fn covers(&self) -> Range<i64> {
        self.start..self.start + self.micros
    }

    /// As it was written.
    pub fn as_str(&self) -> &str {
        &self.text
    }
}

impl fmt::Display for Date {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// What is left to read of a date.
struct Rest<'t>(&'t [u8]);

impl Rest<'_> {
    /// A number of exactly so many digits.
    fn number(&mut self, n_digits: usize) -> Option<i64> {
        let (digits, rest) = self.0.split_at_checked(n_digits)?;
        self.0 = rest;
        digits.iter().try_fold(0, |number, digit| digit.is_ascii_digit().then(|| number * 10 + i64::from(digit - b'0')))
    }

    /// The number behind a mark.
    fn after(&mut self, mark: u8, n_digits: usize) -> Option<i64> {
        let (&first, rest) = self.0.split_first()?;
        self.0 = rest;
        if first == mark { self.number(n_digits) } else { None }
    }

    /// Time of day and offset: microseconds since midnight UTC, and how many are covered.
    fn time(&mut self) -> Option<(i64, i64)> {
        self.0 = &self.0[1..];
        let (hour, minute) = (self.number(2)?, self.after(b':', 2)?);
        let (mut time, mut micros) = (hour * HOUR + minute * MINUTE, MINUTE);
        if self.0.first() == Some(&b':') {
            let second = self.after(b':', 2)?;
            (time, micros) = (time + second * SECOND, SECOND);
            if second > 60 {
                return None; // 60 is a leap second
            }
            if self.0.first() == Some(&b'.') {
                (time, micros) = (time + self.fraction()?, 1);
            }
        }
        let offset = self.offset()?;
        (hour < 24 && minute < 60).then_some((time - offset, micros))
    }

    /// Microseconds behind the point; further digits are left out.
    fn fraction(&mut self) -> Option<i64> {
        let n_digits = self.0[1..].iter().take_while(|byte| byte.is_ascii_digit()).count();
        let (digits, rest) = self.0[1..].split_at(n_digits);
        self.0 = rest;
        let digit = |at: usize| digits.get(at).map_or(0, |digit| i64::from(digit - b'0'));
        (n_digits > 0).then(|| (0..6).fold(0, |micros, at| micros * 10 + digit(at)))
    }

    /// `Z`, `+02:00`, `+0200` or nothing.
    fn offset(&mut self) -> Option<i64> {
        let sign = match self.0.first() {
            None => return Some(0),
            Some(b'Z' | b'z') => {
                self.0 = &self.0[1..];
                return Some(0);
            }
            Some(b'+') => 1,
            Some(b'-') => -1,
            Some(_) => return None,
        };
        self.0 = &self.0[1..];
        let hours = self.number(2)?;
        let minutes = if self.0.first() == Some(&b':') { self.after(b':', 2)? } else { self.number(2)? };
        (hours < 24 && minutes < 60).then_some(sign * (hours * HOUR + minutes * MINUTE))
    }
}

fn days_of_month(year: i64, month: i64) -> i64 {
    match month {
        2 if year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

fn days_since_1970(year: i64, month: i64, day: i64) -> i64 {
    let year = year - i64::from(month <= 2); // a year begins in March, so that the leap day is its last
    let (era, year_of_era) = (year.div_euclid(400), year.rem_euclid(400));
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    era * 146_097 + year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year - 719_468
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, start: i64, micros: i64) {
        let date = Date::parse(text).unwrap_or_else(|| panic!("{text:?} is a date"));
        assert_eq!((date.as_str(), date.covers()), (text, start..start + micros));
    }

    #[test]
    fn days_and_times() {
        check("1970-01-01", 0, DAY);
        check("1969-12-31", -DAY, DAY);
        check("2000-02-29", 11_016 * DAY, DAY);
        check("0000-03-01", -719_468 * DAY, DAY);
        check("9999-12-31", 2_932_896 * DAY, DAY);
        check("2020-05-17", 1_589_673_600 * SECOND, DAY);
        check("2020-05-17T10:30", (1_589_673_600 + 37_800) * SECOND, MINUTE);
        check("2020-05-17 10:30:07Z", (1_589_673_600 + 37_807) * SECOND, SECOND);
        check("2020-05-17T10:30:07.25+02:00", (1_589_673_600 + 30_607) * SECOND + 250_000, 1);
        check("2020-05-17t10:30:07-0130", (1_589_673_600 + 43_207) * SECOND, SECOND);
    }

    #[test]
    fn what_is_no_date() {
        for text in [
            "",
            "2020",
            "2020-05",
            "2020-5-17",
            "2020-13-01",
            "2020-00-01",
            "2020-02-30",
            "2019-02-29",
            "1900-02-29",
            "2020-05-17T",
            "2020-05-17T24:00",
            "2020-05-17T10:60",
            "2020-05-17T10:00:61",
            "2020-05-17T10:00:00.",
            "2020-05-17T10:00+24:00",
            "2020-05-17T10:00:00Zx",
            "2020-05-17x",
            "２０２０-05-17",
        ] {
            assert!(Date::parse(text).is_none(), "{text:?}");
        }
    }
}
