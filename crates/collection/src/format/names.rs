//! The names that Cento gives to what lies in a collection.
//!
//! Whatever has another name is not Cento's: it is neither read nor removed.

/// A generation: a number as it is written, without sign or leading zeros.
pub fn generation(name: &str) -> Option<u64> {
    name.parse().ok().filter(|number: &u64| *number > 0 && number.to_string() == name)
}

/// The generation of `manifests/<generation>.json`.
pub fn manifest(name: &str) -> Option<u64> {
    generation(name.strip_suffix(".json")?)
}

/// Tells whether this names a manifest, or one that was being written.
pub fn is_manifest(name: &str) -> bool {
    manifest(name.strip_suffix(".tmp").unwrap_or(name)).is_some()
}

/// Tells whether this is `<generation>-<n>`, as the folder of a segment is named.
pub fn is_segment(name: &str) -> bool {
    let parts = name.split_once('-');
    parts.is_some_and(|(of, n)| generation(of).is_some() && (n == "0" || generation(n).is_some()))
}

/// Tells whether this is `<generation>-<segment>`, as the tombstones of a segment are named.
pub fn is_tombstones(name: &str) -> bool {
    name.split_once('-').is_some_and(|(of, segment)| generation(of).is_some() && is_segment(segment))
}

/// The generation that wrote a segment or tombstones of this name.
pub fn written_by(name: &str) -> Option<u64> {
    generation(name.split_once('-')?.0)
}

/// Tells whether this names the reports of a generation.
pub fn is_reports(name: &str) -> bool {
    generation(name).is_some()
}

/// Tells whether this names a pin.
pub fn is_pin(name: &str) -> bool {
    generation(name).is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_that_cento_gives_are_its_own() {
        let others =
            ["", "-", "0", "0-0", "01-0", "1-00", "+1-0", "1-+0", "1", "1-0-", "../../x", "1-0/..", "1-0 ", "١-٠"];
        assert!(["1-0", "11-3", "18446744073709551615-0"].iter().all(|name| is_segment(name)));
        assert!(["2-1-0", "12-11-3"].iter().all(|name| is_tombstones(name)));
        assert!(others.iter().all(|name| !is_segment(name) && !is_tombstones(name)));
        assert!(!is_segment("18446744073709551616-0") && !is_segment("2-1-0") && !is_tombstones("1-0"));
        assert!(is_manifest("7.json") && is_manifest("7.json.tmp"));
        assert!(["07.json", "+7.json", "x.json", "7", "7.json.bak", ".json"].iter().all(|name| !is_manifest(name)));
        assert!(is_pin("7") && !is_pin("07") && !is_pin("+7"));
    }
}
