/*
 * Creates a file with known contents, for tests of a reader: record FILE. The server is "test/1.0"; the classes are
 * "small" (up to 4999 bytes), "images" (by URL) and "other". The file has 4 slots. Slot 0 was used and released; this
 * program still owns slot 1. The program prints nothing, and does not remove the file.
 *
 *   slot 0, released: 1000 requests of class small, with 100 + i bytes; HEAD i µs, PARSE 10 µs, PROCESS 1000 + i µs,
 *                     SEND 0, LOG 2 µs, resumed i % 3 times, for i from 0 to 999; no UPSTREAM; every tenth
 *                     with CPU times of 5 µs for PARSE, 20 µs for PROCESS and 2 µs for LOG; i = 7 failed with 503,
 *                     i = 8 was aborted, and the CPU time of i = 9 counts as mixed
 *   slot 1, owned:    10 requests of class images with 10000 bytes, UPSTREAM 5 ms, PROCESS 1 ms; no other phases;
 *                     1 of class other, of 5000 bytes; 3 connections, 2 requests in progress, busy since 1 second ago
 */
#include "../recorder.h"

static const char *add_rules(struct brimful_settings *settings)
{
    const char *wrong = brimful_add_rule(settings, "images", "url /images/*");

    return wrong != NULL ? wrong : brimful_add_rule(settings, "small", "size 0-4999");
}

static void record_small(struct brimful_settings *settings, struct brimful_slot *slot)
{
    uint64_t i;

    for (i = 0; i < 1000; i++) {
        struct brimful_request request = {
            .time_ns = {i * 1000, 10000, 1000000 + i * 1000, 0, 0, 2000},
            .has = BRIMFUL_HAS(BRIMFUL_PHASES) - 1 - BRIMFUL_HAS(BRIMFUL_UPSTREAM),
            .bytes = 100 + i,
            .status = i == 7 ? 503 : 200,
            .aborted = i == 8,
            .cpu_sampled = i % 10 == 0 ? 1 : i == 9 ? 2 : 0,
            .cpu_ns = {5000, 20000, 2000},
            .resumed = (uint32_t) (i % 3),
        };

        brimful_record(slot, brimful_classify(settings, "/", 1, request.bytes), &request);
    }
}

static void record_others(struct brimful_settings *settings, struct brimful_slot *slot)
{
    struct brimful_request request = {
        .has = BRIMFUL_HAS(BRIMFUL_PROCESS) | BRIMFUL_HAS(BRIMFUL_UPSTREAM),
        .bytes = 10000,
        .status = 200,
    };
    int i;

    request.time_ns[BRIMFUL_PROCESS] = 1000000;
    request.time_ns[BRIMFUL_UPSTREAM] = 5000000;
    for (i = 0; i < 10; i++) {
        brimful_record(slot, brimful_classify(settings, "/images/a.png", 13, request.bytes), &request);
    }
    request.bytes = 5000;
    brimful_record(slot, brimful_classify(settings, "/page", 5, request.bytes), &request);
}

int main(int count, char **arguments)
{
    struct brimful_settings settings = {.server = "test/1.0", .slots = 4, .cpu_one_in = 10, .workers_most = 8};
    struct brimful_memory memory;
    struct brimful_slot *slot, *owned;
    char why[BRIMFUL_WHY_BYTES];
    const char *wrong = add_rules(&settings);
    uint32_t process = (uint32_t) getpid();

    if (count != 2 || wrong != NULL) {
        fprintf(stderr, "%s\n", wrong != NULL ? wrong : "error: name one file");
        return 2;
    }
    settings.path = arguments[1];
    if (brimful_map(&memory, &settings, why) != 0) {
        fprintf(stderr, "error: %s\n", why);
        return 3;
    }
    slot = brimful_claim(&memory, process, process);
    if (slot == NULL) {
        return 3;
    }
    owned = brimful_claim(&memory, process, (uint32_t) syscall(SYS_gettid));
    if (owned == NULL) {
        return 3;
    }
    record_small(&settings, slot);
    brimful_release(slot);
    record_others(&settings, owned);
    brimful_add(&owned->connections, 3);
    brimful_begin(owned, brimful_now() - 1000000000);
    brimful_begin(owned, brimful_now());
    return 0;
}
