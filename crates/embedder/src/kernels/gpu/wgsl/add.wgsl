// x[i] += y[i].

@group(0) @binding(0) var<storage, read_write> x: array<f32>;
@group(0) @binding(1) var<storage, read> y: array<f32>;

fn each(number: u32) {
    if (number < arrayLength(&x)) { x[number] += y[number]; }
}
