// Runs the programs that are linked with it, each in a process of its own, and prints a line of each: NAME ok, NAME
// skip WHY, skip WHY, NAME FAIL WHY. --all runs those, too, that change the machine; NAME ... these alone.
#include "behaviour.h"

enum { LONGEST_S = 60 };

extern const struct behaviour __start_behaviours[], __stop_behaviours[];

const char* behaviour_again;

static int can_open(Attr attr) {
    int event = try_open(attr, 0, -1, -1, 0);
    if (event >= 0) close(event);
    return event >= 0;
}

static Attr breakpoint(void) {
    Attr attr = attr_of(PERF_TYPE_BREAKPOINT, 0);
    attr.bp_type = HW_BREAKPOINT_W;
    attr.bp_addr = (unsigned long)&behaviour_again;
    attr.bp_len = 8;
    return attr;
}

static const char* missing(unsigned long needs) {
    if (needs & PMU && !can_open(INSTRUCTIONS)) return "no PMU";
    if (needs & SLOTS && !can_open(breakpoint())) return "no hardware breakpoints";
    if (needs & TRACEFS && access("/sys/kernel/tracing/events", R_OK)) return "no tracefs";
    if (needs & TWO_CPUS && sysconf(_SC_NPROCESSORS_ONLN) < 2) return "one CPU";
    if (needs & (ROOT | A_MACHINE) && geteuid() != 0) return "not root";
    return NULL;
}

static const char* const SYSCTLS[] = {"perf_event_paranoid", "perf_event_max_sample_rate",
                                      "perf_event_mlock_kb", "perf_event_max_stack",
                                      "perf_user_access",    "perf_cpu_time_max_percent"};
enum { SYSCTL_COUNT = sizeof SYSCTLS / sizeof *SYSCTLS };
static char before[SYSCTL_COUNT][32];

static void each_sysctl(int flags, ssize_t (*move)(int, char*)) {
    for (int i = 0; i < SYSCTL_COUNT; i++) {
        char path[100];
        snprintf(path, sizeof path, "/proc/sys/kernel/%s", SYSCTLS[i]);
        int file = open(path, flags);
        if (file >= 0 && move(file, before[i]) < 0) perror(path);
        close(file);
    }
}

static ssize_t keep(int file, char* text) { return read(file, text, sizeof *before - 1); }

static ssize_t put_back(int file, char* text) { return write(file, text, strlen(text)); }

static void run(const struct behaviour* behaviour, int all) {
    behaviour_name = behaviour->name;
    const char* why = missing(behaviour->needs);
    if (behaviour->needs & A_MACHINE && !all) why = "it changes the machine";
    if (why) {
        printf("%s skip %s\n", behaviour->name, why);
        fflush(stdout);
        return;
    }
    int pid = fork(), status;
    if (pid == 0) {
        setpgid(0, 0);
        alarm(LONGEST_S);
        if (mlockall(MCL_CURRENT) == 0)
            munlockall();  // all pages are there: what faults is what the program lets fault
        behaviour->run();
        exit(0);
    }
    waitpid(pid, &status, 0);
    if (behaviour->needs & A_MACHINE) each_sysctl(O_WRONLY, put_back);
    if (status == 0) printf("%s ok\n", behaviour->name);
    if (WIFSIGNALED(status)) printf("%s FAIL signal %d\n", behaviour->name, WTERMSIG(status));
    if (WIFEXITED(status) && WEXITSTATUS(status) > 2) printf("%s FAIL exit %d\n", behaviour->name, WEXITSTATUS(status));
    fflush(stdout);
}

static int chosen(const char* name, char** names) {
    if (!*names) return 1;
    for (; *names; names++)
        if (strcmp(*names, name) == 0) return 1;
    return 0;
}

int main(int count, char** arguments) {
    if (count == 3 && strcmp(arguments[0], "again") == 0) {
        behaviour_name = arguments[1];
        behaviour_again = arguments[2];
    }
    int all = count > 1 && strcmp(arguments[1], "--all") == 0;
    each_sysctl(O_RDONLY, keep);
    for (const struct behaviour* each = __start_behaviours; each < __stop_behaviours; each++) {
        if (!behaviour_again && chosen(each->name, arguments + 1 + all)) run(each, all);
        if (behaviour_again && strcmp(each->name, behaviour_name) == 0) each->run();
    }
    return 0;
}
