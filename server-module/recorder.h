/*
 * The recorder of brimful's Server Module (WebMonitor; Almeida, Almeida & Yates 1997, section 3.2): what a request
 * costs inside a server, by phase and class, written into shared memory that `brimful watch` reads.
 *
 * The memory is one file, created before the server forks. layout.h describes its contents. These headers are the
 * complete writer.
 *
 * The functions never fail a request and never block. Except brimful_map, they never allocate. They need GNU C (gcc or
 * clang) and _GNU_SOURCE or -std=gnu11. A server's module calls, in this order:
 *
 *   brimful_add_rule  for each rule of its configuration, or brimful_default_rules if there is none;
 *   brimful_map       before it forks, as the user who owns the file;
 *   brimful_claim     in each worker or thread, and brimful_release at its end;
 *   brimful_is_on     when a request begins, brimful_begin and brimful_end around the time in which it has a worker;
 *   brimful_record    once for each request, when its log line is written; or brimful_count just before that, and
 *                     brimful_record_times after it.
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
