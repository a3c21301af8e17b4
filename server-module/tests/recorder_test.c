/*
 * Tests of the recorder. Prints the failures and the number of checks. The argument is a directory for files:
 * recorder_test DIR. Must be compiled with -pthread.
 */
#include <pthread.h>
#include <sys/wait.h>

#include "check.h"

static void rules_are_read(void)
{
    struct brimful_settings settings = {0};
    char name[BRIMFUL_NAME_BYTES + 1], pattern[300];
    unsigned i;

    CHECK(brimful_classify(&settings, "/", 1, 5) == 0);
    CHECK(brimful_add_rule(&settings, "small", "size 0-4999") == NULL);
    CHECK(brimful_add_rule(&settings, "other", "size 7-7") == NULL);
    CHECK(brimful_add_rule(&settings, "images", "url /images/*") == NULL);
    CHECK(brimful_add_rule(&settings, "images", "url *.png") == NULL);
    CHECK(brimful_add_rule(&settings, "large", "size 5000000-") == NULL);
    CHECK(settings.classes == 4 && strcmp(settings.class_names[3], "other") == 0);
    CHECK(strcmp(settings.class_names[1], "images") == 0 && strcmp(settings.class_names[2], "large") == 0);
    CHECK(brimful_classify(&settings, "/images/a", 9, 100) == 0); /* the first matching rule counts */
    CHECK(brimful_classify(&settings, "/images/a", 9, 5000) == 1);
    CHECK(brimful_classify(&settings, "/a.png", 6, 5000) == 1);
    CHECK(brimful_classify(&settings, "/a.png?", 7, 5000) == 3);
    CHECK(brimful_classify(&settings, "", 0, 5000) == 3);
    CHECK(brimful_classify(&settings, "/a", 2, UINT64_MAX) == 2);

    CHECK(brimful_add_rule(&settings, "bad", "size") != NULL);
    CHECK(brimful_add_rule(&settings, "bad", "size 5") != NULL);
    CHECK(brimful_add_rule(&settings, "bad", "size -5") != NULL);
    CHECK(brimful_add_rule(&settings, "bad", "size 6-5") != NULL);
    CHECK(brimful_add_rule(&settings, "bad", "size 1-2k") != NULL);
    CHECK(brimful_add_rule(&settings, "bad", "size 1-9999999999999999999999") != NULL);
    CHECK(brimful_add_rule(&settings, "bad", "url images") != NULL);
    CHECK(brimful_add_rule(&settings, "", "url /") != NULL);
    CHECK(brimful_add_rule(&settings, "a b", "url /") != NULL);
    memset(name, 'n', sizeof(name) - 1);
    name[BRIMFUL_NAME_BYTES] = '\0';
    CHECK(brimful_add_rule(&settings, name, "url /") != NULL);
    name[BRIMFUL_NAME_BYTES - 1] = '\0';
    CHECK(brimful_add_rule(&settings, name, "url /") == NULL);
    memset(pattern, '*', sizeof(pattern));
    memcpy(pattern, "url ", 4);
    pattern[260] = '\0';
    CHECK(brimful_add_rule(&settings, "long", pattern) != NULL);
    pattern[259] = '\0';
    CHECK(brimful_add_rule(&settings, "long", pattern) == NULL);

    for (i = 0; i < 20; i++) {
        (void) snprintf(name, sizeof(name), "class-%u", i);
        CHECK((brimful_add_rule(&settings, name, "size 1-2") == NULL) == (i < 10));
    }
    CHECK(settings.classes == BRIMFUL_MAX_CLASSES && strcmp(settings.class_names[15], "other") == 0);
    for (i = settings.rules; i < BRIMFUL_RULES_MOST; i++) {
        CHECK(brimful_add_rule(&settings, "small", "size 3-4") == NULL);
    }
    CHECK(brimful_add_rule(&settings, "small", "size 3-4") != NULL);
    CHECK(brimful_classify(&settings, "/", 1, 7) == 0);
    CHECK(brimful_classify(&settings, "/q", 2, 6000) == 4); /* the pattern `long` matches every path */
}

static int matches(const char *pattern, const char *path)
{
    return brimful_matches(pattern, path, strlen(path));
}

static void patterns_match(void)
{
    char path[4096];

    CHECK(matches("/a", "/a") && !matches("/a", "/ab") && !matches("/ab", "/a") && !matches("/a", ""));
    CHECK(matches("*", "") && matches("*", "/x/y") && matches("/a*", "/a") && matches("**a**", "bab"));
    CHECK(matches("/a*b*c", "/abbbcc") && !matches("/a*b*c", "/abbbcd") && matches("*ab", "aaab"));
    CHECK(matches("", "") && !matches("", "a") && matches("/*.png", "/x/y.png") && !matches("/*.png", "/x.pngx"));
    memset(path, 'a', sizeof(path));
    CHECK(!brimful_matches("*a*a*a*a*a*a*a*a*b", path, sizeof(path)));
}

static void squares_and_buckets_hold_extremes(void)
{
    CHECK(brimful_square_us2(0) == 0 && brimful_square_us2(1000) == 1 && brimful_square_us2(1500) == 2);
    CHECK(brimful_square_us2(999999999) == UINT64_C(999999998000));
    CHECK(brimful_square_us2(1000000000) == UINT64_C(1000000000000));
    CHECK(brimful_square_us2(UINT64_MAX) == UINT64_C(0x7fffffff) * UINT64_C(0x7fffffff));
    CHECK(brimful_bucket(0) == 0 && brimful_bucket(255) == 0 && brimful_bucket(319) == 0 && brimful_bucket(320) == 1);
    CHECK(brimful_bucket(512) == 4 && brimful_bucket(UINT64_MAX) == BRIMFUL_BUCKETS - 1);
}

static void what_is_recorded_adds_up(void)
{
    struct brimful_settings settings = settings_for("sums");
    struct brimful_memory memory;
    struct brimful_request request = {.time_ns = {1000, 2000, 3000, 4000, 5000, 6000},
                                      .has = BRIMFUL_HAS(BRIMFUL_PHASES) - 1 - BRIMFUL_HAS(BRIMFUL_UPSTREAM),
                                      .cpu_ns = {1000, 2000, 3000},
                                      .cpu_sampled = 1,
                                      .bytes = 10,
                                      .status = 500,
                                      .aborted = 1,
                                      .blocks = {24, 8},
                                      .resumed = 3};
    struct brimful_class *class_;
    struct brimful_sums *sums;
    struct brimful_slot *slot;
    char why[BRIMFUL_WHY_BYTES];
    int i;

    CHECK(brimful_map(&memory, &settings, why) == 0);
    slot = brimful_claim(&memory, (uint32_t) getpid(), (uint32_t) getpid());
    CHECK(slot != NULL && ((uintptr_t) slot - (uintptr_t) memory.header) % BRIMFUL_SLOT_ALIGN == 0);
    brimful_record(slot, 6, &request);
    request.cpu_sampled = 2;
    request.status = 200;
    request.aborted = 0;
    request.resumed = 1;
    request.time_ns[BRIMFUL_PARSE] = 1000;
    brimful_record(slot, 6, &request);
    class_ = &slot->classes[6];
    sums = &class_->sums[1];
    CHECK(slot->recorded == 2 && brimful_pending_count(slot) == 2 && sums->requests == 0);
    brimful_fold(slot);
    CHECK(brimful_pending_count(slot) == 0 && (slot->folded >> 6 & 1) == 1);
    CHECK(sums->requests == 2 && sums->bytes == 20 && sums->failed == 1 && sums->aborted == 1);
    CHECK(sums->resumed == 4);
    CHECK(class_->cpu_count == 1 && class_->cpu_mixed == 1 && class_->cpu_ns[BRIMFUL_CPU_LOG] == 3000);
    CHECK(class_->blocks_count == 1 && class_->blocks_read == 24 && class_->blocks_written == 8);
    CHECK(class_->cpu_sum_us2 == 36);
    CHECK(sums->times[BRIMFUL_PARSE].count == 2 && sums->times[BRIMFUL_PARSE].sum_ns == 3000);
    CHECK(sums->times[BRIMFUL_PARSE].sum_us2 == 5 && sums->times[BRIMFUL_UPSTREAM].count == 0);
    CHECK(class_->buckets[BRIMFUL_PARSE][brimful_bucket(1000)] == 1);
    CHECK(class_->buckets[BRIMFUL_PARSE][brimful_bucket(2000)] == 1);
    CHECK(class_->buckets[BRIMFUL_UPSTREAM][0] == 0 && slot->classes[5].sums[0].requests == 0);
    CHECK((char *) (class_ + 1) <= (char *) memory.header + memory.size);
    /* The square of 1.9 us is 3.61 square microseconds. For each of the 3 pending requests, a reader adds 3. The fold
     * must not decrease this sum of 9: it rounds down only once, to 10. */
    request.time_ns[BRIMFUL_LOG] = 1900;
    for (i = 0; i < 3; i++) {
        brimful_record(slot, 4, &request);
    }
    brimful_fold(slot);
    CHECK(slot->classes[4].sums[1].times[BRIMFUL_LOG].sum_us2 == 10);

    brimful_begin(slot, 100);
    brimful_begin(slot, 150);
    CHECK(slot->in_progress == 2 && slot->busy_since_ns == 100 && slot->busy_ns == 0);
    brimful_end(slot, 200);
    CHECK(slot->in_progress == 1 && slot->busy_since_ns == 100);
    brimful_end(slot, 300);
    brimful_end(slot, 400);
    CHECK(slot->in_progress == 0 && slot->busy_since_ns == 0 && slot->busy_ns == 200);
    CHECK(brimful_is_on(&memory));
    memory.header->enabled = 0;
    CHECK(!brimful_is_on(&memory));
    brimful_unmap(&memory);
    CHECK(!brimful_is_on(&memory));
}

/* Simulates a worker that is killed during a fold: writes to the copies of the sums that are not current, and to the
 * buckets. The next fold must count each request exactly once in the sums. */
static void what_was_folded_by_half_is_folded_once(void)
{
    struct brimful_settings settings = settings_for("half");
    struct brimful_request request = {.has = BRIMFUL_HAS(BRIMFUL_PARSE), .bytes = 7, .status = 200};
    struct brimful_memory memory;
    struct brimful_slot *slot;
    struct brimful_sums *sums;
    char why[BRIMFUL_WHY_BYTES];
    uint64_t folded;
    unsigned i;

    CHECK(brimful_map(&memory, &settings, why) == 0);
    slot = brimful_claim(&memory, (uint32_t) getpid(), (uint32_t) getpid());
    for (i = 0; i < 3 * BRIMFUL_PENDING + 5; i++) {
        request.time_ns[BRIMFUL_PARSE] = 1000 * i;
        brimful_record(slot, i % 3, &request);
    }
    CHECK(brimful_pending_count(slot) == 5 && slot->folded >> BRIMFUL_FOLDED_COUNT == 3 * BRIMFUL_PENDING);
    folded = slot->folded;
    brimful_fold(slot);
    slot->folded = folded;
    CHECK(brimful_pending_count(slot) == 5);
    brimful_fold(slot);
    for (i = 0, request.bytes = 0; i < 3; i++) {
        sums = &slot->classes[i].sums[slot->folded >> i & 1];
        CHECK(sums->times[BRIMFUL_PARSE].count == sums->requests && sums->bytes == 7 * sums->requests);
        request.bytes += sums->requests;
    }
    CHECK(request.bytes == 3 * BRIMFUL_PENDING + 5 && slot->recorded == request.bytes);

    /* The class does not exist, and the counts are impossible. A fold must not write outside of the slot. */
    brimful_count(slot, 0, &request);
    slot->pending[(slot->recorded - 1) % BRIMFUL_PENDING].what = 200;
    slot->recorded = UINT64_MAX - 3;
    brimful_fold(slot);
    CHECK(brimful_pending_count(slot) > BRIMFUL_PENDING); /* `folded` has only 48 bits for the count */
    brimful_record(slot, 1, &request);
    brimful_unmap(&memory);
}

static void a_reload_goes_on_with_the_same_file(void)
{
    struct brimful_settings settings = settings_for("reload");
    struct brimful_memory memory, again;
    struct brimful_slot *slot;
    char why[BRIMFUL_WHY_BYTES];

    CHECK(brimful_map(&memory, &settings, why) == 0 && memory.slots == 3);
    slot = brimful_claim(&memory, (uint32_t) getpid(), (uint32_t) getpid());
    brimful_add(&slot->connections, 5);
    memory.header->enabled = 0;
    settings.server = "test/2.0";
    settings.slots = 2; /* a file with more slots than configured is used again */
    settings.cpu_one_in = 9;
    CHECK(brimful_map(&again, &settings, why) == 0 && again.slots == 3 && again.header->enabled == 0);
    CHECK(strcmp(memory.header->server, "test/2.0") == 0 && memory.header->cpu_one_in == 9);
    brimful_release(slot);
    slot = brimful_claim(&again, (uint32_t) getpid(), (uint32_t) getpid());
    CHECK(slot != NULL && slot->connections == 5 && slot->owners == 2);
    brimful_unmap(&again);

    settings.slots = 4; /* a file with too few slots is replaced by a new file, and not changed itself */
    CHECK(brimful_map(&again, &settings, why) == 0 && again.slots == 4 && again.header->enabled == 1);
    CHECK(memory.header->magic == BRIMFUL_MAGIC && memory.header->enabled == 0);
    brimful_unmap(&again);
    settings.server = "another/2.0";
    CHECK(brimful_map(&again, &settings, why) == 0 && strcmp(memory.header->server, "test/2.0") == 0);
    brimful_unmap(&again);
    CHECK(brimful_add_rule(&settings, "new", "size 1-2") == NULL);
    CHECK(brimful_map(&again, &settings, why) == 0 && again.header->classes == 8);
    brimful_unmap(&again);
    brimful_unmap(&memory);
}

static void counts_of_slots_are_bounded(void)
{
    struct brimful_settings settings = {.slots = UINT32_MAX};

    CHECK(brimful_slot_count(&settings, 1) == BRIMFUL_MAX_SLOTS);
    CHECK(brimful_slot_count(&settings, 16) < BRIMFUL_MAX_SLOTS);
    CHECK(brimful_header_size() + brimful_slot_count(&settings, 16) * brimful_slot_size(16) <= BRIMFUL_MAX_FILE_BYTES);
    settings.slots = 0;
    CHECK(brimful_slot_count(&settings, 1) == 1);
}

/* Starts a process that claims a slot and ends without releasing it. */
static pid_t claim_and_die(struct brimful_memory *memory)
{
    pid_t child = fork();
    int status = 1;

    if (child == 0) {
        struct brimful_slot *slot = brimful_claim(memory, (uint32_t) getpid(), (uint32_t) getpid());

        if (slot != NULL) {
            brimful_add(&slot->connections, 1);
            brimful_begin(slot, brimful_now());
        }
        _exit(slot == NULL);
    }
    CHECK(child > 0 && waitpid(child, &status, 0) == child && status == 0);
    return child;
}

static void slots_of_the_dead_are_taken_over(void)
{
    struct brimful_settings settings = settings_for("dead");
    struct brimful_memory memory;
    struct brimful_slot *slot[4];
    char why[BRIMFUL_WHY_BYTES];
    uint32_t self = (uint32_t) getpid();
    int i;

    CHECK(brimful_map(&memory, &settings, why) == 0 && memory.slots == 3);
    slot[0] = brimful_claim(&memory, self, self);
    for (i = 0; i < 5; i++) {
        pid_t child = claim_and_die(&memory);

        CHECK(i > 0 || ((struct brimful_slot *) (void *) ((char *) slot[0] + memory.slot_size))->owner
                           == (uint32_t) child);
    }
    for (i = 1; i < 4; i++) {
        slot[i] = brimful_claim(&memory, self, self);
    }
    CHECK(slot[1] != NULL && slot[2] != NULL && slot[3] == NULL && memory.header->lost == 1);
    CHECK(brimful_claim(&memory, self, self) == NULL && memory.header->lost == 1); /* a retry is the same worker */
    CHECK(slot[1]->connections + slot[2]->connections == 5 && slot[1]->in_progress == 0);
    CHECK(slot[1]->busy_since_ns == 0 && slot[1]->owners + slot[2]->owners == 7);
    brimful_release(slot[1]);
    CHECK(brimful_claim(&memory, self, self) == slot[1]);
    brimful_unmap(&memory);
}

static struct brimful_memory shared;

/* Claims a slot, records 20,000 requests, and releases it. */
static void *work(void *unused)
{
    struct brimful_request request = {.has = BRIMFUL_HAS(BRIMFUL_PARSE), .bytes = 3, .status = 200};
    struct brimful_slot *slot = brimful_claim(&shared, (uint32_t) getpid(), (uint32_t) syscall(SYS_gettid));
    unsigned i;

    (void) unused;
    for (i = 0; slot != NULL && i < 20000; i++) {
        brimful_begin(slot, i);
        request.time_ns[BRIMFUL_PARSE] = i;
        brimful_record(slot, 0, &request);
        brimful_end(slot, i + 1);
    }
    if (slot != NULL) {
        brimful_release(slot);
    }
    return slot;
}

static uint64_t requests_of(const struct brimful_memory *memory)
{
    uint64_t sum = 0;
    uint32_t i;

    for (i = 0; i < memory->slots; i++) {
        const char *at = (const char *) memory->header + memory->header_size + i * memory->slot_size;

        sum += brimful_get(&((const struct brimful_slot *) (const void *) at)->recorded);
    }
    return sum;
}

static void threads_have_slots_of_their_own(void)
{
    struct brimful_settings settings = settings_for("threads");
    char why[BRIMFUL_WHY_BYTES];
    pthread_t threads[8];
    unsigned i, had = 0;
    uint64_t seen = 0, now;
    void *slot;

    settings.slots = 6;
    CHECK(brimful_map(&shared, &settings, why) == 0);
    for (i = 0; i < 8; i++) {
        CHECK(pthread_create(&threads[i], NULL, work, NULL) == 0);
    }
    for (i = 0; i < 1000; i++) {
        now = requests_of(&shared); /* reads while the threads write, as a reader does */
        CHECK(now >= seen);
        seen = now;
    }
    for (i = 0; i < 8; i++) {
        CHECK(pthread_join(threads[i], &slot) == 0);
        had += slot != NULL;
    }
    CHECK(had >= 6 && requests_of(&shared) == had * UINT64_C(20000) && shared.header->lost == 8 - had);
    brimful_unmap(&shared);
}

static void time_is_that_of_the_kernel(void)
{
    uint64_t begin = brimful_read_clock(CLOCK_MONOTONIC), before, now, after, last = 0;
    int has_ticks = brimful_has_ticks;

    for (brimful_has_ticks = 0; brimful_has_ticks < 2; brimful_has_ticks++) {
        do {
            before = brimful_read_clock(CLOCK_MONOTONIC);
            now = brimful_now();
            after = brimful_read_clock(CLOCK_MONOTONIC);
            /* A small difference is normal: ticks are read slightly before or after the clock, and the length of a tick
             * has a relative error of about 10^-6. */
            if (now + 10000 < before || now > after + 10000 || now < last) {
                CHECK(now == 0);
                return;
            }
            last = now;
        } while (after - begin < (brimful_has_ticks ? 300000000u : 50000000u));
    }
    CHECK(brimful_ticks.valid_ticks > 0 || !has_ticks);
    brimful_has_ticks = has_ticks;
}

/* Returns how often the time of brimful_now differed from the kernel's clock by more than 10 us. */
static void *tell_time(void *unused)
{
    uint64_t begin = brimful_read_clock(CLOCK_MONOTONIC), before, now, after;
    uintptr_t wrong = 0;

    (void) unused;
    do {
        before = brimful_read_clock(CLOCK_MONOTONIC);
        now = brimful_now();
        after = brimful_read_clock(CLOCK_MONOTONIC);
        wrong += now + 10000 < before || now > after + 10000;
    } while (after - begin < 200000000u);
    return (void *) wrong;
}

static void threads_tell_time_by_the_same_anchors(void)
{
    int has_ticks = brimful_has_ticks;
    pthread_t threads[4];
    void *wrong;
    unsigned i;

    brimful_has_ticks = 1;
    for (i = 0; i < 4; i++) {
        CHECK(pthread_create(&threads[i], NULL, tell_time, NULL) == 0);
    }
    for (i = 0; i < 4; i++) {
        CHECK(pthread_join(threads[i], &wrong) == 0);
        CHECK(wrong == NULL);
    }
    brimful_has_ticks = has_ticks;
}

static void samples_are_of_one_in_so_many(void)
{
    struct brimful_settings often = {.cpu_one_in = 16};
    struct brimful_chance chance = {0, 0};
    uint64_t now = 0;
    unsigned i, sampled = 0, of_phase[16] = {0};

    for (i = 0; i < 160000; i++) {
        now += BRIMFUL_CPU_REST_NS;
        if (brimful_is_sampled(&chance, &often, now)) {
            sampled++;
            of_phase[i % 16]++;
        }
    }
    CHECK(sampled > 9500 && sampled < 10500);
    for (i = 0; i < 16; i++) {
        CHECK(of_phase[i] > 500 && of_phase[i] < 750); /* as often as the other positions in a period of 16 */
    }
    /* This worker is one of four busy workers. It serves a request every 10 us, for 10 s. */
    often.workers_most = 4;
    for (i = 0, sampled = 0; i < 1000000; i++) {
        now += 10000;
        sampled += (unsigned) brimful_is_sampled(&chance, &often, now);
    }
    CHECK(sampled > 580 && sampled < 626);
    chance.gap = 0;
    often.cpu_one_in = 1;
    now += 4 * BRIMFUL_CPU_REST_NS;
    for (i = 0; i < 1000; i++) {
        CHECK(brimful_is_sampled(&chance, &often, now));
    }
    often.cpu_one_in = 0;
    for (i = 0; i < 1000; i++) {
        CHECK(!brimful_is_sampled(&chance, &often, now));
    }
    often.cpu_one_in = UINT32_MAX;
    CHECK(brimful_is_sampled(&chance, &often, now));
    CHECK(!brimful_is_sampled(&chance, &often, now + 100 * BRIMFUL_CPU_REST_NS));
    brimful_start_cpu_clock();
    CHECK(brimful_cpu_between(5, 3) == 0 && brimful_cpu_between(0, brimful_cpu_clock.cost_ns) == 0);
    CHECK(brimful_cpu_between(0, brimful_cpu_clock.cost_ns + 70) == 70);
}

int main(int count, char **arguments)
{
    if (count != 2) {
        fprintf(stderr, "error: name a directory to write to\n");
        return 2;
    }
    directory = arguments[1];
    rules_are_read();
    patterns_match();
    squares_and_buckets_hold_extremes();
    what_is_recorded_adds_up();
    what_was_folded_by_half_is_folded_once();
    a_reload_goes_on_with_the_same_file();
    counts_of_slots_are_bounded();
    slots_of_the_dead_are_taken_over();
    threads_have_slots_of_their_own();
    time_is_that_of_the_kernel();
    threads_tell_time_by_the_same_anchors();
    samples_are_of_one_in_so_many();
    printf("%u checks, %u failed\n", checks, failures);
    return failures == 0 ? 0 : 1;
}
