// Events that the CPUs' PMU lists in events/ can be opened by what is written there.
#include "../behaviour.h"

BEHAVIOUR(events_open, PMU) {
    char path[700], text[200];
    long type = number_in(pmu_file("type"));
    DIR* events = opendir(pmu_file("events"));
    CHECK(events);
    struct dirent* entry;
    int opened = 0;
    while ((entry = readdir(events))) {
        if (entry->d_name[0] == '.' || strchr(entry->d_name, '.')) continue;  // .scale, .unit
        snprintf(path, sizeof path, "%s/%s", pmu_file("events"), entry->d_name);
        int file = open(path, O_RDONLY), length = read(file, text, sizeof text - 1);
        COMPARE(length, >, 0);
        text[length] = 0;
        close(file);
        char* code = strstr(text, "event=0x");
        CHECK(code);
        if (strchr(code, ',')) continue;  // with a umask and more
        EQUAL(open_error(attr_of(type, strtoul(code + 6, NULL, 16))), 0);
        opened++;
    }
    COMPARE(opened, >=, 1);
}
