// Maps: what can be made, and what each command answers.

#include "bpf.h"

#define CREATE(what, ...) say(what, new_map(__VA_ARGS__))

static void creations(void) {
    CREATE("no type", 0, 4, 4, 1, 0);
    CREATE("no such type", 1000, 4, 4, 1, 0);
    CREATE("array", BPF_MAP_TYPE_ARRAY, 4, 4, 1, 0);
    CREATE("array of keys of 8 bytes", BPF_MAP_TYPE_ARRAY, 8, 4, 1, 0);
    CREATE("array without values", BPF_MAP_TYPE_ARRAY, 4, 0, 1, 0);
    CREATE("array without entries", BPF_MAP_TYPE_ARRAY, 4, 4, 0, 0);
    CREATE("array without preallocation", BPF_MAP_TYPE_ARRAY, 4, 4, 1, BPF_F_NO_PREALLOC);
    CREATE("array to be mapped", BPF_MAP_TYPE_ARRAY, 4, 4, 1, BPF_F_MMAPABLE);
    CREATE("array that is neither read nor written", BPF_MAP_TYPE_ARRAY, 4, 4, 1, BPF_F_RDONLY | BPF_F_WRONLY);
    CREATE("array that programs only read", BPF_MAP_TYPE_ARRAY, 4, 4, 1, BPF_F_RDONLY_PROG);
    CREATE("array that programs cannot use", BPF_MAP_TYPE_ARRAY, 4, 4, 1, BPF_F_RDONLY_PROG | BPF_F_WRONLY_PROG);
    CREATE("array of a flag that is none", BPF_MAP_TYPE_ARRAY, 4, 4, 1, 1 << 20);
    CREATE("array of huge values", BPF_MAP_TYPE_ARRAY, 4, 1u << 31, 1, 0);
    CREATE("array that is larger than memory", BPF_MAP_TYPE_ARRAY, 4, 1 << 30, 1 << 30, 0);
    CREATE("per CPU", BPF_MAP_TYPE_PERCPU_ARRAY, 4, 4, 1, 0);
    CREATE("per CPU to be mapped", BPF_MAP_TYPE_PERCPU_ARRAY, 4, 4, 1, BPF_F_MMAPABLE);
    CREATE("hash", BPF_MAP_TYPE_HASH, 5, 3, 7, 0);
    CREATE("hash without keys", BPF_MAP_TYPE_HASH, 0, 3, 7, 0);
    CREATE("hash without values", BPF_MAP_TYPE_HASH, 4, 0, 7, 0);
    CREATE("hash without entries", BPF_MAP_TYPE_HASH, 4, 4, 0, 0);
    CREATE("hash without preallocation", BPF_MAP_TYPE_HASH, 5, 3, 7, BPF_F_NO_PREALLOC);
    CREATE("hash to be mapped", BPF_MAP_TYPE_HASH, 5, 3, 7, BPF_F_MMAPABLE);
    CREATE("hash of keys larger than a stack", BPF_MAP_TYPE_HASH, 513, 3, 7, 0);
    CREATE("hash of huge values", BPF_MAP_TYPE_HASH, 4, 1 << 30, 7, 0);
    CREATE("LRU", BPF_MAP_TYPE_LRU_HASH, 4, 4, 10, 0);
    CREATE("LRU without preallocation", BPF_MAP_TYPE_LRU_HASH, 4, 4, 10, BPF_F_NO_PREALLOC);
    CREATE("LRU per CPU", BPF_MAP_TYPE_LRU_PERCPU_HASH, 4, 4, 10, 0);
    CREATE("hash per CPU", BPF_MAP_TYPE_PERCPU_HASH, 4, 4, 10, 0);
    CREATE("perf events", BPF_MAP_TYPE_PERF_EVENT_ARRAY, 4, 4, 10, 0);
    CREATE("perf events of 8 bytes", BPF_MAP_TYPE_PERF_EVENT_ARRAY, 4, 8, 10, 0);
    CREATE("stacks", BPF_MAP_TYPE_STACK_TRACE, 4, 80, 10, 0);
    CREATE("stacks of odd size", BPF_MAP_TYPE_STACK_TRACE, 4, 81, 10, 0);
    CREATE("stacks by keys of 8 bytes", BPF_MAP_TYPE_STACK_TRACE, 8, 80, 10, 0);
    CREATE("queue", BPF_MAP_TYPE_QUEUE, 0, 4, 3, 0);
    CREATE("queue of keys", BPF_MAP_TYPE_QUEUE, 4, 4, 3, 0);
    CREATE("stack", BPF_MAP_TYPE_STACK, 0, 4, 3, 0);
    CREATE("ring buffer", BPF_MAP_TYPE_RINGBUF, 0, 0, 4096, 0);
    CREATE("ring buffer of no power of two", BPF_MAP_TYPE_RINGBUF, 0, 0, 3 * 4096, 0);
    CREATE("ring buffer below a page", BPF_MAP_TYPE_RINGBUF, 0, 0, 2048, 0);
    CREATE("ring buffer of values", BPF_MAP_TYPE_RINGBUF, 0, 4, 4096, 0);
}

static void creation_attributes(void) {
    union bpf_attr attr = {.map_type = BPF_MAP_TYPE_ARRAY};
    attr.key_size = attr.value_size = 4;
    attr.max_entries = 1;
    strcpy(attr.map_name, "a.name_1");
    say("name", bpf(BPF_MAP_CREATE, &attr));
    strcpy(attr.map_name, "a name");
    say("name with a space", bpf(BPF_MAP_CREATE, &attr));
    memset(attr.map_name, 'a', sizeof attr.map_name);
    say("name without an end", bpf(BPF_MAP_CREATE, &attr));
    memset(attr.map_name, 0, sizeof attr.map_name);
    attr.map_extra = 1;
    say("map_extra", bpf(BPF_MAP_CREATE, &attr));
    attr.map_extra = 0;
    attr.btf_key_type_id = 1;
    say("a key's type alone", bpf(BPF_MAP_CREATE, &attr));
    attr.btf_key_type_id = 0;
    char large[300] = {0};
    memcpy(large, &attr, sizeof attr);
    say("a longer attr", syscall(__NR_bpf, BPF_MAP_CREATE, large, sizeof large));
    large[299] = 1;
    say("a longer attr that says something", syscall(__NR_bpf, BPF_MAP_CREATE, large, sizeof large));
    say("an attr that is too long", syscall(__NR_bpf, BPF_MAP_CREATE, large, 5000));
    say("a short attr", syscall(__NR_bpf, BPF_MAP_CREATE, large, 16));
    say("no attr", syscall(__NR_bpf, BPF_MAP_CREATE, 0, 16));
    say("no such command", syscall(__NR_bpf, 1000, large, 16));
    attr.map_name[0] = 0;
    memset((char *)&attr + sizeof attr - 4, 1, 4);
    say("something behind its fields", bpf(BPF_MAP_LOOKUP_ELEM, &attr));
}

static void show(int map, const char *what, int key, int size) {
    unsigned char value[64 * 64] = {0};
    int result = element(BPF_MAP_LOOKUP_ELEM, map, &key, value, 0);
    if (result < 0) {
        printf("%s %d: errno %d\n", what, key, errno);
        return;
    }
    printf("%s %d:", what, key);
    for (int i = 0; i < size; i++) printf(" %02x", value[i]);
    printf("\n");
}

static void elements(const char *what, int map, int keys) {
    uint64_t value = 0x1122334455667788;
    for (int key = 0; key < keys; key++, value += 0x0101) {
        printf("%s, ", what);
        say("update", element(BPF_MAP_UPDATE_ELEM, map, &key, &value, BPF_ANY));
        printf("%s, ", what);
        say("update what is new", element(BPF_MAP_UPDATE_ELEM, map, &key, &value, BPF_NOEXIST));
        printf("%s, ", what);
        say("update what is there", element(BPF_MAP_UPDATE_ELEM, map, &key, &value, BPF_EXIST));
        show(map, what, key, 8);
    }
    int key = 0;
    printf("%s, ", what);
    say("unknown flag", element(BPF_MAP_UPDATE_ELEM, map, &key, &value, 8));
    printf("%s, ", what);
    say("lock", element(BPF_MAP_UPDATE_ELEM, map, &key, &value, BPF_F_LOCK));
    printf("%s, ", what);
    say("no key", element(BPF_MAP_LOOKUP_ELEM, map, 0, &value, 0));
    printf("%s, ", what);
    say("no value", element(BPF_MAP_LOOKUP_ELEM, map, &key, 0, 0));
    printf("%s, ", what);
    say("delete", element(BPF_MAP_DELETE_ELEM, map, &key, 0, 0));
    printf("%s, ", what);
    say("delete again", element(BPF_MAP_DELETE_ELEM, map, &key, 0, 0));
    printf("%s, ", what);
    say("lookup with a flag", element(BPF_MAP_LOOKUP_ELEM, map, &key, &value, 1));
    printf("%s, ", what);
    key = 1;
    say("lookup and delete", element(BPF_MAP_LOOKUP_AND_DELETE_ELEM, map, &key, &value, 0));
}

static void count_keys(const char *what, int map) {
    int key, next, found = 0, sum = 0, *from = 0;
    while (!element(BPF_MAP_GET_NEXT_KEY, map, from, &next, 0) && found < 100) {
        key = next;
        from = &key;
        found++;
        sum += key;
    }
    printf("%s: %d keys whose sum is %d, then errno %d\n", what, found, sum, errno);
}

static void queues(const char *what, int type) {
    int map = new_map(type, 0, 4, 3, 0), value;
    for (value = 1; value <= 4; value++) say("push", element(BPF_MAP_UPDATE_ELEM, map, 0, &value, 0));
    say("push in its place", element(BPF_MAP_UPDATE_ELEM, map, 0, &value, BPF_EXIST));
    for (int i = 0; i < 4; i++) {
        value = -1;
        say("peek", element(BPF_MAP_LOOKUP_ELEM, map, 0, &value, 0));
        printf("%s %d\n", what, value);
        say("pop", element(BPF_MAP_LOOKUP_AND_DELETE_ELEM, map, 0, &value, 0));
    }
    say("next key", element(BPF_MAP_GET_NEXT_KEY, map, 0, &value, 0));
    say("delete", element(BPF_MAP_DELETE_ELEM, map, 0, 0, 0));
    say("with a key", element(BPF_MAP_LOOKUP_ELEM, map, &value, &value, 0));
}

static void freezing(void) {
    int map = new_map(BPF_MAP_TYPE_ARRAY, 4, 4, 100, BPF_F_MMAPABLE), key = 3, value = 17;
    say("update", element(BPF_MAP_UPDATE_ELEM, map, &key, &value, 0));
    int *seen = mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, map, 0);
    printf("mapped: %d\n", seen == MAP_FAILED ? -errno : seen[2 * 3]);
    seen[2 * 3] = 18;
    show(map, "written in memory", key, 4);
    say("private", mmap(0, 4096, PROT_READ, MAP_PRIVATE, map, 0) == MAP_FAILED ? -1 : 0);
    say("beyond the end", mmap(0, 8192, PROT_READ, MAP_SHARED, map, 0) == MAP_FAILED ? -1 : 0);
    union bpf_attr attr = {.map_fd = map};
    say("freeze what is mapped", bpf(BPF_MAP_FREEZE, &attr));
    munmap(seen, 4096);
    say("freeze", bpf(BPF_MAP_FREEZE, &attr));
    say("freeze again", bpf(BPF_MAP_FREEZE, &attr));
    say("update what is frozen", element(BPF_MAP_UPDATE_ELEM, map, &key, &value, 0));
    show(map, "frozen", key, 4);
    say("map it to be written", mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, map, 0) == MAP_FAILED ? -1 : 0);
    char *shown = mmap(0, 4096, PROT_READ, MAP_SHARED, map, 0);
    say("map it", shown == MAP_FAILED ? -1 : 0);
    say("let it be written", mprotect(shown, 4096, PROT_READ | PROT_WRITE));
    say("let it be executed", mprotect(shown, 4096, PROT_READ | PROT_EXEC));
    say("let it be nothing", mprotect(shown, 4096, PROT_NONE));
    say("and read again", mprotect(shown, 4096, PROT_READ));
    int ring = new_map(BPF_MAP_TYPE_RINGBUF, 0, 0, 4096, 0);
    char *data = mmap(0, 3 * 4096, PROT_READ, MAP_SHARED, ring, 0);
    say("let a ring buffer be written", mprotect(data, 3 * 4096, PROT_READ | PROT_WRITE));
    say("its first page alone", mprotect(data, 4096, PROT_READ | PROT_WRITE));
    char *consumer = mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, ring, 0);
    say("one that may be", mprotect(consumer, 4096, PROT_READ));
    say("and again", mprotect(consumer, 4096, PROT_READ | PROT_WRITE));
    int other = new_map(BPF_MAP_TYPE_ARRAY, 4, 4, 100, 0);
    say("map what is not made for it", mmap(0, 4096, PROT_READ, MAP_SHARED, other, 0) == MAP_FAILED ? -1 : 0);
    int read_only = new_map(BPF_MAP_TYPE_ARRAY, 4, 4, 4, BPF_F_RDONLY);
    say("update through what only reads", element(BPF_MAP_UPDATE_ELEM, read_only, &key, &value, 0));
    int write_only = new_map(BPF_MAP_TYPE_ARRAY, 4, 4, 4, BPF_F_WRONLY);
    say("look up through what only writes", element(BPF_MAP_LOOKUP_ELEM, write_only, &key, &value, 0));
}

static void batches(void) {
    int map = new_map(BPF_MAP_TYPE_ARRAY, 4, 4, 6, 0), keys[8] = {0, 1, 2, 3, 4, 5, 6}, values[8] = {9, 8, 7, 6, 5, 4, 3};
    union bpf_attr attr = {0};
    attr.batch.keys = (uintptr_t)keys;
    attr.batch.values = (uintptr_t)values;
    attr.batch.count = 7;
    attr.batch.map_fd = map;
    say("update in a batch", bpf(BPF_MAP_UPDATE_BATCH, &attr));
    printf("%d were\n", attr.batch.count);
    int from = 0;
    memset(values, 0, sizeof values);
    attr.batch.count = 4;
    attr.batch.out_batch = (uintptr_t)&from;
    say("first", bpf(BPF_MAP_LOOKUP_BATCH, &attr));
    printf("%d: %d=%d .. %d=%d\n", attr.batch.count, keys[0], values[0], keys[3], values[3]);
    attr.batch.in_batch = (uintptr_t)&from;
    attr.batch.count = 4;
    say("the rest", bpf(BPF_MAP_LOOKUP_BATCH, &attr));
    printf("%d: %d=%d %d=%d\n", attr.batch.count, keys[0], values[0], keys[1], values[1]);
    attr.batch.elem_flags = 1;
    say("flags", bpf(BPF_MAP_LOOKUP_BATCH, &attr));
}

int main(void) {
    setvbuf(stdout, 0, _IONBF, 0);
    creations();
    creation_attributes();
    int array = new_map(BPF_MAP_TYPE_ARRAY, 4, 8, 3, 0), hash = new_map(BPF_MAP_TYPE_HASH, 4, 8, 3, 0);
    int events = new_map(BPF_MAP_TYPE_PERF_EVENT_ARRAY, 4, 4, 3, 0), stacks = new_map(BPF_MAP_TYPE_STACK_TRACE, 4, 8, 4, 0);
    int ring = new_map(BPF_MAP_TYPE_RINGBUF, 0, 0, 4096, 0);
    count_keys("no element", hash);
    elements("array", array, 4);
    elements("hash", hash, 4);
    elements("events", events, 1);
    elements("stacks", stacks, 1);
    elements("ring buffer", ring, 1);
    count_keys("array", array);
    count_keys("hash", hash);
    count_keys("events", events);
    queues("queue", BPF_MAP_TYPE_QUEUE);
    queues("stack", BPF_MAP_TYPE_STACK);
    freezing();
    batches();
    int key = 0;
    say("a descriptor that is none", element(BPF_MAP_LOOKUP_ELEM, 1000, &key, &key, 0));
    say("a descriptor of something else", element(BPF_MAP_LOOKUP_ELEM, 0, &key, &key, 0));
}
