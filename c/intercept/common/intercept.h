/* What the preload libraries have in common: their rules by file pattern, their messages, and their report. */
#ifndef JUNCTURA_INTERCEPT_H
#define JUNCTURA_INTERCEPT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A function of any type: cast it to its own type before the call. */
typedef void (*AnyFunction)(void);

/* One rule of a list such as "wrf*.nc=pool,*=file". */
typedef struct {
    char *pattern;
    char *mode;
} FileRule;

/* A list of rules; the first that matches decides. */
typedef struct {
    size_t count;
    FileRule *rules;
} FileRules;

/* What a library did with one file. */
typedef struct FileReport FileReport;

/* Prints "junctura-LIBRARY: TEXT" on standard error. */
void intercept_say(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* As intercept_say, but a text that was printed before is not printed again. */
void intercept_say_once(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* States the name of this library, such as "netcdf", in messages and in the report. Call it first. */
void intercept_begin(const char *library);

/* Reads the rules in an environment variable. `modes` ends with NULL. A rule that cannot be read is reported on
 * standard error and left out. The rules are never freed. */
FileRules intercept_rules(const char *variable, const char *const *modes);

/* Returns the mode of the first rule whose pattern matches the path, or the last part of the path; NULL where there is
 * none. */
const char *intercept_mode(const FileRules *rules, const char *path);

/* Returns the next definition of a function after this library's own, NULL where there is none. Finds also functions of
 * a library whose name contains `library` and that was loaded privately. */
AnyFunction intercept_next(const char *function, const char *library);

/* Returns a function of the C library of Junctura, which is loaded by the first call; NULL where it cannot be had, after
 * a message. */
AnyFunction intercept_junctura(const char *function);

/* Allocates undefined memory, for free(). In large pages where it is large and the system has some: a fault for each small
 * page takes longer than the copy into it. NULL where there is none. */
void *intercept_memory(size_t bytes);

/* Returns the entry of a file in the report; equal paths and modes share one. Never NULL. */
FileReport *intercept_file(const char *path, const char *mode);

/* Counts an object that was offered, or received, of the file. */
void intercept_offered(FileReport *file, uint64_t bytes);
void intercept_received(FileReport *file, uint64_t bytes);

/* Notes that a function was left to the real library though its file is in the pool; said once on standard error. */
void intercept_fell_through(const char *function, const char *path);

/* States the rank of this process in the report. */
void intercept_rank(int rank);

#endif
