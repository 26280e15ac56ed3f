/* SPDX-License-Identifier: Apache-2.0 */
/* Messages to bytes.
 *
 * Attributes are read from their slots, and only of objects of exactly the class of the layout.
 * Numbers, texts and lists are taken where their type is the usual one. An array of structs may be
 * kept by field; then it is written without an object for each element.
 */

#include "writer.h"

/* An array whose elements are encoded elsewhere, and where what stands behind them begins. */
typedef struct {
    Py_ssize_t index;
    int64_t count;
    size_t split;
} Apart;

enum { MOST_COLUMNS = 8 };

static bool write_struct(Writer *writer, const Layout *layout, PyObject *message, Apart *apart);
static bool write_value(Writer *writer, const Field *field, PyObject *value, bool in_tag);

/* A length or a count, or nothing where its field has no room for it. There is room for ten bytes
 * in the writer. */
static inline bool
put_length(Writer *writer, const Field *field, bool array, int64_t length)
{
    bool is_short = !field->compact && !array && field->kind == STRING;
    if (length > (is_short ? INT16_MAX : INT32_MAX)) {
        return false;
    }
    if (field->compact) {
        put_uvarint(writer, (uint64_t)length + 1);
    }
    else if (is_short) {
        put16(writer, (uint16_t)length);
    }
    else {
        put32(writer, (uint32_t)length);
    }
    return true;
}

/* What stands for a null string, bytes or array. */
static bool
write_null(Writer *writer, const Field *field)
{
    if (!reserve(writer, 4)) {
        return false;
    }
    if (field->compact) {
        put8(writer, 0);
    }
    else if (!field->array && field->kind == STRING) {
        put16(writer, UINT16_MAX);
    }
    else {
        put32(writer, UINT32_MAX);
    }
    return true;
}

static inline bool
put_integer(Writer *writer, Kind kind, PyObject *value)
{
    int overflow;
    if (!PyLong_Check(value)) {
        return false;
    }
    long long number = PyLong_AsLongLongAndOverflow(value, &overflow);
    if (overflow) {
        return false;
    }
    switch (kind) {
    case INT8:
        put8(writer, (uint8_t)number);
        return number == (int8_t)number;
    case INT16:
        put16(writer, (uint16_t)number);
        return number == (int16_t)number;
    case INT32:
        put32(writer, (uint32_t)number);
        return number == (int32_t)number;
    default: /* INT64 */
        put64(writer, (uint64_t)number);
        return true;
    }
}

/* Anything of a fixed width. */
static bool
write_number(Writer *writer, Kind kind, PyObject *value)
{
    if (!reserve(writer, 16)) {
        return false;
    }
    switch (kind) {
    case BOOL:
        if (!PyBool_Check(value)) {
            return false;
        }
        put8(writer, value == Py_True);
        return true;
    case UUID:
        if (!PyBytes_CheckExact(value) || PyBytes_GET_SIZE(value) != 16) {
            return false;
        }
        put_bytes(writer, PyBytes_AS_STRING(value), 16);
        return true;
    case FLOAT64: {
        if (!PyFloat_CheckExact(value)) {
            return false;
        }
        double number = PyFloat_AS_DOUBLE(value);
        uint64_t bits;
        memcpy(&bits, &number, sizeof bits);
        put64(writer, bits);
        return true;
    }
    default:
        return put_integer(writer, kind, value);
    }
}

static bool
write_sized(Writer *writer, const Field *field, const char *bytes, Py_ssize_t size)
{
    if (!reserve(writer, (size_t)size + 10) || !put_length(writer, field, false, size)) {
        return false;
    }
    put_bytes(writer, bytes, size);
    return true;
}

/* A string or bytes. */
static bool
write_text(Writer *writer, const Field *field, PyObject *value)
{
    if (field->kind == BYTES) {
        return PyBytes_CheckExact(value)
               && write_sized(writer, field, PyBytes_AS_STRING(value), PyBytes_GET_SIZE(value));
    }
    if (!PyUnicode_Check(value)) {
        return false;
    }
    if (PyUnicode_IS_COMPACT_ASCII(value)) {
        return write_sized(writer, field, (const char *)PyUnicode_1BYTE_DATA(value),
                           PyUnicode_GET_LENGTH(value));
    }
    /* Not PyUnicode_AsUTF8: the text would keep its bytes as long as it lives. */
    PyObject *encoded = PyUnicode_AsUTF8String(value);
    if (encoded == NULL) {
        if (PyErr_ExceptionMatches(PyExc_UnicodeEncodeError)) {
            PyErr_Clear();
        }
        return false;
    }
    bool is_written =
        write_sized(writer, field, PyBytes_AS_STRING(encoded), PyBytes_GET_SIZE(encoded));
    Py_DECREF(encoded);
    return is_written;
}

/* The elements of a list, without their number. What is compared on the way may change the list:
 * so its size is looked at each time. */
static bool
write_elements(Writer *writer, const Field *field, PyObject *list)
{
    for (Py_ssize_t index = 0; index < PyList_GET_SIZE(list); index++) {
        PyObject *element = PyList_GET_ITEM(list, index);
        bool is_written;
        if (field->kind == STRUCT) {
            Py_INCREF(element);
            is_written = write_struct(writer, field->of, element, NULL);
            Py_DECREF(element);
        }
        else if (width_of(field->kind) > 0) {
            is_written = write_number(writer, field->kind, element);
        }
        else {
            is_written = write_text(writer, field, element);
        }
        if (!is_written) {
            return false;
        }
    }
    return true;
}

/* Whether a struct has numbers and texts alone, none of them in a tag. */
static bool
is_plain(const Layout *layout)
{
    for (Py_ssize_t index = 0; index < layout->count; index++) {
        const Field *field = &layout->fields[index];
        if (field->present && (field->array || field->kind == STRUCT)) {
            return false;
        }
    }
    return layout->tag_count == 0;
}

/* One field of all elements: a list, or an array of numbers of the module `array`. */
typedef struct {
    PyObject *list; /* NULL where it is an array */
    Py_buffer numbers;
    bool is_wide; /* of 64 bits, else of 32 */
} Column;

/* False where it is none of these. */
static bool
column_begin(Column *column, PyObject *value)
{
    column->list = PyList_CheckExact(value) ? Py_NewRef(value) : NULL;
    if (column->list != NULL) {
        return true;
    }
    if (PyObject_GetBuffer(value, &column->numbers, PyBUF_FORMAT | PyBUF_ND) < 0) {
        PyErr_Clear();
        return false;
    }
    const char *format = column->numbers.format != NULL ? column->numbers.format : "B";
    column->is_wide = strcmp(format, "q") == 0 && sizeof(long long) == sizeof(int64_t);
    bool is_narrow = strcmp(format, "i") == 0 && sizeof(int) == sizeof(int32_t);
    if (column->numbers.ndim != 1 || !(column->is_wide || is_narrow)) {
        PyBuffer_Release(&column->numbers);
        return false;
    }
    return true;
}

static void
column_end(Column *column)
{
    if (column->list != NULL) {
        Py_DECREF(column->list);
    }
    else {
        PyBuffer_Release(&column->numbers);
    }
}

static Py_ssize_t
column_size(const Column *column)
{
    return column->list != NULL ? PyList_GET_SIZE(column->list) : column->numbers.shape[0];
}

static bool
write_of_column(Writer *writer, const Field *field, const Column *column, Py_ssize_t row)
{
    if (column->list != NULL) {
        return write_value(writer, field, PyList_GET_ITEM(column->list, row), false);
    }
    const char *numbers = column->numbers.buf;
    int64_t number;
    if (column->is_wide) { /* copied: a view may begin at any address */
        memcpy(&number, numbers + row * 8, 8);
    }
    else {
        int32_t narrow;
        memcpy(&narrow, numbers + row * 4, 4);
        number = narrow;
    }
    if (!reserve(writer, 8)) {
        return false;
    }
    if (field->kind == INT64) {
        put64(writer, (uint64_t)number);
        return true;
    }
    put32(writer, (uint32_t)number);
    return field->kind == INT32 && number == (int32_t)number;
}

/* Elements by their columns, with their number in front: a field without a column has its default.
 * Nothing here runs code of others, so the columns stay as they are. */
static bool
write_rows(Writer *writer, const Field *field, const Column *columns, Py_ssize_t width)
{
    const Layout *layout = field->of;
    Py_ssize_t count = column_size(&columns[0]);
    for (Py_ssize_t column = 1; column < width; column++) {
        if (column_size(&columns[column]) != count) {
            return false;
        }
    }
    if (!reserve(writer, 10) || !put_length(writer, field, true, count)) {
        return false;
    }
    for (Py_ssize_t row = 0; row < count; row++) {
        for (Py_ssize_t index = 0; index < layout->count; index++) {
            const Field *own = &layout->fields[index];
            if (own->present
                && !(index < width ? write_of_column(writer, own, &columns[index], row)
                                   : write_value(writer, own, own->value, false))) {
                return false;
            }
        }
        if (layout->flexible) {
            if (!reserve(writer, 1)) {
                return false;
            }
            put8(writer, 0); /* no tags */
        }
    }
    return true;
}

/* An array whose elements are kept by field (kohort/wire/columns.py). */
static bool
write_columns(Writer *writer, const Field *field, PyObject *array)
{
    PyObject *of = *(PyObject **)((char *)array + writer->columns->of);
    PyObject *values = *(PyObject **)((char *)array + writer->columns->values);
    Column columns[MOST_COLUMNS];
    if (field->kind != STRUCT || of != (PyObject *)field->of->message || values == NULL
        || !PyTuple_CheckExact(values) || PyTuple_GET_SIZE(values) < 1
        || PyTuple_GET_SIZE(values) > Py_MIN(MOST_COLUMNS, field->of->count)
        || !is_plain(field->of)) {
        return false;
    }
    Py_INCREF(values);
    Py_ssize_t width = 0;
    while (width < PyTuple_GET_SIZE(values)
           && column_begin(&columns[width], PyTuple_GET_ITEM(values, width))) {
        width++;
    }
    bool is_written =
        width == PyTuple_GET_SIZE(values) && write_rows(writer, field, columns, width);
    while (width > 0) {
        column_end(&columns[--width]);
    }
    Py_DECREF(values);
    return is_written;
}

static bool
write_array(Writer *writer, const Field *field, PyObject *list)
{
    if (Py_TYPE(list) == writer->columns->type) {
        Py_INCREF(list);
        bool is_written = write_columns(writer, field, list);
        Py_DECREF(list);
        return is_written;
    }
    if (!PyList_CheckExact(list) || !reserve(writer, 10)
        || !put_length(writer, field, true, PyList_GET_SIZE(list))) {
        return false;
    }
    Py_INCREF(list);
    bool is_written = write_elements(writer, field, list);
    Py_DECREF(list);
    return is_written;
}

/* A struct that stands alone, behind the byte that says that it is there. */
static bool
write_nested(Writer *writer, const Field *field, PyObject *message, bool in_tag)
{
    if (field->nullable) {
        if (!reserve(writer, 1)) {
            return false;
        }
        if (message == Py_None) {
            put8(writer, in_tag ? 0 : UINT8_MAX);
            return true;
        }
        put8(writer, 1);
    }
    Py_INCREF(message);
    bool is_written = write_struct(writer, field->of, message, NULL);
    Py_DECREF(message);
    return is_written;
}

static bool
write_value(Writer *writer, const Field *field, PyObject *value, bool in_tag)
{
    if (value == NULL) {
        return false;
    }
    if (!field->array) {
        if (width_of(field->kind) > 0) {
            return write_number(writer, field->kind, value);
        }
        if (field->kind == STRUCT) {
            return write_nested(writer, field, value, in_tag);
        }
    }
    if (value == Py_None) {
        if (field->nullable) {
            return write_null(writer, field);
        }
        /* Null in other versions (JoinGroup's ProtocolName): here nothing says it. */
        return field->elsewhere_nullable && reserve(writer, 10)
               && put_length(writer, field, field->array, 0);
    }
    return field->array ? write_array(writer, field, value) : write_text(writer, field, value);
}

/* Whether a tagged field has its default: 1 or 0, or -1 for a value of a type that is not usual. */
static int
has_default(const Field *field, PyObject *value)
{
    if (value == NULL) {
        return -1;
    }
    if (field->value == Py_None || value == Py_None) {
        return field->value == value;
    }
    if (PyList_CheckExact(value) && PyList_CheckExact(field->value)) {
        return PyList_GET_SIZE(value) == 0 && PyList_GET_SIZE(field->value) == 0;
    }
    bool is_simple = PyLong_CheckExact(value) || PyUnicode_CheckExact(value)
                     || PyBytes_CheckExact(value) || PyBool_Check(value)
                     || PyFloat_CheckExact(value);
    bool is_struct = field->struct_default && Py_TYPE(value) == Py_TYPE(field->value);
    if (!is_simple && !is_struct) {
        return -1;
    }
    Py_INCREF(value);
    int is_equal = PyObject_RichCompareBool(value, field->value, Py_EQ);
    Py_DECREF(value);
    return is_equal;
}

/* One tagged field: its number, the size of its value, and the value. The size is known afterwards,
 * and the value then moves up behind it. */
static bool
write_tag(Writer *writer, const Field *field, PyObject *message)
{
    if (!reserve(writer, 2 * LONGEST_UVARINT)) {
        return false;
    }
    put_uvarint(writer, (uint64_t)field->tag);
    size_t place = writer->size;
    writer->size += LONGEST_UVARINT;
    size_t begin = writer->size;
    if (!write_value(writer, field, field_of(message, field), true)) {
        return false;
    }
    size_t size = writer->size - begin;
    if (size > UINT32_MAX) {
        return false;
    }
    writer->size = place;
    put_uvarint(writer, size);
    memmove(writer->bytes + writer->size, writer->bytes + begin, size);
    writer->size += size;
    return true;
}

static bool
write_tags(Writer *writer, const Layout *layout, PyObject *message)
{
    uint8_t written[MOST_FIELDS];
    Py_ssize_t count = 0;
    for (Py_ssize_t place = 0; place < layout->tag_count; place++) {
        const Field *field = &layout->fields[layout->tags[place]];
        int absent = field->always ? 0 : has_default(field, field_of(message, field));
        if (absent < 0) {
            return false;
        }
        if (!absent) {
            written[count++] = layout->tags[place];
        }
    }
    if (!reserve(writer, 1)) {
        return false;
    }
    put8(writer, (uint8_t)count);
    for (Py_ssize_t place = 0; place < count; place++) {
        if (!write_tag(writer, &layout->fields[written[place]], message)) {
            return false;
        }
    }
    return true;
}

/* All of a struct. With `apart`, the elements of one of its arrays are left out. */
static bool
write_struct(Writer *writer, const Layout *layout, PyObject *message, Apart *apart)
{
    if (Py_TYPE(message) != layout->message) {
        return false;
    }
    for (Py_ssize_t index = 0; index < layout->count; index++) {
        const Field *field = &layout->fields[index];
        if (!field->present || field->tag != NO_TAG) {
            continue;
        }
        if (apart != NULL && apart->index == index) {
            if (!reserve(writer, 10) || !put_length(writer, field, true, apart->count)) {
                return false;
            }
            apart->split = writer->size;
        }
        else if (!write_value(writer, field, field_of(message, field), false)) {
            return false;
        }
    }
    return !layout->flexible || write_tags(writer, layout, message);
}

/* Encodes messages of a class, whole or around one of their arrays, or hands the call over. */
typedef struct {
    PyObject_HEAD
    Layout *layout;
    Py_ssize_t array; /* which field; -1 for none */
    PyObject *hand_over;
} Encoder;

static PyObject *
encoder_new(PyTypeObject *type, PyObject *arguments, PyObject *keywords)
{
    static char *names[] = {"layout", "array", "hand_over", NULL};
    PyObject *layout, *hand_over;
    Py_ssize_t array;
    if (!PyArg_ParseTupleAndKeywords(arguments, keywords, "O!nO:Encoder", names,
                                     layout_type_of(type), &layout, &array, &hand_over)) {
        return NULL;
    }
    if (array < -1 || array >= ((Layout *)layout)->count) {
        return PyErr_Format(PyExc_ValueError, "there is no field %zd", array);
    }
    Encoder *encoder = (Encoder *)type->tp_alloc(type, 0);
    if (encoder == NULL) {
        return NULL;
    }
    encoder->layout = (Layout *)Py_NewRef(layout);
    encoder->array = array;
    encoder->hand_over = Py_NewRef(hand_over);
    return (PyObject *)encoder;
}

static PyObject *
bytes_of(const uint8_t *bytes, size_t size)
{
    return PyBytes_FromStringAndSize((const char *)bytes, (Py_ssize_t)size);
}

/* message -> bytes */
static PyObject *
encoder_encode(PyObject *self, PyObject *message)
{
    Encoder *encoder = (Encoder *)self;
    Writer writer;
    writer_begin(&writer, columns_class_of(Py_TYPE(self)));
    PyObject *encoded = NULL;
    if (write_struct(&writer, encoder->layout, message, NULL)) {
        encoded = bytes_of(writer.bytes, writer.size);
    }
    else if (!PyErr_Occurred()) {
        encoded = PyObject_CallOneArg(encoder->hand_over, message);
    }
    writer_end(&writer);
    return encoded;
}

/* The array that is encoded apart: one of structs or texts, among the plain fields. */
static const Field *
array_of(const Encoder *encoder)
{
    const Field *field = encoder->array < 0 ? NULL : &encoder->layout->fields[encoder->array];
    bool is_usual = field != NULL && field->present && field->array && field->tag == NO_TAG
                    && width_of(field->kind) == 0;
    return is_usual ? field : NULL;
}

/* message -> the bytes of the elements of its array */
static PyObject *
encoder_elements(PyObject *self, PyObject *message)
{
    Encoder *encoder = (Encoder *)self;
    Writer writer;
    writer_begin(&writer, columns_class_of(Py_TYPE(self)));
    PyObject *encoded = NULL;
    PyObject *list = NULL;
    const Field *field = array_of(encoder);
    if (field != NULL && Py_TYPE(message) == encoder->layout->message) {
        list = Py_XNewRef(field_of(message, field));
    }
    if (list != NULL && PyList_CheckExact(list) && write_elements(&writer, field, list)) {
        encoded = bytes_of(writer.bytes, writer.size);
    }
    else if (!PyErr_Occurred()) {
        encoded = PyObject_CallOneArg(encoder->hand_over, message);
    }
    Py_XDECREF(list);
    writer_end(&writer);
    return encoded;
}

/* (message, count) -> (the bytes before so many elements of its array, those behind them) */
static PyObject *
encoder_around(PyObject *self, PyObject *const *arguments, Py_ssize_t count)
{
    Encoder *encoder = (Encoder *)self;
    Apart apart = {.index = encoder->array, .count = -1, .split = 0};
    if (count == 2 && PyLong_CheckExact(arguments[1]) && array_of(encoder) != NULL) {
        int overflow;
        apart.count = PyLong_AsLongLongAndOverflow(arguments[1], &overflow);
    }
    PyObject *both = NULL;
    Writer writer;
    writer_begin(&writer, columns_class_of(Py_TYPE(self)));
    if (apart.count >= 0 && write_struct(&writer, encoder->layout, arguments[0], &apart)) {
        PyObject *before = bytes_of(writer.bytes, apart.split);
        PyObject *behind = bytes_of(writer.bytes + apart.split, writer.size - apart.split);
        if (before != NULL && behind != NULL) {
            both = PyTuple_Pack(2, before, behind);
        }
        Py_XDECREF(before);
        Py_XDECREF(behind);
    }
    else if (!PyErr_Occurred()) {
        both = PyObject_Vectorcall(encoder->hand_over, arguments, (size_t)count, NULL);
    }
    writer_end(&writer);
    return both;
}

static int
encoder_traverse(PyObject *self, visitproc visit, void *arg)
{
    Py_VISIT(Py_TYPE(self));
    Py_VISIT(((Encoder *)self)->layout);
    Py_VISIT(((Encoder *)self)->hand_over);
    return 0;
}

static void
encoder_dealloc(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);
    PyObject_GC_UnTrack(self);
    Py_XDECREF(((Encoder *)self)->layout);
    Py_XDECREF(((Encoder *)self)->hand_over);
    type->tp_free(self);
    Py_DECREF(type);
}

static PyMethodDef encoder_methods[] = {
    {"encode", encoder_encode, METH_O, "encode(message) -> bytes"},
    {"elements", encoder_elements, METH_O, "elements(message) -> bytes"},
    {"around", (PyCFunction)(void (*)(void))encoder_around, METH_FASTCALL,
     "around(message, count) -> (bytes, bytes)"},
    {NULL, NULL, 0, NULL},
};

/* It has no tp_clear, for the reasons of decoders. */
static PyType_Slot encoder_slots[] = {
    {Py_tp_doc, "Encodes messages of a class in one version."},
    {Py_tp_new, encoder_new},
    {Py_tp_methods, encoder_methods},
    {Py_tp_traverse, encoder_traverse},
    {Py_tp_dealloc, encoder_dealloc},
    {0, NULL},
};

PyType_Spec encoder_spec = {
    .name = "kohort.native._codec.Encoder",
    .basicsize = sizeof(Encoder),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_IMMUTABLETYPE,
    .slots = encoder_slots,
};
