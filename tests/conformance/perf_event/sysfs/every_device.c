// Every device has a type of its own, which is a number.
#include "../behaviour.h"

BEHAVIOUR(every_device, NOTHING) {
    DIR* devices = opendir("/sys/bus/event_source/devices");
    CHECK(devices);
    long types[64];
    int count = 0;
    struct dirent* entry;
    while ((entry = readdir(devices)) && count < 64) {
        if (entry->d_name[0] == '.') continue;
        char path[400];
        snprintf(path, sizeof path, "/sys/bus/event_source/devices/%s/type", entry->d_name);
        types[count] = number_in(path);
        for (int i = 0; i < count; i++) CHECK(types[i] != types[count]);
        count++;
    }
    COMPARE(count, >=, 3);
}
