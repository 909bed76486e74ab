// Four 16-bit floats, each exactly: what the language offers may take the smallest for zero.

fn floats(halves: vec2<u32>) -> vec4<f32> {
    let bits = vec4(halves.x, halves.x >> 16u, halves.y, halves.y >> 16u);
    let magnitude = bits & vec4(0x7fffu);
    let normal = bitcast<vec4<f32>>((magnitude << vec4(13u)) + vec4(0x38000000u));
    let small = vec4<f32>(magnitude) * 5.9604645e-8; // below 2^-14: multiples of 2^-24
    let sign = select(vec4(1.0), vec4(-1.0), (bits & vec4(0x8000u)) != vec4(0u));
    return sign * select(normal, small, magnitude < vec4(0x400u));
}
