// x = (x + residual - centre) / sqrt(variance + epsilon) * scale + shift by rows [H], in place; the variance is that
// around the centre, which is the mean or zero. A workgroup takes a row.
// In front: H, EPSILON, AROUND_MEAN, `residual_of`, `shift_of`.

const THREADS = 64u;

@group(0) @binding(0) var<storage, read_write> x: array<f32>;
@group(0) @binding(1) var<storage, read> scale: array<f32>;

var<workgroup> parts: array<f32, THREADS>;

fn summed(part: f32, index: u32) -> f32 {
    parts[index] = part;
    workgroupBarrier();
    for (var half = THREADS / 2u; half > 0u; half /= 2u) {
        if (index < half) { parts[index] += parts[index + half]; }
        workgroupBarrier();
    }
    let sum = parts[0];
    workgroupBarrier();
    return sum;
}

@compute @workgroup_size(64)
fn main(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) index: u32,
) {
    let row = group.y * groups.x + group.x;
    let is_row = row < arrayLength(&x) / H;
    let first = row * H;
    var centre = 0.0;
    if (AROUND_MEAN) {
        var part = 0.0;
        if (is_row) {
            for (var i = index; i < H; i += THREADS) { part += x[first + i] + residual_of(first + i); }
        }
        centre = summed(part, index) / f32(H);
    }
    var part = 0.0;
    if (is_row) {
        for (var i = index; i < H; i += THREADS) {
            let value = x[first + i] + residual_of(first + i) - centre;
            part = fma(value, value, part);
        }
    }
    let factor = 1.0 / sqrt(summed(part, index) / f32(H) + EPSILON);
    if (is_row) {
        for (var i = index; i < H; i += THREADS) {
            let value = x[first + i] + residual_of(first + i) - centre;
            x[first + i] = fma(value * factor, scale[i], shift_of(i));
        }
    }
}
