//! Dates: ISO 8601 dates, alone or with a time of day, as stretches of time since 1970.
//!
//! Units: microseconds since 1970-01-01T00:00:00Z. A date covers its day, a time without seconds its minute, a time
//! with seconds its second, a time with a fraction that microsecond. Without an offset a time is UTC.
//! Differs: the calendar is jiff's, the grammar is not: jiff also reads `20200517`, `2020-05-17T10` and `…[UTC]`, and
//! refuses fractions of more than nine digits.

use std::fmt;
use std::ops::Range;

use jiff::civil;

const EPOCH: civil::Date = civil::date(1970, 1, 1);
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
    /// Reads `2020-05-17`, `2020-05-17T10:30`, `2020-05-17 10:30:00.5`, `2020-05-17T10:30:00+02:00`, …; `None` for
    /// anything else, dates that no calendar has among them.
    pub fn parse(text: &str) -> Option<Self> {
        let mut rest = Rest(text.as_bytes());
        let (year, month, day) = (rest.number(4)?, rest.after(b'-', 2)?, rest.after(b'-', 2)?);
        let date = civil::Date::new(year.try_into().ok()?, month.try_into().ok()?, day.try_into().ok()?).ok()?;
        let midnight = date.duration_since(EPOCH).as_secs() * SECOND;
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

/// The unread rest of a date.
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
