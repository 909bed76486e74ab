// Each head of queries and of keys in rows q | k | v, divided by the root of its mean square (around zero, or around
// its mean) and scaled. A thread takes a head.
// In front: A, G, D, EPSILON, AROUND_MEAN.

const ROW = (A + 2u * G) * D;

@group(0) @binding(0) var<storage, read_write> qkv: array<f32>;
@group(0) @binding(1) var<storage, read> of_queries: array<f32>;
@group(0) @binding(2) var<storage, read> of_keys: array<f32>;

fn each(number: u32) {
    let token = number / (A + G);
    let head = number % (A + G);
    if (token >= arrayLength(&qkv) / ROW) { return; }
    let first = token * ROW + head * D;
    var centre = 0.0;
    if (AROUND_MEAN) {
        for (var d = 0u; d < D; d++) { centre += qkv[first + d]; }
        centre /= f32(D);
    }
    var squares = 0.0;
    for (var d = 0u; d < D; d++) {
        let value = qkv[first + d] - centre;
        squares = fma(value, value, squares);
    }
    let factor = 1.0 / sqrt(squares / f32(D) + EPSILON);
    for (var d = 0u; d < D; d++) {
        let scale = select(of_keys[d], of_queries[d], head < A);
        qkv[first + d] = (qkv[first + d] - centre) * factor * scale;
    }
}
