// SPDX-License-Identifier: MIT OR Apache-2.0
//
// The record of one thread, and the function that fills the record. crates/monitor/src/ebpf/tasks.rs documents the
// fields.

#ifndef BRIMFUL_TASK_H
#define BRIMFUL_TASK_H

#include "kernel.h"

#define LEADER (1 << 0)   // this is the main thread: the values of the process are filled in
#define RUNNABLE (1 << 1) // the thread is on a CPU or ready for one
#define SCHED (1 << 2)    // the kernel measures `waited`
#define RSS (1 << 3)      // `rss_pages` is known
#define ENDED (1 << 4)    // the thread has ended; its parent may not have waited for it yet

struct counters {
    __u64 ran, user, system, major_faults, switches;
};

struct record {
    __u32 pid, tgid, parent, flags;
    char comm[16];
    __u64 started;
    struct counters own;
    __u64 waited;
    // Values of the whole process. They are filled in only in the record of the main thread.
    __u64 threads, rss_pages;
    struct counters ended;
    __u64 children_user, children_system, children_major_faults;
};

static __always_inline struct upid *place(struct pid *pid, __u32 depth) {
    return (void *)pid + bpf_core_field_offset(pid->numbers) + depth * bpf_core_type_size(struct upid);
}

// Returns the process id of `pid` in the pid namespace of the process `reader`, or 0 if `pid` is not in this namespace.
// `depth` is the depth of the namespace.
static __always_inline __u32 pid_in_namespace(struct pid *pid, struct pid *reader, __u32 depth) {
    if (depth > BPF_CORE_READ(pid, level))
        return 0;
    if (BPF_CORE_READ(place(pid, depth), ns) != BPF_CORE_READ(place(reader, depth), ns))
        return 0;
    return BPF_CORE_READ(place(pid, depth), nr);
}

static __always_inline void identify(struct record *record, struct task_struct *task) {
    struct task_struct *current = (void *)bpf_get_current_task();
    struct pid *reader = BPF_CORE_READ(current, thread_pid);
    __u32 depth = BPF_CORE_READ(reader, level);

    if (depth == 0) {
        record->pid = task->pid;
        record->tgid = task->tgid;
        record->parent = task->real_parent->tgid;
    } else {
        record->pid = pid_in_namespace(task->thread_pid, reader, depth);
        record->tgid = pid_in_namespace(task->signal->pids[PIDTYPE_TGID], reader, depth);
        record->parent = pid_in_namespace(task->real_parent->signal->pids[PIDTYPE_TGID], reader, depth);
    }
}

static __always_inline __u32 state(struct task_struct *task) {
    if (bpf_core_field_exists(task->__state))
        return task->__state;
    return BPF_CORE_READ((struct task_struct___state *)task, state);
}

static __always_inline __u64 at_least_zero(__s64 count) { return count > 0 ? count : 0; }

static __always_inline __u64 resident(struct mm_struct *mm) {
    if (bpf_core_type_exists(struct mm_rss_stat)) {
        struct mm_rss_stat *old = &((struct mm_struct___atomic *)mm)->rss_stat;
        return at_least_zero(old->count[MM_FILEPAGES].counter) + at_least_zero(old->count[MM_ANONPAGES].counter) +
               at_least_zero(old->count[MM_SHMEMPAGES].counter);
    }
    return at_least_zero(mm->rss_stat[MM_FILEPAGES].count) + at_least_zero(mm->rss_stat[MM_ANONPAGES].count) +
           at_least_zero(mm->rss_stat[MM_SHMEMPAGES].count);
}

static __always_inline bool rss_is_readable(void) {
    return bpf_core_type_exists(struct mm_rss_stat) ||
           bpf_core_field_exists(((struct mm_struct *)0)->rss_stat[0].count);
}

static __always_inline void add_process(struct record *record, struct task_struct *task) {
    struct signal_struct *signal = task->signal;
    struct mm_struct *mm = task->mm;

    record->flags |= LEADER;
    record->ended.ran = signal->sum_sched_runtime;
    record->ended.user = signal->utime;
    record->ended.system = signal->stime;
    record->ended.major_faults = signal->maj_flt;
    record->ended.switches = signal->nvcsw + signal->nivcsw;
    record->children_user = signal->cutime;
    record->children_system = signal->cstime;
    record->children_major_faults = signal->cmaj_flt;
    if (rss_is_readable() && mm && !(task->flags & PF_EXITING)) {
        record->flags |= RSS;
        record->rss_pages = resident(mm);
    }
}

// Fills a record. Returns false if the reader must not see the task, because it is a kernel thread or outside the
// reader's pid namespace.
static __always_inline bool fill_in(struct record *record, struct task_struct *task) {
    if (task->flags & PF_KTHREAD)
        return false;
    record->flags = 0;
    identify(record, task);
    __builtin_memcpy(record->comm, task->comm, sizeof(record->comm));
    if (task->exit_state != 0)
        record->flags |= ENDED;
    else if (state(task) == 0)
        record->flags |= RUNNABLE;
    record->started = task->start_boottime;
    // When a parent waits for a process, the kernel adds the usage of the last thread to the usage of the ended
    // threads, and decrements the number of threads. So `threads` is read last: if it is zero, `ended` may already
    // include everything in `own`.
    if (task->pid == task->tgid)
        add_process(record, task);
    barrier();
    record->own.ran = task->se.sum_exec_runtime;
    record->own.user = task->utime;
    record->own.system = task->stime;
    record->own.major_faults = task->maj_flt;
    record->own.switches = task->nvcsw + task->nivcsw;
    if (bpf_core_field_exists(task->sched_info.run_delay)) {
        record->flags |= SCHED;
        record->waited = task->sched_info.run_delay;
    }
    barrier();
    if (task->pid == task->tgid)
        record->threads = task->signal->nr_threads;
    return record->pid != 0;
}

#endif
