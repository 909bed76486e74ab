//! Workbooks, by calamine: each sheet a section, each row a block that stands on its sheet and row.
//!
//! The names of the columns stand with every row, so that a row can be read alone. The names are those of the header
//! row above, which is found: a row of words over rows of values, at the top of a sheet or below an empty row. Merged
//! cells say their value in each of their rows. Cells have the types of the file: dates are written as ISO 8601,
//! formulas are their stored values.
//! Cost: the cells of one sheet in memory; never its empty ones.

use std::collections::BTreeMap;
use std::io::Cursor;

use calamine::{
    Data, DataType, Dimensions, ExcelDateTime, Ods, Reader, Sheet, SheetType, SheetVisible, WorkbookProperties, Xls,
    Xlsb, Xlsx,
};

use super::draft::{About, Draft, one_line};
use super::figures::completeness;
use super::package::{Package, TextOf};
use super::{Fault, Parsed, Part};
use crate::anchor::Anchor;
use crate::budget::{BLOCKS_MAX, Excess, NAME_BYTES_MAX, within};
use crate::document::BlockKind;
use crate::extraction::Extraction;
use crate::format::{Book, Format};
use crate::metadata::{Metadata, Place, Value, add_value};
use crate::read::password::Locked;

const ENGINE: &str = "calamine 0.38.0";

/// Cells of one sheet: a full page of figures for each day of a century.
const CELLS_MAX: u64 = 1 << 22;

/// Rows below an empty one among which a header row is looked for.
const HEADER_WITHIN_ROWS: usize = 4;

/// Days from which a serial date of the 1900 system is a date, and below which a time of day.
const FIRST_DAY: f64 = 1.0;

/// A cell that holds something.
#[derive(Clone, Debug, PartialEq)]
struct Cell {
    text: String,
    /// Words, and no number, date or truth.
    is_words: bool,
}

/// The cells of a sheet by row and column, from 0.
type Cells = BTreeMap<u32, BTreeMap<u32, Cell>>;

/// The things met in a sheet that a person should know.
#[derive(Default)]
struct Oddities {
    n_unstored: u64,
    n_before_calendar: u64,
}

/// A workbook of any format.
enum Workbook<'a> {
    Xlsx(Box<Xlsx<Cursor<&'a [u8]>>>),
    Xlsb(Box<Xlsb<Cursor<&'a [u8]>>>),
    Xls(Box<Xls<Cursor<&'a [u8]>>>),
    Ods(Box<Ods<Cursor<&'a [u8]>>>),
}

/// Reads a workbook as what its bytes say that it is.
pub(super) fn read(part: &Part<'_>, format: Format, book: Book) -> Result<Parsed, Fault> {
    let mut workbook = Workbook::open(part.bytes, book)?;
    let properties = workbook.properties();
    let sheets = workbook.sheets();
    let mut draft = Draft::new(part.bytes.len() as u64);
    let mut extraction = Extraction {
        engine: ENGINE.into(),
        n_pages: Some(u32::try_from(sheets.len()).unwrap_or(u32::MAX)),
        ..Extraction::default()
    };
    let mut warnings = Vec::new();
    for sheet in &sheets {
        let name = sheet.name.as_str();
        if sheet.visible != SheetVisible::Visible {
            warnings.push(format!("sheet {name:?} is hidden; it was read"));
        }
        if sheet.typ != SheetType::WorkSheet {
            extraction.unread.push(format!("sheet {name:?} holds no cells: {:?}", sheet.typ));
            continue;
        }
        let mut oddities = Oddities::default();
        match workbook.cells(name, &mut oddities) {
            Ok((cells, merged)) => {
                extraction.n_tables += write_sheet(&mut draft, name, cells, &merged)?;
            }
            Err(Fault::Unparsed { reason, .. }) => {
                extraction.unread.push(format!("sheet {name:?} cannot be read: {reason}"));
            }
            Err(fault) => return Err(fault),
        }
        warnings.extend(oddities.into_words(name));
    }
    if sheets.is_empty() {
        warnings.push("the workbook has no sheets".into());
    }
    let crude = match &workbook {
        Workbook::Xlsx(_) => strings(part.bytes),
        Workbook::Ods(_) => Package::open(part.bytes).map(|mut package| package.text("content.xml", TextOf::Body)),
        Workbook::Xlsb(_) | Workbook::Xls(_) => None,
    };
    extraction.completeness = crude.and_then(|crude| completeness(draft.text(), &crude));
    let about = About { title: properties.title.clone(), metadata: metadata(properties), warnings };
    Ok(Parsed::one(draft.finish(part.id, part.origin, format, part.name(), about), extraction))
}

impl Oddities {
    fn into_words(self, sheet: &str) -> Vec<String> {
        let Self { n_unstored, n_before_calendar } = self;
        let unstored = (n_unstored > 0).then(|| {
            format!("sheet {sheet:?}: {n_unstored} formulas without a stored value, left out; open and save the file")
        });
        let before = (n_before_calendar > 0).then(|| {
            format!("sheet {sheet:?}: {n_before_calendar} dates before the file's calendar, written as numbers")
        });
        unstored.into_iter().chain(before).collect()
    }
}

/// The strings of a workbook of OOXML, as its parts have them: those that cells share, and those of drawings and
/// comments, which stand in no cell.
fn strings(bytes: &[u8]) -> Option<String> {
    let mut package = Package::open(bytes)?;
    let mut names = package.names();
    names.retain(|name| {
        let name = name.to_ascii_lowercase();
        let is_beside = ["xl/drawings/drawing", "xl/comments"].iter().any(|start| name.starts_with(start));
        name == "xl/sharedstrings.xml" || is_beside && name.ends_with(".xml")
    });
    Some(names.iter().map(|name| package.text(name, TextOf::Runs) + "\n").collect())
}

fn metadata(properties: WorkbookProperties) -> Metadata {
    let mut metadata = Metadata::new();
    let WorkbookProperties { title, creator, created, modified, subject, description, keywords, .. } = properties;
    for (name, value) in [
        ("title", title),
        ("author", creator),
        ("created", created),
        ("modified", modified),
        ("subject", subject),
        ("description", description),
        ("keywords", keywords),
    ] {
        if let Some(value) = value.filter(|value| !value.trim().is_empty()) {
            add_value(&mut metadata, name, Value::from(value.trim().to_owned()), Place::Alone);
        }
    }
    metadata
}

fn unparsed(error: impl std::fmt::Display) -> Fault {
    Fault::Unparsed { engine: ENGINE, reason: error.to_string() }
}

impl<'a> Workbook<'a> {
    fn open(bytes: &'a [u8], book: Book) -> Result<Self, Fault> {
        let cursor = Cursor::new(bytes);
        match book {
            Book::Xlsb => match Xlsb::new(cursor) {
                Ok(workbook) => Ok(Self::Xlsb(Box::new(workbook))),
                Err(calamine::XlsbError::Password) => Err(Fault::Encrypted(Locked::Unknown)),
                Err(error) => Err(unparsed(error)),
            },
            Book::Xls => match Xls::new(cursor) {
                Ok(workbook) => Ok(Self::Xls(Box::new(workbook))),
                Err(calamine::XlsError::Password) => Err(Fault::Encrypted(Locked::Unknown)),
                Err(error) => Err(unparsed(error)),
            },
            Book::Ods => match Ods::new(cursor) {
                Ok(workbook) => Ok(Self::Ods(Box::new(workbook))),
                Err(calamine::OdsError::Password) => Err(Fault::Encrypted(Locked::Unknown)),
                Err(error) => Err(unparsed(error)),
            },
            Book::Xlsx => match Xlsx::new(cursor) {
                Ok(workbook) => Ok(Self::Xlsx(Box::new(workbook))),
                Err(calamine::XlsxError::Password) => Err(Fault::Encrypted(Locked::Unknown)),
                Err(error) => Err(unparsed(error)),
            },
        }
    }

    fn sheets(&self) -> Vec<Sheet> {
        match self {
            Self::Xlsx(workbook) => workbook.sheets_metadata().to_vec(),
            Self::Xlsb(workbook) => workbook.sheets_metadata().to_vec(),
            Self::Xls(workbook) => workbook.sheets_metadata().to_vec(),
            Self::Ods(workbook) => workbook.sheets_metadata().to_vec(),
        }
    }

    /// Title, author, dates; what cannot be read of them is not known.
    fn properties(&mut self) -> WorkbookProperties {
        match self {
            Self::Xlsx(workbook) => workbook.workbook_properties().unwrap_or_default(),
            Self::Xlsb(workbook) => workbook.workbook_properties().unwrap_or_default(),
            Self::Xls(workbook) => workbook.workbook_properties().unwrap_or_default(),
            Self::Ods(workbook) => workbook.workbook_properties().unwrap_or_default(),
        }
    }

    /// The cells of a sheet that hold something, and its merged regions as far as the format tells them.
    fn cells(&mut self, sheet: &str, oddities: &mut Oddities) -> Result<(Cells, Vec<Dimensions>), Fault> {
        let mut cells = Cells::new();
        let mut n_cells = 0;
        let mut add = |(row, column): (u32, u32), value: &Data| {
            if let Some(cell) = cell(value, oddities) {
                n_cells += 1;
                cells.entry(row).or_default().insert(column, cell);
            }
            within("cells of one sheet", n_cells, CELLS_MAX).map_err(Fault::Excess)
        };
        let merged = match self {
            Self::Xlsx(workbook) => {
                let merged = workbook.merge_cells_by_sheet_name(sheet).unwrap_or_default();
                let mut reader = workbook.worksheet_cells_reader(sheet).map_err(unparsed)?;
                let mut n_unstored = 0;
                while let Some(cell) = reader.next_cell_with_formula_metadata().map_err(unparsed)? {
                    let value = Data::from(cell.value);
                    n_unstored += u64::from(cell.formula.is_some() && value.is_empty());
                    add(cell.pos, &value)?;
                }
                oddities.n_unstored = n_unstored;
                merged
            }
            Self::Xlsb(workbook) => {
                let mut reader = workbook.worksheet_cells_reader(sheet).map_err(unparsed)?;
                while let Some(cell) = reader.next_cell().map_err(unparsed)? {
                    add(cell.get_position(), &Data::from(cell.get_value().clone()))?;
                }
                Vec::new()
            }
            Self::Xls(workbook) => {
                add_range(&workbook.worksheet_range(sheet).map_err(unparsed)?, &mut add)?;
                workbook.merge_cells_by_sheet_name(sheet).unwrap_or_default()
            }
            Self::Ods(workbook) => {
                add_range(&workbook.worksheet_range(sheet).map_err(unparsed)?, &mut add)?;
                Vec::new()
            }
        };
        Ok((cells, merged))
    }
}

fn add_range(
    range: &calamine::Range<Data>,
    add: &mut impl FnMut((u32, u32), &Data) -> Result<(), Fault>,
) -> Result<(), Fault> {
    let (row, column) = range.start().unwrap_or_default();
    range.used_cells().try_for_each(|(r, c, value)| add((row + r as u32, column + c as u32), value))
}

/// The cell of a value; none for one that shows nothing.
fn cell(value: &Data, oddities: &mut Oddities) -> Option<Cell> {
    let number = |text: String| Some(Cell { text, is_words: false });
    match value {
        Data::Empty => None,
        Data::String(text) => {
            let text = one_line(text);
            (!text.is_empty()).then_some(Cell { text, is_words: true })
        }
        Data::Int(value) => number(value.to_string()),
        Data::Float(value) => number(float(*value)),
        Data::Bool(value) => number(value.to_string()),
        Data::DateTime(date) => number(date_time(*date).unwrap_or_else(|| {
            oddities.n_before_calendar += 1;
            float(date.as_f64())
        })),
        Data::DateTimeIso(text) | Data::DurationIso(text) => number(text.clone()),
        Data::Error(error) => number(error.to_string()),
    }
}

/// A number as a person writes it: of more digits than a float holds, none is made up.
fn float(value: f64) -> String {
    if value.abs() < 1e15 || !value.is_finite() { value.to_string() } else { format!("{value:e}") }
}

/// ISO 8601; a time alone for less than a day, hours and on for a duration. None before the first day of the calendar.
fn date_time(date: ExcelDateTime) -> Option<String> {
    let days = date.as_f64();
    if !(0.0..2_958_466.0).contains(&days) {
        return None;
    }
    let (year, month, day, hour, minute, second, _) = date.to_ymd_hms_milli();
    if date.is_duration() {
        let seconds = (days * 86_400.0).round() as u64;
        return Some(format!("{}:{:02}:{:02}", seconds / 3_600, seconds / 60 % 60, seconds % 60));
    }
    let time = format!("{hour:02}:{minute:02}:{second:02}");
    let date = format!("{year:04}-{month:02}-{day:02}");
    Some(match (days < FIRST_DAY, time == "00:00:00") {
        (true, _) => time,
        (false, true) => date,
        (false, false) => format!("{date} {time}"),
    })
}

/// Writes a sheet as a section; the number of its tables, which are its header rows.
fn write_sheet(draft: &mut Draft, name: &str, mut cells: Cells, merged: &[Dimensions]) -> Result<u32, Excess> {
    within("bytes in the name of a sheet", name.len() as u64, NAME_BYTES_MAX)?;
    within("rows", cells.len() as u64, BLOCKS_MAX)?;
    spread(&mut cells, merged);
    let place = |row: Option<u32>| Anchor { sheet: Some(name.to_owned()), row, ..Anchor::default() };
    draft.place(place(None));
    draft.section(1, name, 0);
    let headers = header_rows(&cells);
    let mut columns: BTreeMap<u32, String> = BTreeMap::new();
    for (row, cells) in &cells {
        let is_header = headers.contains(row);
        if is_header {
            columns = cells.iter().map(|(column, cell)| (*column, cell.text.clone())).collect();
            let longest = columns.values().map(String::len).max().unwrap_or(0) as u64;
            within("bytes in the name of a column", longest, NAME_BYTES_MAX)?;
        }
        draft.place(place(Some(row + 1)));
        draft.begin(BlockKind::Row);
        let mut separator = "";
        for (column, cell) in cells {
            draft.write(separator);
            if let Some(name) = columns.get(column).filter(|_| !is_header) {
                draft.write(name);
                draft.write(": ");
            }
            draft.write(&cell.text);
            separator = " | ";
        }
        draft.end("\n")?;
    }
    Ok(headers.len() as u32)
}

/// Gives the value of a merged region to the first cell of each of its rows that holds anything.
fn spread(cells: &mut Cells, merged: &[Dimensions]) {
    for region in merged.iter().filter(|region| region.end.0 > region.start.0) {
        let Some(value) = cells.get(&region.start.0).and_then(|row| row.get(&region.start.1)).cloned() else {
            continue;
        };
        for (_, row) in cells.range_mut(region.start.0 + 1..=region.end.0) {
            row.entry(region.start.1).or_insert_with(|| value.clone());
        }
    }
}

/// The rows that name the columns of those below: words alone, two at least and each another, over a row with values;
/// or at the top of the sheet over rows as wide.
fn header_rows(cells: &Cells) -> Vec<u32> {
    let rows: Vec<(&u32, &BTreeMap<u32, Cell>)> = cells.iter().collect();
    let mut headers = Vec::new();
    for run in rows.chunk_by(|above, below| *above.0 + 1 == *below.0) {
        let header = run.iter().take(HEADER_WITHIN_ROWS).position(|(_, row)| is_names(row));
        let Some(at) = header else { continue };
        let names = run[at].1;
        let below = &run[at + 1..];
        let has_values =
            below.iter().any(|(_, row)| row.iter().any(|(column, cell)| !cell.is_words && names.contains_key(column)));
        let as_wide = below.first().is_some_and(|(_, row)| row.len() >= 2 && row.len() * 2 >= names.len());
        if has_values || as_wide && headers.is_empty() {
            headers.push(*run[at].0);
        }
    }
    headers
}

fn is_names(row: &BTreeMap<u32, Cell>) -> bool {
    let mut names: Vec<&str> = row.values().map(|cell| cell.text.as_str()).collect();
    let n_cells = names.len();
    names.sort_unstable();
    names.dedup();
    n_cells >= 2 && names.len() == n_cells && row.values().all(|cell| cell.is_words || is_year(&cell.text))
}

/// A year, which names a column as often as it is a value.
fn is_year(text: &str) -> bool {
    text.len() == 4 && text.parse::<u16>().is_ok_and(|year| (1800..2200).contains(&year))
}

#[cfg(test)]
mod tests {
    use calamine::ExcelDateTimeType;

    use super::*;

    #[test]
    fn dates_are_iso_and_what_no_calendar_has_is_a_number() {
        let of = |days, kind| date_time(ExcelDateTime::new(days, kind, false));
        let date = |days| of(days, ExcelDateTimeType::DateTime);
        assert_eq!(date(45_943.0).as_deref(), Some("2025-10-13"));
        assert_eq!(date(45_943.5).as_deref(), Some("2025-10-13 12:00:00"));
        assert_eq!(date(0.25).as_deref(), Some("06:00:00"));
        assert_eq!(of(1.5, ExcelDateTimeType::TimeDelta).as_deref(), Some("36:00:00"));
        assert_eq!((date(-3.0), date(f64::NAN), date(1e300)), (None, None, None));
        assert_eq!((float(0.1), float(3.0), float(1e300)), ("0.1".into(), "3".into(), "1e300".into()));
    }

    /// Rows of cells, numbers where they are such; the text of the sheet.
    #[track_caller]
    fn check(rows: &[&[&str]], merged: &[Dimensions], text: &str) {
        let mut cells = Cells::new();
        for (values, row) in rows.iter().zip(0..) {
            for (value, column) in values.iter().zip(0..).filter(|(value, _)| !value.is_empty()) {
                let is_words = value.parse::<f64>().is_err();
                cells.entry(row).or_default().insert(column, Cell { text: (*value).to_owned(), is_words });
            }
        }
        let mut draft = Draft::new(1 << 20);
        write_sheet(&mut draft, "S", cells, merged).unwrap();
        assert_eq!(draft.text(), text);
    }

    #[test]
    fn rows_name_their_columns() {
        check(&[&["item", "2020"], &["nut", "3"]], &[], "item | 2020\nitem: nut | 2020: 3\n");
        check(
            &[&["Prices of parts"], &[], &["item", "EUR"], &["nut", "3"], &[], &["bolt", "4"]],
            &[],
            "Prices of parts\nitem | EUR\nitem: nut | EUR: 3\nitem: bolt | EUR: 4\n",
        );
        check(&[&["1", "2"], &["3", "4"]], &[], "1 | 2\n3 | 4\n");
        check(&[&["name", "town"], &["Ada", "London"]], &[], "name | town\nname: Ada | town: London\n");
    }

    #[test]
    fn merged_cells_are_in_each_of_their_rows() {
        let merged = [Dimensions::new((1, 0), (2, 0))];
        check(&[&["kind", "n"], &["nut", "3"], &["", "4"]], &merged, "kind | n\nkind: nut | n: 3\nkind: nut | n: 4\n");
    }
}
