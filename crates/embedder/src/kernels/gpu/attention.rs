//! Attention within each text, and the tiles that it is made in.

use std::sync::Arc;

use super::adapter::WORKGROUP_BYTES;
use super::failure::{Failure, Result, failed};
use super::launch::{Literal, MEMBERS, bound, fours, of_heads, shape};
use super::record::{Setting, THREADS};
use super::table::Table;
use super::{Gpu, GpuRows, Recorder};
use crate::kernels::cpu::attention::RelativeBias;
use crate::kernels::cpu::heads::{Heads, Sight};
use crate::pack::Batch;

/// Attention within each text: \[T, (A + 2G) D\] → \[T, A D\].
pub(crate) struct GpuAttention<'a> {
    pub(crate) heads: Heads,
    pub(crate) scale: f32,
    pub(crate) bias: Option<&'a Arc<RelativeBias>>,
    pub(crate) sight: Sight,
}

impl GpuAttention<'_> {
    pub(crate) fn run(self, qkv: &GpuRows, batch: &Batch, recorder: &mut Recorder) -> Result<GpuRows> {
        let Self { heads, scale, bias, sight } = self;
        let tile = AttentionTile::of(heads.width);
        if tile.n_bytes(heads.width) > WORKGROUP_BYTES as usize {
            return Err(failed(Failure::WideHead { gpu: recorder.gpu().name(), width: heads.width }));
        }
        let setting = Setting { heads, scale, reach: bias.map(|bias| bias.reach), sight };
        let kernel = recorder.attention(setting, |gpu| text(setting, tile, gpu));
        let out = recorder.take(qkv.n_rows, heads.queries())?;
        let (n_tiles, tiles) = recorder.tiles(batch, tile.n_queries)?;
        let tiles_bytes = u64::from(n_tiles) * 3 * size_of::<u32>() as u64;
        let table = bias.map(|bias| recorder.bias(bias)).transpose()?;
        let mut buffers = vec![bound(qkv), (&tiles, tiles_bytes), bound(&out)];
        buffers.extend(table.as_ref().map(Table::bound));
        recorder.run(&kernel, &buffers, [n_tiles, heads.n as u32])?;
        Ok(out)
    }
}

/// The kernel's text behind all that it depends on.
fn text(setting: Setting, tile: AttentionTile, gpu: &Gpu) -> String {
    let Setting { heads, scale, reach, sight } = setting;
    let far = |n: usize| u32::try_from(n).unwrap_or(u32::MAX) as usize;
    let bias = match reach {
        None => "fn bias_of(head: u32, query: u32, key: u32) -> f32 { return 0.0; }\n".to_owned(),
        Some(reach) => format!(
            "@group(0) @binding(3) var<storage, read> biases: array<f32>;\n\
                 fn bias_of(head: u32, query: u32, key: u32) -> f32 {{\n\
                 return biases[head * {}u + {reach}u + key - query];\n}}\n",
            2 * reach + 1,
        ),
    };
    let sizes = [("BACK", far(sight.back)), ("AHEAD", far(sight.ahead))];
    let scale = format!("const SCALE = {};\n", Literal(scale));
    [of_heads(heads), shape(&sizes), scale, bias, tile.text(heads, gpu)].concat()
}

/// The queries that a workgroup answers, and the keys that it takes at a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct AttentionTile {
    pub(super) n_queries: usize,
    pub(super) n_keys: usize,
}

impl AttentionTile {
    const ALL: [[usize; 2]; 8] = [[32, 32], [32, 16], [16, 16], [16, 8], [8, 8], [8, 4], [4, 4], [4, 1]];

    /// The largest whose numbers fit a workgroup's memory.
    pub(super) fn of(width: usize) -> Self {
        let all = Self::ALL.map(|[n_queries, n_keys]| Self { n_queries, n_keys });
        let fitting = all.into_iter().find(|tile| tile.n_bytes(width) <= WORKGROUP_BYTES as usize);
        fitting.unwrap_or(Self { n_queries: 4, n_keys: 1 })
    }

    pub(super) fn n_bytes(self, width: usize) -> usize {
        let Self { n_queries, n_keys } = self;
        let fours = width.div_ceil(4);
        16 * (fours * n_queries + n_keys * (fours | 1) + n_keys * (n_queries / 4 + 1)) + 12 * n_queries
    }

    /// The kernel's text behind its shapes.
    fn text(self, heads: Heads, gpu: &Gpu) -> String {
        let Self { n_queries, n_keys } = self;
        let units = Units::of(self, heads.width);
        let text = include_str!("wgsl/attention.wgsl")
            .replace("SUMS\n", &units.sums())
            .replace("SCORES\n", &self.scores())
            .replace("RESCALE\n", &units.rescale())
            .replace("ADD\n", &units.add())
            .replace("PUT\n", &units.put());
        let memory = [
            fours(gpu, "queries", "4u * FOURS * QUERIES / 4u"),
            fours(gpu, "weights", "KEYS * LINE"),
            fours(gpu, "factors", "QUERIES / 4u"),
        ];
        [load_four(heads.width), shape(&[("QUERIES", n_queries), ("KEYS", n_keys)]), memory.concat(), text].concat()
    }

    /// The scores of a thread: of four queries with every key that is its own.
    fn scores(self) -> String {
        let places = self.n_queries / 4;
        let n_lanes = THREADS / places;
        let last = self.n_keys - 1;
        let [mut before, mut step, mut behind] = [const { String::new() }; 3];
        for (i, m) in MEMBERS.iter().enumerate() {
            step += &format!("let q_{m} = queries_at((4u * d + {i}u) * {places}u + place);\n");
        }
        for c in 0..self.n_keys.div_ceil(n_lanes) {
            before += &format!("let key_{c} = lane + {}u;\nvar product_{c} = vec4<f32>();\n", c * n_lanes);
            step += &format!("let k_{c} = shared_rows[min(key_{c}, {last}u) * STRIDE + d];\n");
            let score = |(i, m): (usize, &char)| {
                format!("score(head, min(first + 4u * place + {i}u, n_tokens - 1u), key + key_{c}, product_{c}.{m})")
            };
            for m in MEMBERS {
                step += &format!("product_{c} = fma(q_{m}, vec4(k_{c}.{m}), product_{c});\n");
            }
            let scores: Vec<String> = MEMBERS.iter().enumerate().map(score).collect();
            let four = scores.join(", ");
            behind += &format!("if (key_{c} < n_keys) {{ put_weights(key_{c} * LINE + place, vec4({four})); }}\n");
        }
        [before, "for (var d = 0u; d < FOURS; d++) {\n".to_owned(), step, "}\n".to_owned(), behind].concat()
    }
}

/// The sums of a thread: for each of some units, four values of each of four queries.
#[derive(Debug, Clone, Copy)]
struct Units {
    /// Fours of queries.
    places: usize,
    /// Of all threads.
    n: usize,
}

impl Units {
    fn of(tile: AttentionTile, width: usize) -> Self {
        let places = tile.n_queries / 4;
        Self { places, n: places * width.div_ceil(4) }
    }

    /// `each` of the units of a thread, one behind the other.
    fn of_thread(self, each: impl Fn(usize) -> String) -> String {
        (0..self.n.div_ceil(THREADS)).map(each).collect()
    }

    fn sums(self) -> String {
        self.of_thread(|c| {
            let (first, last) = (c * THREADS, self.places - 1);
            let sums: String = (0..4).map(|i| format!("var sum_{c}{i} = vec4<f32>();\n")).collect();
            format!(
                "let unit_{c} = index + {first}u;\nlet of_{c} = min(unit_{c} / FOURS, {last}u);\n\
                 let d_{c} = unit_{c} % FOURS;\n{sums}"
            )
        })
    }

    fn rescale(self) -> String {
        self.of_thread(|c| {
            let factor = |(i, m)| format!("sum_{c}{i} *= factors_at(of_{c}).{m};\n");
            MEMBERS.iter().enumerate().map(factor).collect()
        })
    }

    fn add(self) -> String {
        self.of_thread(|c| {
            let product = |(i, m)| format!("sum_{c}{i} = fma(vec4(w_{c}.{m}), v_{c}, sum_{c}{i});\n");
            let products: String = MEMBERS.iter().enumerate().map(product).collect();
            format!(
                "let w_{c} = weights_at(j * LINE + of_{c});\nlet v_{c} = shared_rows[j * STRIDE + d_{c}];\n{products}"
            )
        })
    }

    fn put(self) -> String {
        self.of_thread(|c| {
            let put = |i: usize| {
                format!(
                    "if (unit_{c} < {}u && 4u * of_{c} + {i}u < n_queries) {{\n\
                     let i = 4u * of_{c} + {i}u;\nput(start + first + i, head * D, 4u * d_{c}, sum_{c}{i} / sums[i]);\n}}\n",
                    self.n
                )
            };
            (0..4).map(put).collect()
        })
    }
}

/// The binding of `q | k | v`, and a function that reads four values of a head, zero beyond its width.
fn load_four(width: usize) -> String {
    let (element, body) = match width.is_multiple_of(4) {
        true => ("vec4<f32>", "return qkv[(at + d) / 4u];".to_owned()),
        false => {
            let value = |i: u32| format!("if (d + {i}u < D) {{ v[{i}] = qkv[at + d + {i}u]; }}");
            ("f32", format!("var v: vec4<f32>; {} return v;", (0..4).map(value).collect::<String>()))
        }
    };
    format!(
        "@group(0) @binding(0) var<storage, read> qkv: array<{element}>;\n\
         @group(0) @binding(1) var<storage, read> tiles: array<u32>;\n\
         @group(0) @binding(2) var<storage, read_write> out: array<f32>;\n\
         fn load_four(at: u32, d: u32) -> vec4<f32> {{ {body} }}\n"
    )
}
