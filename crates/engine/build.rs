//! Writes the vocabularies of the tokenizers that are built in.

use std::path::PathBuf;
use std::{env, fs};

use tiktoken_rs::CoreBPE;

#[allow(dead_code, reason = "looking up is for the crate")]
#[path = "src/bpe/table.rs"]
mod table;

/// Names, and the tokens of each but the special ones, which texts do not have.
const VOCABULARIES: [(&str, fn() -> &'static CoreBPE, u32); 2] =
    [("o200k", tiktoken_rs::o200k_base_singleton, 199_998), ("cl100k", tiktoken_rs::cl100k_base_singleton, 100_256)];

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed=src/bpe/table.rs");
    let folder = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets it"));
    for (name, bpe, n_tokens) in VOCABULARIES {
        let tokens: Vec<Vec<u8>> = bpe()._decode_native_and_split((0..n_tokens).collect()).collect();
        fs::write(folder.join(name), table::block(&tokens)).expect("the folder of the build can be written to");
    }
}
