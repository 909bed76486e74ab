// `each(number)` by a thread for every number from 0 up, in workgroups of 64 across both dimensions; beyond the last one, too.

@compute @workgroup_size(64)
fn main(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) index: u32,
) {
    each((group.y * groups.x + group.x) * 64u + index);
}
