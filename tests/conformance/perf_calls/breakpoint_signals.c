// What hits of hardware breakpoints tell: samples, SIGIO and SIGTRAP. Where a signal comes between the hit and the
// instruction, arm64's kernel hits again when that has been handled, for ever: there the handler disables the event.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/hw_breakpoint.h>
#include <linux/perf_event.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define PAGE 4096
#define SIGTRAP_BIT (1ul << 37)
#define REMOVE_ON_EXEC_BIT (1ul << 36)

#ifdef __aarch64__
#define HITS_AGAIN 1
#define STORE "str xzr, [%0]"
#else
#define HITS_AGAIN 0
#define STORE "movq $0, (%0)"
#endif

static uint64_t words[8] __attribute__((aligned(64)));
extern char store_itself[], store_next[];

static __attribute__((noinline, noclone)) void function(void) { __asm__ volatile("" ::: "memory"); }

static __attribute__((noinline, noclone)) void store(uint64_t* at) {
    __asm__ volatile(".globl store_itself, store_next\n store_itself: " STORE "\n store_next: nop" ::"r"(at)
                     : "memory");
}

static struct perf_event_attr watch(unsigned type, void* address, unsigned long length) {
    struct perf_event_attr attr = {.type = PERF_TYPE_BREAKPOINT,
                                   .size = sizeof attr,
                                   .exclude_kernel = 1,
                                   .exclude_hv = 1,
                                   .bp_type = type,
                                   .bp_len = length,
                                   .sample_period = 1,
                                   .sample_type = PERF_SAMPLE_IP | PERF_SAMPLE_ADDR};
    attr.bp_addr = (unsigned long)address;
    return attr;
}

static int open_event(struct perf_event_attr* attr) {
    int event = syscall(SYS_perf_event_open, attr, 0, -1, -1, 0);
    return event < 0 ? -errno : event;
}

static void set_bits(struct perf_event_attr* attr, unsigned long bits) {
    unsigned long* flags = (unsigned long*)((char*)attr + 40);
    *flags |= bits;
}

static const char* place(uint64_t address) {
    if (address == (uint64_t)function) return "function";
    if (address == (uint64_t)words) return "words";
    if (address == (uint64_t)store_itself) return "store";
    if (address == (uint64_t)store_next) return "behind the store";
    return "elsewhere";
}

static void print_samples(const char* what, struct perf_event_attr attr, void (*run)(uint64_t*), int times) {
    int event = open_event(&attr);
    struct perf_event_mmap_page* page = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, event, 0);
    for (int i = 0; i < times; i++) run(words);
    ioctl(event, PERF_EVENT_IOC_DISABLE, 0);
    printf("%s:", what);
    for (uint64_t at = 0; at < page->data_head;) {
        struct perf_event_header* header = (void*)((char*)page + PAGE + at);
        uint64_t* fields = (uint64_t*)(header + 1);
        printf(" (%u %u %s %s)", header->type, header->misc & PERF_RECORD_MISC_CPUMODE_MASK, place(fields[0]),
               place(fields[1]));
        at += header->size;
    }
    uint64_t count = 0;
    int size = read(event, &count, sizeof count);
    printf(" %d %ld\n", size, (long)count);
    munmap(page, 2 * PAGE);
    close(event);
}

static void call(uint64_t* at) {
    (void)at;
    function();
}

static volatile int signals, event_of_signal, codes, fds_right, addresses_right, data_right, types_right, flags;

static void on_io(int number, siginfo_t* info, void* context) {
    (void)number, (void)context;
    signals++;
    codes = info->si_code;
    fds_right += info->si_fd == event_of_signal;
    if (HITS_AGAIN) ioctl(event_of_signal, PERF_EVENT_IOC_DISABLE, 0);
}

static void print_io(const char* what, struct perf_event_attr attr, void (*run)(uint64_t*)) {
    signals = fds_right = 0;
    attr.disabled = 1;
    attr.wakeup_events = 1;
    int event = event_of_signal = open_event(&attr);
    void* page = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, event, 0);
    fcntl(event, F_SETFL, O_RDWR | O_NONBLOCK | O_ASYNC);
    fcntl(event, F_SETSIG, SIGIO);
    fcntl(event, F_SETOWN, getpid());
    for (int i = 0; i < 4; i++) {
        ioctl(event, PERF_EVENT_IOC_ENABLE, 0);
        run(words);
    }
    ioctl(event, PERF_EVENT_IOC_DISABLE, 0);
    uint64_t count = 0;
    int size = read(event, &count, sizeof count);
    printf("%s: %d signals, code %d, %d with the descriptor, %d bytes, count %ld\n", what, signals, codes, fds_right,
           size, (long)count);
    ioctl(event, PERF_EVENT_IOC_REFRESH, 2);
    signals = 0;
    if (!HITS_AGAIN)
        for (int i = 0; i < 4; i++) run(words);
    printf("refresh(2): %d signals, the last with code %d\n", signals, codes);
    munmap(page, 2 * PAGE);
    close(event);
}

static void on_trap(int number, siginfo_t* info, void* context) {
    (void)number, (void)context;
    signals++;
    codes = info->si_code;
    addresses_right += info->si_addr == words;
    uint64_t data;
    uint32_t told[2];
    memcpy(&data, (char*)info + 24, sizeof data);
    memcpy(told, (char*)info + 32, sizeof told);
    data_right += data == 0x1234567890;
    types_right += told[0] == PERF_TYPE_BREAKPOINT;
    flags = told[1];
    if (HITS_AGAIN) ioctl(event_of_signal, PERF_EVENT_IOC_DISABLE, 0);
}

static void print_trap(void) {
    struct perf_event_attr attr = watch(HW_BREAKPOINT_W, words, 8);
    attr.sample_type = 0;
    set_bits(&attr, SIGTRAP_BIT);
    printf("sigtrap without remove_on_exec %d\n", open_event(&attr));
    set_bits(&attr, REMOVE_ON_EXEC_BIT);
    ((uint64_t*)&attr)[15] = 0x1234567890;  // sig_data
    int event = syscall(SYS_perf_event_open, &attr, -1, 0, -1, 0);
    printf("of a CPU %d\n", event < 0 ? -errno : 0);
    event = event_of_signal = open_event(&attr);
    for (int i = 0; i < 3; i++) {
        ioctl(event, PERF_EVENT_IOC_ENABLE, 0);
        store(words);
    }
    ioctl(event, PERF_EVENT_IOC_DISABLE, 0);
    printf("%d signals, code %d, address %d, data %d, type %d, flags %d\n", signals, codes, addresses_right, data_right,
           types_right, flags);
    signals = 0;
    sigset_t traps;
    sigemptyset(&traps);
    sigaddset(&traps, SIGTRAP);
    sigprocmask(SIG_BLOCK, &traps, NULL);
    ioctl(event, PERF_EVENT_IOC_ENABLE, 0);
    store(words);
    ioctl(event, PERF_EVENT_IOC_DISABLE, 0);
    printf("blocked: %d signals", signals);
    sigprocmask(SIG_UNBLOCK, &traps, NULL);
    printf(", then %d with flags %d\n", signals, flags);
    close(event);
}

int main(void) {
    struct sigaction action = {.sa_sigaction = on_io, .sa_flags = SA_SIGINFO};
    sigaction(SIGIO, &action, NULL);
    print_samples("code", watch(HW_BREAKPOINT_X, function, sizeof(long)), call, 3);
    print_samples("data", watch(HW_BREAKPOINT_W, words, 8), store, 3);
    struct perf_event_attr attr = watch(HW_BREAKPOINT_W, words, 8);
    attr.sample_period = 3;
    print_samples("each third", attr, store, 10);
    attr.sample_period = 1;
    print_io("SIGIO of data", attr, store);
    print_io("SIGIO of code", watch(HW_BREAKPOINT_X, function, sizeof(long)), call);
    signals = 0;
    action.sa_sigaction = on_trap;
    sigaction(SIGTRAP, &action, NULL);
    print_trap();
    return 0;
}
