//! A plan: what is run, which of its figures are shown, and how. One TOML file a reproduction.
//!
//! ```toml
//! title = "Hybrid retrieval and its arms"
//! source = "recorded 2026-11-21"
//! text = "What it shows."
//! data = ["scifact"]                      # folders of the evaluation data that it needs
//!
//! [variables]                             # a step that names {set} is run for each
//! set = ["scifact"]
//!
//! [[step]]
//! run = "eval {data}/{set} {work}/{set}.trec -m nDCG@10"
//! figures = { row = "{set}", column = "hybrid" }   # taken from the JSON answer; {@key} is a field of it
//!
//! [[table]]
//! title = "nDCG@10"
//! measure = "nDCG@10"
//!
//! [[picture]]                             # of one context; a step writes the trace: context 'a question' … --trace FILE
//! title = "One context"
//! trace = "{work}/one.json"
//! ```

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context as _, bail};
use serde::{Deserialize, Deserializer};

use super::report::{Kind, Scale};

/// Deviation that is still OK where a table names none: rounding to three digits.
pub(crate) const TOLERANCE: f64 = 0.0005;

/// One reproduction.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Plan {
    /// Name of its file.
    #[serde(skip)]
    pub(crate) name: String,
    pub(crate) title: String,
    pub(crate) source: String,
    pub(crate) text: String,
    #[serde(default)]
    pub(crate) data: Vec<String>,
    #[serde(default)]
    pub(crate) variables: BTreeMap<String, Vec<String>>,
    pub(crate) step: Vec<Step>,
    #[serde(default)]
    pub(crate) table: Vec<Table>,
    #[serde(default)]
    pub(crate) chart: Vec<Chart>,
    #[serde(default)]
    pub(crate) picture: Vec<Picture>,
}

/// Commands of one form.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Step {
    /// Arguments of `cento`, with variables in braces; what stands in single quotes is one. Several commands are run
    /// one after another for each value.
    #[serde(default, deserialize_with = "one_or_many")]
    pub(crate) run: Vec<String>,
    /// A program and its arguments instead: what makes data of another form into a set.
    pub(crate) script: Option<String>,
    /// A file that gets the answer of the last command, as JSON, for later steps.
    pub(crate) save: Option<String>,
    /// Taken from the answer of the last command.
    pub(crate) figures: Option<Take>,
}

/// Which figures of an answer are kept, and under which row and column.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Take {
    /// JSON pointer to an object of figures or an array of such; the whole answer if empty.
    #[serde(default)]
    pub(crate) from: String,
    pub(crate) row: String,
    pub(crate) column: String,
}

/// Figures side by side: columns of one `measure`, or `measures` of one `column`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Table {
    pub(crate) title: String,
    #[serde(default)]
    pub(crate) row_title: String,
    pub(crate) measure: Option<String>,
    #[serde(default)]
    pub(crate) measures: Vec<String>,
    pub(crate) column: Option<String>,
    /// In this order; all of them in the order of the steps if empty.
    #[serde(default)]
    pub(crate) rows: Vec<String>,
    #[serde(default)]
    pub(crate) columns: Vec<String>,
    #[serde(default = "tolerance")]
    pub(crate) tolerance: f64,
    /// Times and speeds belong to a machine: they are shown and not judged.
    #[serde(default = "judged")]
    pub(crate) judged: Judged,
    /// Published figures by row and column; they stand above recorded ones.
    #[serde(default)]
    pub(crate) published: BTreeMap<String, BTreeMap<String, f64>>,
}

/// Whether the figures of a table are compared with recorded ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Judged {
    Yes,
    No,
}

/// A drawing of figures: a series for each column of one `measure`, or for each of the `measures` of one `column`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Chart {
    pub(crate) title: String,
    pub(crate) kind: Kind,
    pub(crate) x_title: String,
    pub(crate) y_title: String,
    #[serde(default = "linear")]
    pub(crate) x_scale: Scale,
    pub(crate) measure: Option<String>,
    #[serde(default)]
    pub(crate) measures: Vec<String>,
    pub(crate) column: Option<String>,
    #[serde(default)]
    pub(crate) rows: Vec<String>,
    #[serde(default)]
    pub(crate) columns: Vec<String>,
    /// A measure whose values are the places on the x axis instead of the rows' names.
    pub(crate) x: Option<String>,
}

/// A drawing of one context. It is shown and not judged.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Picture {
    pub(crate) title: String,
    /// The file to which a step wrote the context's trace, `{work}` and the other folders in braces.
    pub(crate) trace: String,
}

fn one_or_many<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<String>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged, expecting = "a command or an array of commands")]
    enum Commands {
        One(String),
        Many(Vec<String>),
    }
    Ok(match Commands::deserialize(deserializer)? {
        Commands::One(command) => vec![command],
        Commands::Many(commands) => commands,
    })
}

fn tolerance() -> f64 {
    TOLERANCE
}

fn judged() -> Judged {
    Judged::Yes
}

fn linear() -> Scale {
    Scale::Linear
}

impl Plan {
    /// Every plan of a folder, by name.
    pub(crate) fn all(folder: &Path) -> anyhow::Result<Vec<Self>> {
        let entries = std::fs::read_dir(folder).with_context(|| {
            format!(
                "{}: no folder of reproductions; run this in Cento's sources, or name one with --plans",
                folder.display()
            )
        })?;
        let mut paths = entries.map(|entry| entry.map(|entry| entry.path())).collect::<Result<Vec<_>, _>>()?;
        paths.retain(|path| path.extension().is_some_and(|extension| extension == "toml"));
        paths.sort();
        let plans = paths.iter().map(|path| Self::read(path)).collect::<anyhow::Result<Vec<_>>>()?;
        if plans.is_empty() { bail!("{}: holds no reproduction (*.toml)", folder.display()) } else { Ok(plans) }
    }

    fn read(path: &Path) -> anyhow::Result<Self> {
        let text = std::fs::read_to_string(path).with_context(|| path.display().to_string())?;
        let mut plan: Self = toml::from_str(&text).with_context(|| path.display().to_string())?;
        plan.name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        plan.check().with_context(|| path.display().to_string())?;
        Ok(plan)
    }

    fn check(&self) -> anyhow::Result<()> {
        if let Some(step) = self.step.iter().find(|step| step.run.is_empty() == step.script.is_none()) {
            bail!("a step wants either `run` or `script`, this one has {:?} and {:?}", step.run, step.script);
        }
        let views = self.table.iter().map(|table| (&table.title, &table.measure, &table.measures, &table.column));
        let views =
            views.chain(self.chart.iter().map(|chart| (&chart.title, &chart.measure, &chart.measures, &chart.column)));
        for (title, measure, measures, column) in views {
            if measure.is_some() == column.is_some() || column.is_some() == measures.is_empty() {
                bail!("{title:?}: wants `measure`, or `measures` and `column`");
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(view: &str) -> anyhow::Result<Plan> {
        let text =
            format!("title = 't'\nsource = 's'\ntext = ''\n[[step]]\nrun = 'status'\n[[table]]\ntitle = 'x'\n{view}");
        let plan: Plan = toml::from_str(&text)?;
        plan.check()?;
        Ok(plan)
    }

    #[test]
    fn a_table_shows_columns_of_a_measure_or_measures_of_a_column() {
        assert_eq!(plan("measure = 'AP'").unwrap().table[0].tolerance, TOLERANCE);
        plan("measures = ['AP', 'RR']\ncolumn = 'dense'").unwrap();
        for wrong in ["", "measures = ['AP']", "column = 'dense'", "measure = 'AP'\ncolumn = 'dense'"] {
            assert!(plan(wrong).unwrap_err().to_string().contains("wants `measure`"), "{wrong}");
        }
        assert!(plan("measure = 'AP'\ncolour = 'red'").unwrap_err().to_string().contains("colour"));
    }
}
