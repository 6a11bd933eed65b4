#include "text_buffer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void text_add(struct text_buffer *buffer, const char *text, size_t bytes) {
    if (buffer->failed)
        return;
    if (buffer->room - buffer->bytes < bytes) {
        size_t room = (buffer->bytes + bytes) * 2 + 256;
        char *grown = realloc(buffer->text, room);

        if (!grown) {
            buffer->failed = true;
            return;
        }
        buffer->text = grown;
        buffer->room = room;
    }
    memcpy(buffer->text + buffer->bytes, text, bytes);
    buffer->bytes += bytes;
}

void text_add_string(struct text_buffer *buffer, const char *text) {
    text_add(buffer, text, strlen(text));
}

/* The bytes of the character in UTF-8 that begins here; 0 where none does. */
static size_t character(const unsigned char *text, size_t bytes) {
    size_t length = text[0] < 0x80 ? 1 : text[0] < 0xc2 ? 0 : text[0] < 0xe0 ? 2 : text[0] < 0xf0 ? 3 : text[0] < 0xf5 ? 4 : 0;

    if (length > bytes)
        return 0;
    for (size_t i = 1; i < length; i++)
        if ((text[i] & 0xc0) != 0x80)
            return 0;
    /* Overlong forms, surrogates, and what is beyond Unicode. */
    if ((text[0] == 0xe0 && text[1] < 0xa0) || (text[0] == 0xed && text[1] > 0x9f) ||
        (text[0] == 0xf0 && text[1] < 0x90) || (text[0] == 0xf4 && text[1] > 0x8f))
        return 0;
    return length;
}

void text_add_json(struct text_buffer *buffer, const char *text, size_t bytes) {
    text_add_string(buffer, "\"");
    for (size_t at = 0; at < bytes;) {
        unsigned char byte = (unsigned char)text[at];
        size_t length = character((const unsigned char *)text + at, bytes - at);
        char escaped[8];

        if (length == 0) {
            text_add_string(buffer, "\xef\xbf\xbd");
        } else if (byte == '"' || byte == '\\') {
            escaped[0] = '\\', escaped[1] = (char)byte;
            text_add(buffer, escaped, 2);
        } else if (byte < 0x20) {
            snprintf(escaped, sizeof escaped, "\\u%04x", byte);
            text_add(buffer, escaped, 6);
        } else {
            text_add(buffer, text + at, length);
        }
        at += length ? length : 1;
    }
    text_add_string(buffer, "\"");
}

void text_clear(struct text_buffer *buffer) {
    buffer->bytes = 0;
    buffer->failed = false;
}

void text_free(struct text_buffer *buffer) {
    free(buffer->text);
    memset(buffer, 0, sizeof *buffer);
}
