// out[t][j] = activate(x[t][ACTIVATED + j]) * x[t][OTHER + j], x [T, 2F], out [T, F]; source: Shazeer 2020.
// In front: F, ACTIVATED, OTHER, `activate`.

@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read_write> out: array<f32>;

@compute @workgroup_size(64)
fn main(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) index: u32,
) {
    let number = (group.y * groups.x + group.x) * 64u + index;
    if (number >= arrayLength(&out)) { return; }
    let first = number / F * 2u * F + number % F;
    out[number] = activate(x[first + ACTIVATED]) * x[first + OTHER];
}
