//! Runs the benchmarks at full size: `cento-bench [MODEL_FOLDER]`, one JSON object a line.

use std::path::Path;

fn main() -> anyhow::Result<()> {
    let print = |value: String| println!("{value}");
    print(serde_json::to_string(&cento_benches::scan(100_000, 50)?)?);
    for ef in [32, 64, 128] {
        print(serde_json::to_string(&cento_benches::graph(10_000, 200, ef)?)?);
    }
    if let Some(model) = std::env::args_os().nth(1) {
        print(serde_json::to_string(&cento_benches::embed(Path::new(&model), 2000)?)?);
    }
    Ok(())
}
