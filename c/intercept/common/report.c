/* The report of a process: one JSON file in the folder that JUNCTURA_INTERCEPT_REPORT names, written at exit. */
#define _GNU_SOURCE
#include "intercept.h"

#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "state.h"

struct FileReport {
    char *path;
    char *mode;
    uint64_t offered, offered_bytes, received, received_bytes;
    FileReport *next;
};

typedef struct FallenFunction {
    const char *function;
    struct FallenFunction *next;
} FallenFunction;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static const char *library = "intercept";
static FileReport *files;
static FallenFunction *fallen;
static int own_rank = -1;
static FileReport nothing;

const char *intercept_library(void) { return library; }

void intercept_begin(const char *name) { library = name; }

void intercept_rank(int rank) { own_rank = rank; }

FileReport *intercept_file(const char *path, const char *mode) {
    pthread_mutex_lock(&lock);
    FileReport *file = files;
    while (file && (strcmp(file->path, path) != 0 || strcmp(file->mode, mode) != 0)) file = file->next;
    if (!file && (file = calloc(1, sizeof *file))) {
        file->path = strdup(path);
        file->mode = strdup(mode);
        if (file->path && file->mode) {
            file->next = files;
            files = file;
        } else {
            file = NULL;
        }
    }
    pthread_mutex_unlock(&lock);
    return file ? file : &nothing;
}

void intercept_offered(FileReport *file, uint64_t bytes) {
    pthread_mutex_lock(&lock);
    file->offered++;
    file->offered_bytes += bytes;
    pthread_mutex_unlock(&lock);
}

void intercept_received(FileReport *file, uint64_t bytes) {
    pthread_mutex_lock(&lock);
    file->received++;
    file->received_bytes += bytes;
    pthread_mutex_unlock(&lock);
}

void intercept_fell_through(const char *function, const char *path) {
    pthread_mutex_lock(&lock);
    FallenFunction *one = fallen;
    while (one && strcmp(one->function, function) != 0) one = one->next;
    if (!one && (one = malloc(sizeof *one))) {
        *one = (FallenFunction){function, fallen};
        fallen = one;
    }
    pthread_mutex_unlock(&lock);
    intercept_say_once("%s of %s is not intercepted: the real library executes it", function, path);
}

static void print_text(FILE *out, const char *text) {
    fputc('"', out);
    for (const unsigned char *at = (const unsigned char *)text; *at; at++) {
        if (*at == '"' || *at == '\\') fprintf(out, "\\%c", *at);
        else if (*at < 0x20) fprintf(out, "\\u%04x", *at);
        else fputc(*at, out);
    }
    fputc('"', out);
}

static void print_report(FILE *out) {
    fputs("{\"library\": ", out);
    print_text(out, library);
    fputs(", \"program\": ", out);
    print_text(out, program_invocation_name);
    fprintf(out, ", \"pid\": %ld, \"rank\": ", (long)getpid());
    if (own_rank < 0) fputs("null", out);
    else fprintf(out, "%d", own_rank);
    fputs(", \"files\": [", out);
    for (FileReport *file = files; file; file = file->next) {
        fputs(file == files ? "{\"path\": " : ", {\"path\": ", out);
        print_text(out, file->path);
        fputs(", \"mode\": ", out);
        print_text(out, file->mode);
        fprintf(out, ", \"offered\": %llu, \"offered_bytes\": %llu, \"received\": %llu, \"received_bytes\": %llu}",
                (unsigned long long)file->offered, (unsigned long long)file->offered_bytes,
                (unsigned long long)file->received, (unsigned long long)file->received_bytes);
    }
    fputs("], \"fallen_through\": [", out);
    for (FallenFunction *one = fallen; one; one = one->next) {
        if (one != fallen) fputs(", ", out);
        print_text(out, one->function);
    }
    fputs("]}\n", out);
}

/* A child reports what it does itself. */
static void forget_all(void) {
    pthread_mutex_init(&lock, NULL);
    files = NULL;
    fallen = NULL;
}

__attribute__((constructor)) static void watch_forks(void) { pthread_atfork(NULL, NULL, forget_all); }

/* Written under another name first, so that a reader never sees a part. */
__attribute__((destructor)) static void write_report(void) {
    const char *folder = getenv("JUNCTURA_INTERCEPT_REPORT");
    if (!folder || !*folder || (!files && !fallen)) return;
    char host[HOST_NAME_MAX + 1] = "", path[PATH_MAX], draft[PATH_MAX + 8];
    gethostname(host, sizeof host - 1);
    snprintf(path, sizeof path, "%s/%s-%s-%ld.json", folder, library, host, (long)getpid());
    snprintf(draft, sizeof draft, "%s.draft", path);
    FILE *out = fopen(draft, "w");
    if (!out) return;
    print_report(out);
    if (fclose(out) == 0) rename(draft, path);
}
