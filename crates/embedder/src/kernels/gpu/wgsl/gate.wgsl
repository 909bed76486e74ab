// out[t][j] = activate(x[t][ACTIVATED + j]) * x[t][OTHER + j], x [T, 2F], out [T, F]; source: Shazeer 2020.
// In front: F, ACTIVATED, OTHER, `activate`.

@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read_write> out: array<f32>;

fn each(number: u32) {
    if (number >= arrayLength(&out)) { return; }
    let first = number / F * 2u * F + number % F;
    out[number] = activate(x[first + ACTIVATED]) * x[first + OTHER];
}
