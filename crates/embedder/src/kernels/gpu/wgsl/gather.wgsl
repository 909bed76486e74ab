// out = words[id] + places[place] by rows [H]. A thread takes a value.
// In front: H, `place_of`.

@group(0) @binding(0) var<storage, read_write> out: array<f32>;
@group(0) @binding(1) var<storage, read> tokens: array<u32>; // [2, T]: ids, then places
@group(0) @binding(2) var<storage, read> words: array<f32>;

fn each(number: u32) {
    let token = number / H;
    let n_tokens = arrayLength(&tokens) / 2u;
    if (token >= n_tokens) { return; }
    let column = number % H;
    out[number] = words[tokens[token] * H + column] + place_of(tokens[n_tokens + token] * H + column);
}
