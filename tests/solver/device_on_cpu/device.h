// CUDA's thread blocks on a CPU, for tests where there is no GPU.
//
// Included before a source, whose kernels are then functions. Blocks follow each other;
// the threads of one are fibers that run until they wait for others, or, where THREADED,
// threads of the system: a sanitizer then finds accesses that nothing orders.
#pragma once
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <sched.h>
#include <utility>
// each takes a compiler longer than most kernels
#if THREADED
#include <condition_variable>
#include <mutex>
#include <thread>
#include <vector>
#endif

#define __global__
#define __device__ static
#define __forceinline__ inline
#define __restrict__ __restrict
#define __launch_bounds__(...)
#define __shared__ static
#define __align__(n)

struct Place { unsigned x, y, z; };
#if THREADED
static thread_local
#else
static
#endif
    Place threadIdx, blockIdx;
static Place blockDim, gridDim;
struct uint2 { unsigned x, y; };
struct int2 { int x, y; };
struct alignas(16) uint4 { unsigned x, y, z, w; };
struct alignas(16) double2 { double x, y; };
struct alignas(16) float4 { float x, y, z, w; };
static inline float4 make_float4(float x, float y, float z, float w) { return {x, y, z, w}; }
using std::isfinite;
template <class T> static inline T max(T a, T b) { return a < b ? b : a; }
template <class T> static inline T min(T a, T b) { return b < a ? b : a; }
template <class T> static inline T __ldg(const T* p) { return *p; }
template <class T> static inline T __ldcs(const T* p) { return *p; }
template <class T> static inline T __ldcg(const T* p) { return *p; }
template <class T> static inline T atomicAdd(T* to, T value) {
  T before, sum;
  __atomic_load(to, &before, __ATOMIC_RELAXED);
  do sum = before + value;
  while (!__atomic_compare_exchange(to, &before, &sum, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED));
  return before;
}
static inline void __threadfence_system() {
  __atomic_thread_fence(__ATOMIC_SEQ_CST);
}
// all numbers in FP16: a compiler's own conversion takes long
static const struct Halves {
  float of[1 << 16];
  Halves() {
    for (int k = 0; k < 1 << 16; k++) {
      _Float16 value;
      const unsigned short bits = k;
      __builtin_memcpy(&value, &bits, 2);
      of[k] = (float)value;
    }
  }
} halves;
static inline float from_half(unsigned bits) { return halves.of[bits & 0xffffu]; }
static inline unsigned short to_half(float value) {
  unsigned bits;
  __builtin_memcpy(&bits, &value, 4);
  const unsigned short sign = bits >> 16 & 0x8000;
  bits &= 0x7fffffff;
  if (bits > 0x7f800000) return sign | 0x7e00;   // no number
  if (bits >= 0x477ff000) return sign | 0x7c00;  // rounds to infinity
  if (bits < 0x38800000) {
    // below 2^-14 they are 2^-24 apart, as numbers in FP32 between a half and one
    const float shifted = fabsf(value) + 0.5f;
    __builtin_memcpy(&bits, &shifted, 4);
    return sign | (bits - 0x3f000000);
  }
  // exponents begin 112 later; to the nearest, in the middle to the even one
  return sign | (bits + 0xc8000fff + (bits >> 13 & 1)) >> 13;
}
static inline unsigned two_halves(float high, float low) {
  return (unsigned)to_half(high) << 16 | to_half(low);
}
template <class Of> static inline unsigned of_halves(Of of) { return two_halves(of(16), of(0)); }
static inline unsigned twice(unsigned pair, char which) {
  return (which == 'h' ? pair >> 16 : pair & 0xffffu) * 0x10001u;
}
static inline unsigned add_halves(unsigned a, unsigned b) {
  return of_halves([=](int k) { return from_half(a >> k) + from_half(b >> k); });
}
static inline unsigned fma_halves(unsigned a, unsigned b, unsigned c) {
  // a product of two has 22 bits: its sum with a third is rounded once, nearly always
  return of_halves([=](int k) {
    return (float)((double)from_half(a >> k) * from_half(b >> k) + from_half(c >> k));
  });
}
static inline int __float_as_int(float value) {
  int bits;
  __builtin_memcpy(&bits, &value, 4);
  return bits;
}
static inline float __int_as_float(int bits) {
  float value;
  __builtin_memcpy(&value, &bits, 4);
  return value;
}

alignas(32) static char dynamic_shared[232448];
// what one thread does with the arguments of a launch
using Job = void (*)(void** arguments);

#if THREADED
struct Barrier {
  std::mutex mutex;
  std::condition_variable over;
  int arrived = 0;
  long round = 0;
  // as bar.sync of PTX, or bar.arrive, which does not wait
  void arrive(int threads, bool wait) {
    std::unique_lock lock(mutex);
    const long mine = round;
    if (++arrived == threads) {
      arrived = 0;
      ++round;
      over.notify_all();
    } else if (wait) {
      over.wait(lock, [&] { return round != mine; });
    }
  }
};

static void run_block(int threads, Job job, void** arguments) {
  const Place block = blockIdx;
  std::vector<std::thread> all;
  for (int t = 0; t < threads; t++)
    all.emplace_back([&, t] {
      blockIdx = block;
      threadIdx.x = t;
      job(arguments);
    });
  for (auto& one : all) one.join();
}
#else
// Leave a stack for another. swapcontext(3) makes a call of the system each time.
extern "C" void switch_stack(void** left, void* entered);
asm(R"(
  .type switch_stack, @function
switch_stack:
  pushq %rbp; pushq %rbx; pushq %r12; pushq %r13; pushq %r14; pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15; popq %r14; popq %r13; popq %r12; popq %rbx; popq %rbp
  ret
)");

struct Fiber {
  void* at;
  bool done;
};
static void* scheduler;
static Fiber fibers[1024];
// a power of two apart, they would share the same few places of a cache
alignas(16) static char stacks[1024][(1 << 16) + 320];
static Fiber* running;
static Job todo;
static void** given;
static bool progress;

struct Barrier {
  int arrived = 0;
  long round = 0;
  void arrive(int threads, bool wait) {
    const long mine = round;
    if (++arrived == threads) {
      arrived = 0;
      ++round;
      progress = true;
    } else if (wait) {
      while (round == mine) switch_stack(&running->at, scheduler);
    }
  }
};

static void live() {
  for (;;) {
    todo(given);
    running->done = progress = true;
    switch_stack(&running->at, scheduler);
  }
}

static void run_block(int threads, Job job, void** arguments) {
  todo = job;
  given = arguments;
  for (int t = 0; t < threads; t++) {
    Fiber& one = fibers[t];
    one.done = false;
    if (one.at) continue;
    // what switch_stack takes off, and where it returns to
    void** first = (void**)(stacks[t] + sizeof stacks[t]) - 8;
    first[6] = (void*)live;
    one.at = first;
  }
  for (bool left = true; left;) {
    left = progress = false;
    for (int t = 0; t < threads; t++) {
      if (fibers[t].done) continue;
      threadIdx.x = t;
      running = &fibers[t];
      switch_stack(&scheduler, running->at);
      left |= !running->done;
    }
    if (left && !progress) std::abort();  // all wait for each other
  }
}
#endif

static Barrier barriers[16], of_warp[32];
static void __syncthreads() { barriers[0].arrive(blockDim.x, true); }

static double exchanged[1024];
static double __shfl_down_sync(unsigned, double value, int away) {
  const int i = threadIdx.x;
  Barrier& warp = of_warp[i / 32];
  exchanged[i] = value;
  warp.arrive(32, true);
  const double found = i % 32 + away < 32 ? exchanged[i + away] : value;
  warp.arrive(32, true);
  return found;
}

static unsigned __reduce_max_sync(unsigned, unsigned value) {
  const int i = threadIdx.x, first = i / 32 * 32;
  Barrier& warp = of_warp[i / 32];
  exchanged[i] = value;
  warp.arrive(32, true);
  unsigned most = 0;
  for (int k = first; k < first + 32; k++) most = max(most, (unsigned)exchanged[k]);
  warp.arrive(32, true);
  return most;
}

template <class... A, std::size_t... I>
static void call(void (*kernel)(A...), void** arguments, std::index_sequence<I...>) {
  kernel(*(A*)arguments[I]...);
}

template <class... A> constexpr std::size_t count(void (*)(A...)) { return sizeof...(A); }

template <auto kernel> static void thread_of(void** arguments) {
  call(kernel, arguments, std::make_index_sequence<count(kernel)>{});
}

static void launch(Job job, Place blocks, int threads, void** arguments) {
  gridDim = blocks;
  blockDim.x = threads;
  for (unsigned b = 0; b < blocks.x * blocks.y * blocks.z; b++) {
    blockIdx = {b % blocks.x, b / blocks.x % blocks.y, b / blocks.x / blocks.y};
    run_block(threads, job, arguments);
    for (const auto& barrier : barriers)
      if (barrier.arrived) std::abort();  // somebody has left without waiting
  }
}
