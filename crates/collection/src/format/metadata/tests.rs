//! Fields and stored metadata against the documents they were made of.

use cento_corpus::{Field, Format, Metadata, Value};
use proptest::prelude::*;

use super::fields::{Described, read_metadata, write_metadata};

fn metadata(json: &str) -> Metadata {
    serde_json::from_str(json).unwrap()
}

fn described<'a>(id: &'a str, origin: &'a str, title: &'a str, metadata: &'a Metadata) -> Described<'a> {
    Described { id, origin, title, format: Format::Markdown, metadata }
}

#[test]
fn every_document_has_its_names_and_types() {
    let metadata = metadata(r#"{"title": "Own", "tags": ["b", "a", 3, "a"], "none": []}"#);
    let fields = described("id", "root/sub/Note.MD", "Title", &metadata).fields();
    let shown: Vec<String> = fields.iter().map(|(name, key)| format!("{name} {key:?}")).collect();
    assert_eq!(
        shown,
        [
            "id String(\"id\")",
            "root String(\"root\")",
            "path String(\"sub/Note.MD\")",
            "type String(\"markdown\")",
            "type String(\"md\")",
            "type String(\"md\")",
            "title String(\"Title\")",
            "tags String(\"b\")",
            "tags String(\"a\")",
            "tags Integer(3)",
            "tags String(\"a\")",
            "meta.title String(\"Own\")",
        ]
    );
    let alone = described("x", "x", "", &Metadata::new()).fields();
    assert_eq!(alone.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>(), ["id", "root", "path", "type", "type"]);
}

proptest! {
    #[test]
    fn stored_metadata_keeps_every_bit(bits in prop::collection::vec(any::<u64>(), 0..8), text in ".*", integer in any::<i64>()) {
        let floats = bits.into_iter().map(f64::from_bits).filter(|float| float.is_finite()).map(Value::Float).collect();
        let metadata = Metadata::from([
            ("floats".to_owned(), Field::Many(floats)),
            ("text".to_owned(), Field::One(text.into())),
            ("float".to_owned(), Field::One(Value::Integer(integer))),
        ]);
        prop_assert_eq!(read_metadata(&write_metadata(&metadata)).unwrap(), metadata);
    }
}

#[test]
fn stored_metadata_that_is_none_is_refused() {
    for stored in
        ["", "[]", r#"{"a": null}"#, r#"{"a": {"float": "x"}}"#, r#"{"a": {"float": "inf"}}"#, r#"{"a": [[1]]}"#]
    {
        assert!(read_metadata(stored).is_err(), "{stored}");
    }
}
