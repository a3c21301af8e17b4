/*
 * Prints the layout of the recorder's memory, one entry per line. A test in crates/monitor compares this layout with
 * the reader's layout:
 *
 *   struct.field OFFSET SIZE     each field; for an array, SIZE is the size of the whole array
 *   struct - SIZE                each struct, with its sizeof
 *   name = VALUE                 each constant, and the sizes of header and slot
 *   bucket B LOWER               each bucket, with its lower bound in ns; 0 for the first bucket
 */
#include <stddef.h>
#include <stdio.h>

#include "../recorder.h"

#define FIELD(type, field) \
    printf("%s.%s %zu %zu\n", #type, #field, offsetof(struct type, field), sizeof(((struct type *) 0)->field))
#define STRUCT(type) printf("%s - %zu\n", #type, sizeof(struct type))
#define VALUE(name, value) printf("%s = %llu\n", name, (unsigned long long) (value))
#define CONSTANT(name) VALUE(#name, name)

static void print_header(void)
{
    FIELD(brimful_header, magic);
    FIELD(brimful_header, layout);
    FIELD(brimful_header, header_size);
    FIELD(brimful_header, slot_size);
    FIELD(brimful_header, slots);
    FIELD(brimful_header, classes);
    FIELD(brimful_header, enabled);
    FIELD(brimful_header, cpu_one_in);
    FIELD(brimful_header, workers_most);
    FIELD(brimful_header, master_pid);
    FIELD(brimful_header, lost);
    FIELD(brimful_header, created_ns);
    FIELD(brimful_header, server);
    FIELD(brimful_header, class_names);
    STRUCT(brimful_header);
}

static void print_slot(void)
{
    FIELD(brimful_slot, owner);
    FIELD(brimful_slot, thread);
    FIELD(brimful_slot, owners);
    FIELD(brimful_slot, connections);
    FIELD(brimful_slot, in_progress);
    FIELD(brimful_slot, busy_since_ns);
    FIELD(brimful_slot, busy_ns);
    FIELD(brimful_slot, recorded);
    FIELD(brimful_slot, folded);
    FIELD(brimful_slot, cpu_ns);
    FIELD(brimful_slot, cpu_at_ns);
    FIELD(brimful_slot, unused);
    FIELD(brimful_slot, pending);
    printf("brimful_slot.classes %zu 0\n", offsetof(struct brimful_slot, classes));
    STRUCT(brimful_slot);

    FIELD(brimful_pending, what);
    FIELD(brimful_pending, bytes);
    FIELD(brimful_pending, time_ns);
    STRUCT(brimful_pending);
}

static void print_class(void)
{
    FIELD(brimful_class, sums);
    FIELD(brimful_class, cpu_count);
    FIELD(brimful_class, cpu_ns);
    FIELD(brimful_class, cpu_sum_us2);
    FIELD(brimful_class, cpu_mixed);
    FIELD(brimful_class, blocks_count);
    FIELD(brimful_class, blocks_read);
    FIELD(brimful_class, blocks_written);
    FIELD(brimful_class, unused);
    FIELD(brimful_class, buckets);
    STRUCT(brimful_class);

    FIELD(brimful_sums, requests);
    FIELD(brimful_sums, bytes);
    FIELD(brimful_sums, failed);
    FIELD(brimful_sums, aborted);
    FIELD(brimful_sums, times);
    FIELD(brimful_sums, resumed);
    FIELD(brimful_sums, unused);
    STRUCT(brimful_sums);

    FIELD(brimful_times, count);
    FIELD(brimful_times, sum_ns);
    FIELD(brimful_times, sum_us2);
    STRUCT(brimful_times);
}

static void print_constants(void)
{
    CONSTANT(BRIMFUL_MAGIC);
    CONSTANT(BRIMFUL_LAYOUT);
    CONSTANT(BRIMFUL_MAX_CLASSES);
    CONSTANT(BRIMFUL_NAME_BYTES);
    CONSTANT(BRIMFUL_BUCKETS);
    CONSTANT(BRIMFUL_SLOT_ALIGN);
    CONSTANT(BRIMFUL_PENDING);
    CONSTANT(BRIMFUL_WHAT_CLASS);
    CONSTANT(BRIMFUL_WHAT_FAILED);
    CONSTANT(BRIMFUL_WHAT_ABORTED);
    CONSTANT(BRIMFUL_WHAT_HAS);
    CONSTANT(BRIMFUL_WHAT_RESUMED);
    CONSTANT(BRIMFUL_FOLDED_COUNT);
    CONSTANT(BRIMFUL_MAX_SLOTS);
    CONSTANT(BRIMFUL_MAX_FILE_BYTES);
    CONSTANT(BRIMFUL_HEAD);
    CONSTANT(BRIMFUL_PARSE);
    CONSTANT(BRIMFUL_PROCESS);
    CONSTANT(BRIMFUL_UPSTREAM);
    CONSTANT(BRIMFUL_SEND);
    CONSTANT(BRIMFUL_LOG);
    CONSTANT(BRIMFUL_PHASES);
    CONSTANT(BRIMFUL_CPU_PARSE);
    CONSTANT(BRIMFUL_CPU_PROCESS);
    CONSTANT(BRIMFUL_CPU_LOG);
    CONSTANT(BRIMFUL_CPUS);
    VALUE("header_size", brimful_header_size());
    VALUE("slot_size_1", brimful_slot_size(1));
    VALUE("slot_size_16", brimful_slot_size(BRIMFUL_MAX_CLASSES));
}

int main(void)
{
    unsigned bucket;
    uint64_t lower;

    print_header();
    print_slot();
    print_class();
    print_constants();
    for (bucket = 0; bucket < BRIMFUL_BUCKETS; bucket++) {
        lower = (uint64_t) (4 + bucket % 4) << (bucket / 4 + 6);
        if (brimful_bucket(lower) != bucket || (bucket > 0 && brimful_bucket(lower - 1) != bucket - 1)) {
            fprintf(stderr, "bucket %u does not begin at %llu ns\n", bucket, (unsigned long long) lower);
            return 1;
        }
        printf("bucket %u %llu\n", bucket, (unsigned long long) (bucket == 0 ? 0 : lower));
    }
    return 0;
}
