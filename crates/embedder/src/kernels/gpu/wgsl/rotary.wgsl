// Queries and keys turned by the place of their token: the first 2 HALF values of each head, in pairs of two halves.
// Source: Su et al. 2021, eq. 34. A thread takes a pair.
// In front: A, G, D, HALF.

const ROW = (A + 2u * G) * D;

@group(0) @binding(0) var<storage, read_write> qkv: array<f32>;
@group(0) @binding(1) var<storage, read> positions: array<u32>;
@group(0) @binding(2) var<storage, read> cosines: array<f32>;
@group(0) @binding(3) var<storage, read> sines: array<f32>;

fn each(number: u32) {
    let token = number / ((A + G) * HALF);
    if (token >= arrayLength(&qkv) / ROW) { return; }
    let pair = number % HALF;
    let first = token * ROW + number / HALF % (A + G) * D + pair;
    let angle = positions[token] * HALF + pair;
    let x1 = qkv[first];
    let x2 = qkv[first + HALF];
    qkv[first] = fma(x1, cosines[angle], -(x2 * sines[angle]));
    qkv[first + HALF] = fma(x2, cosines[angle], x1 * sines[angle]);
}
