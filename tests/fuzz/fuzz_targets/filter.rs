//! Filters: any text is an error with a place in it, or a filter that reads as itself again.
#![no_main]

use cento_engine::Filter;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| match Filter::parse(text) {
    Ok(filter) => assert_eq!(Filter::parse(filter.as_str()).unwrap(), filter),
    Err(error) => assert!(!error.to_string().is_empty()),
});
