/* A text that grows. */
#ifndef JUNCTURA_TEXT_BUFFER_H
#define JUNCTURA_TEXT_BUFFER_H

#include <stdbool.h>
#include <stddef.h>

struct text_buffer {
    char *text;
    size_t bytes, room;
    /* An addition failed for want of memory; further ones have no effect. */
    bool failed;
};

void text_add(struct text_buffer *buffer, const char *text, size_t bytes);
void text_add_string(struct text_buffer *buffer, const char *text);
/* Adds a string of JSON: quoted, escaped, in UTF-8; a byte that is none becomes U+FFFD. */
void text_add_json(struct text_buffer *buffer, const char *text, size_t bytes);
void text_clear(struct text_buffer *buffer);
void text_free(struct text_buffer *buffer);

#endif
