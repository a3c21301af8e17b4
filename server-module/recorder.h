/*
 * The recorder of brimful's Server Module (WebMonitor; Almeida, Almeida & Yates 1997, section 3.2). It measures time
 * and CPU time of requests inside a server, by phase and class, and writes sums into shared memory. `brimful watch`
 * reads these sums.
 *
 * The memory is one mapped file, which is created before the server forks. layout.h describes the contents of the file.
 * The headers included below are the complete writer.
 *
 * No function makes a request fail or wait. Only brimful_map allocates memory. The headers need GNU C (gcc or clang)
 * and _GNU_SOURCE or -std=gnu11. The module of a server calls these functions, in this order:
 *
 *   brimful_add_rule  for each rule of its configuration, or brimful_default_rules if there is no rule;
 *   brimful_map       before it forks, as the user who owns the file;
 *   brimful_claim     in each worker or thread, and brimful_release at its end;
 *   brimful_is_on     when a request begins; then brimful_begin when a worker starts to process the request, and
 *                     brimful_end when the worker stops;
 *   brimful_record    once for each request, when its log line is written; or brimful_count just before the line is
 *                     written, and brimful_record_times just after.
 */
#ifndef BRIMFUL_RECORDER_H
#define BRIMFUL_RECORDER_H

#include "classes.h"
#include "clock.h"
#include "file.h"
#include "layout.h"
#include "place.h"
#include "record.h"
#include "slots.h"
#include "words.h"

#endif
