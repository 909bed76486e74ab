// One row for each span of rows [H], before it is scaled to unit length. A thread takes a column of a span, from the
// first row to the last.
// In front: H, MODE.

const MEAN = 0u; // as `Pool`
const MEAN_SQRT_LENGTH = 1u;
const WEIGHTED_MEAN = 2u;
const MAX = 3u;
const FIRST = 4u;
const LAST = 5u;

@group(0) @binding(0) var<storage, read> rows: array<f32>;
@group(0) @binding(1) var<storage, read> spans: array<u32>; // [S, 3]: first row, one past the last, place of the first in its text
@group(0) @binding(2) var<storage, read_write> out: array<f32>;

// A NaN replaces any maximum, and is replaced by none; by its bits, since a driver may compute as if there were none.
fn larger(a: f32, b: f32) -> f32 {
    let is_number = (bitcast<u32>(b) & 0x7fffffffu) <= 0x7f800000u;
    let was_number = (bitcast<u32>(a) & 0x7fffffffu) <= 0x7f800000u;
    return select(b, select(a, b, was_number && b > a), is_number);
}

@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) index: u32) {
    let span = 3u * group.x;
    let column = group.y * 64u + index;
    if (column >= H) { return; }
    var begin = spans[span];
    var end = spans[span + 1u];
    let place = f32(spans[span + 2u]);
    let length = f32(end - begin);
    if (MODE == FIRST) { end = begin + 1u; }
    if (MODE == LAST) { begin = end - 1u; }
    var sum = select(0.0, rows[begin * H + column], MODE == MAX);
    for (var row = begin; row < end; row++) {
        let value = rows[row * H + column];
        if (MODE == MAX) {
            sum = larger(sum, value);
        } else {
            sum += select(1.0, place + f32(row - begin + 1u), MODE == WEIGHTED_MEAN) * value;
        }
    }
    var divisor = 1.0;
    if (MODE == MEAN) { divisor = length; }
    if (MODE == MEAN_SQRT_LENGTH) { divisor = sqrt(length); }
    if (MODE == WEIGHTED_MEAN) { divisor = length * (place + 0.5 * (length + 1.0)); }
    out[group.x * H + column] = sum / divisor;
}
