// SPDX-License-Identifier: MIT OR Apache-2.0
//
// Every thread of user space as one record, written whenever somebody reads the iterator. For kernels that walk.bpf.c
// does not run on.

#include "task.h"

char LICENSE[] SEC("license") = "Dual MIT/GPL";

SEC("iter/task")
int tasks(struct bpf_iter__task *context) {
    struct task_struct *task = context->task; // null at the end
    struct record record = {};

    if (task && fill_in(&record, task))
        bpf_seq_write(context->meta->seq, &record, sizeof(record));
    return 0;
}
