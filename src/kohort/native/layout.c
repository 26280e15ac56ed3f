/* SPDX-License-Identifier: Apache-2.0 */
/* The table of a struct in one version, made of the rows that wire/native_codec.py gives. */

#include "codec.h"

#include <structmember.h>
#include <string.h>

/* A message class has slots, so each object has a field in the same place. */
bool
find_offset(PyTypeObject *type, PyObject *name, Py_ssize_t *offset)
{
    PyObject *found = PyObject_GetAttr((PyObject *)type, name);
    if (found == NULL) {
        return false;
    }
    bool is_slot = Py_TYPE(found) == &PyMemberDescr_Type
                   && ((PyMemberDescrObject *)found)->d_member->type == T_OBJECT_EX;
    if (is_slot) {
        *offset = ((PyMemberDescrObject *)found)->d_member->offset;
    }
    else {
        PyErr_Format(PyExc_TypeError, "%s.%U is not a slot", type->tp_name, name);
    }
    Py_DECREF(found);
    return is_slot;
}

/* Fill a field from its row. References are taken as soon as they are stored: `layout_clear` gives
 * them back, also after an error halfway. */
static bool
fill_field(Field *field, PyTypeObject *message, PyTypeObject *layout_type, PyObject *row)
{
    PyObject *name, *value, *of;
    const char *kind;
    int array, present, nullable, elsewhere_nullable, compact, always, tag;
    if (!PyTuple_Check(row)) {
        PyErr_SetString(PyExc_TypeError, "a row of a layout is a tuple");
        return false;
    }
    if (!PyArg_ParseTuple(row, "UspppppipOO", &name, &kind, &array, &present, &nullable,
                          &elsewhere_nullable, &compact, &tag, &always, &value, &of)) {
        return false;
    }
    field->kind = (Kind)kind[0];
    field->array = array;
    field->present = present;
    field->nullable = nullable;
    field->elsewhere_nullable = elsewhere_nullable;
    field->compact = compact;
    field->always = always;
    field->tag = tag < 0 ? NO_TAG : tag;
    field->value = Py_NewRef(value);
    int is_struct = PyObject_HasAttrString((PyObject *)Py_TYPE(value), "__struct_fields__");
    field->struct_default = is_struct;
    if (of != Py_None) {
        if (Py_TYPE(of) != layout_type) {
            PyErr_Format(PyExc_TypeError, "%U is of %s, not of a layout", name,
                         Py_TYPE(of)->tp_name);
            return false;
        }
        field->of = (Layout *)Py_NewRef(of);
    }
    if (strlen(kind) != 1 || strchr("?bhiqdusyo", kind[0]) == NULL
        || (field->kind == STRUCT && field->present && field->of == NULL)) {
        PyErr_Format(PyExc_ValueError, "%U has the kind %s", name, kind);
        return false;
    }
    return find_offset(message, name, &field->offset);
}

/* How many bytes a plain field takes at least: a list is as short as its count. */
static Py_ssize_t
smallest_of(const Field *field)
{
    if (!field->array && width_of(field->kind) > 0) {
        return width_of(field->kind);
    }
    if (!field->array && field->kind == STRUCT) {
        return field->nullable ? 1 : field->of->smallest;
    }
    if (field->compact) {
        return 1;
    }
    return !field->array && field->kind == STRING ? 2 : 4;
}

/* Note which fields are tagged, in the order of their tags, and how short the struct may be. */
static void
survey(Layout *layout)
{
    layout->smallest = layout->flexible ? 1 : 0;
    for (Py_ssize_t index = 0; index < layout->count; index++) {
        const Field *field = &layout->fields[index];
        if (!field->present) {
            continue;
        }
        if (field->tag == NO_TAG) {
            layout->smallest += smallest_of(field);
            continue;
        }
        Py_ssize_t place = layout->tag_count++;
        while (place > 0 && layout->fields[layout->tags[place - 1]].tag > field->tag) {
            layout->tags[place] = layout->tags[place - 1];
            place--;
        }
        layout->tags[place] = (uint8_t)index;
    }
}

static PyObject *
layout_new(PyTypeObject *type, PyObject *arguments, PyObject *keywords)
{
    static char *names[] = {"message", "flexible", "rows", NULL};
    PyObject *message, *rows;
    int flexible;
    if (!PyArg_ParseTupleAndKeywords(arguments, keywords, "O!pO!:Layout", names, &PyType_Type,
                                     &message, &flexible, &PyTuple_Type, &rows)) {
        return NULL;
    }
    Py_ssize_t count = PyTuple_GET_SIZE(rows);
    if (count > MOST_FIELDS) {
        return PyErr_Format(PyExc_ValueError, "%s has %zd fields, expected at most %d",
                            ((PyTypeObject *)message)->tp_name, count, MOST_FIELDS);
    }
    Layout *layout = (Layout *)type->tp_alloc(type, 0);
    if (layout == NULL) {
        return NULL;
    }
    layout->message = (PyTypeObject *)Py_NewRef(message);
    layout->flexible = flexible;
    layout->fields = PyMem_Calloc(count > 0 ? (size_t)count : 1, sizeof(Field));
    if (layout->fields == NULL) {
        Py_DECREF(layout);
        return PyErr_NoMemory();
    }
    for (; layout->count < count; layout->count++) {
        Field *field = &layout->fields[layout->count];
        PyObject *row = PyTuple_GET_ITEM(rows, layout->count);
        if (!fill_field(field, layout->message, type, row)) {
            layout->count++; /* what it has of this one is given back as well */
            Py_DECREF(layout);
            return NULL;
        }
    }
    survey(layout);
    return (PyObject *)layout;
}

static int
layout_traverse(PyObject *self, visitproc visit, void *arg)
{
    Layout *layout = (Layout *)self;
    Py_VISIT(Py_TYPE(self));
    Py_VISIT(layout->message);
    for (Py_ssize_t index = 0; index < layout->count; index++) {
        Py_VISIT(layout->fields[index].value);
        Py_VISIT(layout->fields[index].of);
    }
    return 0;
}

static void
layout_dealloc(PyObject *self)
{
    Layout *layout = (Layout *)self;
    PyTypeObject *type = Py_TYPE(self);
    PyObject_GC_UnTrack(self);
    for (Py_ssize_t index = 0; index < layout->count; index++) {
        Py_XDECREF(layout->fields[index].value);
        Py_XDECREF(layout->fields[index].of);
    }
    PyMem_Free(layout->fields);
    Py_XDECREF(layout->message);
    type->tp_free(self);
    Py_DECREF(type);
}

/* It has no tp_clear: it is made at once of what there was before, so that no circle of references
 * consists of layouts alone. */
static PyType_Slot layout_slots[] = {
    {Py_tp_doc, "The table of a struct in one version."},
    {Py_tp_new, layout_new},
    {Py_tp_traverse, layout_traverse},
    {Py_tp_dealloc, layout_dealloc},
    {0, NULL},
};

PyType_Spec layout_spec = {
    .name = "kohort.native._codec.Layout",
    .basicsize = sizeof(Layout),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_IMMUTABLETYPE,
    .slots = layout_slots,
};
