// Activations as the CPU's kernels have them; see `kernels/cpu/elementary.rs` for source and error.

fn sigmoid(x: f32) -> f32 {
    let e = exp(max(-abs(x), -87.0));
    return select(1.0, e, x < 0.0) / (1.0 + e);
}

fn none(x: f32) -> f32 { return x; }

fn gelu(x: f32) -> f32 {
    let a = min(abs(x), 6.0);
    var p = 2.8921895e-5;
    p = fma(a, p, -7.310799e-4);
    p = fma(a, p, 7.948806e-3);
    p = fma(a, p, -5.3195264e-2);
    p = fma(a, p, -4.5894486e-1);
    p = fma(a, p, -1.15114);
    p = fma(a, p, -1.0);
    return fma(-a, exp2(p), max(x, 0.0));
}

fn gelu_tanh(x: f32) -> f32 {
    return x * sigmoid(fma(x * x * 0.044715, x, x) * 1.5957692);
}

fn relu(x: f32) -> f32 { return max(x, 0.0); }

fn silu(x: f32) -> f32 { return x * sigmoid(x); }

fn tanh_of(x: f32) -> f32 {
    let e = exp(max(-2.0 * abs(x), -87.0));
    let magnitude = (1.0 - e) / (1.0 + e);
    return select(magnitude, -magnitude, x < 0.0);
}
