// Decodes an Intel PT trace by libipt and compares each instruction with what has retired.
//
// libipt_compares TRACE RETIRED IMAGES SWITCHES MTC_FREQ RATIO EAX EBX: RETIRED has an address of 8 bytes for each
// instruction; IMAGES a line "IMAGE OFFSET SIZE ADDRESS FILE" for each part of a file that is mapped in an address
// space, by its number; SWITCHES a line "TSC IMAGE" for each time at which another address space is to be decoded: from
// the first entry into user mode on that is not before, or, within one MTC of it, where code is missing: what execve
// starts is there before a packet tells the time. The last four are CPUID's and the trace's: by them time goes on
// between packets. Prints how many instructions were compared, and how many of these an interrupted REP has listed once
// more; what is wrong is on standard error, and the exit status 1.
#include <fcntl.h>
#include <intel-pt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MOST_IMAGES = 4096, SHOWN = 8 };

struct file {
    uint8_t* bytes;
    size_t size;
};

static struct file mapped(const char* path) {
    struct stat status;
    int descriptor = open(path, O_RDONLY);
    if (descriptor < 0 || fstat(descriptor, &status)) {
        perror(path);
        exit(2);
    }
    struct file file = {NULL, (size_t)status.st_size};
    if (file.size) file.bytes = mmap(NULL, file.size, PROT_READ, MAP_PRIVATE, descriptor, 0);
    close(descriptor);
    return file;
}

static struct pt_image* images[MOST_IMAGES];

static void read_images(const char* path) {
    char line[4096], name[4096];
    FILE* file = fopen(path, "r");
    if (!file) exit(2);
    while (fgets(line, sizeof line, file)) {
        unsigned number;
        uint64_t offset, size, address;
        if (sscanf(line, "%u %" SCNu64 " %" SCNu64 " %" SCNu64 " %4095[^\n]", &number, &offset, &size, &address,
                   name) != 5 ||
            number >= MOST_IMAGES) {
            fprintf(stderr, "no image: %s", line);
            exit(2);
        }
        if (!images[number]) images[number] = pt_image_alloc(NULL);
        int status = pt_image_add_file(images[number], name, offset, size, NULL, address);
        if (status < 0) {
            fprintf(stderr, "%s: %s\n", name, pt_errstr(pt_errcode(status)));
            exit(2);
        }
    }
    fclose(file);
}

struct switching {
    uint64_t tsc;
    unsigned image;
};
static struct switching* switches;
static size_t switch_count, next_switch;

static void read_switches(const char* path) {
    FILE* file = fopen(path, "r");
    if (!file) exit(2);
    struct switching found;
    size_t room = 0;
    while (fscanf(file, "%" SCNu64 " %u", &found.tsc, &found.image) == 2) {
        if (switch_count == room) {
            room = room ? room * 2 : 1024;
            switches = realloc(switches, room * sizeof *switches);
            if (!switches) exit(2);
        }
        switches[switch_count++] = found;
    }
    fclose(file);
}

static int failed;

static void complain(struct pt_insn_decoder* decoder, int status, uint64_t compared, uint64_t address) {
    uint64_t offset = 0;
    pt_insn_get_offset(decoder, &offset);
    fprintf(stderr, "at %#" PRIx64 ", behind instruction %" PRIu64 " at %#" PRIx64 ": %s\n", offset, compared, address,
            pt_errstr(pt_errcode(status)));
    failed = 1;
}

// Whether the next address space is due before the next packet that could tell the time: there is an MTC each `ticks`.
static uint64_t ticks;
static int is_late(struct pt_insn_decoder* decoder) {
    uint64_t tsc = 0;
    return next_switch < switch_count && pt_insn_time(decoder, &tsc, NULL, NULL) >= 0 &&
           switches[next_switch].tsc <= tsc + ticks;
}

int main(int argc, char** argv) {
    if (argc != 9) return 2;
    struct file trace = mapped(argv[1]), retired = mapped(argv[2]);
    const uint64_t* truth = (const uint64_t*)retired.bytes;
    const uint64_t wanted = retired.size / sizeof *truth;
    read_images(argv[3]);
    read_switches(argv[4]);
    struct pt_config config;
    pt_config_init(&config);
    config.begin = trace.bytes;
    config.end = trace.bytes + trace.size;
    config.mtc_freq = (uint8_t)atoi(argv[5]);
    config.nom_freq = (uint8_t)atoi(argv[6]);
    config.cpuid_0x15_eax = (uint32_t)atoi(argv[7]);
    config.cpuid_0x15_ebx = (uint32_t)atoi(argv[8]);
    if (!config.cpuid_0x15_eax) return 2;
    ticks = ((uint64_t)config.cpuid_0x15_ebx << config.mtc_freq) / config.cpuid_0x15_eax + 1;
    struct pt_insn_decoder* decoder = trace.size ? pt_insn_alloc_decoder(&config) : NULL;
    if (trace.size && !decoder) return 2;
    uint64_t compared = 0, repeated = 0, before = 0;
    for (int status = decoder ? pt_insn_sync_forward(decoder) : -pte_eos; status != -pte_eos && !failed;
         status = pt_insn_sync_forward(decoder)) {
        if (status < 0) {
            complain(decoder, status, compared, before);
            break;
        }
        for (;;) {
            while (status & pts_event_pending) {
                struct pt_event event;
                status = pt_insn_event(decoder, &event, sizeof event);
                if (status < 0) break;
                if (event.type != ptev_enabled) continue;
                unsigned image = MOST_IMAGES;
                while (next_switch < switch_count && event.has_tsc && switches[next_switch].tsc <= event.tsc)
                    image = switches[next_switch++].image;
                if (image == MOST_IMAGES) continue;
                int set = pt_insn_set_image(decoder, images[image]);
                if (set < 0) status = set;
            }
            if (status < 0 || status & pts_eos) break;
            struct pt_insn instruction;
            status = pt_insn_next(decoder, &instruction, sizeof instruction);
            if (status == -pte_nomap && is_late(decoder)) {
                status = pt_insn_set_image(decoder, images[switches[next_switch++].image]);
                if (status >= 0) status = pt_insn_next(decoder, &instruction, sizeof instruction);
            }
            if (status < 0) break;
            if (compared < wanted && instruction.ip == truth[compared]) {
                compared++;
            } else if (instruction.ip == before) {
                repeated++;
            } else {
                fprintf(stderr, "instruction %" PRIu64 " is %#" PRIx64 ", has retired:", compared, instruction.ip);
                for (uint64_t i = compared; i < wanted && i < compared + SHOWN; i++)
                    fprintf(stderr, " %#" PRIx64, truth[i]);
                fprintf(stderr, ", before: %#" PRIx64 "\n", before);
                failed = 1;
                break;
            }
            before = instruction.ip;
        }
        if (status < 0 && status != -pte_eos) complain(decoder, status, compared, before);
        if (failed) break;
    }
    if (!failed && compared != wanted) {
        fprintf(stderr, "the trace ends behind %" PRIu64 " of %" PRIu64 " instructions\n", compared, wanted);
        failed = 1;
    }
    printf("%" PRIu64 " %" PRIu64 "\n", compared, repeated);
    return failed;
}
