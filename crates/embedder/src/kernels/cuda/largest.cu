// The rows with the largest products, kept for each query while blocks of rows pass by.
//
// A key orders rows by product, larger first, then by number, smaller first: no two are equal, so that what is kept does not
// depend on the order in which threads come. One block a query: new keys above the smallest kept are appended to its list, and
// where the list grew beyond the limit, the limit-th key is found byte by byte and what is below it dropped.
// Cost: products are read once; the list is read nine times when it is cut.
#include "device.cuh"

struct LargestArguments {
    u64* keys;             // [Q, capacity], in place; capacity is at least limit + n_rows
    u32* counts;           // [Q] keys in each list, in place; at most `limit` before and after
    u64* floors;           // [Q] the smallest kept key where a list was cut, else 0, in place
    const float* products; // [Q, n_rows]
    const u32* allowed;    // bits of the rows of this block that count, or null: all
    u32 first_row;         // number of the block's first row
    u32 n_rows;
    u32 capacity;
    u32 limit;
};

constexpr u32 LARGEST_THREADS = 512;

struct LargestState {
    u32 histogram[256];
    u64 prefix;
    u32 count, kept, rank;
};

// Larger floats have larger words.
__device__ inline u32 ordered(float x) {
    union {
        float value;
        u32 word;
    } bits = {x};
    return bits.word >> 31 ? ~bits.word : bits.word | 0x80000000u;
}

// The `rank`-th largest of `count` keys, in `state->prefix`.
__device__ inline void select_key(const u64* keys, u32 count, u32 rank, LargestState* state) {
    if (threadIdx.x == 0) state->prefix = 0, state->rank = rank;
    for (int shift = 56; shift >= 0; shift -= 8) {
        for (u32 bin = threadIdx.x; bin < 256; bin += blockDim.x) state->histogram[bin] = 0;
        __syncthreads();
        const u64 prefix = state->prefix;
        for (u32 at = threadIdx.x; at < count; at += blockDim.x) {
            const u64 key = keys[at];
            if (shift == 56 || key >> (shift + 8) == prefix >> (shift + 8)) atomicAdd(&state->histogram[key >> shift & 255], 1u);
        }
        __syncthreads();
        if (threadIdx.x == 0) {
            u32 bin = 255;
            while (state->histogram[bin] < state->rank) state->rank -= state->histogram[bin--];
            state->prefix |= u64(bin) << shift;
        }
        __syncthreads();
    }
}

__device__ inline void keep_largest(const LargestArguments& a) {
    SHARED(LargestState, state);
    u64* keys = a.keys + size_t(blockIdx.x) * a.capacity;
    const float* products = a.products + size_t(blockIdx.x) * a.n_rows;
    const u64 floor = a.floors[blockIdx.x];
    if (threadIdx.x == 0) state->count = a.counts[blockIdx.x], state->kept = 0;
    __syncthreads();
    for (u32 row = threadIdx.x; row < a.n_rows; row += blockDim.x) {
        if (a.allowed && !(a.allowed[row / 32] >> row % 32 & 1)) continue;
        const u64 key = u64(ordered(products[row])) << 32 | u32(~(a.first_row + row));
        if (key > floor) keys[atomicAdd(&state->count, 1u)] = key;
    }
    __syncthreads();
    const u32 count = state->count;
    if (count <= a.limit) {
        if (threadIdx.x == 0) a.counts[blockIdx.x] = count;
        return;
    }
    select_key(keys, count, a.limit, state);
    const u64 smallest = state->prefix;
    for (u32 first = 0; first < count; first += blockDim.x) {
        const u32 at = first + threadIdx.x;
        const u64 key = at < count ? keys[at] : 0;
        __syncthreads(); // what is written next was read by all: no more keys were kept than read
        if (at < count && key >= smallest) keys[atomicAdd(&state->kept, 1u)] = key;
        __syncthreads();
    }
    if (threadIdx.x == 0) a.counts[blockIdx.x] = a.limit, a.floors[blockIdx.x] = smallest;
}

EXPORT_AS(keep_largest, keep_largest, LargestArguments, float, f32, LARGEST_THREADS)
