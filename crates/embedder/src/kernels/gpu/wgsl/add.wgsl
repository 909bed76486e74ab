// x[i] += y[i].

@group(0) @binding(0) var<storage, read_write> x: array<f32>;
@group(0) @binding(1) var<storage, read> y: array<f32>;

@compute @workgroup_size(64)
fn main(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) index: u32,
) {
    let number = (group.y * groups.x + group.x) * 64u + index;
    if (number < arrayLength(&x)) { x[number] += y[number]; }
}
