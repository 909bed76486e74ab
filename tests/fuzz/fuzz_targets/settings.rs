//! Settings files: any bytes are an error or plain values by the names of options.
#![no_main]
#![allow(dead_code, reason = "of the command line's module, only reading is run")]

#[path = "../../../crates/cli/src/settings/file.rs"]
mod file;

use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;

static FOLDER: LazyLock<tempfile::TempDir> = LazyLock::new(|| tempfile::tempdir().unwrap());

fuzz_target!(|bytes: &[u8]| {
    let path = FOLDER.path().join(file::FILE);
    std::fs::write(&path, bytes).unwrap();
    match file::SettingsFile::read(&path, file::Author::Folder) {
        Ok(settings) => {
            for key in settings.values.keys() {
                assert!(settings.value(key.verb.as_deref(), &key.name).is_some(), "{key}");
            }
        }
        Err(error) => assert!(format!("{error:#}").contains(file::FILE)),
    }
});
