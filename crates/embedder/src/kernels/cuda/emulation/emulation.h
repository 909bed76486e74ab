// A CUDA device played by one thread of the host, for tests where there is no GPU.
//
// The threads of a block are fibers that run in turn from one barrier to the next, forwards or backwards: where a barrier is
// missing, one of the two orders reads what is not there yet. Shared memory begins as NaNs. A barrier that not all reach, or a
// warp operation by part of a warp, ends the launch with an error.
#pragma once

#include <ucontext.h>

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <vector>

typedef uint32_t u32;
typedef uint64_t u64;

#define __device__
#define SHARED(type, name) type* name = reinterpret_cast<type*>(emulated::device.shared.data())
#define EXPORT_AS(kernel, function, Arguments, type, suffix, threads)                 \
    static const emulated::Registration kernel##_##suffix##_registration(             \
        #kernel "_" #suffix, threads, [](const void* a) { function(*static_cast<const Arguments*>(a)); });

struct Index {
    u32 x, y, z;
};
inline thread_local Index threadIdx, blockIdx, blockDim, gridDim;

namespace emulated {

struct Kernel {
    u32 threads;
    void (*run)(const void* arguments);
};

inline std::map<std::string, Kernel>& kernels() {
    static std::map<std::string, Kernel> all;
    return all;
}

struct Registration {
    Registration(const char* name, u32 threads, void (*run)(const void*)) { kernels()[name] = {threads, run}; }
};

enum class State { READY, AT_WARP, AT_BLOCK, DONE };

struct Fiber {
    ucontext_t context;
    std::unique_ptr<char[]> stack;
    State state;
    u32 exchanges;
};

// What the lanes of a warp show each other; two sets of slots, as a lane can be one exchange ahead.
struct Warp {
    alignas(16) char slots[2][32][32];
};

struct Device {
    static constexpr size_t STACK_BYTES = 128 << 10;
    static constexpr size_t GUARD_BYTES = 4096; // behind shared memory; nothing may be written there
    std::vector<Fiber> fibers;
    std::vector<Warp> warps;
    std::vector<char> shared;
    ucontext_t scheduler;
    const Kernel* kernel;
    const void* arguments;
    u32 current;

    Fiber& fiber() { return fibers[current]; }
    void wait(State at) {
        fiber().state = at;
        swapcontext(&fiber().context, &scheduler);
    }
    // Where this lane shows a value, and where lane 0's is, once all have shown theirs.
    template <typename T> const T* exchange(const T& mine) {
        static_assert(sizeof(T) <= sizeof(Warp::slots[0][0]));
        auto& slots = warps[current / 32].slots[fiber().exchanges++ % 2];
        memcpy(slots[current % 32], &mine, sizeof(T));
        wait(State::AT_WARP);
        thread_local T seen[32];
        for (u32 lane = 0; lane < 32; lane++) memcpy(&seen[lane], slots[lane], sizeof(T));
        return seen;
    }
};
inline thread_local Device device;

inline void run_fiber() {
    device.kernel->run(device.arguments);
    device.wait(State::DONE);
}

inline bool all(u32 from, u32 to, State state) {
    for (u32 i = from; i < to; i++) {
        if (device.fibers[i].state != state) return false;
    }
    return true;
}

// Lets those go on that a barrier held, now that all are there; false if there are none.
inline bool release(u32 threads) {
    bool released = false;
    for (u32 warp = 0; warp < threads; warp += 32) {
        if (!all(warp, warp + 32, State::AT_WARP)) continue;
        for (u32 i = warp; i < warp + 32; i++) device.fibers[i].state = State::READY;
        released = true;
    }
    bool at_block = !released;
    for (u32 i = 0; i < threads; i++) {
        at_block &= device.fibers[i].state == State::AT_BLOCK || device.fibers[i].state == State::DONE;
    }
    for (u32 i = 0; at_block && i < threads; i++) {
        if (device.fibers[i].state != State::AT_BLOCK) continue;
        device.fibers[i].state = State::READY;
        released = true;
    }
    return released;
}

// Runs one block; the result is null, or what is wrong with it.
inline const char* run_block(u32 threads, bool backwards) {
    std::fill(device.shared.begin(), device.shared.end(), char(0xff));
    for (u32 i = 0; i < threads; i++) {
        Fiber& fiber = device.fibers[i];
        if (!fiber.stack) fiber.stack = std::make_unique<char[]>(Device::STACK_BYTES);
        getcontext(&fiber.context);
        fiber.context.uc_stack.ss_sp = fiber.stack.get();
        fiber.context.uc_stack.ss_size = Device::STACK_BYTES;
        makecontext(&fiber.context, run_fiber, 0);
        fiber.state = State::READY, fiber.exchanges = 0;
    }
    do {
        for (u32 n = 0; n < threads; n++) {
            device.current = backwards ? threads - 1 - n : n;
            if (device.fiber().state != State::READY) continue;
            threadIdx = {device.current, 0, 0};
            swapcontext(&device.scheduler, &device.fiber().context);
        }
    } while (release(threads));
    for (size_t i = device.shared.size() - Device::GUARD_BYTES; i < device.shared.size(); i++) {
        if (device.shared[i] != char(0xff)) return "a write beyond the shared memory of the block";
    }
    return all(0, threads, State::DONE) ? nullptr : "a barrier is not reached by all threads";
}

} // namespace emulated

inline void __syncthreads() { emulated::device.wait(emulated::State::AT_BLOCK); }
inline void __syncwarp() { emulated::device.wait(emulated::State::AT_WARP); }
inline float __shfl_xor_sync(u32, float x, u32 mask) {
    return emulated::device.exchange(x)[emulated::device.current % 32 ^ mask];
}
inline u32 atomicAdd(u32* at, u32 add) {
    const u32 before = *at;
    *at += add;
    return before;
}

struct bf16 {
    uint16_t bits;
};
struct f16 {
    uint16_t bits;
};

inline float word_as_float(u32 word) {
    float x;
    memcpy(&x, &word, 4);
    return x;
}
inline u32 float_as_word(float x) {
    u32 word;
    memcpy(&word, &x, 4);
    return word;
}

inline float to_f32(float x) { return x; }
inline float to_f32(bf16 x) { return word_as_float(u32(x.bits) << 16); }
inline float to_f32(f16 x) {
    const u32 exponent = x.bits >> 10 & 31, fraction = x.bits & 1023;
    const float sign = x.bits >> 15 ? -1.0f : 1.0f;
    if (exponent == 31) return fraction ? NAN : sign * INFINITY;
    return sign * (exponent ? ldexpf(float(1024 + fraction), int(exponent) - 25) : ldexpf(float(fraction), -24));
}

template <typename T> T from_f32(float x);
template <> inline float from_f32<float>(float x) { return x; }
template <> inline bf16 from_f32<bf16>(float x) {
    const u32 word = float_as_word(x);
    if (x != x) return {0x7fff};
    return {uint16_t((word + 0x7fff + (word >> 16 & 1)) >> 16)};
}
template <> inline f16 from_f32<f16>(float x) {
    const uint16_t sign = float_as_word(x) >> 31 << 15;
    const float size = fabsf(x);
    if (x != x) return {0x7fff};
    if (size >= 65520.0f) return {uint16_t(sign | 0x7c00)};
    if (size == 0.0f) return {sign};
    int exponent = 0;
    frexpf(size, &exponent); // size = [0.5, 1) * 2^exponent
    const int unit = (exponent < -13 ? -13 : exponent) - 11;
    const u32 units = u32(nearbyintf(ldexpf(size, -unit))); // to even; 2048 units carry into the exponent
    return {uint16_t(sign | (u32(unit + 24) * 1024 + units))};
}

template <typename T> float half_of(u32 word, u32 i) {
    T x;
    x.bits = uint16_t(word >> 16 * i);
    return to_f32(x);
}

// As in device.cuh; the sum of a product is rounded once.
template <typename T> void multiply_add(float (&c)[4], const u32 (&a)[4], u32 b0, u32 b1) {
    struct Shown {
        u32 a[4], b[2];
    };
    const Shown* shown = emulated::device.exchange(Shown{{a[0], a[1], a[2], a[3]}, {b0, b1}});
    const u32 lane = emulated::device.current % 32;
    for (u32 i = 0; i < 4; i++) {
        const u32 row = lane / 4 + i / 2 * 8, column = lane % 4 * 2 + i % 2;
        double sum = c[i];
        for (u32 k = 0; k < 16; k++) {
            const u32 from = k % 8 / 2;
            sum += double(half_of<T>(shown[row % 8 * 4 + from].a[row / 8 + k / 8 * 2], k % 2)) *
                   half_of<T>(shown[column * 4 + from].b[k / 8], k % 2);
        }
        c[i] = float(sum);
    }
}

inline void load_transposed(u32 (&out)[4], const void* row) {
    const char* shared = emulated::device.shared.data();
    const char* at = static_cast<const char*>(row);
    if (at < shared || at + 16 > shared + emulated::device.shared.size() || (at - shared) % 16 != 0) {
        fprintf(stderr, "a row of a matrix is not in shared memory, or not aligned\n");
        abort();
    }
    const void* const* rows = emulated::device.exchange(row);
    const u32 lane = emulated::device.current % 32;
    for (u32 m = 0; m < 4; m++) {
        uint16_t values[2];
        for (u32 i = 0; i < 2; i++) values[i] = static_cast<const uint16_t*>(rows[8 * m + lane % 4 * 2 + i])[lane / 4];
        out[m] = u32(values[1]) << 16 | values[0];
    }
}
