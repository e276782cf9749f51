/* Markers: instructions that do nothing, between which perfemu counts alone: perfemu stat --marker, record --marker.
 *
 *     perfemu_begin(0);
 *     ... what is to be counted ...
 *     perfemu_end(0);
 *
 * Numbers are 0 to 7, constants. Real CPUs execute both as NOPs. docs/commands.md, "Regions". */
#ifndef PERFEMU_MARKERS_H
#define PERFEMU_MARKERS_H

#if defined(__aarch64__)
/* HINT #112 + n and HINT #120 + n, which the architecture has not allocated */
#define PERFEMU_MARKER_BEGIN "hint #(112 + %c0)"
#define PERFEMU_MARKER_END "hint #(120 + %c0)"
#elif defined(__x86_64__)
/* nopl 0x4d4550b0 + n(%rax,%rax) and nopl 0x4d4550e0 + n(%rax,%rax), of eight bytes */
#define PERFEMU_MARKER_BEGIN ".byte 0x0f, 0x1f, 0x84, 0x00, 0xb0 + %c0, 0x50, 0x45, 0x4d"
#define PERFEMU_MARKER_END ".byte 0x0f, 0x1f, 0x84, 0x00, 0xe0 + %c0, 0x50, 0x45, 0x4d"
#else
#error "perfemu executes AArch64 and x86-64"
#endif

/* The compiler moves no access to memory across them. */
#define perfemu_begin(number) __asm__ volatile(PERFEMU_MARKER_BEGIN : : "i"((number) & 7) : "memory")
#define perfemu_end(number) __asm__ volatile(PERFEMU_MARKER_END : : "i"((number) & 7) : "memory")

#endif
