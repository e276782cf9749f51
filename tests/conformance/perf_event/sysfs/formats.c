// Every file of format/ names bits of a field of perf_event_attr.
#include "../behaviour.h"

BEHAVIOUR(formats, NOTHING) {
    DIR* devices = opendir("/sys/bus/event_source/devices");
    CHECK(devices);
    struct dirent *device, *entry;
    int files = 0;
    while ((device = readdir(devices))) {
        char path[700], text[200];
        snprintf(path, sizeof path, "/sys/bus/event_source/devices/%s/format", device->d_name);
        DIR* formats = device->d_name[0] == '.' ? NULL : opendir(path);
        while (formats && (entry = readdir(formats))) {
            if (entry->d_name[0] == '.') continue;
            snprintf(path, sizeof path, "/sys/bus/event_source/devices/%s/format/%s", device->d_name, entry->d_name);
            int file = open(path, O_RDONLY), length = read(file, text, sizeof text - 1);
            COMPARE(length, >, 0);
            text[length] = 0;
            close(file);
            files++;
            CHECK(strncmp(text, "config", 6) == 0);
            char* colon = strchr(text, ':');
            CHECK(colon && colon[1] >= '0' && colon[1] <= '9');
            for (char* at = colon + 1; *at && *at != '\n'; at++) CHECK(strchr("0123456789-,", *at));
        }
        if (formats) closedir(formats);
    }
    COMPARE(files, >=, 1);
}
