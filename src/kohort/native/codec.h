/* SPDX-License-Identifier: Apache-2.0 */
/* The codec in C: messages to bytes and back, by tables that are made of the message classes.
 *
 * It takes what is well formed and of the usual types, and hands everything else over to the codec
 * in Python: bytes that are no message, a number too large for its field, a list that is a tuple.
 * So each refusal is the Python codec's, with its exception and its text, and nothing here says
 * what is wrong with anything. What matters is the other direction: here nothing may succeed that
 * the Python codec refuses, or give another result.
 *
 * The convention for that: a function that cannot go on returns NULL or false. If an exception is
 * set then, it is the caller's (memory has run out); if none is set, the whole call is handed over.
 *
 * While a message is encoded, code of others runs at one place only: where a tagged struct is
 * compared with its default. So whatever is followed from an object to its parts is held meanwhile.
 */
#ifndef KOHORT_CODEC_H
#define KOHORT_CODEC_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdbool.h>
#include <stdint.h>

/* What a field holds: the letter of its row in the table (kohort/wire/native_codec.py). */
typedef enum {
    BOOL = '?',
    INT8 = 'b',
    INT16 = 'h',
    INT32 = 'i',
    INT64 = 'q',
    FLOAT64 = 'd',
    UUID = 'u',
    STRING = 's',
    BYTES = 'y',
    STRUCT = 'o',
} Kind;

/* Of the interface to Python. kohort/native/choice.py has the same number: a module that was built
 * of older sources, and still lies in the tree, is not used. */
enum { REVISION = 2 };

enum { MOST_FIELDS = 64, NO_TAG = -1, LONGEST_UVARINT = 5 };

typedef struct Layout Layout;

/* A field of a struct in one version. */
typedef struct {
    Kind kind;
    bool array;    /* a list of these */
    bool present;  /* this version has it */
    bool nullable; /* it may be null in this version */
    bool elsewhere_nullable; /* in others: None is written as what is empty */
    bool compact;  /* its length is a varint */
    bool always;   /* a tagged field that is written even where it has its default */
    int32_t tag;   /* NO_TAG: it stands among the plain fields */
    Py_ssize_t offset; /* of its value in the object */
    PyObject *value;   /* its default: a list means a new, empty one, a struct a new one */
    bool struct_default;
    Layout *of; /* of the structs that it holds; NULL for other kinds, and where it is absent */
} Field;

/* A struct in one version, with its fields in the order of the wire. */
struct Layout {
    PyObject_HEAD
    PyTypeObject *message;
    bool flexible;
    Py_ssize_t count;
    Field *fields;
    Py_ssize_t tag_count;
    uint8_t tags[MOST_FIELDS]; /* which fields are tagged, in the order of their tags */
    Py_ssize_t smallest;       /* how many bytes the shortest of them has */
};

/* How many bytes a number takes, or 0 for what has no fixed width. */
static inline Py_ssize_t
width_of(Kind kind)
{
    switch (kind) {
    case BOOL:
    case INT8:
        return 1;
    case INT16:
        return 2;
    case INT32:
        return 4;
    case INT64:
    case FLOAT64:
        return 8;
    case UUID:
        return 16;
    default:
        return 0;
    }
}

/* The value of a field, borrowed; NULL where somebody has deleted the attribute. */
static inline PyObject *
field_of(PyObject *message, const Field *field)
{
    return *(PyObject **)((char *)message + field->offset);
}

/* The class kohort.wire.columns.Columns, and where its objects have their attributes. */
typedef struct {
    PyTypeObject *type; /* NULL as long as nobody has named it */
    Py_ssize_t of;
    Py_ssize_t values;
} ColumnsClass;

/* layout.c */
extern PyType_Spec layout_spec;

/* Where the objects of a class have an attribute that is a slot; else false, with an exception. */
bool find_offset(PyTypeObject *type, PyObject *name, Py_ssize_t *offset);

/* decoder.c: the type of decoders, and what it is made of. */
extern PyType_Spec decoder_spec;

/* encoder.c */
extern PyType_Spec encoder_spec;

/* module.c: the type of layouts, and the class of columns, of the module that made this type. */
PyTypeObject *layout_type_of(PyTypeObject *type);
const ColumnsClass *columns_class_of(PyTypeObject *type);

#endif
