/* What the image's parts know of one another. All of it was written for it: there is no library. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MOST_CPUS 8
#define SPURIOUS 1023
#define READ(name) ({ uint64_t found_; __asm__ volatile("mrs %0, " #name : "=r"(found_)); found_; })
#define WRITE(name, value) __asm__ volatile("msr " #name ", %0\n\tisb" : : "r"((uint64_t)(value)) : "memory")
#define BARRIER() __asm__ volatile("dsb sy" : : : "memory")

/* console.c */
void say(const char *text);
void say_number(uint64_t number);
void check(bool is_right, const char *what, uint64_t found);
void expect(int64_t found, int64_t wanted, const char *what);
extern unsigned failed;

/* device_tree.c: what the board has, from the device tree */
struct board {
    uint64_t memory, memory_bytes;
    unsigned cpus;
    uint64_t affinities[MOST_CPUS];
    bool by_smc;
    uint64_t distributor, redistributors;
    uint64_t uart, clock;
    unsigned uart_spi;
    unsigned slots;
    uint64_t slot[32];
};
extern struct board board;
bool read_device_tree(const void *tree);

static inline volatile uint32_t *at(uint64_t address) {
    return (volatile uint32_t *)address;
}

/* gic.c */
void start_distributor(void);
void start_interface(void); /* of the CPU that calls */
void set_priority(unsigned interrupt, unsigned priority);
void enable(unsigned interrupt, bool is_enabled);
bool is_pending(unsigned interrupt);
bool is_active(unsigned interrupt);
void set_edge(unsigned interrupt, bool by_edge); /* or by level */
uint32_t edges_near(unsigned interrupt);      /* the word that has it */
void set_active(unsigned interrupt, bool is_active);
void send_to_list(unsigned interrupt, unsigned list); /* bit n: CPU n */
void set_pending(unsigned interrupt, bool pends);
void route(unsigned interrupt, uint64_t affinity);
void send_to_self(unsigned interrupt);
void send_to_others(unsigned interrupt);
void send_to(unsigned interrupt, uint64_t affinity);

/* cpus.c */
struct cpu {
    volatile unsigned taken;           /* interrupts */
    volatile unsigned interrupts[16];  /* the last */
    volatile unsigned priorities[16];  /* ICC_RPR_EL1 in each */
    void (*volatile during)(unsigned); /* called in the handler */
    void (*volatile job)(void);
    volatile bool is_online;
    volatile unsigned state_at_start; /* SCTLR_EL1.{M,C}, DAIF, SPSel: a digit each */
};
extern struct cpu cpus[MOST_CPUS];
unsigned number_of_this_cpu(void);
struct cpu *this_cpu(void);
int64_t firmware(uint32_t function, uint64_t first, uint64_t second, uint64_t third);
void unmask(void);
void mask(void);
bool takes(unsigned count);  /* so many have been taken, within a second */
bool takes_none(void);
void forget(void); /* what has been taken */
void start_on(unsigned cpu, void (*job)(void));
bool is_done(unsigned cpu);
bool others_do(void (*job)(void));
uint64_t ticks(void);
uint64_t try(uint64_t code, uint64_t state, uint64_t argument); /* start.S */
bool waits_for(bool (*happens)(unsigned), unsigned argument);

/* firmware's functions */
enum {
    PSCI_VERSION = 0x84000000, CPU_SUSPEND_32 = 0x84000001, CPU_OFF = 0x84000002, SYSTEM_OFF = 0x84000008, PSCI_FEATURES = 0x8400000A,
};
#define CPU_SUSPEND 0xC4000001u
#define CPU_ON 0xC4000003u
#define AFFINITY_INFO 0xC4000004u

/* The checks */
void check_device_tree(void);
void check_interrupts(void);
void check_timers(void);
void check_firmware(void);
void check_other_cpus(void);
void check_devices(void);
void check_pmu(void);
void check_exceptions(void);
void check_spinning(void);
void end(void);
