// Each PMU's directory has the files type and uevent.
#include "../behaviour.h"

BEHAVIOUR(uevents, NOTHING) {
    DIR* devices = opendir("/sys/bus/event_source/devices");
    if (!devices) SKIP("no sysfs");
    struct dirent* entry;
    int found = 0;
    while ((entry = readdir(devices))) {
        char path[400];
        if (*entry->d_name == '.') continue;
        snprintf(path, sizeof path, "/sys/bus/event_source/devices/%s/uevent", entry->d_name);
        if (access(path, F_OK)) FAIL("%s: %s", path, strerror(errno));
        found++;
    }
    COMPARE(found, >=, 3);
}
