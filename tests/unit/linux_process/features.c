// What HWCAP and CPUID offer is executed: one instruction of each feature, and its result. What they do not offer is
// refused: SIGILL.
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

static sigjmp_buf back;

static void refused(int number) {
    (void)number;
    siglongjmp(back, 1);
}

#define SHOW(name, value) printf("%s %llx\n", name, (unsigned long long)(value))
#define REFUSED(name, ...)                    \
    do {                                      \
        if (sigsetjmp(back, 1) == 0) {        \
            __asm__ volatile(__VA_ARGS__);    \
            printf("%s is executed\n", name); \
        } else {                              \
            printf("%s is refused\n", name);  \
        }                                     \
    } while (0)

#ifdef __x86_64__
static uint64_t a = 0x0123456789abcdef, b = 0x0f1e2d3c4b5a6978;
static _Alignas(16) uint64_t pair[2], area[64];

// Of a register operation on vectors: the low halves of A op B.
#define VECTOR(name, instruction)                                                                                     \
    do {                                                                                                              \
        uint64_t out;                                                                                                 \
        __asm__ volatile(                                                                                             \
            "movq %1, %%xmm0\n movq %2, %%xmm1\n punpcklqdq %%xmm1, %%xmm0\n punpcklqdq %%xmm0, %%xmm1\n" instruction \
            "\n movq %%xmm0, %0"                                                                                      \
            : "=r"(out)                                                                                               \
            : "r"(a), "r"(b)                                                                                          \
            : "xmm0", "xmm1");                                                                                        \
        SHOW(name, out);                                                                                              \
    } while (0)
#define GENERAL(name, instruction)                                                                        \
    do {                                                                                                  \
        uint64_t out = a;                                                                                 \
        __asm__ volatile(instruction : "+r"(out) : "r"(b), "m"(a) : "rax", "rcx", "rdx", "cc", "memory"); \
        SHOW(name, out);                                                                                  \
    } while (0)

static void features(void) {
    GENERAL("cmov", "test %1, %1\n cmovne %1, %0");
    GENERAL("tsc", "rdtsc\n mov %1, %0");
    GENERAL("rdtscp", "rdtscp\n mov %1, %0");
    GENERAL("clflush", "clflush %2");
    GENERAL("mmx", "movq %0, %%mm0\n movq %1, %%mm1\n paddb %%mm1, %%mm0\n movq %%mm0, %0\n emms");
    GENERAL("lahf_lm", "xor %%eax, %%eax\n lahf\n movzbl %%ah, %%eax\n and $0xd5, %%eax\n mov %%rax, %0");
    GENERAL("popcnt", "popcnt %1, %0");
    GENERAL("abm", "lzcnt %1, %0");
    GENERAL("movbe", "movbe %2, %0");
    GENERAL("crc32", "crc32q %1, %0");
    GENERAL("bmi1", "andn %1, %0, %0\n blsr %0, %0\n tzcnt %0, %%rax\n add %%rax, %0");
    GENERAL("bmi2", "pext %1, %0, %0\n pdep %1, %0, %0\n rorx $7, %0, %0");
    GENERAL("fsgsbase", "rdgsbase %%rax\n shr $20, %0\n wrgsbase %0\n xor %0, %0\n rdgsbase %0\n wrgsbase %%rax");
    uint64_t low = 0, high = 0;
    __asm__ volatile("lock cmpxchg8b %0\n lock cmpxchg16b %0"
                     : "+m"(pair), "+a"(low), "+d"(high)
                     : "b"(a), "c"(b)
                     : "memory", "cc");
    SHOW("cx16", pair[0] ^ pair[1]);
    __asm__ volatile("fxsave %0\n fxrstor %0" : "+m"(area));
    SHOW("fxsr", area[3] & 0xffff);
    VECTOR("sse", "addps %%xmm1, %%xmm0");
    VECTOR("sse2", "paddq %%xmm1, %%xmm0");
    VECTOR("pni", "haddps %%xmm1, %%xmm0");
    VECTOR("ssse3", "pshufb %%xmm1, %%xmm0");
    VECTOR("sse4_1", "pmulld %%xmm1, %%xmm0");
    VECTOR("sse4_2", "pcmpgtq %%xmm1, %%xmm0");
    VECTOR("pclmulqdq", "pclmulqdq $1, %%xmm1, %%xmm0");
    VECTOR("aes", "aesenc %%xmm1, %%xmm0");
}

static void absent(void) {
    REFUSED("avx", "vaddps %ymm0, %ymm0, %ymm0");
    REFUSED("avx of 128 bits", "vaddps %xmm0, %xmm0, %xmm0");
    REFUSED("fma", "vfmadd231ps %xmm0, %xmm0, %xmm0");
    REFUSED("xgetbv", "xor %%ecx, %%ecx\n xgetbv" :: : "rax", "rcx", "rdx");
    REFUSED("rdrand", "rdrand %%rax" :: : "rax");
    REFUSED("rdseed", "rdseed %%rax" :: : "rax");
    REFUSED("sha_ni", "sha256msg1 %xmm0, %xmm0");
}
#else
#define GENERAL(name, instruction)                                                                       \
    do {                                                                                                 \
        uint64_t out = 0x0123456789abcdef;                                                               \
        __asm__ volatile(                                                                                \
            ".arch armv8-a+crypto+crc\n fmov d0, %0\n fmov d1, %1\n mov v0.d[1], %1\n mov v1.d[1], %0\n" \
            "mov v2.16b, v0.16b\n" instruction                                                           \
            : "+r"(out)                                                                                  \
            : "r"(0x0f1e2d3c4b5a6978)                                                                    \
            : "x0", "v0", "v1", "v2", "cc", "memory");                                                      \
        SHOW(name, out);                                                                                 \
    } while (0)
#define TO_GENERAL "\n fmov %0, d0"

static void features(void) {
    GENERAL("fp", "fadd d0, d0, d1" TO_GENERAL);
    GENERAL("asimd", "add v0.16b, v0.16b, v1.16b" TO_GENERAL);
    GENERAL("aes", "aese v0.16b, v1.16b\n aesmc v0.16b, v0.16b" TO_GENERAL);
    GENERAL("pmull", "pmull v0.1q, v0.1d, v1.1d" TO_GENERAL);
    GENERAL("sha1", "sha1c q0, s1, v2.4s" TO_GENERAL);
    GENERAL("sha2", "sha256h q0, q1, v2.4s" TO_GENERAL);
    GENERAL("crc32", "crc32cx %w0, %w0, %1");
    GENERAL("cpuid", "mrs %0, id_aa64isar0_el1");
}

// What cores with Armv8.2's features have besides.
#define LATER(name, instruction) GENERAL(name, ".arch armv8.2-a+fp16+dotprod+rcpc\n" instruction)

static void later(void) {
    LATER("atomics", "str %0, [sp, #-16]!\n mov x0, sp\n ldadd %1, %0, [x0]\n ldr x0, [sp], #16\n add %0, %0, x0");
    LATER("fphp", "fadd h0, h0, h1" TO_GENERAL);
    LATER("asimdhp", "fmul v0.8h, v0.8h, v1.8h" TO_GENERAL);
    LATER("asimdrdm", "sqrdmlah v0.4s, v1.4s, v2.4s" TO_GENERAL);
    LATER("lrcpc", "str %0, [sp, #-16]!\n ldapr x0, [sp]\n add sp, sp, #16\n neg %0, x0");
    LATER("dcpop", "mov x0, sp\n dc cvap, x0\n mrs %0, id_aa64isar1_el1\n and %0, %0, #0xf");
    LATER("asimddp", "sdot v0.4s, v1.16b, v2.16b" TO_GENERAL);
}

static void absent(void) {
    REFUSED("atomics", ".inst 0xf8210002");   // ldadd x1, x2, [x0]
    REFUSED("asimdhp", ".inst 0x4e421420");   // fadd v0.8h, v1.8h, v2.8h
    REFUSED("asimddp", ".inst 0x4e829420");   // sdot v0.4s, v1.16b, v2.16b
    REFUSED("asimdrdm", ".inst 0x6e828420");  // sqrdmlah v0.4s, v1.4s, v2.4s
    REFUSED("lrcpc", ".inst 0xf8bfc000");     // ldapr x0, [x0]
    REFUSED("jscvt", ".inst 0x1e7e0000");     // fjcvtzs w0, d0
    REFUSED("sve", ".inst 0x04e00000");       // add z0.d, z0.d, z0.d
    REFUSED("sha3", ".inst 0xce020c20");      // eor3 v0.16b, v1.16b, v2.16b, v3.16b
}
#endif

int main(int argc, char** argv) {
    features();
#ifdef __aarch64__
    if (argc > 1 && strcmp(argv[1], "later") == 0) later();
#endif
    if (argc > 1 && strcmp(argv[1], "absent") == 0) {
        signal(SIGILL, refused);
        absent();
    }
    return 0;
}
