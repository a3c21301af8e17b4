// SPDX-License-Identifier: MIT OR Apache-2.0
//
// Every thread of user space as one record, in one call: the program does the walk itself and writes into memory that
// user space has mapped. It costs a quarter of what the iterator does, and takes Linux 6.7.

#include "task.h"

char LICENSE[] SEC("license") = "Dual MIT/GPL";

// User space says how many when it loads the program.
struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(map_flags, BPF_F_MMAPABLE);
    __uint(max_entries, 1);
    __type(key, __u32);
    __type(value, struct record);
} records SEC(".maps");

// Returns how many threads there are; if `records` has no room for all, some number above what it has room for.
SEC("syscall")
int walk(void *unused) {
    struct bpf_iter_task iterator;
    struct task_struct *task;
    volatile __u32 count = 0; // in memory, so that the verifier does not follow it from round to round

    bpf_rcu_read_lock();
    bpf_iter_task_new(&iterator, 0, BPF_TASK_ITER_ALL_THREADS);
    while ((task = bpf_iter_task_next(&iterator))) {
        __u32 index = count;
        struct record *record = bpf_map_lookup_elem(&records, &index);
        if (!record || fill_in(record, task))
            count = index + 1;
    }
    bpf_iter_task_destroy(&iterator);
    bpf_rcu_read_unlock();
    return count;
}
