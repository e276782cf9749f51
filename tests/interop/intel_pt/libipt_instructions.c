// Decodes an Intel PT trace by libipt: writes the address of each instruction, 8 bytes, to standard output.
//
// instructions TRACE [FILE OFFSET SIZE ADDRESS]...: what of which files is mapped where. What libipt finds wrong is a
// line on standard error, and the exit status 1; decoding goes on at the next PSB. Others are what PTWRITE has
// written, and power events.
#include <intel-pt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

static uint8_t* trace;
static size_t size;

static void read_trace(const char* path) {
    FILE* file = fopen(path, "rb");
    if (!file || fseek(file, 0, SEEK_END)) exit(2);
    size = (size_t)ftell(file);
    rewind(file);
    trace = malloc(size + 1);
    if (!trace || fread(trace, 1, size, file) != size) exit(2);
    fclose(file);
}

static int failed;

static void complain(struct pt_insn_decoder* decoder, int status) {
    uint64_t offset = 0;
    pt_insn_get_offset(decoder, &offset);
    fprintf(stderr, "at %#" PRIx64 ": %s\n", offset, pt_errstr(pt_errcode(status)));
    failed = 1;
}

static void tell(const struct pt_event* event) {
    switch (event->type) {
        case ptev_ptwrite:
            fprintf(stderr, "%#" PRIx64 " writes %#" PRIx64 ", %d bytes\n", event->variant.ptwrite.ip,
                    event->variant.ptwrite.payload, (int)event->variant.ptwrite.size);
            break;
        case ptev_pwre:
            fprintf(stderr, "sleeps: %d.%d, by hardware: %d\n", event->variant.pwre.state,
                    event->variant.pwre.sub_state, event->variant.pwre.hw);
            break;
        case ptev_exstop:
            if (event->ip_suppressed)
                fprintf(stderr, "stops\n");
            else
                fprintf(stderr, "stops at %#" PRIx64 "\n", event->variant.exstop.ip);
            break;
        case ptev_pwrx:
            fprintf(stderr, "wakes: last %d, deepest %d, interrupt %d, store %d, autonomous %d\n",
                    event->variant.pwrx.last, event->variant.pwrx.deepest, event->variant.pwrx.interrupt,
                    event->variant.pwrx.store, event->variant.pwrx.autonomous);
            break;
        default: break;
    }
}

int main(int argc, char** argv) {
    if (argc < 2) return 2;
    read_trace(argv[1]);
    struct pt_config config;
    pt_config_init(&config);
    config.begin = trace;
    config.end = trace + size;
    struct pt_insn_decoder* decoder = pt_insn_alloc_decoder(&config);
    if (!decoder) return 2;
    for (int i = 2; i + 3 < argc; i += 4) {
        uint64_t offset = strtoull(argv[i + 1], NULL, 0), length = strtoull(argv[i + 2], NULL, 0);
        uint64_t address = strtoull(argv[i + 3], NULL, 0);
        int status = pt_image_add_file(pt_insn_get_image(decoder), argv[i], offset, length, NULL, address);
        if (status < 0) {
            fprintf(stderr, "%s: %s\n", argv[i], pt_errstr(pt_errcode(status)));
            return 2;
        }
    }
    for (int status = pt_insn_sync_forward(decoder); status != -pte_eos; status = pt_insn_sync_forward(decoder)) {
        if (status < 0) {
            complain(decoder, status);
            break;
        }
        for (;;) {
            while (status & pts_event_pending) {
                struct pt_event event;
                status = pt_insn_event(decoder, &event, sizeof event);
                if (status < 0) break;
                tell(&event);
            }
            if (status < 0 || status & pts_eos) break;
            struct pt_insn instruction;
            status = pt_insn_next(decoder, &instruction, sizeof instruction);
            if (status < 0) break;
            fwrite(&instruction.ip, sizeof instruction.ip, 1, stdout);
        }
        if (status < 0 && status != -pte_eos) complain(decoder, status);
    }
    pt_insn_free_decoder(decoder);
    return failed;
}
