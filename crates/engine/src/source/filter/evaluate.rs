//! From a filter to the documents it admits: by binary searches in the columns of metadata.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};

use roaring::RoaringBitmap;
use serde::{Deserialize, Serialize};

use super::anchor::{Anchor, stored_names};
use super::tree::{Condition, Constant, Filter, Literal, Node, Test};
use super::{FilterError, Place};
use cento_collection::Result;
use cento_collection::format::metadata::{BUILT_IN, Comparison, FieldType, MetadataColumns, Stored};

/// The field that may be written as ids show it, with the root before it.
const PATH: &str = "path";

/// The field with the name of a document's root.
const ROOT: &str = "root";

/// The fields of a collection and the types of their values.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Schema {
    fields: BTreeMap<String, BTreeSet<FieldType>>,
}

impl Schema {
    /// The fields of some segments; those of every document are there even if there is none.
    pub(crate) fn of<'s>(segments: impl IntoIterator<Item = &'s MetadataColumns>) -> Result<Self> {
        let strings = || BTreeSet::from([FieldType::String]);
        let mut fields: BTreeMap<_, _> = BUILT_IN.map(|name| (name.to_owned(), strings())).into();
        for columns in segments {
            for (name, types) in columns.fields()? {
                fields.entry(name.to_owned()).or_default().extend(types);
            }
        }
        Ok(Self { fields })
    }

    /// Adds the fields of other segments.
    pub(crate) fn extend(&mut self, other: Self) {
        for (name, types) in other.fields {
            self.fields.entry(name).or_default().extend(types);
        }
    }

    /// The fields, ascending.
    pub(crate) fn fields(&self) -> &BTreeMap<String, BTreeSet<FieldType>> {
        &self.fields
    }

    /// Checks that every field of a filter is there and can be compared with what it is compared with.
    pub(crate) fn check(&self, filter: &Filter) -> Result<(), FilterError> {
        self.check_node(&filter.root, &filter.text)
    }

    fn check_node(&self, node: &Node, text: &str) -> Result<(), FilterError> {
        match node {
            Node::And(nodes) | Node::Or(nodes) => nodes.iter().try_for_each(|node| self.check_node(node, text)),
            Node::Not(node) => self.check_node(node, text),
            Node::Condition(condition) => self.check_condition(condition, text),
        }
    }

    fn check_condition(&self, condition: &Condition, text: &str) -> Result<(), FilterError> {
        let Condition { field, span, test } = condition;
        let mut types: BTreeSet<FieldType> =
            stored_names(field).filter_map(|name| self.fields.get(name)).flatten().copied().collect();
        types.extend(Anchor::of(field).map(Anchor::kind));
        if types.is_empty() {
            let known = self.fields.keys().map(String::as_str).chain(Anchor::ALL.map(Anchor::name));
            let nearest = known.min_by_key(|known| strsim::damerau_levenshtein(known, field));
            return Err(FilterError::UnknownField {
                field: field.clone(),
                nearest: nearest.unwrap_or_default().to_owned(),
                known: self.fields.keys().cloned().collect(),
                place: Place::new(text, span),
            });
        }
        let wrong = |literal: &&Literal| match test {
            Test::StartsWith(_) => !types.contains(&FieldType::String),
            _ => !types.iter().any(|one| literal.constant.compares_with(*one)),
        };
        match test.literals().iter().find(wrong) {
            None => Ok(()),
            Some(literal) => Err(FilterError::WrongType {
                field: field.clone(),
                types: types.into_iter().collect(),
                value: text[literal.span.clone()].to_owned(),
                value_type: literal.constant.type_name(),
                place: Place::new(text, &literal.span),
            }),
        }
    }
}

impl Filter {
    /// The documents of a segment that the filter admits, dead ones too. What the segment has no such field for is not
    /// admitted: whether the collection has it is for [`Schema::check`] to say. A filter that asks where chunks stand
    /// admits rows, and no documents.
    pub(crate) fn documents(&self, columns: &MetadataColumns) -> Result<RoaringBitmap> {
        self.root.documents(columns)
    }
}

impl Node {
    pub(super) fn documents(&self, columns: &MetadataColumns) -> Result<RoaringBitmap> {
        match self {
            Self::And(nodes) => {
                nodes.iter().try_fold(columns.all(), |found, node| Ok(found & node.documents(columns)?))
            }
            Self::Or(nodes) => {
                nodes.iter().try_fold(RoaringBitmap::new(), |found, node| Ok(found | node.documents(columns)?))
            }
            Self::Not(node) => Ok(columns.all() - node.documents(columns)?),
            Self::Condition(condition) => condition.documents(columns),
        }
    }
}

impl Condition {
    /// By what documents have under the name of the field.
    pub(super) fn documents(&self, columns: &MetadataColumns) -> Result<RoaringBitmap> {
        let field = self.field.as_str();
        let matching = |comparison, position: &dyn Fn(Stored<'_>) -> Option<Ordering>| {
            stored_names(field).try_fold(RoaringBitmap::new(), |found, name| {
                Result::Ok(found | columns.matching(name, comparison, position)?)
            })
        };
        let any_of = |literals: &[Literal]| {
            literals.iter().try_fold(RoaringBitmap::new(), |found, literal| {
                let equal = matching(Comparison::Equal, &|stored| literal.constant.position(stored))?;
                Result::Ok(found | equal | literal.constant.shown_path(field, columns, Constant::position)?)
            })
        };
        match &self.test {
            Test::Compare(comparison, literal) => matching(*comparison, &|stored| literal.constant.position(stored)),
            Test::AnyOf(literals) => any_of(literals),
            Test::NoneOf(literals) => Ok(self.having(columns)? - any_of(literals)?),
            Test::StartsWith(literal) => {
                let constant = &literal.constant;
                let begins = matching(Comparison::Equal, &|stored| constant.prefix_position(stored))?;
                Ok(begins | constant.shown_path(field, columns, Constant::prefix_position)?)
            }
            Test::Exists => self.having(columns),
            Test::Missing => Ok(columns.all() - self.having(columns)?),
        }
    }

    /// The documents that have anything under the name of the field.
    pub(super) fn having(&self, columns: &MetadataColumns) -> Result<RoaringBitmap> {
        stored_names(&self.field)
            .try_fold(RoaringBitmap::new(), |found, name| Result::Ok(found | columns.having(name)?))
    }
}

impl Test {
    pub(super) fn literals(&self) -> &[Literal] {
        match self {
            Self::Compare(_, literal) | Self::StartsWith(literal) => std::slice::from_ref(literal),
            Self::AnyOf(literals) | Self::NoneOf(literals) => literals,
            Self::Exists | Self::Missing => &[],
        }
    }
}

impl Constant {
    fn compares_with(&self, kind: FieldType) -> bool {
        matches!(
            (self, kind),
            (Self::Boolean(_), FieldType::Boolean)
                | (Self::Integer(_) | Self::Float(_), FieldType::Integer | FieldType::Float)
                | (Self::Date(_) | Self::String(_, Some(_)), FieldType::Date)
                | (Self::String(..), FieldType::String)
        )
    }

    fn type_name(&self) -> &'static str {
        match self {
            Self::Boolean(_) => "a boolean",
            Self::Integer(_) => "an integer",
            Self::Float(_) => "a float",
            Self::Date(_) => "a date",
            Self::String(..) => "a string",
        }
    }

    /// Documents whose path this is where the root stands before it, as in their ids; nothing for other fields.
    fn shown_path(
        &self,
        field: &str,
        columns: &MetadataColumns,
        position: fn(&Self, Stored<'_>) -> Option<Ordering>,
    ) -> Result<RoaringBitmap> {
        let (PATH, Self::String(shown, _)) = (field, self) else { return Ok(RoaringBitmap::new()) };
        let string = |text: &str| Self::String(text.to_owned(), None);
        let Some((root, path)) = shown.split_once('/') else {
            // The beginning of a root's name begins the paths in it; a whole path goes on behind it.
            let is_path = position(self, Stored::String(&format!("{shown}/"))) == Some(Ordering::Equal);
            let roots = || columns.matching(ROOT, Comparison::Equal, |stored| position(self, stored));
            return if is_path { roots() } else { Ok(RoaringBitmap::new()) };
        };
        let (root, path) = (string(root), string(path));
        let of_root = columns.matching(ROOT, Comparison::Equal, |stored| root.position(stored))?;
        Ok(of_root & columns.matching(PATH, Comparison::Equal, |stored| position(&path, stored))?)
    }

    /// Where a stored value stands: before this, in it, or after it; `None` if the two do not compare.
    pub(super) fn position(&self, stored: Stored<'_>) -> Option<Ordering> {
        Some(match (stored, self) {
            (Stored::Boolean(value), Self::Boolean(constant)) => value.cmp(constant),
            (Stored::Integer(value), Self::Integer(constant)) => value.cmp(constant),
            (Stored::Integer(value), Self::Float(constant)) => compare(value, *constant),
            (Stored::Float(value), Self::Integer(constant)) => compare(*constant, value).reverse(),
            (Stored::Float(value), Self::Float(constant)) => value.partial_cmp(constant)?,
            (Stored::String(value), Self::String(constant, _)) => value.cmp(constant.as_str()),
            (Stored::Date(value), Self::Date(date) | Self::String(_, Some(date))) => match date.covers() {
                day if value < day.start => Ordering::Less,
                day if value < day.end => Ordering::Equal,
                _ => Ordering::Greater,
            },
            _ => return None,
        })
    }

    /// The same for what begins with this string.
    pub(super) fn prefix_position(&self, stored: Stored<'_>) -> Option<Ordering> {
        let (Stored::String(value), Self::String(prefix, _)) = (stored, self) else { return None };
        Some(if value.starts_with(prefix.as_str()) { Ordering::Equal } else { value.cmp(prefix.as_str()) })
    }
}

/// A whole number beside a finite one, exactly: no rounding to 53 bits.
fn compare(integer: i64, float: f64) -> Ordering {
    const LIMIT: f64 = 9_223_372_036_854_775_808.0; // 2^63
    if float >= LIMIT {
        return Ordering::Less;
    }
    if float < -LIMIT {
        return Ordering::Greater;
    }
    integer.cmp(&(float.trunc() as i64)).then(0_f64.total_cmp(&(float.fract() + 0.0)))
}
