/* SPDX-License-Identifier: Apache-2.0 */
/* The bytes of a message in the making. */
#ifndef KOHORT_WRITER_H
#define KOHORT_WRITER_H

#include "codec.h"

#include <string.h>

enum { FIRST_ROOM = 1024 };

/* The bytes so far: in `first` until there are more. */
typedef struct {
    uint8_t *bytes;
    size_t size;
    size_t room;
    const ColumnsClass *columns;
    uint8_t first[FIRST_ROOM];
} Writer;

static inline void
writer_begin(Writer *writer, const ColumnsClass *columns)
{
    writer->columns = columns;
    writer->bytes = writer->first;
    writer->size = 0;
    writer->room = FIRST_ROOM;
}

static inline void
writer_end(Writer *writer)
{
    if (writer->bytes != writer->first) {
        PyMem_Free(writer->bytes);
    }
}

static inline bool
grow(Writer *writer, size_t more)
{
    size_t room = writer->room;
    while (room - writer->size < more) {
        if (room > (size_t)PY_SSIZE_T_MAX / 2) {
            PyErr_NoMemory();
            return false;
        }
        room *= 2;
    }
    bool is_first = writer->bytes == writer->first;
    uint8_t *bytes = PyMem_Realloc(is_first ? NULL : writer->bytes, room);
    if (bytes == NULL) {
        PyErr_NoMemory();
        return false;
    }
    if (is_first) {
        memcpy(bytes, writer->first, writer->size);
    }
    writer->bytes = bytes;
    writer->room = room;
    return true;
}

/* Makes room for so many bytes more. */
static inline bool
reserve(Writer *writer, size_t more)
{
    return writer->room - writer->size >= more || grow(writer, more);
}

/* All that put something suppose that there is room for it. */
static inline void
put8(Writer *writer, uint8_t value)
{
    writer->bytes[writer->size++] = value;
}

static inline void
put16(Writer *writer, uint16_t value)
{
    put8(writer, (uint8_t)(value >> 8));
    put8(writer, (uint8_t)value);
}

static inline void
put32(Writer *writer, uint32_t value)
{
    put16(writer, (uint16_t)(value >> 16));
    put16(writer, (uint16_t)value);
}

static inline void
put64(Writer *writer, uint64_t value)
{
    put32(writer, (uint32_t)(value >> 32));
    put32(writer, (uint32_t)value);
}

static inline void
put_uvarint(Writer *writer, uint64_t value)
{
    for (; value > 127; value >>= 7) {
        put8(writer, (uint8_t)(value & 127) | 128);
    }
    put8(writer, (uint8_t)value);
}

static inline void
put_bytes(Writer *writer, const void *bytes, Py_ssize_t size)
{
    memcpy(writer->bytes + writer->size, bytes, (size_t)size);
    writer->size += (size_t)size;
}

#endif
