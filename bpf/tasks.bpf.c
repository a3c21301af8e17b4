// SPDX-License-Identifier: MIT OR Apache-2.0
//
// Writes one record for every user-space thread whenever user space reads the iterator. This program is for kernels
// that cannot run walk.bpf.c: those before Linux 6.7.

#include "task.h"

char LICENSE[] SEC("license") = "Dual MIT/GPL";

SEC("iter/task")
int tasks(struct bpf_iter__task *context) {
    struct task_struct *task = context->task; // null at the end of the iteration
    struct record record = {};

    if (task && fill_in(&record, task))
        bpf_seq_write(context->meta->seq, &record, sizeof(record));
    return 0;
}
