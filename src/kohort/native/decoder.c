/* SPDX-License-Identifier: Apache-2.0 */
/* Bytes to messages.
 *
 * Every byte may be hostile. Nothing is read before it is known to be there, nothing is allocated
 * for elements that the bytes left could not hold, and nothing recurses deeper than the layouts.
 */

#include "codec.h"

#include <string.h>

typedef struct {
    const uint8_t *at;
    const uint8_t *end;
    int64_t left;         /* elements that may still come */
    const char *on_error; /* of text that is not UTF-8, as `bytes.decode` has it */
} Reader;

static PyObject *read_struct(Reader *reader, const Layout *layout);

static inline bool
has(const Reader *reader, int64_t bytes)
{
    return bytes <= reader->end - reader->at;
}

static inline uint16_t
get16(const uint8_t *at)
{
    return (uint16_t)(at[0] << 8 | at[1]);
}

static inline uint32_t
get32(const uint8_t *at)
{
    return (uint32_t)get16(at) << 16 | get16(at + 2);
}

static inline uint64_t
get64(const uint8_t *at)
{
    return (uint64_t)get32(at) << 32 | get32(at + 4);
}

/* An unsigned varint of at most five bytes: up to 35 bits, as in the Python codec. */
static bool
read_uvarint(Reader *reader, uint64_t *value)
{
    uint64_t result = 0;
    for (int shift = 0; shift < 7 * LONGEST_UVARINT; shift += 7) {
        if (!has(reader, 1)) {
            return false;
        }
        uint8_t byte = *reader->at++;
        result |= (uint64_t)(byte & 127) << shift;
        if (byte < 128) {
            *value = result;
            return true;
        }
    }
    return false;
}

/* A length or a count; -1 is a null. */
static bool
read_length(Reader *reader, const Field *field, bool array, int64_t *length)
{
    if (field->compact) {
        uint64_t value;
        if (!read_uvarint(reader, &value)) {
            return false;
        }
        *length = (int64_t)value - 1;
        return true;
    }
    Py_ssize_t width = !array && field->kind == STRING ? 2 : 4;
    if (!has(reader, width)) {
        return false;
    }
    *length = width == 2 ? (int16_t)get16(reader->at) : (int32_t)get32(reader->at);
    reader->at += width;
    return true;
}

/* The caller knows that its bytes are there. */
static PyObject *
number_at(Kind kind, const uint8_t *at)
{
    switch (kind) {
    case BOOL:
        return Py_NewRef(*at ? Py_True : Py_False);
    case INT8:
        return PyLong_FromLong((int8_t)*at);
    case INT16:
        return PyLong_FromLong((int16_t)get16(at));
    case INT32:
        return PyLong_FromLong((int32_t)get32(at));
    case INT64:
        return PyLong_FromLongLong((int64_t)get64(at));
    case FLOAT64: {
        uint64_t bits = get64(at);
        double value;
        memcpy(&value, &bits, sizeof value);
        return PyFloat_FromDouble(value);
    }
    default: /* UUID */
        return PyBytes_FromStringAndSize((const char *)at, 16);
    }
}

/* A string or bytes of a length that is not negative. */
static PyObject *
read_text(Reader *reader, const Field *field, int64_t length)
{
    if (!has(reader, length)) {
        return NULL;
    }
    const char *at = (const char *)reader->at;
    reader->at += length;
    if (field->kind == BYTES) {
        return PyBytes_FromStringAndSize(at, (Py_ssize_t)length);
    }
    PyObject *text = PyUnicode_DecodeUTF8(at, (Py_ssize_t)length, reader->on_error);
    if (text == NULL && PyErr_ExceptionMatches(PyExc_UnicodeDecodeError)) {
        PyErr_Clear();
    }
    return text;
}

/* The elements of an array, whose count is not negative. */
static PyObject *
read_elements(Reader *reader, const Field *field, int64_t count)
{
    Py_ssize_t smallest = field->kind == STRUCT ? field->of->smallest : width_of(field->kind);
    smallest = smallest > 0 ? smallest : 1; /* a string has a length; a struct may have nothing */
    if (count > reader->left || count > (reader->end - reader->at) / smallest) {
        return NULL;
    }
    reader->left -= count;
    PyObject *list = PyList_New((Py_ssize_t)count);
    if (list == NULL) {
        return NULL;
    }
    for (Py_ssize_t index = 0; index < (Py_ssize_t)count; index++) {
        PyObject *element = NULL;
        int64_t length;
        if (field->kind == STRUCT) {
            element = read_struct(reader, field->of);
        }
        else if (width_of(field->kind) > 0) {
            element = number_at(field->kind, reader->at);
            reader->at += width_of(field->kind);
        }
        else if (read_length(reader, field, false, &length) && length >= 0) {
            element = read_text(reader, field, length);
        }
        if (element == NULL) {
            Py_DECREF(list);
            return NULL;
        }
        PyList_SET_ITEM(list, index, element);
    }
    return list;
}

/* A struct that stands alone. Where it may be null, a byte says whether it is: among the tags 0
 * says so, elsewhere a negative one. */
static PyObject *
read_nested(Reader *reader, const Field *field, bool in_tag)
{
    if (field->nullable) {
        if (!has(reader, 1)) {
            return NULL;
        }
        uint8_t mark = *reader->at++;
        if (in_tag ? mark == 0 : mark > 127) {
            Py_RETURN_NONE;
        }
    }
    return read_struct(reader, field->of);
}

static PyObject *
read_value(Reader *reader, const Field *field, bool in_tag)
{
    if (!field->array) {
        Py_ssize_t width = width_of(field->kind);
        if (width > 0) {
            if (!has(reader, width)) {
                return NULL;
            }
            PyObject *number = number_at(field->kind, reader->at);
            reader->at += width;
            return number;
        }
        if (field->kind == STRUCT) {
            return read_nested(reader, field, in_tag);
        }
    }
    int64_t length;
    if (!read_length(reader, field, field->array, &length)) {
        return NULL;
    }
    if (length < 0) {
        if (field->nullable && length == -1) {
            Py_RETURN_NONE;
        }
        return NULL;
    }
    return field->array ? read_elements(reader, field, length) : read_text(reader, field, length);
}

/* The tagged fields. Their size says where the next one stands, whatever was read of this one; a
 * tag may come twice, and then the last one holds; one that is not known is skipped. */
static bool
read_tags(Reader *reader, const Layout *layout, PyObject **values)
{
    uint64_t count, tag, size;
    if (!read_uvarint(reader, &count) || (int64_t)count > reader->left) {
        return false;
    }
    reader->left -= (int64_t)count;
    for (; count > 0; count--) {
        if (!read_uvarint(reader, &tag) || !read_uvarint(reader, &size)
            || !has(reader, (int64_t)size)) {
            return false;
        }
        const uint8_t *next = reader->at + size;
        for (Py_ssize_t place = 0; place < layout->tag_count; place++) {
            const Field *field = &layout->fields[layout->tags[place]];
            if ((uint64_t)field->tag == tag) {
                PyObject *value = read_value(reader, field, true);
                if (value == NULL) {
                    return false;
                }
                Py_XSETREF(values[layout->tags[place]], value);
            }
        }
        reader->at = next;
    }
    return true;
}

static PyObject *
default_of(const Field *field)
{
    if (PyList_Check(field->value)) {
        return PyList_New(0);
    }
    if (field->struct_default) {
        return PyObject_CallNoArgs((PyObject *)Py_TYPE(field->value));
    }
    return Py_NewRef(field->value);
}

static PyObject *
read_struct(Reader *reader, const Layout *layout)
{
    PyObject *values[MOST_FIELDS];
    PyObject *message = NULL;
    memset(values, 0, (size_t)layout->count * sizeof(PyObject *));
    for (Py_ssize_t index = 0; index < layout->count; index++) {
        const Field *field = &layout->fields[index];
        if (field->present && field->tag == NO_TAG) {
            values[index] = read_value(reader, field, false);
            if (values[index] == NULL) {
                goto done;
            }
        }
    }
    if (layout->flexible && !read_tags(reader, layout, values)) {
        goto done;
    }
    /* The class itself fills in what is missing at the end, as it is in most old versions. */
    Py_ssize_t given = layout->count;
    while (given > 0 && values[given - 1] == NULL) {
        given--;
    }
    for (Py_ssize_t index = 0; index < given; index++) {
        if (values[index] == NULL) {
            values[index] = default_of(&layout->fields[index]);
            if (values[index] == NULL) {
                goto done;
            }
        }
    }
    message = PyObject_Vectorcall((PyObject *)layout->message, values, (size_t)given, NULL);
done:
    for (Py_ssize_t index = 0; index < layout->count; index++) {
        Py_XDECREF(values[index]);
    }
    return message;
}

/* Decodes a message, with its bound of elements, or hands the call over. */
typedef struct {
    PyObject_HEAD
    Layout *layout;
    int64_t most;
    bool lenient;
    PyObject *hand_over;
} Decoder;

static PyObject *
decoder_new(PyTypeObject *type, PyObject *arguments, PyObject *keywords)
{
    static char *names[] = {"layout", "most", "lenient", "hand_over", NULL};
    PyObject *layout, *hand_over;
    long long most;
    int lenient;
    if (!PyArg_ParseTupleAndKeywords(arguments, keywords, "O!LpO:Decoder", names,
                                     layout_type_of(type), &layout, &most, &lenient,
                                     &hand_over)) {
        return NULL;
    }
    Decoder *decoder = (Decoder *)type->tp_alloc(type, 0);
    if (decoder == NULL) {
        return NULL;
    }
    decoder->layout = (Layout *)Py_NewRef(layout);
    decoder->most = most;
    decoder->lenient = lenient;
    decoder->hand_over = Py_NewRef(hand_over);
    return (PyObject *)decoder;
}

/* The message, whose reference it takes, and the position behind it. */
static PyObject *
with_end(PyObject *message, Py_ssize_t end)
{
    PyObject *position = PyLong_FromSsize_t(end);
    PyObject *both = position == NULL ? NULL : PyTuple_New(2);
    if (both == NULL) {
        Py_XDECREF(position);
        Py_DECREF(message);
        return NULL;
    }
    PyTuple_SET_ITEM(both, 0, message);
    PyTuple_SET_ITEM(both, 1, position);
    return both;
}

/* (bytes, start) -> (message, end) */
static PyObject *
decoder_decode(PyObject *self, PyObject *const *arguments, Py_ssize_t count)
{
    Decoder *decoder = (Decoder *)self;
    PyObject *message = NULL;
    if (count == 2 && PyBytes_CheckExact(arguments[0]) && PyLong_CheckExact(arguments[1])) {
        const uint8_t *bytes = (const uint8_t *)PyBytes_AS_STRING(arguments[0]);
        Py_ssize_t size = PyBytes_GET_SIZE(arguments[0]);
        Py_ssize_t start = PyLong_AsSsize_t(arguments[1]);
        if (start < 0 && PyErr_Occurred()) {
            PyErr_Clear(); /* no position at all */
        }
        if (start >= 0 && start <= size) {
            Reader reader = {
                .at = bytes + start,
                .end = bytes + size,
                .left = decoder->most,
                .on_error = decoder->lenient ? "replace" : NULL,
            };
            message = read_struct(&reader, decoder->layout);
            if (message != NULL) {
                return with_end(message, reader.at - bytes);
            }
        }
    }
    if (PyErr_Occurred()) {
        return NULL;
    }
    return PyObject_Vectorcall(decoder->hand_over, arguments, (size_t)count, NULL);
}

static int
decoder_traverse(PyObject *self, visitproc visit, void *arg)
{
    Py_VISIT(Py_TYPE(self));
    Py_VISIT(((Decoder *)self)->layout);
    Py_VISIT(((Decoder *)self)->hand_over);
    return 0;
}

static void
decoder_dealloc(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);
    PyObject_GC_UnTrack(self);
    Py_XDECREF(((Decoder *)self)->layout);
    Py_XDECREF(((Decoder *)self)->hand_over);
    type->tp_free(self);
    Py_DECREF(type);
}

static PyMethodDef decoder_methods[] = {
    {"decode", (PyCFunction)(void (*)(void))decoder_decode, METH_FASTCALL,
     "decode(data, start) -> (message, end)"},
    {NULL, NULL, 0, NULL},
};

/* It has no tp_clear: a circle of references through `hand_over` has a function or a dict in it,
 * and a decoder without its `hand_over` could not be called any more. */
static PyType_Slot decoder_slots[] = {
    {Py_tp_doc, "Decodes a message in one version."},
    {Py_tp_new, decoder_new},
    {Py_tp_methods, decoder_methods},
    {Py_tp_traverse, decoder_traverse},
    {Py_tp_dealloc, decoder_dealloc},
    {0, NULL},
};

PyType_Spec decoder_spec = {
    .name = "kohort.native._codec.Decoder",
    .basicsize = sizeof(Decoder),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_IMMUTABLETYPE,
    .slots = decoder_slots,
};
