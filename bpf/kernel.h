// SPDX-License-Identifier: MIT OR Apache-2.0
//
// The parts of the kernel's structures that the programs in this directory read: the names and types of the fields that
// are used, without their offsets. When libbpf loads a program, it takes the offsets from the running kernel's own
// description of its types (/sys/kernel/btf/vmlinux). So this file may order the fields differently and omit fields. A
// suffix ___something denotes an older or newer form of the structure named before the suffix.
//
// Sources: include/linux/sched.h, sched/signal.h, mm_types.h, pid.h, bpf.h; include/net/sock.h, inet_sock.h, tcp.h.

#ifndef BRIMFUL_KERNEL_H
#define BRIMFUL_KERNEL_H

typedef unsigned char __u8;
typedef unsigned short __u16;
typedef unsigned int __u32;
typedef unsigned long long __u64;
typedef signed char __s8;
typedef short __s16;
typedef int __s32;
typedef long long __s64;
typedef __u16 __be16;
typedef __u32 __be32;
typedef __u64 __be64;
typedef __u32 __wsum;
typedef _Bool bool;
enum { false, true };

#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_tracing.h>

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

// --- Sockets ---------------------------------------------------------------------------------------------------------

// The states of a TCP socket, with the numbers of include/net/tcp_states.h. User space relies on these numbers, so they
// are the same in every version of Linux.
enum {
    TCP_ESTABLISHED = 1,
    TCP_SYN_SENT = 2,
    TCP_SYN_RECV = 3,
    TCP_FIN_WAIT1 = 4,
    TCP_FIN_WAIT2 = 5,
    TCP_CLOSE = 7,
    TCP_CLOSE_WAIT = 8,
    TCP_LAST_ACK = 9,
    TCP_CLOSING = 11,
    TCP_STATES = 13, // one more than the largest number of a state
};

enum { IPPROTO_TCP = 6 };                        // include/uapi/linux/in.h
enum { MSG_PEEK = 0x2, MSG_ERRQUEUE = 0x2000 };  // include/linux/socket.h

struct ns_common {
    unsigned int inum;
};

struct net {
    struct ns_common ns;
};

typedef struct {
    struct net *net;
} possible_net_t;

struct sock_common {
    __u16 skc_num; // the local port
    volatile unsigned char skc_state;
    possible_net_t skc_net;
};

struct sock {
    struct sock_common __sk_common;
    __u16 sk_protocol; // from Linux 5.6 on
    int sk_wmem_queued, sk_sndbuf;
};

struct inet_sock {
    __be16 inet_sport;
};

struct inet_connection_sock {
    struct inet_sock icsk_inet;
};

struct tcp_sock {
    struct inet_connection_sock inet_conn;
    __u32 rcv_nxt, copied_seq;
};

// --- Tasks -----------------------------------------------------------------------------------------------------------

#define PF_EXITING 0x00000004 // include/linux/sched.h
#define PF_KTHREAD 0x00200000

enum { PIDTYPE_TGID = 1 };                                  // include/linux/pid_types.h
enum { MM_FILEPAGES = 0, MM_ANONPAGES = 1, MM_SHMEMPAGES = 3 }; // include/linux/mm_types_task.h

struct pid_namespace;

struct upid {
    int nr;
    struct pid_namespace *ns;
};

struct pid {
    unsigned int level;
    struct upid numbers[1];
};

struct percpu_counter { // include/linux/percpu_counter.h
    __s64 count;
};

struct mm_struct {
    struct percpu_counter rss_stat[4]; // from Linux 6.2 on
};

typedef struct {
    __s64 counter;
} atomic_long_t;

struct mm_rss_stat { // before Linux 6.2
    atomic_long_t count[4];
};

struct mm_struct___atomic {
    struct mm_rss_stat rss_stat;
};

struct sched_info { // only in kernels with CONFIG_SCHED_INFO
    unsigned long long run_delay;
};

struct sched_entity {
    __u64 sum_exec_runtime;
};

struct signal_struct {
    int nr_threads;
    struct pid *pids[4];
    __u64 utime, stime, cutime, cstime;
    unsigned long nvcsw, nivcsw;
    unsigned long maj_flt, cmaj_flt;
    unsigned long long sum_sched_runtime;
};

struct task_struct {
    unsigned int __state; // from Linux 5.14 on
    unsigned int flags;
    int exit_state;
    struct sched_entity se;
    struct sched_info sched_info;
    struct mm_struct *mm;
    int pid, tgid;
    struct task_struct *real_parent;
    struct pid *thread_pid;
    __u64 utime, stime;
    unsigned long nvcsw, nivcsw;
    __u64 start_boottime;
    unsigned long maj_flt;
    char comm[16];
    struct signal_struct *signal;
};

struct task_struct___state {
    long state; // before Linux 5.14
};

struct seq_file;

struct bpf_iter_meta {
    struct seq_file *seq;
};

struct bpf_iter__task {
    struct bpf_iter_meta *meta;
    struct task_struct *task;
};

#pragma clang attribute pop

// --- Functions and constants -----------------------------------------------------------------------------------------

enum { BPF_MAP_TYPE_ARRAY = 2, BPF_MAP_TYPE_PERCPU_ARRAY = 6, BPF_MAP_TYPE_SK_STORAGE = 24 }; // include/uapi/linux/bpf.h
enum { BPF_F_NO_PREALLOC = 1 << 0, BPF_F_MMAPABLE = 1 << 10 };
enum { BPF_SK_STORAGE_GET_F_CREATE = 1 << 0 };
enum { BPF_TASK_ITER_ALL_THREADS = 1 }; // kernel/bpf/task_iter.c

struct bpf_iter_task {
    __u64 opaque[3];
};

// The iterator functions are in kernel/bpf/task_iter.c, the RCU functions in kernel/bpf/helpers.c.
extern int bpf_iter_task_new(struct bpf_iter_task *iterator, struct task_struct *task, unsigned int flags) __ksym;
extern struct task_struct *bpf_iter_task_next(struct bpf_iter_task *iterator) __ksym;
extern void bpf_iter_task_destroy(struct bpf_iter_task *iterator) __ksym;
extern void bpf_rcu_read_lock(void) __ksym;
extern void bpf_rcu_read_unlock(void) __ksym;

#endif
