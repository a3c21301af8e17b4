/*
 * A program that records requests like a server. Usage: server FILE. It maps the file as the Server Module does, with
 * the classes "small" (up to 4999 bytes) and "other". Then it claims a slot and prints "ready". For each number n that
 * it reads from stdin, it records n requests and prints "done".
 *
 * All requests are of the class "small", with 1000 bytes. The phase PARSE takes 10 µs, PROCESS 1000 + i µs for the
 * i-th of the n requests, and LOG 2 µs. For every tenth request, the CPU time in these phases is recorded: 5, 20 and
 * 2 µs. The CPU time of the thread grows by 30 µs with each request.
 */
#include "recorder.h"

static void record(const struct brimful_settings *settings, struct brimful_slot *slot, unsigned long count)
{
    unsigned long i;

    for (i = 0; i < count; i++) {
        struct brimful_request request = {
            .time_ns = {0, 10000, 1000000 + i * 1000, 0, 0, 2000},
            .has = BRIMFUL_HAS(BRIMFUL_PARSE) | BRIMFUL_HAS(BRIMFUL_PROCESS) | BRIMFUL_HAS(BRIMFUL_LOG),
            .bytes = 1000,
            .status = 200,
            .cpu_sampled = i % 10 == 0,
            .cpu_ns = {5000, 20000, 2000},
        };

        brimful_record(slot, brimful_classify(settings, "/", 1, request.bytes), &request);
        brimful_add(&slot->cpu_ns, 30000);
    }
}

int main(int count, char **arguments)
{
    struct brimful_settings settings = {.server = "made-up/1.0", .slots = 4, .cpu_one_in = 10, .workers_most = 8};
    struct brimful_memory memory;
    struct brimful_slot *slot;
    char why[BRIMFUL_WHY_BYTES];
    char line[32];

    if (count != 2 || brimful_add_rule(&settings, "small", "size 0-4999") != NULL) {
        return 2;
    }
    settings.path = arguments[1];
    if (brimful_map(&memory, &settings, why) != 0) {
        fprintf(stderr, "%s\n", why);
        return 3;
    }
    slot = brimful_claim(&memory, (uint32_t) getpid(), (uint32_t) getpid());
    if (slot == NULL) {
        return 3;
    }
    brimful_begin(slot, brimful_now());
    puts("ready");
    fflush(stdout);
    while (fgets(line, sizeof(line), stdin) != NULL) {
        record(&settings, slot, strtoul(line, NULL, 10));
        puts("done");
        fflush(stdout);
    }
    return 0;
}
